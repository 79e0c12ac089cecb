//! Looks at every request, at every plan, and at everything once a second, and remembers the first thing
//! that must not be.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use allocations::Owner;
use tokio::sync::Notify;

use self::autoscalers::AutoscaledTarget;
use super::api_server_proxy::is_write;
use super::check::InvariantViolation;
use super::check::claims::{self, Sent};
use super::check::kept::Lately;
use super::check::known::Content;
use super::check::series::{self, ExposedSeries};
use super::fleet::Fleet;
use super::process_checker::{Cluster, KEPT_EVERY, LOOK_EVERY, ProcessChecker};
use super::scale_to_zero::{Sleep, Use, ZeroPolicies};
use super::surroundings::Surroundings;
use super::trace::Trace;
use super::workload::ChaosWorkload;
use crate::apiserver::Insider;
use crate::threads::locked;
use crate::world::controller::ControllerView;
use wva::policy::key::VariantKey;
use wva::state::PlanProposal;
use wva_supervise::{Clock, TreeRole as _};

mod autoscalers;
mod ends;
mod examine;

const PAGE_EVERY: u64 = 3;

pub(super) type Met = BTreeMap<&'static str, BTreeMap<String, u64>>;

#[derive(Clone)]
pub(super) struct Checker(Arc<Inner>);

struct Inner {
    clock: Clock,
    insider: Insider,
    trace: Trace,
    bench: Mutex<CheckerState>,
    /// Notified of what must not be: it may go on without end while no time passes.
    over: Arc<Notify>,
}

#[derive(Default)]
struct CheckerState {
    seats: BTreeMap<usize, ProcessChecker>,
    found: Option<(Duration, InvariantViolation)>,
    around: Option<Arc<Surroundings>>,
    /// When the bounds of each variant last allowed it to have no replicas.
    zero: BTreeMap<VariantKey, Duration>,
    policies: ZeroPolicies,
    led: Duration,
    /// When who led has ended in order, with nothing in its way, and no process has led since.
    vacant: Option<Duration>,
    sleep: Option<Sleep>,
    fleet: Fleet,
    autoscaled: Vec<AutoscaledTarget>,
    lately: Lately,
    content: Content,
    instance: Option<&'static str>,
    counts: Counts,
    owners: Vec<(usize, Owner)>,
    met: Met,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) writes: u64,
    pub(crate) plans: u64,
    pub(crate) held: usize,
}

wva_base::debug_of!(Checker:);

#[derive(Debug, Clone)]
pub(super) struct RequestObserver {
    pub(super) judge: Checker,
    pub(super) place: usize,
    pub(super) pod: String,
}

impl RequestObserver {
    pub(super) fn called(&self, sent: &Sent<'_>) {
        if is_write(sent.method) {
            self.judge.writes(self.place, &self.pod, sent);
        } else {
            self.judge.0.trace.read(self.place, sent);
        }
        self.counted(sent);
        // T7. One that is about to end has no time left to wait.
        self.judged(|seat, now| {
            if seat.leaving {
                return None;
            }
            seat.spared.judge(sent, seat.door.actors.lives(), now)
        });
    }

    /// W4: a request that came late has changed an object that others had changed since it was sent.
    pub(super) fn overwritten(&self, path: &str) {
        let text = format!(
            "a write of c{} that came late has replaced what was stored since at {path}",
            self.place
        );
        self.judge.report(InvariantViolation::new("W4", text));
    }

    fn counted(&self, request: &Sent<'_>) {
        let judge = &self.judge;
        let now = judge.now();
        let found = {
            let mut bench = judge.bench();
            let CheckerState { seats, lately, .. } = &mut *bench;
            // What has come since the last look counts, and is looked for only where it matters.
            let mut were = |count: u64| {
                let is_enough = |most: usize| u64::try_from(most).is_ok_and(|most| most >= count);
                is_enough(lately.most()) || is_enough(lately.note(now, judge.present()))
            };
            let seat = seats.get_mut(&self.place);
            seat.and_then(|seat| seat.pace.sent(request, now, &mut were))
        };
        self.report(found);
    }

    pub(super) fn stored(&self, path: &str) {
        self.judged(|seat, now| seat.pace.stored(path, now));
    }

    fn judged(
        &self,
        judge: impl FnOnce(&mut ProcessChecker, Duration) -> Option<InvariantViolation>,
    ) {
        let now = self.judge.now();
        let found = {
            let mut bench = self.judge.bench();
            let seat = bench.seats.get_mut(&self.place);
            seat.and_then(|seat| judge(seat, now))
        };
        self.report(found);
    }

    fn report(&self, found: Option<InvariantViolation>) {
        let place = self.place;
        self.judge.report_all(found.map(|found| {
            InvariantViolation::new(found.invariant, format!("c{place}: {}", found.text))
        }));
    }

    pub(super) fn warded_off(&self, sent: &Sent<'_>, time: Duration) {
        self.judged(|seat, now| {
            let lives = seat.door.actors.lives();
            seat.spared.note(sent, time, lives, now);
            None
        });
    }

    pub(super) fn asked(&self) {
        self.judged(|seat, now| {
            let in_force = seat.door.shared.settings.load();
            let dynamic = &in_force.generation.dynamic;
            let fetched = dynamic.fetch_interval().unwrap_or(dynamic.interval);
            seat.pace.asked(dynamic.interval.min(fetched), now)
        });
    }
}

impl Checker {
    pub(super) fn new(clock: Clock, insider: Insider, trace: Trace, over: Arc<Notify>) -> Self {
        Self(Arc::new(Inner { clock, insider, trace, bench: Mutex::default(), over }))
    }

    pub(super) fn furnish(&self, plot: &ChaosWorkload) {
        let mut bench = self.bench();
        bench.fleet = Fleet::of(&plot.scenario);
        bench.instance = plot.instance;
        bench.autoscaled = AutoscaledTarget::of(&plot.scenario);
        bench.sleep = plot.sleeper.clone().map(Sleep::new);
    }

    pub(super) fn used(&self, now: Use) {
        let at = self.now();
        if let Some(sleep) = &mut self.bench().sleep {
            sleep.note(now, at);
        }
    }

    pub(super) fn found(&self) -> Option<(Duration, InvariantViolation)> {
        self.bench().found.clone()
    }

    pub(super) fn counts(&self) -> Counts {
        self.bench().counts.clone()
    }

    pub(super) fn owners(&self) -> Vec<(usize, Owner)> {
        self.bench().owners.clone()
    }

    pub(super) fn report(&self, violation: InvariantViolation) {
        if self.bench().found.is_some() {
            return;
        }
        self.0.trace.note("judge", "VIOLATION", &violation.to_string());
        self.0.trace.seal();
        let now = self.now();
        self.bench().found = Some((now, violation));
        self.0.over.notify_one();
    }

    fn report_all(&self, violations: impl IntoIterator<Item = InvariantViolation>) {
        for violation in violations {
            self.report(violation);
        }
    }

    pub(super) fn came(&self, place: usize, seat: ProcessChecker) {
        let mut bench = self.bench();
        bench.owners.push((place, seat.door.owner));
        if let Some(before) = bench.seats.insert(place, seat) {
            tally(&mut bench.met, &before);
        }
    }

    pub(super) fn left(&self, place: usize) {
        let mut bench = self.bench();
        if let Some(seat) = bench.seats.remove(&place) {
            tally(&mut bench.met, &seat);
        }
    }

    pub(super) fn paused(&self, place: usize, paused: bool) {
        if let Some(seat) = self.bench().seats.get_mut(&place) {
            seat.paused = paused;
            // Who stands still for long enough is ended at once when it goes on.
            seat.note_hangs();
        }
    }

    pub(super) async fn follow(self, place: usize, door: Arc<ControllerView>) {
        let mut plans = door.shared.plan.follow();
        loop {
            let last = Option::clone(&*plans.changed().await);
            if let Some(PlanProposal { plan, .. }) = last {
                // It may be about an object that was not there at the last look.
                self.look_around();
                self.planned(place, &plan);
            }
        }
    }

    fn writes(&self, place: usize, pod: &str, sent: &Sent<'_>) {
        let now = self.0.clock.now();
        let found = {
            let mut bench = self.bench();
            bench.counts.writes += 1;
            let door = bench.seats.get(&place).map(|seat| &seat.door);
            let leads = door.is_some_and(|door| door.shared.claim.may_write(now));
            self.0.trace.written(place, sent, leads);
            bench.seats.get_mut(&place).and_then(|seat| {
                seat.ever_led |= leads;
                seat.attempts.note(sent.path, now.monotonic);
                claims::write(place, pod, sent, leads, seat.ever_led)
            })
        };
        self.report_all(found);
        self.report_all(self.scales(place, sent));
        self.claims();
    }

    /// W1.
    fn claims(&self) {
        let now = self.0.clock.now();
        let found = {
            let bench = self.bench();
            let all = bench.seats.iter();
            let holders = all.filter(|(_, seat)| seat.door.shared.claim.may_write(now));
            claims::overlap(&holders.map(|(place, _)| *place).collect::<Vec<_>>())
        };
        self.report_all(found);
    }

    fn look_around(&self) -> Arc<Surroundings> {
        let (known, instance) = {
            let mut bench = self.bench();
            (bench.around.take(), bench.instance)
        };
        let around = Surroundings::follow(known, &self.0.insider, instance);
        let now = self.now();
        let mut bench = self.bench();
        bench.around = Some(Arc::clone(&around));
        let CheckerState { policies, seats, .. } = &mut *bench;
        if let Some(seat) = seats.values().next() {
            let settings = seat.door.shared.settings.load();
            policies.note((&settings.generation, &seat.fixed), &self.0.insider, now);
        }
        for (key, variant) in &around.variants {
            if variant.allows_zero {
                bench.zero.insert(key.clone(), now);
            }
        }
        drop(bench);
        around
    }

    /// Looks at everything, once a second. `free` says whether the way of each process to the API server is
    /// free.
    pub(super) fn second(&self, free: &[bool], late: bool) {
        let now = self.now();
        self.claims();
        let around = self.look_around();
        let second = now.as_secs();
        let mut pages = Vec::new();
        if second.is_multiple_of(PAGE_EVERY) {
            let bench = self.bench();
            let seats = bench.seats.iter().filter(|(_, seat)| !seat.paused);
            pages.extend(seats.map(|(place, seat)| (*place, Arc::clone(&seat.door))));
        }
        let shown = pages.into_iter().map(|(place, door)| {
            let page = if second.is_multiple_of(KEPT_EVERY) {
                door.own_metrics()
            } else {
                door.decided_metrics()
            };
            (place, series::read(&page))
        });
        let shown: BTreeMap<usize, ExposedSeries> = shown.collect();
        let found = {
            let mut bench = self.bench();
            let CheckerState { seats, sleep, fleet, lately, content, counts, .. } = &mut *bench;
            let most = lately.note(now, around.objects + around.pods);
            let mut found = Vec::new();
            if second.is_multiple_of(LOOK_EVERY) {
                content.look(&self.0.insider);
                found.extend(self.histories());
            }
            for (place, seat) in seats {
                let is_free = free.get(*place).copied().unwrap_or(true);
                let page = shown.get(place);
                let moment = self.0.clock.now();
                let held = seat.door.owner.take_peak();
                counts.held = counts.held.max(held);
                found.extend(seat.holdings.judge(held, most));
                seat.stand(fleet.gpus.keys(), now);
                let cluster = Cluster { around: &around, content, insider: &self.0.insider };
                found.extend(seat.second(*place, moment, is_free, page, cluster));
                if let Some(sleep) = sleep {
                    found.extend(sleep.unwoken(*place, seat, fleet, moment));
                }
                for line in std::mem::take(&mut seat.news) {
                    self.0.trace.note(&format!("c{place}"), "role", &line);
                }
            }
            found.extend(bench.ungrown(&self.0.insider, self.0.clock.now()));
            found
        };
        self.report_all(found);
        self.report_all(self.leaderless(late));
    }

    /// Whether a process that lives has received what changed at one kind after a version.
    pub(super) fn has_delivered(&self, (plural, version): (&str, u64)) -> bool {
        let bench = self.bench();
        let mut seats = bench.seats.values();
        seats.any(|seat| seat.watches.newest(plural) > version)
    }

    fn present(&self) -> usize {
        let kinds = ["variantautoscalings.llmd.ai", "pods."].into_iter();
        kinds.map(|kind| self.0.insider.list(kind).len()).sum()
    }

    pub(super) fn take_met(&self) -> Met {
        let mut bench = self.bench();
        let CheckerState { seats, met, .. } = &mut *bench;
        for seat in seats.values() {
            tally(met, seat);
        }
        std::mem::take(met)
    }

    fn now(&self) -> Duration {
        self.0.clock.now().monotonic
    }

    fn bench(&self) -> MutexGuard<'_, CheckerState> {
        locked(&self.0.bench)
    }
}

fn tally(met: &mut Met, seat: &ProcessChecker) {
    seat.door.actors.take_met(|role, name, times| {
        let of_role = met.entry(role.label()).or_default();
        *of_role.entry(name.to_owned()).or_default() += times;
    });
}

//! One run: a world, its controllers, a schedule of faults, the judge, and what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::check::InvariantViolation;
use super::check::kept::left;
use super::checker::{Checker, Counts};
use super::deletion_costs::CostsByHand;
use super::fault::{Api, ChaosFault, Class, RoleFault, WorkloadFaultKind};
use super::fleet::Fleet;
use super::injector::Injector;
use super::liveness::{self, Quiescence, is_limited, wanting};
use super::process_manager::{Process, ProcessManager, ProcessSetting};
use super::scale_to_zero::Use;
use super::schedule::{FaultSchedule, Strike};
use super::trace::{Chronicle, Keep, Trace};
use super::workload::ChaosWorkload;
use crate::apiserver::Insider;
use crate::hpa::SYNC;
use crate::threads::paused;
use crate::world::{PodListeners, Scenario, World};
use wva::policy::key::VariantKey;
use wva_base::moment::WallTime;
use wva_supervise::SeedTree;

mod strikes;

use strikes::Trail;

const DATE: WallTime = WallTime(1_767_225_600_000);
const AGAIN: Duration = Duration::from_secs(5);

pub(crate) fn play(
    plot: &ChaosWorkload,
    seed: u64,
    schedule: &FaultSchedule,
    keep: Keep,
) -> Result<RunOutcome, String> {
    let runtime = paused().map_err(|error| format!("the controller cannot start: {error}"))?;
    let (mut outcome, owners) = runtime.block_on(async {
        let run = Box::pin(Run::begin(plot, seed, schedule, keep)).await?;
        let judge = run.judge.clone();
        Ok::<_, String>((run.play().await?, judge.owners()))
    })?;
    let tasks = runtime.metrics().num_alive_tasks();
    drop(runtime);
    if outcome.violation.is_none() {
        let left = left(tasks, &owners);
        outcome.violation = left.map(|violation| (outcome.lasted, violation));
    }
    Ok(outcome)
}

struct Run<'a> {
    plot: &'a ChaosWorkload,
    schedule: &'a FaultSchedule,
    scenario: Scenario,
    quiet_from: Duration,
    world: World,
    cast: ProcessManager,
    judge: Checker,
    trace: Trace,
    insider: Insider,
    injector: Injector,
    ended: Arc<Notify>,
    chronicle: Chronicle,
    costs: Option<CostsByHand>,
    active: Vec<Strike>,
    trails: BTreeMap<usize, Trail>,
    next: usize,
    outcome: RunOutcome,
}

impl<'a> Run<'a> {
    async fn begin(
        plot: &'a ChaosWorkload,
        seed: u64,
        schedule: &'a FaultSchedule,
        keep: Keep,
    ) -> Result<Self, String> {
        let doors = PodListeners::default();
        let (scenario, quiet_from) = plot.visited(schedule);
        let staff = Some(doors.clone());
        let world = World::arranged(&scenario, seed, DATE, staff, SYNC, false).await?;
        let trace = Trace::new(world.clock.clone(), keep);
        let insider = Insider::new(world.server.clone(), "person");
        let ended = Arc::new(Notify::new());
        let (clock, over) = (world.clock.clone(), Arc::clone(&ended));
        let judge = Checker::new(clock, insider.clone(), trace.clone(), over);
        judge.furnish(plot);
        let shared = Arc::new(plot.clone());
        let injector = Injector {
            server: insider.clone(),
            workloads: world.workloads.clone(),
            plot: Arc::clone(&shared),
        };
        let settled = injector.settle().await;
        settled.map_err(|denied| format!("the objects of the scenario: {denied}"))?;
        let stage = ProcessSetting {
            clock: world.clock.clone(),
            server: world.server.clone(),
            insider: insider.clone(),
            prometheus: Arc::clone(&world.prometheus),
            routers: world.routers.clone(),
            seed: SeedTree::new(seed),
            doors,
            judge: judge.clone(),
            trace: trace.clone(),
            plot: shared,
            ended: Arc::clone(&ended),
        };
        Ok(Self {
            plot,
            schedule,
            scenario,
            quiet_from,
            cast: ProcessManager::new(stage, plot.controllers),
            world,
            judge,
            trace,
            insider,
            injector,
            ended,
            chronicle: Chronicle::default(),
            costs: (plot.chooses_pods).then(|| CostsByHand::new(&SeedTree::new(seed))),
            active: Vec::new(),
            trails: BTreeMap::new(),
            next: 0,
            outcome: RunOutcome::default(),
        })
    }

    fn now(&self) -> Duration {
        self.world.clock.now().monotonic
    }

    async fn play(mut self) -> Result<RunOutcome, String> {
        let quiet_from = self.quiet_from;
        let ends = quiet_from + self.plot.lasts.saturating_sub(self.plot.faults_until);
        let mut second = Duration::ZERO;
        let mut calm = false;
        let mut stand = liveness::Stand::default();
        while self.now() < ends && self.judge.found().is_none() {
            let now = self.now();
            self.end_faults(now).await;
            if !calm && now >= self.plot.faults_until {
                calm = true;
                self.calm(now).await;
            }
            self.begin_faults(now).await;
            self.cast.turn(now).await;
            if now >= second {
                second = Duration::from_secs(now.as_secs() + 1);
                self.second(now).await;
                if now.as_secs() == self.plot.climbed().as_secs() && !self.plot.climb.is_zero() {
                    self.climbed();
                }
                if calm {
                    let around = (&self.plot.scenario, &self.insider);
                    stand.look(&self.cast, around, self.awaited(now), now);
                }
                // What has been at rest for so long stays so: nothing happens any more.
                if now >= quiet_from
                    && stand.since.is_some_and(|since| now >= since + self.plot.stays)
                {
                    break;
                }
            }
            if self.judge.found().is_none() {
                self.rest(now, second).await;
            }
        }
        if self.judge.found().is_none() {
            self.outcome.settled = stand.since.map(|at| at.saturating_sub(quiet_from));
            stand.judge(quiet_from, self.plot.rest, &self.judge);
        }
        Ok(self.close().await)
    }

    async fn close(mut self) -> RunOutcome {
        self.outcome.lasted = self.now();
        // What comes after it says nothing of it.
        let tail = self.judge.found().map(|_violation| self.trace.take());
        self.cover();
        for strike in std::mem::take(&mut self.active) {
            self.count(&strike);
        }
        self.outcome.struck = self.cast.has_struck();
        if self.judge.found().is_none() {
            self.outcome.rest = Quiescence::of(&self.cast, &self.insider);
            self.cast.end().await;
        } else {
            self.cast.halt();
        }
        let mut outcome = self.outcome;
        outcome.violation = self.judge.found();
        outcome.counts = self.judge.counts();
        drop((self.cast, self.injector));
        self.world.end().await;
        sleep(Duration::from_secs(1)).await;
        outcome.hash = self.trace.hash();
        outcome.events = self.trace.count();
        outcome.lines = tail.unwrap_or_else(|| self.trace.take());
        outcome
    }

    async fn rest(&self, now: Duration, second: Duration) {
        let strike = self.schedule.0.get(self.next).map(|strike| strike.at);
        let ends = self.active.iter().map(|strike| strike.at + strike.lasts);
        let next = ends.chain(strike).chain(self.cast.next()).chain([second]);
        let wait = next.min().unwrap_or(second).saturating_sub(now);
        let over = std::pin::pin!(sleep(wait.max(Duration::from_millis(1))));
        let ended = std::pin::pin!(self.ended.notified());
        let _which = select(over, ended).await;
    }

    async fn second(&mut self, now: Duration) {
        let is_free = |member: &Process| member.ills.api().is_empty();
        self.cast.probe(now);
        self.chronicle.look(&self.insider, &self.trace);
        if let Some(costs) = &mut self.costs {
            let (judge, until) = ((&self.judge, &self.trace), self.plot.faults_until);
            costs.look(&self.insider, judge, (now, until)).await;
        }
        if let Some(used) = self.used(now) {
            self.judge.used(used);
        }
        let free: Vec<bool> = self.cast.members.iter().map(is_free).collect();
        let mut faults = self.cast.members.iter().flat_map(|one| one.ills.api());
        let late = faults.any(|(_, fault, _)| matches!(fault, Api::Late(_)));
        self.judge.second(&free, late);
        if now.as_secs().is_multiple_of(AGAIN.as_secs()) {
            self.strike_again().await;
        }
    }

    /// Takes the messages that were met into the hash, before the faults in force change.
    fn cover(&self) {
        let met = self.judge.take_met();
        for (role, messages) in &met {
            for (message, times) in messages {
                self.trace.fold(&format!("{role} {message} {times}"));
            }
        }
    }

    fn used(&self, now: Duration) -> Option<Use> {
        let sleeper = self.plot.sleeper.as_ref()?;
        Use::of(sleeper, (&self.scenario, &self.world), &self.insider, now)
    }

    fn awaited(&self, now: Duration) -> Option<String> {
        let used = self.used(now)?;
        if now < self.quiet_from {
            return Some("requests are still to come".to_owned());
        }
        used.waits.then(|| "requests wait in a router".to_owned())
    }

    /// L3: what serves is enough for the load, now that nothing has been wrong for long.
    fn climbed(&self) {
        let leader = self.cast.door(self.cast.leader());
        let known = leader.map(|door| (door.shared.last_plan(), door.shared.settings.load()));
        let fleet = Fleet::of(&self.scenario);
        // What a limit is said to keep it from, there must be no room for.
        let is_kept = |key: &VariantKey| {
            known.as_ref().is_some_and(|(plan, settings)| {
                let settings = &settings.generation.dynamic;
                plan.as_ref().is_some_and(|plan| {
                    is_limited(plan, key) && !fleet.has_room(settings, plan, key)
                })
            })
        };
        for violation in wanting(&self.world.frame(), &self.scenario, &is_kept) {
            self.judge.report(violation);
        }
    }

    async fn strike_again(&mut self) {
        for strike in &self.active {
            match &strike.fault {
                ChaosFault::Actor(place, RoleFault::Storm(role)) => {
                    if let Some(door) = self.cast.door(*place) {
                        door.actors.kill(role);
                    }
                }
                ChaosFault::Workload(number, WorkloadFaultKind::Flapping) => {
                    // Whether it hits was counted at its beginning.
                    let _hit = self.injector.burden(*number, WorkloadFaultKind::Flapping).await;
                }
                _ => {}
            }
        }
    }

    async fn begin_faults(&mut self, now: Duration) {
        while let Some(strike) = self.schedule.0.get(self.next).filter(|strike| strike.at <= now) {
            self.cover();
            self.next += 1;
            let mut strike = strike.clone();
            strike.fault = strike.fault.aimed(self.cast.leader());
            self.trace.note(
                "fault",
                "begins",
                &format!("#{} {} for {:.3} s", strike.id, strike.fault, strike.lasts.as_secs_f64()),
            );
            let hit = self.inject(&strike, now).await;
            let key = (strike.fault.class(), strike.fault.kind());
            let tally = self.outcome.tally.entry(key).or_default();
            tally.injected += 1;
            tally.effective += u64::from(hit);
            self.active.push(strike);
        }
    }

    async fn end_faults(&mut self, now: Duration) {
        let is_over = |strike: &Strike| strike.at + strike.lasts <= now;
        if !self.active.iter().any(is_over) {
            return;
        }
        self.cover();
        let over = |strike: &mut Strike| is_over(strike);
        let ended: Vec<Strike> = self.active.extract_if(.., over).collect();
        for strike in ended {
            self.count(&strike);
            self.undo(&strike).await;
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FaultTally {
    pub(crate) injected: u64,
    pub(crate) effective: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct RunOutcome {
    pub(crate) violation: Option<(Duration, InvariantViolation)>,
    pub(crate) hash: u64,
    pub(crate) events: u64,
    pub(crate) lines: Vec<String>,
    pub(crate) lasted: Duration,
    /// How long after the last fault everything stood still, where it did.
    pub(crate) settled: Option<Duration>,
    pub(crate) tally: BTreeMap<(Class, String), FaultTally>,
    pub(crate) counts: Counts,
    pub(crate) struck: bool,
    pub(crate) rest: Quiescence,
}

impl RunOutcome {
    pub(super) fn broken(violation: InvariantViolation) -> Self {
        Self { violation: Some((Duration::ZERO, violation)), ..Self::default() }
    }
}

pub(crate) fn failure_report(
    plot: &ChaosWorkload,
    seed: u64,
    outcome: &RunOutcome,
    commit: &str,
) -> Option<String> {
    let (at, violation) = outcome.violation.as_ref()?;
    let (at, scenario) = (at.as_secs_f64(), plot.name);
    let (mut planted, mut mutant) = (String::new(), String::new());
    if let Some(mutation) = plot.mutation {
        planted = format!("  planted {mutation:?}");
        mutant = format!(" --mutant {mutation:?}");
    }
    Some(format!(
        "\nseed {seed}  commit {commit}  scenario {scenario}{planted}  at {at:.3} s\n{violation}\n\n\
         last lines of its trace:\n{}\n\n\
         replay:  wva-sim chaos --scenario {scenario} --replay {seed}{mutant}\n",
        outcome.lines.join("\n"),
    ))
}

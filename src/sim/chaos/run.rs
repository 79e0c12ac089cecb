//! One run: a world, its controllers, a schedule of faults, and the judge.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::future::select;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::cast::{Cast, Member, Stage};
use super::check::holdings::left;
use super::fault::{Actor, Api, Fault, Load, Object, Process, Prom};
use super::injector::Injector;
use super::judge::Judge;
use super::liveness;
use super::outcome::{Outcome, Spot};
use super::plot::Plot;
use super::schedule::{Schedule, Strike};
use super::sleep::Use;
use super::trace::{Keep, Trace};
use crate::env::SeedTree;
use crate::kit::{KillAt, Mishap};
use crate::policy::moment::WallTime;
use crate::sim::apiserver::Insider;
use crate::sim::prometheus::Outage;
use crate::sim::world::{Doors, Scenario, World, WorldError};

/// The date at which every run begins.
const DATE: WallTime = WallTime(1_767_225_600_000);
/// How far from each other the kills of a storm are, and the crashes of pods that flap.
const AGAIN: Duration = Duration::from_secs(5);

/// Plays a plot with these faults to its end, or to the first violation.
///
/// # Errors
/// When there is no world.
pub fn play(
    plot: &Plot,
    seed: u64,
    schedule: &Schedule,
    keep: Keep,
) -> Result<Outcome, WorldError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| WorldError::Controller(error.to_string()))?;
    let (mut outcome, owners) = runtime.block_on(async {
        let run = Box::pin(Run::begin(plot, seed, schedule, keep)).await?;
        let judge = run.judge.clone();
        Ok::<_, WorldError>((run.play().await?, judge.owners()))
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
    plot: &'a Plot,
    schedule: &'a Schedule,
    /// The plot's, with a last visit.
    scenario: Scenario,
    /// When everything is put back, and nobody asks for anything any more.
    quiet_from: Duration,
    world: World,
    cast: Cast,
    judge: Judge,
    trace: Trace,
    insider: Insider,
    injector: Injector,
    ended: Arc<Notify>,
    /// Faults in force.
    active: Vec<Strike>,
    next: usize,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    async fn begin(
        plot: &'a Plot,
        seed: u64,
        schedule: &'a Schedule,
        keep: Keep,
    ) -> Result<Self, WorldError> {
        let doors = Doors::default();
        let (scenario, quiet_from) = plot.visited(schedule);
        let world = World::staffed(&scenario, seed, DATE, doors.clone()).await?;
        let trace = Trace::new(world.clock.clone(), keep);
        let insider = Insider::new(world.server.clone(), "somebody");
        let judge = Judge::new(world.clock.clone(), insider.clone(), trace.clone());
        if let Some(sleeper) = &plot.sleeper {
            judge.watch(sleeper.clone());
        }
        let ended = Arc::new(Notify::new());
        let injector = Injector {
            server: insider.clone(),
            workloads: world.workloads.clone(),
            scenario: plot.scenario.clone(),
            main: plot.main.clone(),
        };
        injector.settle(plot.more_pools).await?;
        let stage = Stage {
            clock: world.clock.clone(),
            server: world.server.clone(),
            insider: insider.clone(),
            prometheus: Arc::clone(&world.prometheus),
            routers: world.routers.clone(),
            seed: SeedTree::new(seed),
            doors,
            judge: judge.clone(),
            trace: trace.clone(),
            flaw: plot.flaw,
            probe: plot.probe.clone(),
            ended: Arc::clone(&ended),
        };
        Ok(Self {
            plot,
            schedule,
            scenario,
            quiet_from,
            cast: Cast::new(stage, plot.controllers),
            world,
            judge,
            trace,
            insider,
            injector,
            ended,
            active: Vec::new(),
            next: 0,
            outcome: Outcome::new(),
        })
    }

    fn now(&self) -> Duration {
        self.world.clock.now().monotonic
    }

    async fn play(mut self) -> Result<Outcome, WorldError> {
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
                if calm {
                    let around = (&self.plot.scenario, &self.insider);
                    stand.look(&self.cast, around, self.awaited(now), now);
                }
                // What has been at rest for so long stays so: nothing happens any more.
                if now >= quiet_from
                    && stand
                        .since()
                        .is_some_and(|since| now >= since + self.plot.stays)
                {
                    break;
                }
            }
            self.rest(now, second).await;
        }
        if self.judge.found().is_none() {
            self.outcome.settled = stand.since().map(|at| at.saturating_sub(quiet_from));
            stand.judge(quiet_from, self.plot.rest, &self.judge);
        }
        Ok(self.close().await)
    }

    async fn close(mut self) -> Outcome {
        self.outcome.lasted = self.now();
        self.cover();
        for strike in std::mem::take(&mut self.active) {
            self.count(&strike);
        }
        if self.judge.found().is_none() {
            self.cast.end().await;
        }
        let mut outcome = self.outcome;
        outcome.violation = self.judge.found();
        outcome.counts = self.judge.counts();
        drop((self.cast, self.injector));
        self.world.end().await;
        sleep(Duration::from_secs(1)).await;
        outcome.hash = self.trace.hash();
        outcome.events = self.trace.count();
        outcome.lines = self.trace.take();
        outcome
    }

    /// Waits for whatever comes next.
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
        let is_free = |member: &Member| member.ills.api().is_empty();
        self.cast.probe(now);
        if let Some(used) = self.used(now) {
            self.judge.used(used);
        }
        let free: Vec<bool> = self.cast.members.iter().map(is_free).collect();
        self.judge.second(&free);
        if now.as_secs().is_multiple_of(AGAIN.as_secs()) {
            self.strike_again().await;
        }
    }

    /// Counts the messages that were met, for the faults in force meanwhile: before those change.
    fn cover(&mut self) {
        let met = self.judge.take_met();
        for fault in self.active.iter().map(|strike| strike.fault.kind()) {
            for (role, messages) in &met {
                for (message, times) in messages {
                    let spot = Spot {
                        role,
                        message: message.clone(),
                        fault: fault.clone(),
                    };
                    *self.outcome.coverage.entry(spot).or_default() += times;
                }
            }
        }
    }

    /// What is true of the model that may go to zero.
    fn used(&self, now: Duration) -> Option<Use> {
        let sleeper = self.plot.sleeper.as_ref()?;
        Use::of(sleeper, (&self.scenario, &self.world), &self.insider, now)
    }

    /// What keeps the world from coming to rest, beside the controllers.
    fn awaited(&self, now: Duration) -> Option<String> {
        let used = self.used(now)?;
        if now < self.quiet_from {
            return Some("requests are still to come".to_owned());
        }
        used.waits.then(|| "requests wait in a router".to_owned())
    }

    /// What is a fault by being repeated.
    async fn strike_again(&mut self) {
        for strike in &self.active {
            match &strike.fault {
                Fault::Actor(place, Actor::Storm(role)) => {
                    if let Some(door) = self.cast.door(*place) {
                        door.census.kill(role);
                    }
                }
                Fault::Workload(number, Load::Flapping) => {
                    // Whether it hits was counted at its beginning.
                    let _hit = self.injector.burden(*number, Load::Flapping).await;
                }
                _ => {}
            }
        }
    }

    async fn begin_faults(&mut self, now: Duration) {
        while let Some(strike) = self
            .schedule
            .0
            .get(self.next)
            .filter(|strike| strike.at <= now)
        {
            self.cover();
            self.next += 1;
            let mut strike = strike.clone();
            strike.fault = strike.fault.aimed(self.cast.leader());
            self.trace.note(
                "fault",
                "begins",
                &format!(
                    "#{} {} for {:.3} s",
                    strike.id,
                    strike.fault,
                    strike.lasts.as_secs_f64()
                ),
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
            self.heal(&strike).await;
        }
    }

    async fn heal(&mut self, strike: &Strike) {
        self.trace
            .note("fault", "ends", &format!("#{} {}", strike.id, strike.fault));
        self.count(strike);
        let now = self.now();
        match &strike.fault {
            Fault::Api(place, _) => self.ills(*place, |ills| ills.heal(strike.id, now)),
            Fault::Prometheus(place, fault) => {
                self.ills(*place, |ills| ills.heal(strike.id, now));
                self.shake(*fault, strike, false);
            }
            Fault::Object(_, Object::Crowd(_)) => self.injector.disperse().await,
            Fault::Object(number, _) => self.injector.restore(*number).await,
            Fault::Settings(_) => self.injector.restore_settings().await,
            Fault::Workload(number, how) => self.injector.relieve(*number, *how).await,
            Fault::Controller(_, Process::Handover) => {
                for member in &self.cast.members {
                    member.ills.heal(strike.id, now);
                }
                let leader = self.cast.leader();
                let lasts = strike.lasts;
                let cast = &mut self.cast;
                let _runs = cast.strike(leader, Process::Restart, now, lasts).await;
            }
            Fault::Actor(..) | Fault::Controller(..) => {}
        }
    }

    /// Counts a fault that was effective if it hit something while it lasted.
    fn count(&mut self, strike: &Strike) {
        let hit = match &strike.fault {
            Fault::Api(place, _) | Fault::Prometheus(place, _) => self.hits(*place, strike.id) > 0,

            Fault::Actor(
                place,
                Actor::Before(role) | Actor::After(role) | Actor::Panic(role) | Actor::Hang(role),
            ) => {
                let door = self.cast.door(*place);
                door.is_some_and(|door| !door.census.is_armed(role))
            }
            _ => false,
        };
        let key = (strike.fault.class(), strike.fault.kind());
        self.outcome.tally.entry(key).or_default().effective += u64::from(hit);
    }

    fn hits(&self, place: usize, id: usize) -> u64 {
        let member = self.cast.members.get(place);
        member.map_or(0, |member| member.ills.hits(id))
    }

    fn ills(&self, place: usize, act: impl FnOnce(&super::ills::Ills)) {
        if let Some(member) = self.cast.members.get(place) {
            act(&member.ills);
        }
    }

    /// Lets a fault begin; whether it has hit something by that alone.
    async fn inject(&mut self, strike: &Strike, now: Duration) -> bool {
        match &strike.fault {
            Fault::Api(_, Api::Compact) => {
                self.world.server.compact();
                true
            }
            Fault::Api(place, fault) => {
                let version = self.insider.version();
                self.ills(*place, |ills| ills.ail_api(strike.id, *fault, version));
                *fault == Api::Cut
            }
            Fault::Prometheus(place, fault) => {
                self.ills(*place, |ills| ills.ail_prometheus(strike.id, *fault));
                self.shake(*fault, strike, true)
            }
            Fault::Actor(place, fault) => self.afflict(*place, fault),
            Fault::Controller(place, how) => {
                if *how == Process::Handover {
                    let version = self.insider.version();
                    let others = self.cast.members.iter().enumerate();
                    for (_, other) in others.filter(|(other, _)| other != place) {
                        other.ills.ail_api(strike.id, Api::Silent, version);
                    }
                }
                self.cast.strike(*place, *how, now, strike.lasts).await
            }
            Fault::Object(number, how) => {
                let hit = self.injector.break_object(*number, *how).await;
                if *how == Object::Unseen {
                    // Before any watch has had a turn.
                    self.world.server.compact();
                }
                hit
            }
            Fault::Settings(how) => self.injector.edit(*how).await,
            Fault::Workload(number, how) => self.injector.burden(*number, *how).await,
        }
    }

    fn afflict(&self, place: usize, fault: &Actor) -> bool {
        let Some(door) = self.cast.door(place) else {
            return false;
        };
        let census = &door.census;
        match fault {
            Actor::Kill(role) | Actor::Storm(role) => census.kill(role),
            Actor::Several(roles) => {
                roles
                    .iter()
                    .map(|role| census.kill(role))
                    .filter(|hit| *hit)
                    .count()
                    > 0
            }
            Actor::Abort(role) => census.abort(role),
            Actor::Before(role) => {
                census.kill_next(role, KillAt::Before);
                false
            }
            Actor::After(role) => {
                census.kill_next(role, KillAt::After);
                false
            }
            Actor::Panic(role) => {
                census.befall(role, Mishap::Panic);
                false
            }
            Actor::Hang(role) => {
                census.befall(role, Mishap::Hang);
                false
            }
        }
    }

    /// Faults of Prometheus itself, which everybody sees.
    fn shake(&self, fault: Prom, strike: &Strike, begins: bool) -> bool {
        let mut prometheus = self
            .world
            .prometheus
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match fault {
            Prom::Down => {
                prometheus.set_outage(begins.then_some(Outage::Unreachable));
                false
            }
            Prom::Gap => {
                let until = strike.at + strike.lasts;
                let until = i64::try_from(until.as_millis()).unwrap_or(i64::MAX);
                prometheus.set_gap(begins.then_some(WallTime(DATE.0.saturating_add(until))));
                begins
            }
            Prom::Lag(time) => {
                prometheus.set_lag(if begins { time } else { Duration::ZERO });
                begins
            }
            _ => false,
        }
    }

    /// Ends every fault and puts everything back.
    async fn calm(&mut self, now: Duration) {
        self.cover();
        for strike in std::mem::take(&mut self.active) {
            self.heal(&strike).await;
        }
        for number in 0..self.plot.variants().len() {
            self.injector.restore(number).await;
        }
        self.injector.disperse().await;
        self.injector.restore_settings().await;
        self.outcome.struck = self.cast.has_struck();
        self.cast.calm(now);
        self.trace.note("fault", "calm", "everything is put back");
    }
}

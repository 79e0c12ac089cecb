//! Which faults happen when: drawn from a seed, and a plain list from then on.

use std::fmt;
use std::time::Duration;

use super::dice::Dice;
use super::fault::{
    Api, AutoscalerFault, ChaosFault, Class, Edit, LEADER, ObjectFault, ProcessFault, Prom,
    RoleFault, WorkloadFaultKind,
};
use super::workload::ChaosWorkload;
use wva::cluster::kinds::WatchedKind;
use wva::policy::key::{ObjectKey, VariantKey};
use wva::roles::Role;
use wva_supervise::SeedTree;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Strike {
    /// Its number within the schedule, which it keeps when others are left out.
    pub(crate) id: usize,
    pub(crate) at: Duration,
    /// How long it lasts, or how long it takes until what it broke is put back.
    pub(crate) lasts: Duration,
    pub(crate) fault: ChaosFault,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FaultSchedule(pub(crate) Vec<Strike>);

/// When the first faults may begin.
const FROM: Duration = Duration::from_mins(3);

impl FaultSchedule {
    pub(super) fn draw(seed: u64, plot: &ChaosWorkload) -> Self {
        let tree = SeedTree::new(seed);
        let mut strikes = Vec::new();
        for (class, mean) in &plot.rates {
            let mut dice = Dice::new(tree.child(&format!("chaos/{class}")));
            let mut at = FROM;
            loop {
                at += dice.gap(*mean);
                if at >= plot.faults_until {
                    break;
                }
                let fault = draw(*class, plot, &mut dice);
                let (shortest, longest) = range(&fault);
                let lasts = dice.time(shortest, longest).min(plot.faults_until.saturating_sub(at));
                strikes.push(Strike { id: 0, at, lasts, fault });
            }
        }
        if !plot.rates.is_empty() {
            strikes.push(aftershock(plot.climbed(), &mut Dice::new(tree.child("chaos/after"))));
        }
        Self::of(strikes)
    }

    fn of(mut strikes: Vec<Strike>) -> Self {
        strikes.sort_by_key(|strike| strike.at);
        for (id, strike) in strikes.iter_mut().enumerate() {
            strike.id = id;
        }
        Self(strikes)
    }

    #[must_use]
    pub(crate) fn with(mut self, at: Duration, lasts: Duration, fault: ChaosFault) -> Self {
        self.0.push(Strike { id: 0, at, lasts, fault });
        Self::of(self.0)
    }

    #[must_use]
    pub(crate) fn only(&self, ids: &[usize]) -> Self {
        let kept = self.0.iter().filter(|strike| ids.contains(&strike.id));
        Self(kept.cloned().collect())
    }

    pub(crate) fn end(&self) -> Duration {
        let ends = self.0.iter().map(|strike| strike.at + strike.lasts);
        ends.max().unwrap_or_default()
    }

    pub(crate) fn ids(&self) -> Vec<usize> {
        self.0.iter().map(|strike| strike.id).collect()
    }
}

impl fmt::Display for FaultSchedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|strike| writeln!(formatter, "{strike}"))
    }
}

wva_base::display_of! { Strike:
    Self { id, at, lasts, fault } =>
        "#{id:<4} {:>11.3} s  for {:>8.3} s  {fault}", at.as_secs_f64(), lasts.as_secs_f64();
}

fn draw(class: Class, plot: &ChaosWorkload, dice: &mut Dice) -> ChaosFault {
    let controller = match dice.place(plot.controllers) {
        _ if dice.chance(40) => LEADER,
        place => place,
    };
    let variant = dice.place(plot.variants().len());
    match class {
        Class::Api => match api(dice) {
            // No other role has a lease to lose.
            fault @ Api::Lapse => ChaosFault::Api(LEADER, fault),
            fault => ChaosFault::Api(controller, fault),
        },
        Class::Prometheus => ChaosFault::Prometheus(controller, prometheus(dice)),
        Class::Actors => match actor(plot, dice) {
            // No other role has a plan to hand over or to show, and more than one thing to do comes seldom.
            fault @ RoleFault::Torn(Role::Optimizer | Role::Emitter, _) => {
                ChaosFault::Actor(LEADER, fault)
            }
            fault => ChaosFault::Actor(controller, fault),
        },
        Class::Controllers => match process(dice) {
            // No other role has anything to hand over.
            how @ ProcessFault::Handover => ChaosFault::Controller(LEADER, how),
            how => ChaosFault::Controller(controller, how),
        },
        Class::Objects => ChaosFault::Object(variant, object(dice)),
        Class::Settings => ChaosFault::Settings(edit(plot.sleeper.is_some(), dice)),
        Class::Workloads => ChaosFault::Workload(variant, load(dice)),
        Class::Autoscalers => autoscaling(plot, controller, dice),
    }
}

/// How long a fault lasts at least and at most.
fn range(fault: &ChaosFault) -> (Duration, Duration) {
    match fault {
        // Long enough for a change that the others do not learn of, and for another one to lead after a write.
        ChaosFault::Api(_, Api::Lapse) => (MINUTE, MINUTE * 4),
        ChaosFault::Controller(_, ProcessFault::Handover) => (MINUTE, MINUTE * 3),
        // Long enough for several changes of one object, and for a pod to want a place.
        ChaosFault::Api(_, Api::Coalesced(_)) => (MINUTE * 2, MINUTE * 4),
        ChaosFault::Workload(_, WorkloadFaultKind::Shortage) => (MINUTE * 2, MINUTE * 6),
        // Long enough to spend a budget.
        ChaosFault::Actor(_, RoleFault::Storm(_)) => (SECOND * 30, MINUTE * 3),
        // Long enough for several ends at writes.
        ChaosFault::Controller(_, ProcessFault::EveryWrite) => (MINUTE * 2, MINUTE * 8),
        // Long enough for decisions of both versions.
        ChaosFault::Controller(_, ProcessFault::Rollout) => (SECOND * 45, MINUTE * 3),
        // Long enough for a start in ten times its time.
        ChaosFault::Workload(_, WorkloadFaultKind::SlowStart) => (MINUTE * 12, MINUTE * 22),
        // Long enough for values to be too old, and for windows to fill with others.
        ChaosFault::Autoscaler(_, AutoscalerFault::Removed(_)) => (SECOND * 10, MINUTE * 3),
        ChaosFault::Autoscaler(..) => (MINUTE * 3, MINUTE * 10),
        // Long enough for a decision.
        ChaosFault::Object(..) => (SECOND * 10, MINUTE * 5),
        ChaosFault::Api(..) => (SECOND, MINUTE * 4),
        ChaosFault::Prometheus(..) => (SECOND, MINUTE * 9),
        ChaosFault::Actor(_, RoleFault::Torn(..)) => (SECOND, MINUTE * 10),
        ChaosFault::Actor(..) => (SECOND, MINUTE),
        ChaosFault::Controller(..) => (SECOND, MINUTE * 3),
        ChaosFault::Settings(_) => (SECOND, MINUTE * 5),
        ChaosFault::Workload(..) => (SECOND, MINUTE * 6),
    }
}

fn autoscaling(plot: &ChaosWorkload, controller: usize, dice: &mut Dice) -> ChaosFault {
    let fault = match dice.below(10) {
        0..=2 => AutoscalerFault::PagesDown,
        3 => AutoscalerFault::PagesHang,
        4 => AutoscalerFault::PagesPartial,
        5 => AutoscalerFault::Removed(dice.place(plot.autoscalers().len())),
        _ => {
            let roles = autoscaler_roles(&plot.autoscalers());
            let role = dice.pick(&roles).cloned().unwrap_or(Role::PodAutoscalers);
            let fault = match dice.below(5) {
                0 => RoleFault::Kill(role),
                1 => RoleFault::Before(role),
                2 => RoleFault::After(role),
                3 => RoleFault::Panic(role),
                _ => RoleFault::Hang(role),
            };
            return ChaosFault::Actor(controller, fault);
        }
    };
    ChaosFault::Autoscaler(LEADER, fault)
}

pub(super) fn autoscaler_roles(autoscalers: &[ObjectKey]) -> Vec<Role> {
    let each = autoscalers.iter().cloned().map(Role::PodAutoscaler);
    let also = [
        Role::PodAutoscalers,
        Role::PodScraper,
        Role::AutoscalerWriter,
        Role::MetricsReader,
        Role::Watcher(WatchedKind::PodAutoscaler),
    ];
    each.chain(also).collect()
}

/// While counts fall to where they stay, who leads cannot write, or not statuses: what it could not store
/// is not asked for again by anything that changes later.
fn aftershock(until: Duration, dice: &mut Dice) -> Strike {
    let how = match dice.below(8) {
        0 => Api::Conflict,
        1 => Api::Forbidden,
        2 => Api::Lost,
        3 => Api::Refuse(503, None),
        _ => Api::Webhook,
    };
    Strike {
        id: 0,
        at: until + dice.time(SECOND, MINUTE * 2),
        lasts: dice.time(MINUTE * 6, MINUTE * 12),
        fault: ChaosFault::Api(LEADER, how),
    }
}

fn api(dice: &mut Dice) -> Api {
    let latency = dice.time(Duration::from_millis(20), SECOND * 8);
    let back = dice.below(60) + 1;
    let code = dice.pick(&[500, 502, 503, 504]).copied().unwrap_or(503);
    let after = dice.chance(50).then(|| dice.below(10) + 1);
    let late = dice.time(SECOND * 20, SECOND * 90);
    match dice.below(21) {
        0 | 1 => Api::Latency(latency),
        2 => Api::Refuse(429, Some(dice.below(20) + 1)),
        3 => Api::Refuse(code, after),
        4 => Api::Conflict,
        5 => Api::Hang,
        6 => Api::Partition,
        7 => Api::Lost,
        8 => Api::Silent,
        9 => Api::NoBookmarks,
        10 => Api::Doubled,
        11 => Api::Delayed(latency),
        12 => Api::Coalesced(SECOND * 20),
        13 => Api::StaleList(back),
        14 => Api::Older(back),
        15 => Api::Forbidden,
        16 => Api::Webhook,
        17 => Api::Late(late),
        18 => Api::Lapse,
        19 => {
            let drawn = u8::try_from(dice.below(256)).unwrap_or_default();
            // Long enough for what depends on it to be notified meanwhile.
            Api::Uneven(dice.time(SECOND, SECOND * 20), drawn)
        }
        _ if dice.chance(50) => Api::Compact,
        _ => Api::Cut,
    }
}

fn prometheus(dice: &mut Dice) -> Prom {
    let time = dice.time(SECOND, MINUTE * 4);
    let code = dice.pick(&[401, 403, 429, 500, 503]).copied().unwrap_or(503);
    match dice.below(19) {
        0 => Prom::Down,
        1 => Prom::Status(code),
        2 => Prom::Slow(time.min(SECOND * 20)),
        3 => Prom::Hang,
        4 => Prom::Endless,
        5 => Prom::Partial,
        6 => Prom::Empty,
        7 => Prom::Old,
        8 => Prom::Doubled,
        9 => Prom::NotANumber,
        10 => Prom::Infinite,
        11 => Prom::Ghosts,
        12 => Prom::WrongLabels,
        13 => Prom::Zeros,
        14 => Prom::Ahead(time),
        15 => Prom::Behind(time),
        16 => Prom::Gap,
        17 => Prom::Lag(time),
        _ => Prom::Reset,
    }
}

/// Kinds whose watchers get events in every world.
const BUSY: [WatchedKind; 10] = [
    WatchedKind::VariantAutoscaling,
    WatchedKind::Deployment,
    WatchedKind::ConfigMap,
    WatchedKind::Namespace,
    WatchedKind::Pod,
    WatchedKind::ReplicaSet,
    WatchedKind::HorizontalPodAutoscaler,
    WatchedKind::StatefulSet,
    WatchedKind::Service,
    WatchedKind::InferencePoolV1,
];

/// Roles that every controller has, but for the root, whose end is that of the process. KEDA is not simulated, so
/// that nothing serves its scaler, and only some seeds give pods a cost.
pub(super) fn roles(variants: &[VariantKey]) -> Vec<Role> {
    Role::single()
        .filter(|role| !matches!(role, Role::Root | Role::ExternalScaler | Role::PodMarker))
        .chain(BUSY.map(Role::Watcher))
        .chain(variants.iter().cloned().map(Role::Variant))
        .collect()
}

const PIPELINE: [Role; 9] = [
    Role::Config,
    Role::Leadership,
    Role::Egress,
    Role::Emitter,
    Role::StatusWriter,
    Role::Engine,
    Role::Collector,
    Role::Optimizer,
    Role::Variants,
];

fn actor(plot: &ChaosWorkload, dice: &mut Dice) -> RoleFault {
    let mut roles = roles(&plot.variants());
    roles.extend(plot.also());
    let mut role = || {
        let among = if dice.chance(50) { &PIPELINE[..] } else { &roles };
        dice.pick(among).cloned().unwrap_or(Role::Optimizer)
    };
    let (one, two, three) = (role(), role(), role());
    match dice.below(13) {
        0..=2 => RoleFault::Kill(one),
        3 | 4 => RoleFault::Before(one),
        5 | 6 => RoleFault::After(one),
        7 => RoleFault::Panic(one),
        8 => RoleFault::Hang(one),
        9 => RoleFault::Abort(one),
        10 => RoleFault::Several(vec![one, two, three]),
        11 => machine(plot, dice),
        _ => RoleFault::Storm(one),
    }
}

/// A role that decides first and then does one thing after another, and how many of them it gets done.
fn machine(plot: &ChaosWorkload, dice: &mut Dice) -> RoleFault {
    let mut machines = vec![Role::Config, Role::Emitter, Role::Optimizer];
    let variants = plot.variants().into_iter().map(Role::Variant);
    machines.extend(dice.pick(&variants.collect::<Vec<_>>()).cloned());
    let role = dice.pick(&machines).cloned().unwrap_or(Role::Optimizer);
    let done = match role {
        // For each variant it does several.
        Role::Emitter => dice.below(9) + 1,
        _ if dice.chance(75) => 1,
        _ => 2,
    };
    let done = usize::try_from(done).unwrap_or(1);
    RoleFault::Torn(role, done)
}

fn process(dice: &mut Dice) -> ProcessFault {
    match dice.below(10) {
        0 => ProcessFault::Crash,
        1 => ProcessFault::Restart,
        2 | 3 => ProcessFault::Pause,
        4 => ProcessFault::BeforeWrite,
        5 => ProcessFault::DuringWrite,
        6 => ProcessFault::AfterWrite,
        7 => ProcessFault::Rollout,
        8 => ProcessFault::EveryWrite,
        _ => ProcessFault::Handover,
    }
}

fn object(dice: &mut Dice) -> ObjectFault {
    let small = match u32::try_from(dice.below(7)) {
        Ok(small) if dice.chance(75) => small,
        _ => 0,
    };
    let least = if dice.chance(50) { 1 } else { small % 3 + 2 };
    match dice.below(18) {
        0 | 1 => ObjectFault::TargetReplaced,
        2 | 3 => ObjectFault::ScaledTo(small),
        4 => ObjectFault::SecondScaler,
        5 => ObjectFault::MinAboveMax,
        6 | 7 => ObjectFault::Bounds(least, least.max(small % 3)),
        8 => ObjectFault::Malformed(u8::try_from(dice.below(256)).unwrap_or_default()),
        9 | 10 => ObjectFault::Removed,
        11 => ObjectFault::Renamed,
        12 => ObjectFault::Moved,
        13 => ObjectFault::Relabelled,
        14 => ObjectFault::Contested,
        16 => ObjectFault::Midway,
        15 if dice.chance(CROWDED) => {
            let crowds = if dice.chance(LARGE) { &LARGE_CROWDS } else { &CROWDS };
            let many = dice.pick(crowds).copied();
            many.map_or(ObjectFault::Unseen, ObjectFault::Crowd)
        }
        _ => ObjectFault::Unseen,
    }
}

/// How many of a hundred of what would else be an unseen removal are a crowd.
const CROWDED: u64 = 25;
/// How many of a hundred crowds are large: one of these costs more than everything else in its seed.
const LARGE: u64 = 20;
const LARGE_CROWDS: [u32; 2] = [1_000, 2_000];
/// More than the targets that are asked for in one step.
const CROWDS: [u32; 2] = [40, 80];

fn edit(sleeps: bool, dice: &mut Dice) -> Edit {
    match dice.below(15) {
        0 | 1 => Edit::Interval(dice.below(20) + 5),
        2 | 3 => Edit::Thresholds(dice.below(60) + 30),
        4 => Edit::Immutable(dice.below(NUMBERS)),
        5 => Edit::BrokenYaml(dice.below(NUMBERS)),
        6 if dice.chance(50) => Edit::BadValue,
        6 => Edit::Deleted,
        7 => Edit::Storm(dice.below(40) + 2),
        8 | 9 if !sleeps => Edit::ZeroAllowed,
        8 => Edit::ZeroForbidden,
        9 if dice.chance(50) => Edit::ZeroLater,
        9 => Edit::ZeroDeleted,
        10 if dice.chance(50) => Edit::SaturationDeleted,
        10 => Edit::Recreated(u8::try_from(dice.below(256)).unwrap_or_default()),
        _ => Edit::Random(dice.below(NUMBERS)),
    }
}

const NUMBERS: u64 = 1_000_000_000;

fn load(dice: &mut Dice) -> WorkloadFaultKind {
    let pods = dice.place(3) + 1;
    match dice.below(8) {
        0 | 1 => WorkloadFaultKind::Crash(pods),
        2 => WorkloadFaultKind::Evict(pods),
        3 => WorkloadFaultKind::NodeLost,
        4 => WorkloadFaultKind::NeverReady,
        5 => WorkloadFaultKind::SlowStart,
        6 => WorkloadFaultKind::Flapping,
        _ => WorkloadFaultKind::Shortage,
    }
}

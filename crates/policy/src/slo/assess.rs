//! The analyzer's view of one model.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::SloGoal;
use super::capacity::{self, CapacityBound, NEAREST_OBJECTIVE, SloCapacity};
use super::demand::{DemandObservation, DemandTrack, LONG_WINDOW};
use super::figures::{SloReport, SloRoleFigures};
use super::imbalance::Imbalance;
use super::landing::{FluidQueue, StartingReplica};
use super::learned::{self, LearnedSlo, LearnedSloModel};
use super::load::ObservedLoad;
use super::memory::NeedMemory;
use super::release::ReleaseHold;
use super::reserve::{HeldReserve, REACTION};
use super::straggler;
use super::work;
use crate::capacity::{AnalyzerName, Assessment, CapacityUnit, ServingRole, VariantCapacity};
use crate::key::{ModelKey, VariantKey};
use crate::params::{BurstReserve, SloTerm};
use crate::throughput::assess::generating_roles;
use crate::throughput::floor::orders_nothing;
use crate::throughput::{ThroughputModelInput, ThroughputVariantInput};
use crate::total::total;
use crate::units::Replicas;
use wva_base::moment::Moment;

/// The least time in which a backlog is to be drained once ordered replicas are ready.
const LEAST_DRAIN: Duration = Duration::from_secs(30);
/// Share of the time of a start in which it is to be drained.
const DRAIN_PER_START: u32 = 4;
/// The most by which prompts are taken to be longer where answers are.
const LONGER_PROMPTS: f64 = 2.0;
/// The least by which they are taken to be shorter.
const SHORTER_PROMPTS: f64 = 0.5;
/// Share of what replicas do by which a demand may exceed the band before one more is ordered: without a
/// backlog, noise at the edge is not worth a replica.
pub(crate) const TOLERATED_EXCESS: f64 = 0.05;

/// Replicas that are ordered at most by a first guess of what one does, to those that are ready.
const MOST_BY_GUESS: f64 = 2.0;
/// Share of what replicas do that is released at once, unless one replica does more, while what fewer bear is assumed.
const RELEASED_AT_ONCE: f64 = 0.2;
/// Share of the remembered need below which load has fallen.
const FALLEN: f64 = 0.9;

/// States demand and supply of a model.
pub fn assess(
    key: &ModelKey,
    input: &ThroughputModelInput,
    goal: SloGoal,
    learned: &LearnedSlo,
    now: Moment,
) -> (Assessment, SloReport) {
    let report = report(input, goal, learned.get(key), now);
    let peers =
        input.variants.iter().filter(|(variant, _)| !report.stragglers.contains_key(*variant));
    let capacities = peers.filter_map(|(variant, given)| {
        let capacity = VariantCapacity {
            per_replica: report.variants.get(variant)?.per_second,
            ..VariantCapacity::counted(given.role, given.ready, given.pending)
        };
        Some((variant.clone(), capacity))
    });
    let demand = (report.roles.iter()).map(|(role, figures)| (*role, figures.stated));
    let assessment = Assessment {
        analyzer: AnalyzerName::Slo,
        unit: CapacityUnit::TokensPerSecond,
        demand: demand.collect(),
        variants: capacities.collect(),
    };
    (assessment, report)
}

pub(super) fn report(
    input: &ThroughputModelInput,
    goal: SloGoal,
    learned: Option<&LearnedSloModel>,
    now: Moment,
) -> SloReport {
    let load = ObservedLoad::of(input);
    let without = input.params.without;
    let demand = learned.and_then(|model| model.demand);
    let DemandObservation { queue, queue_age, .. } = load.observation;
    let demand = demand.map(|demand| demand.with_count(queue, queue_age, now));
    let demand = demand.map(|demand| without.map_or(demand, |term| term.left_out(demand)));
    let mut report = SloReport {
        goal,
        demand,
        backlog: load.backlog(),
        derived: input.derived.clone(),
        roles: BTreeMap::new(),
        variants: BTreeMap::new(),
        stragglers: BTreeMap::new(),
    };
    let Some((model, demand)) = learned.zip(demand) else {
        return report;
    };
    let Some(shape) = demand.shape else {
        return report;
    };
    let sized = input.variants.iter().filter_map(|(key, given)| {
        let engine = model.engine(key, given)?;
        let curve = match without {
            Some(SloTerm::Slope) => Cow::Owned(engine.curve.newest()),
            _ => Cow::Borrowed(&engine.curve),
        };
        let found = capacity::of(given, &curve, engine.prompt_seconds, (shape, goal), now)?;
        Some((key.clone(), found))
    });
    report.variants = sized.collect();
    let guesses = capacity::guesses(&input.variants, &report.variants, (shape, goal));
    report.variants.extend(guesses);
    let shares = generating_roles(input);
    let roles: BTreeSet<ServingRole> =
        (input.variants.values()).map(|variant| variant.role).collect();
    for role in roles {
        let part_of_role = match role {
            ServingRole::Prefill => shares.get(&ServingRole::Decode),
            ServingRole::Decode | ServingRole::Both => shares.get(&role),
        };
        let part_served = part_of_role.copied().unwrap_or(0.0);
        let part = Part {
            input,
            report: &report,
            stragglers: &model.stragglers,
            load,
            role,
            share: part_served,
            per_request: work::of_request(role, shape) * part_served,
            answer: shape.output * part_served,
        };
        if let Some(figures) = part.figures(&demand, model, now) {
            report.roles.insert(role, part.within_guess(figures));
        }
    }
    let described = (report.roles.iter())
        .flat_map(|role| straggler::describe(input, &report, role, &model.stragglers));
    report.stragglers = described.collect();
    report
}

/// Work that arrives per second.
struct Arrivals {
    /// By counts and the mean request.
    counted: f64,
    /// By what is generated.
    generated: f64,
    /// The most that can arrive.
    most: f64,
}

/// One role of a model.
struct Part<'a> {
    input: &'a ThroughputModelInput,
    report: &'a SloReport,
    stragglers: &'a BTreeSet<VariantKey>,
    load: ObservedLoad,
    role: ServingRole,
    /// Share of the requests that the role serves.
    share: f64,
    per_request: f64,
    /// Tokens of the mean answer that the role generates.
    answer: f64,
}

impl Part<'_> {
    fn variants(&self) -> impl Iterator<Item = (&ThroughputVariantInput, SloCapacity)> {
        let own = (self.input.variants.iter()).filter(|(_, given)| given.role == self.role);
        own.filter_map(|(key, given)| Some((given, *self.report.variants.get(key)?)))
    }

    /// Those that serve together.
    fn peers(&self) -> impl Iterator<Item = (&ThroughputVariantInput, SloCapacity)> {
        let own = (self.input.variants.iter()).filter(|(_, given)| given.role == self.role);
        let peers = own.filter(|(key, _)| !self.stragglers.contains(*key));
        peers.filter_map(|(key, given)| Some((given, *self.report.variants.get(key)?)))
    }

    /// Work that arrives, where requests wait or not.
    fn arrivals(&self, demand: &DemandTrack, waits: bool, now: Moment) -> Arrivals {
        let rate = demand.rate();
        let is_draining = demand.is_draining(now);
        let generated =
            if is_draining { 0.0 } else { self.generated(demand.generated(), rate, 1.0) };
        let most = if waits || is_draining || self.role == ServingRole::Prefill {
            f64::INFINITY
        } else {
            let served = self.generated(demand.generated_at_most(), rate, SHORTER_PROMPTS);
            demand.most_work(served, self.per_request).max(generated)
        };
        Arrivals { counted: (rate * self.per_request).min(most), generated, most }
    }

    /// None where no variant of the role is known.
    fn figures(
        &self,
        demand: &DemandTrack,
        model: &LearnedSloModel,
        now: Moment,
    ) -> Option<SloRoleFigures> {
        let start = self.variants().map(|(given, _)| given.start).max()?;
        let waiting = self.waiting(demand);
        let waits = demand.is_backlog(waiting);
        let Arrivals { counted, generated, most } = self.arrivals(demand, waits, now);
        let arriving = counted.max(generated);
        let grown = if counted > 0.0 { arriving / counted } else { 1.0 };
        let burst = (demand.surge.max(demand.jump) * self.per_request).min(most);
        let need = arriving.max(burst);
        let memory = model.needs.get(&self.role);
        let chosen = self.input.params.burst_reserve;
        let (remembered, horizon) = memory
            .filter(|_| self.input.params.without != Some(SloTerm::Memory))
            .map_or((arriving, Duration::ZERO), |memory| memory.remembered(chosen, now));
        let remembered = remembered.max(arriving);
        let reserve = HeldReserve::of(memory, chosen, start, now);
        let landing_backlog = self.landing(waiting * grown, need, demand, start);
        let drain = LEAST_DRAIN.max(start / DRAIN_PER_START);
        let band = self.input.params.band;
        let imbalance = model.imbalances.get(&self.role);
        let imbalance = imbalance.map_or(1.0, Imbalance::ratio);
        let growth =
            memory.map_or(0.0, |memory| arriving * self.growth(memory, demand, start, now));
        let expected = need.max(arriving + growth);
        let ordered = (landing_backlog / drain.as_secs_f64()).mul_add(band.scale_up, expected);
        let reserved = reserve.with(remembered);
        let (service, anticipated) = self.supply();
        let (hold, share_kept) = self.hold(waits, memory, now);
        let ready = self.peers().map(|(given, _)| given.ready).sum();
        let floor =
            hold.map_or(0.0, |hold| hold.floor(share_kept, ready, (service, anticipated), band));
        let ceiling = orders_nothing(anticipated, band);
        // What was needed before keeps replicas; those that are missing for it are not worth a start.
        let is_past = arriving * imbalance < FALLEN * remembered && ceiling < reserved;
        let cut = (is_past && chosen != BurstReserve::Strict).then_some(ceiling);
        let kept = cut.unwrap_or(reserved);
        let wanted = (ordered * imbalance).max(kept).max(floor);
        let tolerated = ceiling..=ceiling * (1.0 + TOLERATED_EXCESS);
        let is_noise = landing_backlog <= 0.0 && tolerated.contains(&wanted);
        let stated = if is_noise { ceiling } else { wanted };
        stated.is_finite().then_some(SloRoleFigures {
            per_request: self.per_request,
            arriving,
            generated,
            need,
            burst,
            remembered,
            reserve: reserve.share,
            held_burst: reserve.burst,
            growth,
            cut,
            start,
            starting: self.on_their_way(),
            gated: None,
            horizon,
            landing_backlog,
            drain,
            imbalance,
            hold: hold.filter(|hold| stated <= floor || !hold.is_of_fewer()),
            stated,
        })
    }

    /// The share by which needs will have grown once a replica is ready that is ordered now.
    fn growth(
        &self,
        memory: &NeedMemory,
        demand: &DemandTrack,
        start: Duration,
        now: Moment,
    ) -> f64 {
        if self.input.params.without == Some(SloTerm::Growth) {
            return 0.0;
        }
        memory.growth(start + REACTION + LONG_WINDOW, demand.noise(), now)
    }

    /// Why replicas are not released, and the share of them that needs known so far do not explain, that a release which
    /// was taken back shows to be needed, or that is kept since what fewer bear is assumed.
    fn hold(
        &self,
        waits: bool,
        memory: Option<&NeedMemory>,
        now: Moment,
    ) -> (Option<ReleaseHold>, f64) {
        let ready: Replicas = self.variants().map(|(given, _)| given.ready).sum();
        let current = learned::current(self.input, self.role, self.stragglers);
        let is_over = self.is_over_objective();
        let mut unexplained = memory.map_or(1.0, |memory| memory.unexplained(ready, now));
        if is_over {
            unexplained = unexplained.ceil();
        }
        let unproven = self.unproven(memory, now);
        let taken_back = memory.map_or(0.0, |memory| memory.taken_back(current, now));
        let hold = if waits {
            Some(ReleaseHold::Backlog)
        } else if unexplained > 0.0 {
            Some(ReleaseHold::ShortMemory)
        } else if is_over {
            Some(ReleaseHold::OverObjective)
        } else if taken_back > unproven {
            Some(ReleaseHold::TakenBack)
        } else {
            (unproven > 0.0).then_some(ReleaseHold::AssumedLatency)
        };
        (hold, unexplained.max(unproven).max(taken_back))
    }

    /// The share of what ready replicas do that is kept while what fewer bear is assumed; 0 where it is known.
    fn unproven(&self, memory: Option<&NeedMemory>, now: Moment) -> f64 {
        let is_ready = |(given, _): &(&ThroughputVariantInput, SloCapacity)| given.ready.0 > 0;
        let ready = || self.peers().filter(is_ready).map(|(_, one)| one);
        if !ready().any(|one| one.is_assumed) {
            return 0.0;
        }
        if memory.is_some_and(|memory| memory.has_just_released(now)) {
            return 1.0;
        }
        let largest = ready().map(|one| one.per_second).fold(0.0, f64::max) / self.supply().0;
        1.0 - largest.max(RELEASED_AT_ONCE)
    }

    /// What a first guess sizes orders as many replicas again at most, until they are ready.
    fn within_guess(&self, mut figures: SloRoleFigures) -> SloRoleFigures {
        let has = |bound| self.peers().any(|(_, one)| one.bound == bound);
        if has(CapacityBound::Reading) && !has(CapacityBound::FirstToken) {
            let most = MOST_BY_GUESS * self.input.params.band.scale_up * self.supply().0;
            figures.stated = figures.stated.min(most);
        }
        figures
    }

    /// Whether replicas exceed the objective between tokens on average. One that an idle replica hardly meets is
    /// exceeded at any load.
    fn is_over_objective(&self) -> bool {
        let objective = self.report.goal.inter_token_latency;
        let reachable = (self.peers())
            .filter(|(_, one)| one.concurrency > 0.0 && one.idle * NEAREST_OBJECTIVE <= objective);
        let replicas = reachable.flat_map(|(given, _)| given.replicas.values());
        let latencies = replicas.filter_map(|replica| replica.inter_token_latency);
        total(latencies.map(|latency| latency - objective)) > 0.0
    }

    /// Work that waits after a start, where so many requests wait now.
    fn landing(&self, waiting: f64, need: f64, demand: &DemandTrack, start: Duration) -> f64 {
        if self.input.params.without == Some(SloTerm::Landing) {
            return 0.0;
        }
        let saturated =
            total(self.variants().map(|(given, one)| given.ready.to_f64() * one.saturated));
        let mut service = saturated.max(demand.served * self.per_request);
        if demand.queue_keeps_growing > 0.0 {
            // What replicas did with other requests is more than they do.
            service = service.min(need - demand.queue_keeps_growing * self.per_request);
        }
        let queue = FluidQueue {
            backlog: waiting * self.per_request,
            arrivals: need,
            service,
            starting: self.starting(),
        };
        queue.after(start)
    }

    /// Work that ready replicas do per second within the objectives, and with those on their way.
    fn supply(&self) -> (f64, f64) {
        let ready = |(given, one): (&ThroughputVariantInput, SloCapacity)| {
            given.ready.to_f64() * one.per_second
        };
        let all = |(given, one): (&ThroughputVariantInput, SloCapacity)| {
            (given.ready.to_f64() + given.pending.to_f64()) * one.per_second
        };
        (total(self.peers().map(ready)), total(self.peers().map(all)))
    }

    /// Work that arrives by the tokens that are generated. Longer answers often follow longer prompts, whose mean
    /// takes as long to show it; but while only short answers have ended, their mean says too little. Prompts are
    /// shorter where answers are, down to the `least` share.
    fn generated(&self, tokens: f64, rate: f64, least: f64) -> f64 {
        if self.role == ServingRole::Prefill {
            return 0.0;
        }
        let generated = tokens * self.share;
        let known = rate * self.answer;
        let longer =
            if known > 0.0 { (generated / known).clamp(least, LONGER_PROMPTS) } else { 1.0 };
        let prompts = rate * (self.per_request - self.answer);
        longer.mul_add(prompts, generated)
    }

    /// Requests that wait for the role: those in its engines, and those in the router. Where no prefill engine has a
    /// queue, all of them read less than they can, and decode is busy, the router holds requests for decode.
    fn waiting(&self, demand: &DemandTrack) -> f64 {
        let params = &self.input.params;
        let own: Vec<_> =
            (self.input.variants.values()).filter(|given| given.role == self.role).collect();
        let mut replicas = own.iter().flat_map(|given| given.replicas.values());
        let read = demand.served * self.per_request;
        let are_for_decode = self.role == ServingRole::Prefill
            && read > 0.0
            && read < self.supply().0
            && !replicas.any(|replica| replica.is_queued(params))
            && self.is_decode_busy(demand);
        let held = self.load.observation.queue.filter(|_| !are_for_decode);
        held.unwrap_or(0.0) + total(own.iter().map(|given| given.backlog()))
    }

    /// Whether too much is answered for one replica fewer of those that generate.
    fn is_decode_busy(&self, demand: &DemandTrack) -> bool {
        let generating =
            (self.input.variants.iter()).filter(|(_, given)| given.role != ServingRole::Prefill);
        let most = demand.shape.map(|shape| {
            total(generating.filter_map(|(key, given)| {
                let one = self.report.variants.get(key)?.per_second;
                Some(given.ready.to_f64() * one / work::of_request(given.role, shape))
            }))
        });
        most.is_some_and(|most| demand.served >= self.input.params.band.scale_down * most)
    }

    fn on_their_way(&self) -> Replicas {
        self.variants().map(|(given, _)| given.pending).sum()
    }

    fn starting(&self) -> Vec<StartingReplica> {
        let replicas = self.variants().flat_map(|(given, one)| {
            let counts = self.input.params.without != Some(SloTerm::Starts);
            let pending = if counts { given.pending.0 } else { 0 };
            let count = usize::try_from(pending).unwrap_or(usize::MAX);
            let known = given.remaining.iter().take(count).copied();
            known.map(move |remaining| StartingReplica { remaining, per_second: one.saturated })
        });
        replicas.collect()
    }
}

//! What is learned of every model.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::SloGoal;
use super::assess;
use super::curve::LatencyCurve;
use super::demand::DemandTrack;
use super::imbalance::Imbalance;
use super::load::ObservedLoad;
use super::memory::{MAX_HORIZON, NeedMemory};
use super::release::ReleaseHold;
use super::reserve::REACTION;
use super::straggler;
use super::work;
use crate::capacity::ServingRole;
use crate::key::{MAX_VARIANTS, ModelKey, VariantKey};
use crate::params::BurstReserve;
use crate::signal::SignalName;
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput, ThroughputVariantInput};
use crate::units::Replicas;
use wva_base::moment::Moment;

/// The least horizon of a need, whatever a start takes.
const LEAST_HORIZON: Duration = Duration::from_mins(15);
/// Starts of a replica for which a need is remembered at least.
const STARTS_REMEMBERED: u32 = 3;
/// The least horizon is no longer than this, whatever a start takes.
const MOST_LEAST_HORIZON: Duration = Duration::from_mins(30);
/// Ratio of sequences over a window to those at its end, beyond which a replica was not steady; and how many
/// more may be chance.
const STEADY: f64 = 1.5;
const STEADY_SEQUENCES: f64 = 6.0;
/// Standard deviations of a count of requests by which those in replicas change where load does; how long rates are
/// of before then: their window, and a scrape.
const SHIFT: f64 = 2.0;
const SHIFTED_FOR: Duration = Duration::from_secs(90);
/// Source: the window of every rate that is queried.
const RATE_WINDOW: Duration = Duration::from_mins(1);
/// Rise per collection of the least time for a prompt token, so that a fast one is not for ever.
const PROMPT_DRIFT: f64 = 1.002;

/// Learned state of all models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LearnedSlo {
    models: BTreeMap<ModelKey, LearnedSloModel>,
}

/// Learned state of one model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LearnedSloModel {
    /// Its requests; `None` as long as no arrivals were ever known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand: Option<DemandTrack>,
    /// Needs by role.
    #[serde(default)]
    pub needs: BTreeMap<ServingRole, NeedMemory>,
    /// How evenly load is shared, by role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub imbalances: BTreeMap<ServingRole, Imbalance>,
    /// Replicas by role, ready or on their way, when the model was first seen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    found: BTreeMap<ServingRole, Replicas>,
    /// When requests in replicas, or the replicas, changed last; noted where a latency follows from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shifted: Option<Moment>,
    /// Variants that are too slow to serve with the others of their role.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stragglers: BTreeSet<VariantKey>,
    /// Engines by variant.
    #[serde(default)]
    pub engines: BTreeMap<VariantKey, LearnedEngine>,
}

/// What is learned of the engine of one variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LearnedEngine {
    /// What makes the engine as fast as it is; empty where that is not known.
    pub engine: Arc<str>,
    /// Its latency over work.
    pub curve: LatencyCurve,
    /// Least seconds for a computed prompt token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_seconds: Option<f64>,
    /// Its ready replicas.
    #[serde(default)]
    ready: Replicas,
    /// When these became more than some, last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grown: Option<Moment>,
}

impl LearnedSlo {
    /// What is learned of a model.
    pub fn get(&self, model: &ModelKey) -> Option<&LearnedSloModel> {
        self.models.get(model)
    }

    /// Whether requests of a model became more at once, or wait: an order for them is not to wait for a cycle.
    pub fn has_jump(&self) -> bool {
        let mut tracks = self.models.values().filter_map(|model| model.demand);
        tracks.any(|demand| demand.jumps())
    }

    /// Whether so many requests in the router of a model are more than its replicas take at once.
    pub fn is_backlog(&self, model: &ModelKey, requests: f64) -> bool {
        let demand = self.get(model).and_then(|model| model.demand);
        demand.is_some_and(|demand| demand.is_backlog(requests))
    }

    /// Whether nothing is learned of any model.
    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// Takes one collection in; models that are not in it are forgotten.
    #[must_use]
    pub fn learn<M: Borrow<(ThroughputModelInput, SloGoal)>>(
        &self,
        models: &BTreeMap<ModelKey, M>,
        now: Moment,
    ) -> Self {
        let mut left = MAX_VARIANTS;
        let models = models.iter().map(|(key, model)| {
            let (input, goal) = model.borrow();
            let before = self.get(key).cloned().unwrap_or_default();
            let model = before.learn(input, *goal, left, now);
            left = left.saturating_sub(model.engines.len());
            (key.clone(), model)
        });
        Self { models: models.collect() }
    }
}

impl LearnedSloModel {
    fn learn(
        mut self,
        input: &ThroughputModelInput,
        goal: SloGoal,
        room: usize,
        now: Moment,
    ) -> Self {
        self.stragglers.retain(|key| input.variants.contains_key(key));
        let before = self.demand;
        let load = ObservedLoad::of(input);
        self.demand = DemandTrack::after(before, load.observation, now);
        self.shifted = self.last_shift(input, before.as_ref(), now);
        let is_even = (self.shifted).is_none_or(|at| now.since(at) >= SHIFTED_FOR);
        let engines = input.variants.iter().map(|(key, given)| {
            let known = self.engines.remove(key).unwrap_or_default();
            (key.clone(), known.learn(given, input, is_even, now))
        });
        self.engines = engines.take(room).collect();
        // Once the demand is known, replicas may have been ordered for it.
        for role in input.variants.values().map(|variant| variant.role) {
            (self.found.entry(role)).or_insert_with(|| replicas(input, role));
        }
        let generates = |given: &&ThroughputVariantInput| given.role != ServingRole::Prefill;
        let mut generating = input.variants.values().filter(generates);
        let serves = generating.any(|given| given.ready.0 > 0);
        if let Some(demand) = self.demand.as_mut().filter(|_| !serves) {
            // Tokens of before would count for every request that comes back.
            demand.generated = None;
        }
        let report = assess::report(input, goal, Some(&self), now);
        for (role, figures) in &report.roles {
            let shortest = shortest_horizon(input, *role);
            let found = self.found.get(role).copied().unwrap_or_default();
            let memory =
                (self.needs.entry(*role)).or_insert_with(|| NeedMemory::new(now, shortest, found));
            let need = figures.arriving * figures.imbalance;
            memory.observe(need, figures.burst * figures.imbalance, shortest, now);
            if input.params.burst_reserve != BurstReserve::None {
                let waits = figures.hold == Some(ReleaseHold::Backlog);
                memory.observe_growth(figures.start + REACTION, waits, now);
            }
            if let Some(demand) = report.demand {
                memory.observe_requests(demand.rate());
            }
            let found = straggler::find(input, &report, (*role, figures), &self.stragglers);
            let of_role = |key: &VariantKey| {
                (input.variants.get(key)).is_some_and(|given| given.role == *role)
            };
            if !self.stragglers.iter().filter(|key| of_role(key)).eq(found.iter()) {
                self.stragglers.retain(|key| !of_role(key));
                self.stragglers.extend(found);
                // What serves changes now: nothing of it is a release.
                memory.recount(current(input, *role, &self.stragglers));
            }
            memory.count(current(input, *role, &self.stragglers), figures.growth, now);
            let own = input.variants.values().filter(|given| given.role == *role);
            if own.filter(|given| given.ready > Replicas::ZERO).count() > 1 {
                let imbalance = self.imbalances.entry(*role);
                let imbalance = imbalance.or_insert_with(|| Imbalance::new(now));
                imbalance.observe(input, &report, *role, now);
            } else {
                self.imbalances.remove(role);
            }
        }
        self
    }

    /// When load last changed. A latency that follows from the requests of a moment and the rate of a minute is that of
    /// neither while it does, unless a replica shows that its own load did not.
    fn last_shift(
        &self,
        input: &ThroughputModelInput,
        before: Option<&DemandTrack>,
        now: Moment,
    ) -> Option<Moment> {
        let follows = |signal: &SignalName| {
            matches!(signal, SignalName::InterTokenLatency | SignalName::GenerationRate)
        };
        input.derived.iter().any(follows).then_some(())?;
        let counts = |demand: Option<&DemandTrack>| {
            let demand = demand?;
            Some((demand.in_flight?, demand.waiting?.replicas))
        };
        let is_shift =
            counts(before).zip(counts(self.demand.as_ref())).is_none_or(|(before, after)| {
                let chance = SHIFT * (before.0 + after.0).sqrt();
                before.1 != after.1 || (after.0 - before.0).abs() > chance
            });
        if is_shift { Some(now) } else { self.shifted }
    }

    /// The engine of a variant: its own, else one of the same make.
    pub(super) fn engine(
        &self,
        key: &VariantKey,
        given: &ThroughputVariantInput,
    ) -> Option<&LearnedEngine> {
        let own = self.engines.get(key).filter(|engine| engine.is_known());
        own.or_else(|| {
            let mut like = self.engines.values().filter(|engine| engine.is_known());
            like.find(|engine| !given.engine.is_empty() && engine.engine == given.engine)
        })
    }
}

impl LearnedEngine {
    fn is_known(&self) -> bool {
        !self.curve.is_empty() || self.prompt_seconds.is_some()
    }

    fn learn(
        self,
        given: &ThroughputVariantInput,
        model: &ThroughputModelInput,
        is_even: bool,
        now: Moment,
    ) -> Self {
        // A target without a pod template shows no engine while it has no pod.
        let mut next = if given.engine.is_empty() || self.engine == given.engine {
            self
        } else {
            Self { engine: Arc::clone(&given.engine), ..Self::default() }
        };
        // Half of the time teaches, however often replicas land.
        let has_taught = (next.grown).is_none_or(|at| now.since(at) >= 2 * SHIFTED_FOR);
        if has_taught && next.ready > Replicas::ZERO && given.ready > next.ready {
            next.grown = Some(now);
        }
        next.ready = given.ready;
        // Load moves to replicas that have just landed: a minute has seen two loads of each of them.
        let is_settled = (next.grown).is_none_or(|at| now.since(at) >= SHIFTED_FOR);
        let is_even = is_even && is_settled;
        for replica in given.replicas.values() {
            let rate = replica.decode_rate.zip(replica.inter_token_latency);
            let rate = rate.filter(|(tokens, latency)| {
                (is_even || is_balanced(replica)) && is_steady(tokens * latency, replica)
            });
            if let Some(((_, latency), done)) = rate.zip(work::done(given.role, replica)) {
                // Prompts of a burst wait in an engine with room, too.
                let is_full = if replica.usage.is_some() && given.max_sequences.is_some() {
                    replica.is_full(given.max_sequences, &model.params)
                } else {
                    replica.is_queued(&model.params)
                };
                next.curve.observe(done, latency, is_full, now);
            }
        }
        // Elsewhere the first token waits for other things than its prompt.
        if given.role == ServingRole::Prefill {
            next.prompt_seconds = match (next.prompt_seconds, given.prompt_seconds()) {
                (Some(least), Some(seen)) => Some(seen.min(least * PROMPT_DRIFT)),
                (least, seen) => least.or(seen),
            };
        }
        next.curve.prune(now);
        next
    }
}

/// Whether a replica runs about as many sequences now as over the window of its rates, by Little's law. One
/// that has just begun, or that load has just reached, does less work on average than its latency says.
fn is_steady(sequences: f64, replica: &ThroughputReplicaInput) -> bool {
    replica.running.is_none_or(|running| {
        let (less, more) = (sequences.min(running), sequences.max(running));
        more <= STEADY.mul_add(less, STEADY_SEQUENCES)
    })
}

/// Whether a replica completed about as many requests as it was sent over the window of its rates, so that it runs
/// about as many as before.
fn is_balanced(replica: &ThroughputReplicaInput) -> bool {
    let flows = (replica.arrivals.zip(replica.completions)).zip(replica.running);
    flows.is_some_and(|((sent, done), running)| {
        let more = (sent - done).abs() * RATE_WINDOW.as_secs_f64();
        more <= (STEADY - 1.0).mul_add(running, STEADY_SEQUENCES)
    })
}

/// Replicas of a role, ready or on their way.
fn replicas(input: &ThroughputModelInput, role: ServingRole) -> Replicas {
    let own = (input.variants.values()).filter(|variant| variant.role == role);
    own.flat_map(|variant| [variant.ready, variant.pending]).sum()
}

/// Replicas of a role that its targets have, whether they serve, start or are late; without stragglers.
pub(super) fn current(
    input: &ThroughputModelInput,
    role: ServingRole,
    stragglers: &BTreeSet<VariantKey>,
) -> Replicas {
    let own = (input.variants.iter()).filter(|(_, variant)| variant.role == role);
    let peers = own.filter(|(key, _)| !stragglers.contains(*key));
    peers.map(|(_, variant)| variant.current).sum()
}

/// How long a need of a role is remembered at least.
fn shortest_horizon(input: &ThroughputModelInput, role: ServingRole) -> Duration {
    let variants = input.variants.values();
    let own = variants.filter(|variant| variant.role == role);
    let start = own.map(|variant| variant.start).max().unwrap_or_default();
    (start.saturating_mul(STARTS_REMEMBERED))
        .clamp(LEAST_HORIZON, MOST_LEAST_HORIZON)
        .min(MAX_HORIZON)
}

//! What a plan says in numbers besides the counts: one list of rows, read off its record alone.

use std::collections::BTreeMap;

use crate::policy::StartSource;
use crate::policy::capacity::ServingRole;
use crate::policy::combine::{Balance, VoterFigures};
use crate::policy::gpu::{Budget, GpuPool, PoolFigures, PoolScope};
use crate::policy::key::{ModelKey, VariantKey};
use crate::policy::plan::{Decision, ModelFigures, Plan, Reason};
use crate::policy::reason::{CapacitySource, WakeCause, ZeroBlock};
use crate::policy::tokens::{Missing, TokenVariantFigures};
use crate::policy::units::Replicas;

/// Name, meaning and labels.
type Description = (&'static str, &'static str, &'static [&'static str]);

macro_rules! facts {
    ($($fact:ident: $name:literal, $labels:expr, $help:literal;)*) => {
        /// Gauges that are read off a plan.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Fact {
            $($fact,)*
        }

        impl Fact {
            pub(super) const ALL: [Self; [$($name),*].len()] = [$(Self::$fact),*];

            pub(super) fn describe(self) -> Description {
                match self {
                    $(Self::$fact => ($name, $help, $labels),)*
                }
            }
        }
    };
}

const OF_MODEL: &[&str] = &["variant_name", "namespace", "model_name"];
const IN_UNIT: &[&str] = &["variant_name", "namespace", "model_name", "unit"];

facts! {
    Utilization: "wva_saturation_utilization", &["variant_name", "namespace", "model_name", "accelerator_type"],
        "KV tokens in demand over capacity; by percentages the KV share of the fullest replica.";
    Required: "wva_required_capacity", IN_UNIT,
        "Capacity that the variant's role lacks: unit continuous is that of the sizing analyzer; binary (percentages) is 1 below a trigger, else 0.";
    Spare: "wva_spare_capacity", IN_UNIT,
        "Capacity of the variant's role beyond the lower end of the band: unit continuous is that of the sizing analyzer; binary (percentages) is 1 if one replica can go, else 0.";
    TokensUsed: "wva_kv_cache_tokens_used", OF_MODEL,
        "Tokens in the KV caches of the variant; absent unless every reporting instance states it.";
    TokensCapacity: "wva_kv_cache_tokens_capacity", OF_MODEL,
        "Tokens that fit into the KV caches of the variant; absent unless every reporting instance states it.";
    Cost: "wva_variant_cost", OF_MODEL,
        "Cost of one replica an hour, as the object states it; else 10.";
    StartSeconds: "wva_replica_start_seconds", &["variant_name", "namespace", "start"],
        "Median of the latest starts, from creation to readiness; start is cold, or cached where the variant had run on the node.";
    StartEstimate: "wva_replica_start_seconds_estimate", &["variant_name", "namespace", "source"],
        "Expected time of the next start; absent until one was measured.";
    ModelReplicas: "wva_model_replicas", &["namespace", "model"],
        "Replicas of all variants of the model; absent unless all targets are known.";
    ScalingBlocked: "wva_model_scaling_blocked", &["namespace", "model", "reason"],
        "1 while something keeps the model from going to zero or from waking; else absent.";
    Objective: "wva_model_latency_objective_seconds", &["namespace", "model", "latency"],
        "Latency objective of the model; latency is time_to_first_token or inter_token_latency. Absent without one.";
    AnalyzerDemand: "wva_analyzer_demand", &["analyzer", "namespace", "model", "role"],
        "Demand as an analyzer counts it, in its own unit; absent where it has no opinion.";
    AvailableGpus: "wva_available_gpus", &["accelerator_type"],
        "GPUs that the last cycle left free, of the types that variants use.";
    DiscoveryUp: "wva_gpu_discovery_up", &[],
        "1 if the GPUs of nodes are known, 0 if growth waits for them; absent where nodes limit nothing.";
}

/// Whom a row is about, and with whom it goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RowSubject {
    Fleet,
    Model(ModelKey),
    Variant(VariantKey),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) fact: Fact,
    pub(super) labels: Vec<String>,
    pub(super) value: f64,
}

#[derive(Debug, Default)]
pub(super) struct Rows(pub(super) BTreeMap<RowSubject, Vec<Row>>);

impl Rows {
    /// Rows of the variants that `is_live` names, of their models, and of the fleet.
    pub(super) fn of(plan: &Plan, is_live: impl Fn(&VariantKey) -> bool) -> Self {
        let mut rows = Self::default();
        let mut models: BTreeMap<&ModelKey, Vec<&Decision>> = BTreeMap::new();
        for decision in plan.decisions.values().filter(|one| is_live(&one.key)) {
            models.entry(&decision.model).or_default().push(decision);
        }
        for (model, decisions) in models {
            let figures = plan.models.get(model);
            rows.add_model(model, &decisions, figures);
            for decision in decisions {
                rows.add_cost(decision);
                if let Some(figures) = figures {
                    rows.add_variant(decision, figures);
                }
            }
        }
        rows.add_pools(&plan.pools);
        rows
    }

    fn add<const N: usize>(
        &mut self,
        subject: &RowSubject,
        fact: Fact,
        labels: [&str; N],
        value: f64,
    ) {
        self.0.entry(subject.clone()).or_default().push(Row {
            fact,
            labels: labels.map(str::to_owned).into(),
            value,
        });
    }

    fn add_model(
        &mut self,
        model: &ModelKey,
        decisions: &[&Decision],
        figures: Option<&ModelFigures>,
    ) {
        let subject = RowSubject::Model(model.clone());
        let key = [&*model.namespace, &*model.model];
        let counts: Option<Vec<f64>> =
            decisions.iter().map(|decision| decision.current.map(Replicas::to_f64)).collect();
        if let Some(counts) = counts {
            self.add(&subject, Fact::ModelReplicas, key, counts.iter().sum());
        }
        if let Some(reason) = decisions.iter().find_map(|decision| blocked(decision)) {
            let labels = [key[0], key[1], reason];
            self.add(&subject, Fact::ScalingBlocked, labels, 1.0);
        }
        let objectives = figures.and_then(objectives).into_iter().flatten();
        for (latency, seconds) in objectives {
            let labels = [key[0], key[1], latency];
            self.add(&subject, Fact::Objective, labels, seconds);
        }
        let voters = figures.and_then(|figures| figures.consensus.as_ref());
        for voter in voters.iter().flat_map(|consensus| &consensus.voters) {
            for (role, balance) in &voter.roles {
                let labels = [voter.analyzer.as_str(), key[0], key[1], &role.to_string()];
                self.add(&subject, Fact::AnalyzerDemand, labels, balance.demand);
            }
        }
    }

    fn add_cost(&mut self, decision: &Decision) {
        let key = &decision.key;
        let labels = [&*key.name, &*key.namespace, &*decision.model.model];
        let subject = RowSubject::Variant(key.clone());
        let cost = decision.cost.millionths() / 1e6;
        self.add(&subject, Fact::Cost, labels, cost);
    }

    fn add_variant(&mut self, decision: &Decision, figures: &ModelFigures) {
        let subject = RowSubject::Variant(decision.key.clone());
        let key = [&*decision.key.name, &*decision.key.namespace];
        let of_model = [key[0], key[1], &*decision.model.model];
        let tokens = figures.tokens.as_ref();
        let tokens = tokens.and_then(|report| report.variants.get(&decision.key));
        if let Some(share) = utilization(decision, tokens) {
            let labels = [key[0], key[1], of_model[2], decision.accelerator.label()];
            self.add(&subject, Fact::Utilization, labels, share);
        }
        if let Some((unit, required, spare)) = capacity(decision.role, figures) {
            let labels = [key[0], key[1], of_model[2], unit];
            self.add(&subject, Fact::Required, labels, required);
            self.add(&subject, Fact::Spare, labels, spare);
        }
        let caches = [
            (Fact::TokensUsed, tokens.and_then(tokens_used)),
            (Fact::TokensCapacity, tokens.and_then(tokens_capacity)),
        ];
        for (fact, value) in caches {
            if let Some(value) = value {
                self.add(&subject, fact, of_model, value);
            }
        }
        let measured = figures.starts.get(&decision.key);
        if let Some(start) = measured.filter(|start| start.source == StartSource::Measured) {
            for (kind, median) in [("cold", start.cold), ("cached", start.cached)] {
                if let Some(median) = median {
                    let labels = [key[0], key[1], kind];
                    self.add(&subject, Fact::StartSeconds, labels, median.as_secs_f64());
                }
            }
            let labels = [key[0], key[1], "measured"];
            let typical = start.typical.as_secs_f64();
            self.add(&subject, Fact::StartEstimate, labels, typical);
        }
    }

    /// GPUs of nodes; what quotas leave is a matter of namespaces and not of hardware.
    fn add_pools(&mut self, pools: &[PoolFigures]) {
        let is_physical = |pool: &&PoolFigures| pool.scope == PoolScope::Inventory;
        let mut is_known = None;
        for pool in pools.iter().filter(is_physical) {
            is_known = Some(is_known.unwrap_or(true) && pool.limit != Budget::Unknown);
            if let Budget::Finite(left) = pool.left {
                self.add(&RowSubject::Fleet, Fact::AvailableGpus, [&*pool.kind], left.to_f64());
            }
        }
        if let Some(is_known) = is_known {
            let value = f64::from(u8::from(is_known));
            self.add(&RowSubject::Fleet, Fact::DiscoveryUp, [], value);
        }
    }
}

/// What lasts and keeps a model where it is. Being in use and a retention period end by themselves.
fn blocked(decision: &Decision) -> Option<&'static str> {
    decision.steps.iter().find_map(|step| match &step.why {
        Reason::ZeroBlocked { block } => match block {
            ZeroBlock::Busy | ZeroBlock::Retained { .. } => None,
            lasting => Some(lasting.as_str()),
        },
        Reason::WakeSignalFailed { .. } => Some(ZeroBlock::NoWakeSignal.as_str()),
        _ => None,
    })
}

/// The objectives in seconds, by the names of their signals.
fn objectives(figures: &ModelFigures) -> Option<[(&'static str, f64); 2]> {
    let of_queueing = || {
        let latencies = figures.queueing.as_ref()?.targets?.latencies;
        let (first, next) = (latencies.time_to_first_token, latencies.inter_token_latency);
        Some((first.0 / 1e3, next.0 / 1e3))
    };
    let of_slo = figures.slo.as_ref().map(|report| {
        let goal = report.goal;
        (goal.time_to_first_token, goal.inter_token_latency)
    });
    let (first, next) = of_slo.or_else(of_queueing)?;
    Some([("time_to_first_token", first), ("inter_token_latency", next)])
}

fn utilization(decision: &Decision, tokens: Option<&TokenVariantFigures>) -> Option<f64> {
    match tokens {
        Some(tokens) => {
            let is_known = tokens.is_demand_known && tokens.supply.is_some();
            is_known.then(|| tokens.demand.0 / tokens.supply.0)
        }
        None => (decision.figures.reporting > decision.figures.without_kv)
            .then_some(decision.figures.max_kv),
    }
}

/// Unit, missing and spare capacity of a role.
fn capacity(role: ServingRole, figures: &ModelFigures) -> Option<(&'static str, f64, f64)> {
    let Some(consensus) = &figures.consensus else {
        let holds = |holds: bool| f64::from(u8::from(holds));
        // By role where variants share the work, as they are decided.
        let own = figures.percentage_by_role.get(&role).copied();
        let percentage = own.or(figures.percentage)?;
        let required = holds(percentage.scale_up);
        return Some(("binary", required, holds(percentage.scale_down_safe)));
    };
    let CapacitySource::Sized { by } = consensus.anchor else {
        return None;
    };
    let sizes = |voter: &&VoterFigures| voter.analyzer == by;
    let voter = consensus.voters.iter().find(sizes)?;
    let balance: &Balance = voter.roles.get(&role)?;
    Some(("continuous", balance.required, balance.spare))
}

fn tokens_used(variant: &TokenVariantFigures) -> Option<f64> {
    let lacks = |signal| {
        let mut instances = variant.instances.values();
        instances.any(|instance| instance.missing.contains(&signal))
    };
    let is_known = !variant.instances.is_empty() && !lacks(Missing::KvUsage);
    let used = variant.instances.values().map(|instance| instance.in_use.0);
    is_known.then(|| used.sum())
}

fn tokens_capacity(variant: &TokenVariantFigures) -> Option<f64> {
    let mut instances = variant.instances.values();
    let is_known = instances.all(|instance| instance.total.is_some());
    let total = variant.instances.values().map(|instance| instance.total.0);
    (is_known && !variant.instances.is_empty()).then(|| total.sum())
}

/// The limiter that cut a decision, by name; the first one where several did.
pub(super) fn limiter(decision: &Decision) -> Option<&str> {
    decision.steps.iter().find_map(|step| match &step.why {
        Reason::Limited { by: pools, .. } | Reason::BudgetUnknown { pools, .. } => {
            pools.first().map(GpuPool::limiter)
        }
        Reason::GpusNotCounted(why) => why.pools.first().map(GpuPool::limiter),
        Reason::ShareLimited { by, .. }
        | Reason::WakeRefused { by, .. }
        | Reason::MinimumAboveGpus { by, .. } => by.first().map(|pool| &*pool.limiter),
        Reason::HeldForStart { by } => by.first().map(|held| held.pool.limiter()),
        _ => None,
    })
}

/// What the boundary to zero changed of a decision, in the original's words.
pub(super) fn enforced(decision: &Decision) -> Option<&'static str> {
    let changes = decision.steps.iter().filter(|step| step.from != step.to);
    changes.rev().find_map(|step| match &step.why {
        Reason::NoRequests { .. } => Some("scale_to_zero"),
        Reason::Woken { cause: WakeCause::MinimumOfOne, .. } => Some("minimum_replicas"),
        _ => None,
    })
}

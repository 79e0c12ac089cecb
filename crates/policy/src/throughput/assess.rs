//! The analyzer's view of one model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::average::mean;
use super::input::{ThroughputModelInput, ThroughputVariantInput, positive};
use super::learned::{LearnedModel, LearnedThroughput};
use super::role::{self, RoleLoad, RoleMember, ThroughputRoleFigures};
use super::supply::{QUEUE_DRAIN_FACTOR, queue_demand};
use super::variant::ThroughputVariantFigures;
use super::window::MAX_AGE;
use crate::capacity::{AnalyzerName, Assessment, CapacityUnit, ServingRole, VariantCapacity};
use crate::key::{ModelKey, VariantKey};
use crate::units::Replicas;
use crate::zero::ModelActivity;
use wva_base::moment::Moment;

/// Figures of one model. What is absent is not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThroughputReport {
    /// Requests per second, at admission.
    pub arrivals: Option<f64>,
    /// Requests that wait in the router.
    pub router_queue: f64,
    /// Mean tokens of an answer, by the replicas of the variants that generate.
    pub output_tokens: Option<f64>,
    /// Mean tokens of a prompt that have to be computed.
    pub input_tokens: Option<f64>,
    /// Generated tokens per second that the router's queue adds.
    pub queue_demand: f64,
    /// Generated tokens per second asked of the model.
    pub demand: Option<f64>,
    /// How long it has had replicas whose capacity is known, and no demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undemanded_for: Option<Duration>,
    /// Whether what prefill shows is the backlog of decode.
    pub is_prefill_masked: bool,
    /// Of the balances of roles: tokens per second, or replicas where nothing is asked of the model
    /// and a capacity is not known.
    pub unit: CapacityUnit,
    /// By role; a role without an entry is one that there is no opinion on.
    pub roles: BTreeMap<ServingRole, ThroughputRoleFigures>,
    /// By variant.
    pub variants: BTreeMap<VariantKey, ThroughputVariantFigures>,
}

/// Assesses one model with what was learned up to this cycle. While the arrivals are not known there
/// is no demand, hence no opinion; a role of which no variant can be sized has none either. Where
/// nothing is asked of the model, and a capacity is not known, replicas are counted: any capacity is
/// enough then.
pub(crate) fn assess(
    key: &ModelKey,
    input: &ThroughputModelInput,
    learned: &LearnedThroughput,
    now: Moment,
) -> (Assessment, ThroughputReport) {
    let report = report(input, learned.get(key), now);
    let capacities = input.variants.iter().filter_map(|(variant, given)| {
        let (role, ready, pending) = (given.role, given.ready, given.pending);
        let counted = VariantCapacity::counted(role, ready, pending);
        let capacity = match report.unit {
            CapacityUnit::Replicas => counted,
            _ => VariantCapacity {
                per_replica: report.variants.get(variant)?.per_replica?,
                ..counted
            },
        };
        Some((variant.clone(), capacity))
    });
    let assessment = Assessment {
        analyzer: AnalyzerName::Throughput,
        unit: report.unit,
        demand: report.roles.iter().map(|(role, figures)| (*role, figures.stated)).collect(),
        variants: capacities.collect(),
    };
    (assessment, report)
}

pub(super) fn report(
    input: &ThroughputModelInput,
    learned: Option<&LearnedModel>,
    now: Moment,
) -> ThroughputReport {
    let variants: BTreeMap<VariantKey, ThroughputVariantFigures> = input
        .variants
        .keys()
        .filter_map(|key| Some((key.clone(), variant_figures(input, key, learned)?)))
        .collect();
    let arrivals = input.arrivals.filter(|rate| rate.is_finite() && *rate >= 0.0);
    let router_queue = positive(input.router_queue).unwrap_or(0.0);
    let generating = |figures: &&ThroughputVariantFigures| figures.role != ServingRole::Prefill;
    let full_latency =
        mean((variants.values().filter(generating)).filter_map(|figures| figures.full_latency));
    let output_tokens = by_count(variants.values().filter(generating), |figures| {
        figures.per_replica?;
        Some(figures.shape?.output)
    });
    let mut report = ThroughputReport {
        arrivals,
        router_queue,
        output_tokens,
        input_tokens: input_tokens(&variants),
        queue_demand: full_latency
            .map_or(0.0, |latency| queue_demand(router_queue, QUEUE_DRAIN_FACTOR, latency)),
        demand: None,
        undemanded_for: learned.and_then(|model| Some(now.since(model.undemanded?))),
        is_prefill_masked: learned.is_some_and(|model| model.coupling.masks_prefill(now)),
        unit: unit(input, &variants),
        roles: BTreeMap::new(),
        variants,
    };
    report.demand = (arrivals.zip(output_tokens))
        .map(|(arrivals, tokens)| arrivals * tokens + report.queue_demand)
        .filter(|demand| demand.is_finite());
    report.roles = report.role_figures(input, learned);
    report
}

fn variant_figures(
    input: &ThroughputModelInput,
    key: &VariantKey,
    learned: Option<&LearnedModel>,
) -> Option<ThroughputVariantFigures> {
    let given = input.variants.get(key)?;
    let own = learned.and_then(|model| model.variants.get(key));
    // A variant without a name of its engine shares it with no other.
    let donor = learned
        .filter(|_| !given.engine.is_empty())
        .and_then(|model| model.variants.values().find(|tracker| tracker.is_of(given)));
    Some(ThroughputVariantFigures::of(given, own, donor, &input.params))
}

impl ThroughputReport {
    pub(super) fn has_supply(&self, input: &ThroughputModelInput) -> bool {
        input.variants.iter().any(|(key, given)| {
            let figures = self.variants.get(key);
            given.ready > Replicas::ZERO
                && figures.is_some_and(|figures| figures.per_replica.is_some())
        })
    }

    /// What is to be known about an analyzer that has had supply and no demand for as long as it
    /// remembers what it sees: either the model is not in use, or its use is not counted.
    pub fn note(&self) -> Option<String> {
        let minutes = self.undemanded_for.filter(|since| *since >= MAX_AGE)?.as_secs() / 60;
        let why = match self.arrivals {
            Some(_) => "the router counts no arrivals; look whether requests pass by it",
            None => "arrivals are not known; look whether the router's metrics are read",
        };
        Some(format!("throughput sees replicas and no demand for {minutes} min: {why}"))
    }

    fn role_figures(
        &self,
        input: &ThroughputModelInput,
        learned: Option<&LearnedModel>,
    ) -> BTreeMap<ServingRole, ThroughputRoleFigures> {
        let roles: BTreeSet<ServingRole> =
            input.variants.values().map(|variant| variant.role).collect();
        let figures = roles.into_iter().filter_map(|role| {
            let parts: Vec<RoleMember<'_>> = (input.variants.iter())
                .filter(|(_, variant)| variant.role == role)
                .filter_map(|(key, variant)| {
                    let figures = self.variants.get(key)?;
                    Some(RoleMember { input: variant, figures })
                })
                .collect();
            let streak = learned.and_then(|model| model.streaks.get(&role).copied());
            if self.unit == CapacityUnit::Replicas {
                return Some((role, role::idle(&parts, input.params.band, streak)));
            }
            let load = self.load(role, input)?;
            let is_masked = role == ServingRole::Prefill && self.is_prefill_masked;
            let figures = role::figures(&parts, load, &input.params, streak, is_masked)?;
            Some((role, figures))
        });
        figures.collect()
    }

    /// The roles that generate share the load evenly; prefill reads what is meant for decode.
    fn load(&self, role: ServingRole, input: &ThroughputModelInput) -> Option<RoleLoad> {
        let arrivals = self.arrivals?;
        let shares = generating_roles(input);
        let share_of = |role| shares.get(&role).copied().unwrap_or(0.0);
        let (share, tokens, queue_demand) = match role {
            ServingRole::Prefill => (share_of(ServingRole::Decode), self.input_tokens?, 0.0),
            ServingRole::Decode | ServingRole::Both => {
                (share_of(role), self.output_tokens?, self.queue_demand)
            }
        };
        Some(RoleLoad {
            arrivals: arrivals * share,
            router_queue: self.router_queue * share,
            tokens_per_request: tokens,
            demand: share * (arrivals * tokens + queue_demand),
        })
    }
}

/// Replicas where nothing is asked of the model, and what one of it can do is not known or a first
/// impression.
fn unit(
    input: &ThroughputModelInput,
    variants: &BTreeMap<VariantKey, ThroughputVariantFigures>,
) -> CapacityUnit {
    let is_idle =
        input.activity == ModelActivity::Idle && input.arrivals.is_some_and(|rate| rate <= 0.0);
    let is_sized = |(key, given): (&VariantKey, &ThroughputVariantInput)| {
        let figures = variants.get(key);
        let is_empty = given.ready.max(given.pending) == Replicas::ZERO;
        is_empty
            || figures.is_some_and(|figures| {
                figures.per_replica.is_some()
                    && (figures.is_settled || given.ready == Replicas::ZERO)
            })
    };
    if is_idle && !input.variants.iter().all(is_sized) {
        CapacityUnit::Replicas
    } else {
        CapacityUnit::TokensPerSecond
    }
}

/// Even shares of the roles that generate tokens and have replicas; of all of them where none has.
pub(crate) fn generating_roles(input: &ThroughputModelInput) -> BTreeMap<ServingRole, f64> {
    let roles = |needs_replicas: bool| -> BTreeSet<ServingRole> {
        input
            .variants
            .values()
            .filter(|variant| variant.role != ServingRole::Prefill)
            .filter(|variant| {
                !needs_replicas || variant.ready.max(variant.pending) > Replicas::ZERO
            })
            .map(|variant| variant.role)
            .collect()
    };
    let populated = roles(true);
    let roles = if populated.is_empty() { roles(false) } else { populated };
    let count = f64::from(u32::try_from(roles.len()).unwrap_or(u32::MAX));
    roles.into_iter().map(|role| (role, 1.0 / count)).collect()
}

fn input_tokens(variants: &BTreeMap<VariantKey, ThroughputVariantFigures>) -> Option<f64> {
    let effective = |figures: &ThroughputVariantFigures| Some(figures.shape?.effective_input());
    let of = |is_prefill: bool| {
        by_count(
            (variants.values())
                .filter(|figures| (figures.role == ServingRole::Prefill) == is_prefill),
            effective,
        )
    };
    of(true).or_else(|| of(false))
}

/// Mean over variants by their replicas; plain where none has any.
fn by_count<'a>(
    variants: impl Iterator<Item = &'a ThroughputVariantFigures>,
    of: impl Fn(&ThroughputVariantFigures) -> Option<f64>,
) -> Option<f64> {
    let values: Vec<(f64, f64)> =
        variants.filter_map(|figures| Some((figures.counted.to_f64(), of(figures)?))).collect();
    let count: f64 = values.iter().map(|(count, _)| count).sum();
    if count > 0.0 {
        Some(values.iter().map(|(count, value)| count * value).sum::<f64>() / count)
    } else {
        mean(values.iter().map(|(_, value)| *value))
    }
}

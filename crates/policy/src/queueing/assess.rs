//! The analyzer's view of one model.

mod figures;
mod input;

pub(crate) use figures::{QueueingModelFigures, QueueingVariantFigures, Unsized, supply};
pub(crate) use input::{
    DEFAULT_BATCH, QueueingModelInput, QueueingReplicaInput, QueueingVariantInput,
};

use std::collections::BTreeMap;

use super::learned::LearnedParameters;
use super::performance::ReplicaModel;
use super::quantity::RequestRate;
use super::service::{ReplicaRoom, ServiceParameters, Workload};
use super::sizing::{Sizing, SizingError};
use super::targets::{Latencies, ModelTargets, model_targets};
use super::tuner::Tuned;
use crate::capacity::{AnalyzerName, Assessment, CapacityUnit, ServingRole, VariantCapacity};
use crate::key::{ModelKey, VariantKey};
use crate::units::Replicas;
use crate::zero::ModelActivity;

/// Requests that may wait in front of a replica when it is sized.
const SIZING_QUEUE: u32 = 100;

/// Assesses one model. Variants that cannot be sized have no entry in the assessment, and their load
/// is not part of its demand. There is no demand either, hence no opinion, while the load of a ready
/// replica is unknown and what is known fits on the replicas that there are: that is no reason to
/// shrink. Where nothing is asked of the model, and a capacity is not known, replicas are counted: any
/// capacity is enough then.
pub(crate) fn assess(
    key: &ModelKey,
    model: &QueueingModelInput,
    learned: &LearnedParameters,
) -> (Assessment, QueueingModelFigures) {
    let known: BTreeMap<&VariantKey, &Tuned> = model
        .variants
        .keys()
        .filter_map(|variant| Some((variant, learned.get(key, variant)?)))
        .collect();
    let of_model = model.workload();
    let workloads = |variant: &VariantKey, input: &QueueingVariantInput| {
        let remembered = || known.get(variant).map(|tuned| tuned.workload);
        input.workload().or(of_model).or_else(remembered)
    };
    let parameters = model.variants.iter().filter_map(|(variant, input)| {
        let tuned = known.get(variant)?;
        Some((tuned.estimate.parameters, workloads(variant, input)?))
    });
    let observed = model.latencies();
    let targets = model_targets(&model.policy, model.class_targets, parameters, observed);
    let variants: BTreeMap<VariantKey, QueueingVariantFigures> = model
        .variants
        .iter()
        .map(|(variant, input)| {
            let tuned = known.get(variant).copied();
            let workload = workloads(variant, input);
            (variant.clone(), measure(input, tuned, workload, targets))
        })
        .collect();
    let figures = QueueingModelFigures::of(targets, observed, variants);
    (assessment(model, &figures), figures)
}

fn measure(
    input: &QueueingVariantInput,
    tuned: Option<&Tuned>,
    workload: Option<Workload>,
    targets: Option<ModelTargets>,
) -> QueueingVariantFigures {
    let demand = input.demand();
    let parameters = tuned.map(|tuned| tuned.estimate.parameters);
    let sizing = size(input, parameters, workload, targets);
    let kept = tuned.zip(targets).and_then(|(tuned, targets)| kept_within(tuned, targets));
    let supply = sizing.as_ref().ok().map(|sizing| {
        let sized = sizing.performance.throughput;
        let per_replica = kept.filter(|kept| kept.0 > sized.0).unwrap_or(sized);
        supply(demand, per_replica, input.ready, input.pending)
    });
    QueueingVariantFigures {
        busy: input.busy(),
        unknown: input.unknown(),
        demand,
        workload,
        parameters,
        refused_rounds: tuned.map(|tuned| tuned.refused_rounds),
        tuning: tuned.map(|tuned| tuned.last),
        sizing: sizing.as_ref().ok().copied(),
        unsized_because: sizing.err(),
        supply,
    }
}

/// Requests per second at which a replica was last seen to keep the targets, where what was seen contradicts the estimate
/// and was not learned from.
fn kept_within(tuned: &Tuned, targets: ModelTargets) -> Option<RequestRate> {
    let seen = tuned.last.observation;
    let Latencies { time_to_first_token, inter_token_latency } = targets.latencies;
    let is_kept = seen.time_to_first_token.0 <= time_to_first_token.0
        && seen.inter_token_latency.0 <= inter_token_latency.0;
    (tuned.refused_rounds > 0 && is_kept).then_some(seen.rate)
}

fn size(
    input: &QueueingVariantInput,
    parameters: Option<ServiceParameters>,
    workload: Option<Workload>,
    targets: Option<ModelTargets>,
) -> Result<Sizing, Unsized> {
    if input.role != ServingRole::Both {
        return Err(Unsized::PartOfRequests);
    }
    let parameters = parameters.ok_or(Unsized::NothingLearned)?;
    let workload = workload.ok_or(Unsized::NoWorkload)?;
    let targets = targets.ok_or(Unsized::NoTargets)?;
    let shape = ReplicaRoom { batch: input.batch.unwrap_or(DEFAULT_BATCH), queue: SIZING_QUEUE };
    let sizing = ReplicaModel::new(parameters, workload, shape)
        .map_err(SizingError::Performance)
        .and_then(|model| model.size(&targets.latencies.into()));
    sizing.map_err(|error| Unsized::Impossible(error.to_string()))
}

fn assessment(model: &QueueingModelInput, figures: &QueueingModelFigures) -> Assessment {
    let is_unsized = |(key, input): (&VariantKey, &QueueingVariantInput)| {
        let own = figures.variants.get(key);
        input.ready.max(input.pending) > Replicas::ZERO
            && own.is_none_or(|own| own.supply.is_none())
    };
    if model.activity == ModelActivity::Idle && model.whole().any(is_unsized) {
        return idle(model);
    }
    let capacity = |(key, input): (&VariantKey, &QueueingVariantInput)| {
        let per_replica = figures.variants.get(key)?.supply?.per_replica.0;
        let counted = VariantCapacity::counted(input.role, input.ready, input.pending);
        Some((key.clone(), VariantCapacity { per_replica, ..counted }))
    };
    let variants: BTreeMap<_, _> = model.variants.iter().filter_map(capacity).collect();
    // A lower bound of the demand can only ask for more.
    let is_bound = figures.is_complete() || figures.required.0 > 0.0;
    let demand = (!variants.is_empty() && is_bound).then_some(figures.demand.0);
    Assessment {
        analyzer: AnalyzerName::QueueingModel,
        unit: CapacityUnit::RequestsPerSecond,
        demand: demand.map(|demand| (ServingRole::Both, demand)).into_iter().collect(),
        variants,
    }
}

/// No demand, and replicas that serve whole requests. Of roles it has no opinion, as ever: it would
/// release what it never requires.
fn idle(model: &QueueingModelInput) -> Assessment {
    let counted = |input: &QueueingVariantInput| {
        VariantCapacity::counted(ServingRole::Both, input.ready, input.pending)
    };
    Assessment {
        analyzer: AnalyzerName::QueueingModel,
        unit: CapacityUnit::Replicas,
        demand: BTreeMap::from([(ServingRole::Both, 0.0)]),
        variants: (model.whole()).map(|(key, input)| (key.clone(), counted(input))).collect(),
    }
}

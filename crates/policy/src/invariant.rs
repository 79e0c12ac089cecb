//! What every plan must satisfy, checked against the snapshot it was made from: by property tests,
//! by the simulation after every cycle, and in production, where a violation is counted.

use std::collections::BTreeMap;

use super::bounds::{Bounds, ZeroPolicy};
use super::capacity::ServingRole;
use super::key::{ModelKey, VariantKey};
use super::plan::{Decision, DecisionOutcome, Plan, PlanStage, Step, grows_by_load};
use super::reason::Reason;
use super::sample_reader::SampleReader;
use super::snapshot::{ClusterSnapshot, TargetView, VariantView};
use super::startup::GATED_FOR;
use super::tier::tiered;
use super::units::{Cost, Replicas};
use crate::params::DynamicSettings;
use wva_base::moment::Moment;

/// A plan that breaks an invariant. Each text starts with the number of the invariant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanViolation {
    /// V1 grew a variant whose replicas are pending within the limit.
    #[error("D1: {key} was grown to {target} while replicas of it are pending")]
    GrownWhilePending { key: VariantKey, target: Replicas },
    #[error("D2: {key} has target {target}, and its bounds allow {allowed}")]
    OutOfBounds { key: VariantKey, target: Replicas, allowed: Replicas },
    #[error("D3: {key} has no decision")]
    NotDecided { key: VariantKey },
    #[error("D3: {key} was decided and is not in the snapshot")]
    NotInSnapshot { key: VariantKey },
    /// A variant without usable metrics was moved by more than its bounds.
    #[error("D4: {key} has no usable metrics, and its target is {target} instead of {kept}")]
    MovedWithoutMetrics { key: VariantKey, target: Replicas, kept: Replicas },
    #[error("D5: the record of {key} does not follow from the snapshot: {part}")]
    RecordDiffers { key: VariantKey, part: &'static str },
    #[error("D6: {model} takes a second step with {key}")]
    SecondStep { model: ModelKey, key: VariantKey },
    /// The step was not taken by the variant that the costs name.
    #[error("D6: {key} takes the step of {model}, and {better} was eligible at a better cost")]
    WrongChoice { model: ModelKey, key: VariantKey, better: VariantKey },
    /// A variant was grown while another one of its role is about to lose a replica that serves.
    #[error(
        "D10: {key} was grown to {target} while the release of {released} to {kept} is not applied"
    )]
    GrownDuringRelease { key: VariantKey, target: Replicas, released: VariantKey, kept: Replicas },
}

impl PlanViolation {
    /// Number of the invariant, as a metric label.
    pub fn number(&self) -> &'static str {
        match self {
            Self::GrownWhilePending { .. } => "D1",
            Self::OutOfBounds { .. } => "D2",
            Self::NotDecided { .. } | Self::NotInSnapshot { .. } => "D3",
            Self::MovedWithoutMetrics { .. } => "D4",
            Self::RecordDiffers { .. } => "D5",
            Self::SecondStep { .. } | Self::WrongChoice { .. } => "D6",
            Self::GrownDuringRelease { .. } => "D10",
        }
    }
}

/// Checks a plan against the snapshot and the settings that it was made from.
///
/// # Errors
/// The first violation, in the order of the variants.
pub fn check_plan(
    snapshot: &ClusterSnapshot,
    settings: &DynamicSettings,
    plan: &Plan,
) -> Result<(), PlanViolation> {
    if let Some(key) = plan.decisions.keys().find(|key| !snapshot.variants.contains_key(*key)) {
        return Err(PlanViolation::NotInSnapshot { key: key.clone() });
    }
    let settings = &*tiered(settings, snapshot);
    let reader = SampleReader::of(snapshot, settings, plan.at);
    for (key, view) in &snapshot.variants {
        let Some(decision) = plan.decisions.get(key) else {
            return Err(PlanViolation::NotDecided { key: key.clone() });
        };
        let bounds = bounds_of(view, settings);
        check_record(view, decision)?;
        check_pending(view, decision, settings, plan.at)?;
        check_bounds(decision, bounds.as_ref())?;
        check_silent(view, decision, reader, bounds.as_ref())?;
    }
    check_models(snapshot, plan)?;
    check_releases(snapshot, plan)
}

fn bounds_of(view: &VariantView, settings: &DynamicSettings) -> Option<Bounds> {
    let policy = ZeroPolicy::from(settings.may_go_to_zero(&view.model));
    match view.target {
        TargetView::Malformed { .. } => None,
        _ => Some(Bounds::effective(&view.bounds, policy)),
    }
}

/// D5.
fn check_record(view: &VariantView, decision: &Decision) -> Result<(), PlanViolation> {
    let differs = |part| Err(PlanViolation::RecordDiffers { key: view.key.clone(), part });
    let resolved = view.target.resolved();
    if decision.key != view.key || decision.model != view.model {
        return differs("key or model");
    }
    if decision.accelerator != view.accelerator || decision.cost != view.cost {
        return differs("accelerator or cost");
    }
    if decision.current != resolved.map(|target| target.current) {
        return differs("current");
    }
    let unmanaged = view.target.is_unmanaged();
    if unmanaged != (decision.outcome == DecisionOutcome::Unmanaged) {
        return differs("outcome");
    }
    let Some(base) = view.base().filter(|_| !unmanaged) else {
        return match decision.target {
            Some(_) => differs("target without a base"),
            None => Ok(()),
        };
    };
    let reached =
        decision.steps.iter().try_fold(base, |count, step| (step.from == count).then_some(step.to));
    if reached.is_none() || reached != decision.target {
        return differs("steps");
    }
    Ok(())
}

/// D1.
fn check_pending(
    view: &VariantView,
    decision: &Decision,
    settings: &DynamicSettings,
    at: Moment,
) -> Result<(), PlanViolation> {
    let gated = view.gated();
    let is_starting = (view.target.resolved()).is_some_and(|target| target.is_starting(gated));
    let expired = view
        .pending_since
        .is_some_and(|since| since.elapsed(at) >= settings.transition_limits.pending);
    let is_gated = gated.is_some_and(|(_, newest)| at.wall.since(newest) < GATED_FOR);
    let is_held = is_starting && !expired || is_gated;
    match step_of(decision) {
        Some(step) if step.to > step.from && is_held => {
            Err(PlanViolation::GrownWhilePending { key: view.key.clone(), target: step.to })
        }
        _ => Ok(()),
    }
}

/// D2.
fn check_bounds(decision: &Decision, bounds: Option<&Bounds>) -> Result<(), PlanViolation> {
    let (Some(target), Some(bounds)) = (decision.target, bounds) else {
        return Ok(());
    };
    let (allowed, _) = bounds.clamp(target);
    if allowed == target {
        Ok(())
    } else {
        Err(PlanViolation::OutOfBounds { key: decision.key.clone(), target, allowed })
    }
}

/// D4.
fn check_silent(
    view: &VariantView,
    decision: &Decision,
    reader: SampleReader<'_>,
    bounds: Option<&Bounds>,
) -> Result<(), PlanViolation> {
    let (Some(base), Some(target)) = (view.base(), decision.target) else {
        return Ok(());
    };
    let reports = reader.is_reporting(view) && decision.current.is_some();
    let wakes = step_of(decision).is_some_and(|step| step.from == Replicas::ZERO)
        && decision.current == Some(Replicas::ZERO)
        && !reader.has_failed();
    let kept = if wakes { Replicas::ONE } else { base };
    let cancels = (decision.steps.iter()).find(|step| step.stage == PlanStage::CancelRelease);
    let kept = cancels.map_or(kept, |step| step.to);
    let kept = bounds.map_or(kept, |bounds| bounds.clamp(kept).0);
    if reports || target == kept || crossed_zero(decision) {
        Ok(())
    } else {
        Err(PlanViolation::MovedWithoutMetrics { key: view.key.clone(), target, kept })
    }
}

#[derive(Debug, Default)]
struct Model<'a> {
    mover: Option<(&'a VariantKey, Cost, Move)>,
    /// Eligible variants that were passed over: the cheapest and the most expensive.
    cheapest: Option<(Cost, &'a VariantKey)>,
    most_expensive: Option<(Cost, &'a VariantKey)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Up,
    Down,
}

/// D6.
fn check_models(snapshot: &ClusterSnapshot, plan: &Plan) -> Result<(), PlanViolation> {
    let mut models: BTreeMap<(&ModelKey, ServingRole), Model<'_>> = BTreeMap::new();
    for (key, decision) in &plan.decisions {
        let view = snapshot.variants.get(key);
        let role = view.map_or(ServingRole::Both, |view| view.template.role);
        let model = models.entry((&decision.model, role)).or_default();
        if let Some(step) = step_of(decision) {
            let direction = if step.to > step.from { Move::Up } else { Move::Down };
            let by_one = step.to == step.from.plus_one() || step.from == step.to.plus_one();
            if model.mover.is_some() || !by_one {
                return Err(PlanViolation::SecondStep {
                    model: decision.model.clone(),
                    key: key.clone(),
                });
            }
            model.mover = Some((key, decision.cost, direction));
        }
        let offer = (decision.cost, key);
        if passed_over(decision, Move::Up) {
            model.cheapest = Some(model.cheapest.map_or(offer, |best| best.min(offer)));
        }
        if passed_over(decision, Move::Down) {
            model.most_expensive = Some(model.most_expensive.map_or(offer, |best| best.max(offer)));
        }
    }
    models.into_iter().try_for_each(|((name, _), model)| check_choice(name, &model))
}

fn check_choice(name: &ModelKey, model: &Model<'_>) -> Result<(), PlanViolation> {
    let Some((key, cost, direction)) = model.mover else {
        return Ok(());
    };
    let better = match direction {
        Move::Up => model.cheapest.filter(|(other, _)| *other < cost),
        Move::Down => model.most_expensive.filter(|(other, _)| *other > cost),
    };
    match better {
        Some((_, better)) => Err(PlanViolation::WrongChoice {
            model: name.clone(),
            key: key.clone(),
            better: better.clone(),
        }),
        None => Ok(()),
    }
}

/// D10.
fn check_releases(snapshot: &ClusterSnapshot, plan: &Plan) -> Result<(), PlanViolation> {
    let mut grown: BTreeMap<(&ModelKey, ServingRole), (&VariantKey, Replicas)> = BTreeMap::new();
    let mut released = Vec::new();
    for (key, decision) in &plan.decisions {
        let view = snapshot.variants.get(key);
        let parts = view.and_then(|view| {
            Some((view.target.resolved()?.current_excluding_surge(), view.base()?))
        });
        let (Some((staying, base)), Some(target)) = (parts, decision.target) else {
            continue;
        };
        let role = (&decision.model, decision.role);
        if grows_by_load(&decision.steps, staying.max(base)) || starts(decision) {
            grown.insert(role, (key, target));
        }
        if base < staying && target < staying && !is_bound(decision) {
            released.push((role, key, target));
        }
    }
    let broken = released.into_iter().find_map(|(role, released, kept)| {
        let (key, target) = grown.get(&role)?;
        Some(PlanViolation::GrownDuringRelease {
            key: (*key).clone(),
            target: *target,
            released: released.clone(),
            kept,
        })
    });
    broken.map_or(Ok(()), Err)
}

fn starts(decision: &Decision) -> bool {
    let mut steps = decision.steps.iter();
    decision.current == Some(Replicas::ZERO)
        && steps.any(|step| matches!(step.why, Reason::Woken { .. }))
}

/// Whether something else than load holds a count down: its maximum, or a budget shared by priority.
fn is_bound(decision: &Decision) -> bool {
    let mut steps = decision.steps.iter();
    steps.any(|step| match &step.why {
        Reason::CutToMaximum { .. } | Reason::BoundsConflict { .. } => true,
        Reason::WithinBounds { max, .. } => *max == decision.target,
        why => why.is_rescale(),
    })
}

/// The step that V1 took, if it moved the count and GPUs did not refuse it.
fn step_of(decision: &Decision) -> Option<&Step> {
    let mut steps = decision.steps.iter();
    let step = steps.find(|step| step.stage == PlanStage::Saturation && step.from != step.to)?;
    let is_refused = step.to > step.from
        && steps.any(|later| later.stage == PlanStage::Limit && later.to <= step.from);
    (!is_refused).then_some(step)
}

/// Whether a variant without usable samples may have moved all the same: over the boundary to zero, or
/// from zero, where no replica can report.
fn crossed_zero(decision: &Decision) -> bool {
    let is_empty = decision.current == Some(Replicas::ZERO);
    decision.steps.iter().any(|step| {
        let at_boundary = step.stage == PlanStage::Zero && step.to <= Replicas::ONE;
        let from_nothing = is_empty
            && matches!(
                step.stage,
                PlanStage::Optimizer | PlanStage::Hybrid | PlanStage::Backlog | PlanStage::Limit
            );
        step.from != step.to && (at_boundary || from_nothing)
    })
}

fn passed_over(decision: &Decision, direction: Move) -> bool {
    let mut steps = decision.steps.iter().rev();
    let last = steps.find(|step| step.stage == PlanStage::Saturation);
    last.is_some_and(|step| {
        matches!(
            (&step.why, direction),
            (Reason::GrownElsewhere { .. }, Move::Up)
                | (Reason::ShrunkElsewhere { .. }, Move::Down)
        )
    })
}

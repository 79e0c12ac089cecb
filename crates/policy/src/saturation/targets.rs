//! The one step of a model: the cheapest eligible variant grows by one, or the most expensive shrinks by
//! one, or nothing moves.

use std::cmp::Ordering;
use std::sync::Arc;

use super::analysis::SaturationAnalysis;
use crate::key::VariantKey;
use crate::pending_decision::PendingDecision;
use crate::plan::{PlanStage, Spare};
use crate::reason::Reason;
use crate::scaler::Tolerance;
use crate::startup::StartProspect;
use crate::units::Replicas;

/// Decides the step of one model. `unseen` are its variants whose target is not known; nothing
/// shrinks while there are any.
pub(crate) fn decide(
    drafts: &mut [PendingDecision<'_>],
    analysis: &SaturationAnalysis,
    unseen: &[&VariantKey],
) {
    for draft in drafts.iter_mut() {
        draft.metrics = draft.metrics_state(draft.figures.reporting > 0);
        if !draft.transitions.expired.is_empty() {
            let causes = draft.transitions.expired.clone();
            draft.keep(PlanStage::Saturation, Reason::TransitionExpired { causes });
        }
    }
    let fits = analysis
        .after_shrink(as_published(drafts, analysis.figures.non_saturated))
        .filter(|left| left.is_sufficient());
    match (analysis.figures.scale_up, fits) {
        (true, _) => grow(drafts, analysis),
        (false, Some(left)) => shrink(drafts, analysis, left, unseen),
        (false, None) => {
            let spare = analysis.spare;
            for draft in drafts {
                let why = standing(draft).unwrap_or(Reason::Steady { spare });
                draft.keep(PlanStage::Saturation, why);
            }
        }
    }
}

/// `replicas` that report, as many as there would be of them if what is published were applied.
/// Only variants that may move count: the others are held anyway.
fn as_published(drafts: &[PendingDecision<'_>], replicas: u32) -> u32 {
    let free = drafts.iter().filter(|draft| !draft.transitions.holds());
    free.fold(replicas, |replicas, draft| {
        let (count, current) = (draft.count(), draft.scale.current);
        replicas
            .saturating_add(count.saturating_sub(current).0)
            .saturating_sub(current.saturating_sub(count).0)
    })
}

fn grow(drafts: &mut [PendingDecision<'_>], analysis: &SaturationAnalysis) {
    if cancel_releases(drafts) || awaits_readings(drafts, analysis) {
        return;
    }
    let spare = analysis.spare;
    let enough = analysis.fits_on(as_published(drafts, analysis.figures.replicas));
    let obstacle = |draft: &PendingDecision<'_>| {
        growth_obstacle(draft).or_else(|| awaits_scaler(draft, enough))
    };
    let is_stalled = |draft: &PendingDecision<'_>| draft.prospect == StartProspect::Stalled;
    let has_open = (drafts.iter()).any(|draft| !is_stalled(draft) && obstacle(draft).is_none());
    take_step(
        drafts,
        |draft| {
            let stalled = (has_open && is_stalled(draft)).then_some(Reason::StartsStalled);
            obstacle(draft).or(stalled)
        },
        cheapest_first,
        |draft| {
            let trigger = spare.trigger();
            (draft.count().plus_one(), Reason::Grown { trigger })
        },
        |chosen| Reason::GrownElsewhere { chosen },
    );
}

/// Hands steps that GPUs refused to the next variants that stood back for them. Whether there were any.
pub(crate) fn pass_on(drafts: &mut [PendingDecision<'_>]) -> bool {
    let refused = drafts.iter().find_map(|draft| {
        let trigger = draft.refused_step()?;
        let stood_back =
            |other: &&PendingDecision<'_>| other.stood_back_for() == Some(&draft.view.key);
        let next = drafts.iter().filter(stood_back);
        let next = next.min_by(|one, other| cheapest_first(one, other))?;
        Some((trigger, draft.view.key.clone(), next.view.key.clone()))
    });
    let Some((trigger, refused, chosen)) = refused else {
        return false;
    };
    for draft in drafts {
        if draft.stood_back_for() == Some(&refused) {
            let (to, why) = if draft.view.key == chosen {
                (draft.count().plus_one(), Reason::Grown { trigger })
            } else {
                let chosen = chosen.clone();
                (draft.count(), Reason::GrownElsewhere { chosen })
            };
            draft.step(PlanStage::Saturation, to, why);
        }
    }
    true
}

/// Keeps what was to be released and is still there. That is the step of the cycle: whether more is
/// needed in addition shows once the scaler has been asked to keep it.
fn cancel_releases(drafts: &mut [PendingDecision<'_>]) -> bool {
    let mut kept = None;
    for draft in drafts.iter_mut() {
        if draft.cancel_release() {
            kept.get_or_insert_with(|| draft.view.key.clone());
        }
    }
    let Some(chosen) = kept else { return false };
    for draft in drafts {
        if !draft.has_cancelled_release() {
            let chosen = chosen.clone();
            draft.keep(PlanStage::Saturation, Reason::GrownElsewhere { chosen });
        }
    }
    true
}

/// Waits until peaks are those of the fleet that there is: a queue from before the last start orders
/// nothing that this start has not ordered. A fleet without an older replica has no old queue, and where
/// the newest replicas are short of capacity, too, that is the load of now.
fn awaits_readings(drafts: &mut [PendingDecision<'_>], analysis: &SaturationAnalysis) -> bool {
    if (analysis.newest).is_some_and(|newest| !newest.is_sufficient()) {
        return false;
    }
    let starts = drafts.iter();
    let starts =
        starts.filter_map(|draft| Some((draft.recent_starts.last?, draft.view.key.clone())));
    let Some((ago, landed)) = starts.min() else {
        return false;
    };
    if !drafts.iter().any(|draft| draft.recent_starts.has_older) {
        return false;
    }
    for draft in drafts {
        let landed = landed.clone();
        let why = standing(draft).filter(|why| *why != Reason::NoReplicas);
        let why = why.unwrap_or(Reason::GrowthWaits { landed, ago });
        draft.keep(PlanStage::Saturation, why);
    }
    true
}

fn shrink(
    drafts: &mut [PendingDecision<'_>],
    analysis: &SaturationAnalysis,
    left: Spare,
    unseen: &[&VariantKey],
) {
    let model = model_obstacle(drafts, analysis, unseen);
    take_step(
        drafts,
        |draft| {
            let floor = draft.bounds.floor();
            let at_floor = (draft.count() <= floor).then_some(Reason::AtFloor { floor });
            standing(draft).or_else(|| silence(draft)).or_else(|| model.clone()).or(at_floor)
        },
        most_expensive_first,
        |draft| (draft.count().minus_one(), Reason::Shrunk { left }),
        |chosen| Reason::ShrunkElsewhere { chosen },
    );
}

/// Lets the first variant without an obstacle take the step; every other one says why it does not.
fn take_step(
    drafts: &mut [PendingDecision<'_>],
    obstacle: impl Fn(&PendingDecision<'_>) -> Option<Reason>,
    order: impl Fn(&PendingDecision<'_>, &PendingDecision<'_>) -> Ordering,
    step: impl Fn(&PendingDecision<'_>) -> (Replicas, Reason),
    passed_over: impl Fn(VariantKey) -> Reason,
) {
    let chosen = drafts
        .iter()
        .filter(|draft| obstacle(draft).is_none())
        .min_by(|one, other| order(one, other))
        .map(|draft| draft.view.key.clone());
    for draft in drafts {
        let (to, why) = match (obstacle(draft), &chosen) {
            (Some(why), _) => (draft.count(), why),
            (None, Some(chosen)) if *chosen != draft.view.key => {
                (draft.count(), passed_over(chosen.clone()))
            }
            (None, _) => step(draft),
        };
        draft.step(PlanStage::Saturation, to, why);
    }
}

fn standing(draft: &PendingDecision<'_>) -> Option<Reason> {
    if draft.transitions.holds() {
        let causes = draft.transitions.holding.clone();
        Some(Reason::InTransition { causes })
    } else if draft.is_idle() {
        Some(Reason::NoReplicas)
    } else if draft.figures.reporting == 0 {
        let state = draft.metrics;
        Some(Reason::NoUsableMetrics { state, queue: None })
    } else {
        None
    }
}

/// A variant without replicas may grow: that is how load spills over to one that was at zero.
fn growth_obstacle(draft: &PendingDecision<'_>) -> Option<Reason> {
    standing(draft).filter(|why| *why != Reason::NoReplicas).or_else(|| match draft.bounds.max {
        Some(max) if draft.count() >= max => Some(Reason::AtMaximum { max }),
        _ => None,
    })
}

/// A count that would be enough, and that is not applied although it is out of any usual tolerance,
/// would not be applied if it were higher either.
fn awaits_scaler(draft: &PendingDecision<'_>, enough: bool) -> Option<Reason> {
    let (published, current) = (draft.count(), draft.scale.current);
    let within_tolerance =
        published.to_f64() <= current.to_f64() * (1.0 + Tolerance::DEFAULT) + f64::EPSILON;
    (enough && published > current && !within_tolerance)
        .then_some(Reason::AwaitsScaler { published, current })
}

/// What keeps every variant of a model from shrinking: variants in transition, replicas that do not
/// report, and samples that are old or incomplete.
fn model_obstacle(
    drafts: &[PendingDecision<'_>],
    analysis: &SaturationAnalysis,
    unseen: &[&VariantKey],
) -> Option<Reason> {
    let transitions: Arc<[VariantKey]> = drafts
        .iter()
        .filter(|draft| draft.transitions.hold_shrink_of_model())
        .map(|draft| &draft.view.key)
        .chain(unseen.iter().copied())
        .cloned()
        .collect();
    let figures = &analysis.figures;
    if !transitions.is_empty() {
        Some(Reason::ShrinkWaits { transitions })
    } else if figures.stale > 0 {
        Some(Reason::ShrinkOnStale { replicas: figures.stale })
    } else if figures.without_kv > 0 || figures.without_queue > 0 {
        Some(Reason::ShrinkOnPartial {
            without_kv: figures.without_kv,
            without_queue: figures.without_queue,
        })
    } else {
        None
    }
}

fn silence(draft: &PendingDecision<'_>) -> Option<Reason> {
    (!draft.transitions.may_shrink()).then_some(Reason::ShrinkOnSilent {
        reporting: Replicas(draft.figures.reporting),
        current: draft.scale.current,
    })
}

/// Cost, then most free capacity, then name.
fn cheapest_first(one: &PendingDecision<'_>, other: &PendingDecision<'_>) -> Ordering {
    one.view
        .cost
        .cmp(&other.view.cost)
        .then_with(|| other.figures.spare_kv.total_cmp(&one.figures.spare_kv))
        .then_with(|| one.view.key.cmp(&other.view.key))
}

/// Highest cost, then most free capacity, then last name, so that shrinking undoes what growing did.
fn most_expensive_first(one: &PendingDecision<'_>, other: &PendingDecision<'_>) -> Ordering {
    other
        .view
        .cost
        .cmp(&one.view.cost)
        .then_with(|| other.figures.spare_kv.total_cmp(&one.figures.spare_kv))
        .then_with(|| other.view.key.cmp(&one.view.key))
}

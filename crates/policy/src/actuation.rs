//! What keeps a target from following the count that is published for its variant.

use crate::key::VariantKey;
use crate::rounding;
use crate::scaler::{Absence, Aim, Input, Scaler, ScalerActivity, ScalerKind};
use crate::snapshot::DeclaredBounds;
use crate::units::Replicas;
use wva_base::text::counted;

/// One thing that keeps a target from following, worst first in the order of the enum.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActuationObstacle {
    /// Nothing scales the target.
    NoScaler,
    /// Several scalers fight over the target.
    SeveralScalers {
        /// Kinds and names.
        titles: Vec<String>,
    },
    /// The scaler reads something else.
    NotRead {
        /// Kind and name.
        title: String,
    },
    /// The scaler makes something else of the count.
    WrongAim {
        /// Kind and name.
        title: String,
        /// What it says.
        aim: String,
    },
    /// The scaler is paused.
    Paused {
        /// Kind and name.
        title: String,
        /// The annotation that says so.
        annotation: String,
    },
    /// The scaler may not scale up.
    GrowthPaused {
        /// Kind and name.
        title: String,
        /// What says so.
        by: String,
    },
    /// The scaler rests since the target was scaled to 0 past it.
    AtZeroByHand {
        /// Kind and name.
        title: String,
    },
    /// The scaler says that it does not work.
    Failing {
        /// Kind and name.
        title: String,
        /// Reason of its condition.
        reason: String,
        /// Message of its condition; empty where it has none.
        message: String,
    },
    /// The scaler's minimum hides lower counts.
    Minimum {
        /// Kind and name, and its kind.
        title: String,
        /// Whose minimum.
        kind: ScalerKind,
        /// The field that states it.
        field: &'static str,
        /// The scaler's.
        min: Replicas,
        /// Ours.
        wanted: Replicas,
    },
    /// The scaler's maximum hides higher counts.
    Maximum {
        /// Kind and name.
        title: String,
        /// The scaler's.
        max: Replicas,
        /// Ours.
        wanted: Replicas,
    },
    /// The scaler ignores steps of one replica.
    Tolerance {
        /// Kind and name.
        title: String,
        /// Whose tolerance.
        kind: ScalerKind,
        /// From this count on.
        from: Replicas,
    },
    /// A count that is not there counts as 0.
    NullIsZero {
        /// Kind and name.
        title: String,
    },
}

const RESTS: &str =
    "rests: the target was scaled to 0, and not by it; scale the target to 1 to go on";

impl ActuationObstacle {
    /// What is wrong, and what to do.
    pub fn text(&self, variant: &VariantKey) -> String {
        match self {
            Self::NoScaler => format!(
                "nothing scales the target; create a HorizontalPodAutoscaler or a ScaledObject that reads wva_desired_replicas with variant_name {:?}",
                &*variant.name
            ),
            Self::SeveralScalers { titles } => {
                format!("{} fight over the target; keep one of them", titles.join(" and "))
            }
            Self::NotRead { title } => format!(
                "{title} does not read wva_desired_replicas with variant_name {:?} and this namespace; select both",
                &*variant.name
            ),
            Self::WrongAim { title, aim } => format!(
                "{title} aims at {aim}; aim at an AverageValue of 1, so that the count is the number of replicas"
            ),
            Self::Paused { title, annotation } => {
                format!("{title} is paused by its annotation {annotation}; remove it")
            }
            Self::GrowthPaused { title, by } => {
                format!("{title} does not scale up: {by}; remove that")
            }
            Self::AtZeroByHand { title } => format!("{title} {RESTS}"),
            Self::Failing { title, reason, message } => {
                let separator = if message.is_empty() { "" } else { ": " };
                format!(
                    "{title} does not work ({reason}{separator}{message}); see its conditions and events"
                )
            }
            Self::Minimum { title, kind, field, min, wanted } => {
                let min = counted(min.0, "replica");
                let room = below_minimum(*kind, *wanted);
                format!(
                    "{title} keeps at least {min} where {wanted} may be wanted; lower its {field}{room}"
                )
            }
            Self::Maximum { title, max, wanted } => format!(
                "{title} allows at most {} where {wanted} may be wanted; raise its maximum or lower maxReplicas of the variant",
                counted(max.0, "replica")
            ),
            Self::Tolerance { title, kind, from } => {
                let field = match kind {
                    ScalerKind::HorizontalPodAutoscaler => {
                        "spec.behavior.scaleUp.tolerance and spec.behavior.scaleDown.tolerance"
                    }
                    ScalerKind::ScaledObject => {
                        "the tolerance of scaleUp and scaleDown in spec.advanced.horizontalPodAutoscalerConfig.behavior"
                    }
                };
                format!(
                    "{title} ignores steps of one replica from {} on; set {field} to 0",
                    counted(from.0, "replica")
                )
            }
            Self::NullIsZero { title } => format!(
                "{title} counts a missing value as 0, so that a lost controller takes the target to its minimum; set ignoreNullValues to \"false\" and a fallback"
            ),
        }
    }
}

/// What else makes room below the minimum of a scaler.
fn below_minimum(kind: ScalerKind, wanted: Replicas) -> &'static str {
    match kind {
        ScalerKind::HorizontalPodAutoscaler if wanted == Replicas::ZERO => {
            " (before Kubernetes 1.37 with the feature gate HPAScaleToZero), use a ScaledObject with minReplicaCount 0, or set minReplicas of the variant"
        }
        _ => "",
    }
}

/// Everything that keeps the target of a variant from following it, worst first; empty if nothing is
/// known to. `desired` is the count that is published now.
pub fn judge(
    scalers: &[Scaler],
    variant: &VariantKey,
    bounds: DeclaredBounds,
    desired: Option<Replicas>,
) -> Vec<ActuationObstacle> {
    let makers: Vec<&Scaler> =
        scalers.iter().filter(|scaler| scaler.kind == ScalerKind::ScaledObject).collect();
    let is_made = |scaler: &Scaler| {
        let maker = scaler.made_for.as_ref();
        maker.is_some_and(|maker| makers.iter().any(|known| known.name == *maker))
    };
    let independent: Vec<&Scaler> = scalers.iter().filter(|scaler| !is_made(scaler)).collect();
    let scaler = match independent.as_slice() {
        [] => return vec![ActuationObstacle::NoScaler],
        [scaler] => *scaler,
        several => {
            let titles = several.iter().map(|scaler| scaler.title()).collect();
            return vec![ActuationObstacle::SeveralScalers { titles }];
        }
    };
    let mut found = of_one(scaler, variant, bounds, desired);
    let made = scalers.iter().filter(|scaler| is_made(scaler));
    found.extend(made.filter_map(failing));
    found.sort();
    found
}

/// Scalers that only grow. They follow: a person stated that they do not shrink, and what stays serves.
pub fn growing_only(scalers: &[Scaler]) -> Vec<String> {
    let stated = scalers.iter().filter_map(|scaler| match &scaler.activity {
        ScalerActivity::GrowsOnly { by } => {
            Some(format!("{} does not scale down: {by}", scaler.title()))
        }
        _ => None,
    });
    stated.collect()
}

/// The scaler that takes the count of a variant from the external scaler, while KEDA has not asked for it yet.
pub fn unasked(scalers: &[Scaler], variant: &VariantKey) -> Option<String> {
    let scaler = scalers.iter().find(|scaler| {
        let mut inputs = scaler.inputs.iter();
        let read = inputs.find(|input| input.of(variant).is_some());
        matches!(read, Some(Input::ExternalScaler { is_asked: false, .. }))
    })?;
    Some(scaler.title())
}

fn of_one(
    scaler: &Scaler,
    variant: &VariantKey,
    bounds: DeclaredBounds,
    desired: Option<Replicas>,
) -> Vec<ActuationObstacle> {
    let read = scaler.inputs.iter().find_map(|input| input.of(variant));
    let Some((aim, absence)) = read else {
        return vec![ActuationObstacle::NotRead { title: scaler.title() }];
    };
    [
        wrong_aim(scaler, aim),
        failing(scaler),
        minimum(scaler, bounds.min, desired),
        maximum(scaler, bounds.max, desired),
        tolerance(scaler, bounds.max),
        (absence == Absence::Zero).then(|| ActuationObstacle::NullIsZero { title: scaler.title() }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn wrong_aim(scaler: &Scaler, aim: &Aim) -> Option<ActuationObstacle> {
    match aim {
        Aim::Replicas => None,
        Aim::Other(aim) => {
            Some(ActuationObstacle::WrongAim { title: scaler.title(), aim: aim.to_string() })
        }
    }
}

fn failing(scaler: &Scaler) -> Option<ActuationObstacle> {
    let title = scaler.title();
    match &scaler.activity {
        ScalerActivity::Working | ScalerActivity::GrowsOnly { .. } => None,
        ScalerActivity::Paused { annotation } => {
            Some(ActuationObstacle::Paused { title, annotation: annotation.to_string() })
        }
        ScalerActivity::GrowthPaused { by } => {
            Some(ActuationObstacle::GrowthPaused { title, by: by.to_string() })
        }
        ScalerActivity::AtZeroByHand => Some(ActuationObstacle::AtZeroByHand { title }),
        ScalerActivity::Failing { reason, message } => Some(ActuationObstacle::Failing {
            title,
            reason: reason.to_string(),
            message: message.to_string(),
        }),
    }
}

/// The lower of the declared minimum and the published count must be in reach.
fn minimum(
    scaler: &Scaler,
    declared: Option<Replicas>,
    desired: Option<Replicas>,
) -> Option<ActuationObstacle> {
    let wanted = declared.into_iter().chain(desired).min()?;
    (scaler.min > wanted).then(|| ActuationObstacle::Minimum {
        title: scaler.title(),
        kind: scaler.kind,
        field: scaler.min_field,
        min: scaler.min,
        wanted,
    })
}

/// The higher of the declared maximum and the published count must be in reach.
fn maximum(
    scaler: &Scaler,
    declared: Option<Replicas>,
    desired: Option<Replicas>,
) -> Option<ActuationObstacle> {
    let wanted = declared.into_iter().chain(desired).max()?;
    (scaler.max < wanted).then(|| ActuationObstacle::Maximum {
        title: scaler.title(),
        max: scaler.max,
        wanted,
    })
}

/// A step of one from `n` replicas deviates by 1/n, and one that deviates by no more than the
/// tolerance is ignored; downwards the step begins at the maximum, upwards one below it.
fn tolerance(scaler: &Scaler, declared: Option<Replicas>) -> Option<ActuationObstacle> {
    let max = declared.map_or(scaler.max, |max| max.min(scaler.max));
    let ignored_from = |tolerance: f64, last: Replicas| {
        let first = Replicas(rounding::ceil(1.0 / tolerance));
        (tolerance > 0.0 && first <= last).then_some(first)
    };
    let up = ignored_from(scaler.tolerance.up, max.minus_one());
    let down = ignored_from(scaler.tolerance.down, max);
    let from = up.into_iter().chain(down).min()?;
    Some(ActuationObstacle::Tolerance { title: scaler.title(), kind: scaler.kind, from })
}

#[cfg(test)]
mod tests;

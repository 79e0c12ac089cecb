//! What scales a target, as far as it matters whether it follows a published count.

use std::sync::Arc;

use serde::Serialize;

use crate::key::VariantKey;
use crate::units::Replicas;

wva_base::named! {
    shown
    /// Kinds of scaler.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    pub enum ScalerKind {
        /// `autoscaling/v2`.
        HorizontalPodAutoscaler,
        /// `keda.sh/v1alpha1`.
        ScaledObject,
    }
}

impl ScalerKind {
    /// Its API version.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::HorizontalPodAutoscaler => "autoscaling/v2",
            Self::ScaledObject => "keda.sh/v1alpha1",
        }
    }
}

/// The scalers of one target.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub enum Scalers {
    /// They have not been listed yet.
    #[default]
    Unknown,
    /// All of them, sorted by kind and name.
    Known(Arc<[Scaler]>),
}

impl Scalers {
    /// Whether one of them says that it does not work.
    pub fn any_failing(&self) -> bool {
        self.any(|scaler| matches!(scaler.activity, ScalerActivity::Failing { .. }))
    }

    /// Whether one of them reads a published series. KEDA asks the external scaler without one.
    pub fn read_series(&self) -> bool {
        self.any(|scaler| scaler.inputs.iter().any(|input| matches!(input, Input::Published(_))))
    }

    fn any(&self, holds: impl Fn(&Scaler) -> bool) -> bool {
        match self {
            Self::Unknown => false,
            Self::Known(scalers) => scalers.iter().any(holds),
        }
    }
}

/// One scaler.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scaler {
    /// Its kind.
    pub kind: ScalerKind,
    /// Its name, in the namespace of the target.
    pub name: Arc<str>,
    /// The ScaledObject that this HorizontalPodAutoscaler was made for.
    pub made_for: Option<Arc<str>>,
    /// Fewest replicas that it sets.
    pub min: Replicas,
    /// The field of its specification that says so.
    pub min_field: &'static str,
    /// Most replicas that it sets.
    pub max: Replicas,
    /// Deviations that it ignores, upwards and downwards.
    pub tolerance: Tolerance,
    /// What it reads.
    pub inputs: Vec<Input>,
    /// Whether it works.
    pub activity: ScalerActivity,
}

impl Scaler {
    /// Kind and name, for texts.
    pub fn title(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }
}

/// Relative deviations from the current count within which a scaler does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tolerance {
    /// Of a higher count.
    pub up: f64,
    /// Of a lower count.
    pub down: f64,
}

impl Tolerance {
    /// `--horizontal-pod-autoscaler-tolerance` of the cluster, which counts where nothing is stated.
    /// Source: default of kube-controller-manager.
    pub const DEFAULT: f64 = 0.1;
}

/// One metric that a scaler reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Input {
    /// A count that this controller, or another one of its kind, publishes.
    Published(Published),
    /// A count that KEDA is served by the external scaler of a controller.
    ExternalScaler {
        /// The VariantAutoscaling that it names; `None` takes that of the target.
        variant: Option<Arc<str>>,
        /// What it makes of the count.
        aim: Aim,
        /// Whether KEDA has asked for it: the status of its object then has the metric.
        is_asked: bool,
    },
    /// Anything else.
    Other,
}

impl Input {
    /// What is made of the count of a variant of the target, and of its absence; `None` where it is not read.
    pub fn of(&self, variant: &VariantKey) -> Option<(&Aim, Absence)> {
        match self {
            Self::Published(published) => {
                let is_its = published.is_of(variant);
                is_its.then_some((&published.aim, published.absence))
            }
            Self::ExternalScaler { variant: stated, aim, .. } => {
                let is_its = stated.as_ref().is_none_or(|name| *name == variant.name);
                is_its.then_some((aim, Absence::Error))
            }
            Self::Other => None,
        }
    }
}

/// A published count that a scaler reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Published {
    /// The `variant_name` of its query.
    pub variant: Option<Arc<str>>,
    /// Whether its query may select any variant, by a pattern that is not read.
    pub is_unclear: bool,
    /// The `exported_namespace` or `namespace` of its query.
    pub namespace: Option<Arc<str>>,
    /// What it makes of the count.
    pub aim: Aim,
    /// What it makes of a count that is not there.
    pub absence: Absence,
}

impl Published {
    pub(crate) fn is_of(&self, variant: &VariantKey) -> bool {
        let in_namespace =
            self.namespace.as_ref().is_none_or(|namespace| *namespace == variant.namespace);
        in_namespace && (self.is_unclear || self.variant.as_ref() == Some(&variant.name))
    }
}

/// What a scaler makes of a count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Aim {
    /// So many replicas: an average value of 1 for each.
    Replicas,
    /// Something else, in the scaler's own words.
    Other(Arc<str>),
}

/// What a scaler makes of a count that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Absence {
    /// An error: it holds still, or takes its fallback.
    Error,
    /// Zero: it takes the target to its minimum.
    Zero,
}

/// Whether a scaler works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ScalerActivity {
    /// As far as it says.
    Working,
    /// It is paused.
    Paused {
        /// The annotation that says so, with its value.
        annotation: Arc<str>,
    },
    /// It may not scale up.
    GrowthPaused {
        /// What says so, with its value, and what keeps it from scaling down.
        by: Arc<str>,
    },
    /// It works, and may scale up alone.
    GrowsOnly {
        /// What says so, with its value.
        by: Arc<str>,
    },
    /// It rests since its target was scaled to 0, and not by it.
    AtZeroByHand,
    /// It says why it does not.
    Failing {
        /// Reason of its condition.
        reason: Arc<str>,
        /// Message of its condition; empty where it has none.
        message: Arc<str>,
    },
}

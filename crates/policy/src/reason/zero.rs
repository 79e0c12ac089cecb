//! What keeps a model from zero replicas, what starts it from zero, and what keeps it from starting.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::gpu::{Budget, PoolFigures, claims_not_counted};
use crate::key::VariantKey;
use crate::units::{Gpus, Replicas};

/// Why a model cannot go to zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZeroBlock {
    /// Scale to zero is not enabled for it.
    PolicyForbidsZero,
    /// A variant has a minimum above zero.
    VariantFloor {
        /// The variant.
        variant: VariantKey,
        /// Its minimum.
        min: Replicas,
    },
    /// A variant was started from zero recently.
    Woken {
        /// The variant.
        variant: VariantKey,
        /// How long ago that was noticed; zero where no collection knows of it.
        ago: Duration,
        /// For how long its replica is kept.
        hold: Duration,
    },
    /// Its queue in the router is not reported, so nothing could wake it.
    NoWakeSignal,
    /// Its GPUs are not counted, so a limit could not start it again.
    GpusNotCounted,
    /// No limit is known to leave GPUs for one of its replicas, so that it could not start again.
    GpuBudget,
    /// It is in use.
    Busy,
    /// Running or waiting requests are not known to be zero.
    LoadUnknown,
    /// It has not been idle for long enough.
    Retained {
        /// How long it has been idle.
        idle: Duration,
        /// How long it must have been.
        retention: Duration,
    },
}

impl ZeroBlock {
    /// The reason in conditions and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::PolicyForbidsZero => "policy-forbids-zero",
            Self::VariantFloor { .. } => "variant-floor",
            Self::Woken { .. } => "activation-retention",
            Self::NoWakeSignal => "no-wake-signal",
            Self::GpusNotCounted => "gpus-not-counted",
            Self::GpuBudget => "gpu-budget",
            Self::Busy => "busy",
            Self::LoadUnknown => "load-unknown",
            Self::Retained { .. } => "retention",
        }
    }
}

wva_base::display_of! { ZeroBlock:
    block @ Self::VariantFloor { variant, min } => "{}: {variant} has a minimum of {min}", block.as_str();
    block @ Self::Woken { variant, ago, hold } =>
        "{}: {variant} was started from zero {}s ago and is kept for {}s",
        block.as_str(),
        ago.as_secs(),
        hold.as_secs();
    block @ Self::Retained { idle, retention } =>
        "{}: idle for {}s of {}s", block.as_str(), idle.as_secs(), retention.as_secs();
    Self::GpuBudget => "{}: no limit is known to leave GPUs for one replica", Self::GpuBudget.as_str();
    block => "{}", block.as_str();
}

/// Why a model at zero is to be started.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum WakeCause {
    /// So many requests wait for it in the router.
    Queued(f64),
    /// Its decode runs and needs prefill.
    Pair,
    /// Scale to zero is off, so it is to have one replica of what serves it.
    MinimumOfOne,
}

/// What keeps a variant from its first replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WakeObstacle {
    /// Its maximum is zero.
    AtMaximum,
    /// Its pools hold too little, or what they hold is not known.
    NoGpus,
    /// Its GPUs cannot be counted, and a limit is to.
    GpusNotCounted,
    /// It could start, and nothing that it would serve with can.
    NoPartner,
    /// It could start, and so could what it would serve with, but not both.
    NoGpusForPair,
}

impl WakeObstacle {
    pub(crate) fn in_short(self, cause: WakeCause, by: &[PoolFigures]) -> &'static str {
        let is_known = by.iter().all(|pool| pool.left != Budget::Unknown);
        match (self, cause) {
            (Self::NoGpus | Self::NoGpusForPair, WakeCause::Queued(_)) if is_known => {
                "requests wait, and GPUs or quotas refuse a start from zero"
            }
            (Self::NoGpus | Self::NoGpusForPair, _) if is_known => {
                "GPUs or quotas refuse a start from zero"
            }
            (Self::NoGpus | Self::NoGpusForPair, WakeCause::Queued(_)) => {
                "requests wait, and BudgetUnknown: what GPUs allow is not known"
            }
            (Self::NoGpus | Self::NoGpusForPair, _) => {
                "BudgetUnknown: whether GPUs allow a start from zero is not known"
            }
            (Self::GpusNotCounted, WakeCause::Queued(_)) => {
                "requests wait, and GpusNotCounted: limits cannot count GPUs of its replicas"
            }
            (Self::GpusNotCounted, _) => "GpusNotCounted: limits cannot count GPUs of its replicas",
            (Self::AtMaximum, WakeCause::Queued(_)) => "requests wait, and the maximum is 0",
            (Self::AtMaximum, _) => "a replica is needed, and the maximum is 0",
            (Self::NoPartner, WakeCause::Queued(_)) => {
                "requests wait, and no variant to serve with can start"
            }
            (Self::NoPartner, _) => "no variant to serve with can start",
        }
    }
}

/// What keeps a variant from its first replica, with the pools that lack what it takes.
pub(crate) fn wake_refused(
    obstacle: WakeObstacle,
    gpus: Gpus,
    by: &[PoolFigures],
    claims: &[Arc<str>],
    cause: WakeCause,
) -> impl Display {
    fmt::from_fn(move |f| {
        for pool in by.iter().filter(|pool| pool.left == Budget::Unknown) {
            write!(f, "BudgetUnknown: {} is not known; ", pool.pool())?;
        }
        if obstacle == WakeObstacle::GpusNotCounted {
            f.write_str("GpusNotCounted: ")?;
        }
        f.write_str("wake refused: ")?;
        match obstacle {
            WakeObstacle::AtMaximum => f.write_str("maxReplicas is 0")?,
            WakeObstacle::NoPartner => f.write_str("nothing that it would serve with can start")?,
            WakeObstacle::GpusNotCounted => write!(f, "{}", claims_not_counted(claims))?,
            WakeObstacle::NoGpus => write!(f, "{}one replica takes {gpus}", free_gpus(by))?,
            WakeObstacle::NoGpusForPair => write!(
                f,
                "{}one replica takes {gpus}, and decode serves with prefill only",
                free_gpus(by)
            )?,
        }
        write!(f, "; {cause}")
    })
}

impl WakeCause {
    pub(crate) fn in_short(self) -> &'static str {
        match self {
            Self::Queued(_) | Self::Pair => "started from zero",
            Self::MinimumOfOne => "one replica is kept since scale to zero is off",
        }
    }
}

wva_base::display_of! { WakeCause:
    Self::Queued(queued) => "{queued} requests wait in the router";
    Self::Pair => "decode runs and needs prefill";
    Self::MinimumOfOne => "one is due since scale to zero is off";
}

fn free_gpus(pools: &[PoolFigures]) -> impl Display {
    fmt::from_fn(move |f| {
        for pool in pools {
            if let Budget::Finite(left) = pool.left {
                let kind = &pool.kind;
                write!(f, "{kind} has {left} free GPUs in {}, ", pool.pool())?;
            }
        }
        Ok(())
    })
}

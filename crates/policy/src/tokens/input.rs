//! The input of the analyzer for one model. Values are fresh; an absent one is not known, 0 is
//! known to be zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::accelerator::Accelerator;
use crate::by_name::ByName;
use crate::capacity::ServingRole;
use crate::engine_args::{EngineArgs, EngineFingerprint, KvTokens};
use crate::key::VariantKey;
use crate::params::{SaturationThresholds, UtilizationBand};
use crate::units::{Gpus, Replicas};

/// 2^63: an amount beyond it is a broken series.
pub(super) const ABSURD: f64 = 9_223_372_036_854_775_808.0;

#[derive(Debug, Clone, PartialEq)]
pub struct TokenModelInput {
    pub thresholds: SaturationThresholds,
    pub band: UtilizationBand,
    /// The queue in front of the model; `None` where nothing queues there.
    pub router: Option<RouterQueue>,
    /// Tokens of an answer by which that queue is priced as long as none is known.
    pub default_output: Option<f64>,
    pub variants: BTreeMap<VariantKey, TokenVariantInput>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RouterQueue {
    pub requests: Option<f64>,
    /// Their size.
    pub bytes: Option<f64>,
}

/// One variant. What is said of its hardware comes from its object and its scale target, never from
/// one of its pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenVariantInput {
    #[serde(default)]
    pub role: ServingRole,
    pub accelerator: Accelerator,
    /// Of one replica.
    pub gpus: Gpus,
    /// The arguments of its engine; `None` while its scale target is not known.
    pub engine: Option<EngineArgs>,
    /// What distinguishes its engine from others, where that is known already.
    #[serde(skip)]
    pub fingerprint: Option<EngineFingerprint>,
    #[serde(default)]
    pub ready: Replicas,
    #[serde(default)]
    pub pending: Replicas,
    /// The engine instances of its ready replicas, by a name like `pod:port`. A replica with
    /// data-parallel ranks has several.
    #[serde(default)]
    pub instances: ByName<InstanceInput>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InstanceInput {
    /// Share of the KV cache in use.
    pub kv_usage: Option<f64>,
    /// Size of the KV cache; 0 where the engine does not say.
    pub kv_capacity: Option<KvTokens>,
    pub waiting: Option<f64>,
    /// Mean tokens of a prompt.
    pub input_tokens: Option<f64>,
    /// Mean tokens of an answer.
    pub output_tokens: Option<f64>,
    /// Share of prompt tokens found in the cache.
    pub hit_rate: Option<f64>,
}

impl InstanceInput {
    /// What it says, without numbers that nothing can mean.
    pub(super) fn sane(self) -> Self {
        let share = |value: Option<f64>| amount(value).filter(|share| *share <= 1.0);
        Self {
            kv_usage: amount(self.kv_usage).map(|share| share.min(1.0)),
            kv_capacity: amount(self.kv_capacity.map(|size| size.0))
                .map(KvTokens)
                .filter(|size| size.is_some()),
            waiting: amount(self.waiting).map(f64::trunc),
            input_tokens: amount(self.input_tokens),
            output_tokens: amount(self.output_tokens),
            hit_rate: share(self.hit_rate),
        }
    }
}

pub(super) fn amount(value: Option<f64>) -> Option<f64> {
    value.filter(|value| (0.0..ABSURD).contains(value))
}

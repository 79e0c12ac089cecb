//! What an analyzer says about one model: how much is asked for, and how much one replica supplies.
//! The combination of analyzers and the optimizers work on nothing else.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::key::VariantKey;
use super::units::Replicas;

wva_base::named! {
    shown
    /// The part of a request that a variant serves (prefill/decode disaggregation).
    #[derive(
        Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "lowercase")]
    #[schemars(rename = "RoleSchema")]
    pub enum ServingRole {
        /// Reads prompts and hands the KV cache over.
        Prefill = "prefill",
        /// Generates tokens from a KV cache it was handed.
        Decode = "decode",
        /// Does both; also what nothing else is known about.
        #[default]
        Both = "both",
    }
}

wva_base::named! {
    shown
    /// The analyzers, under the names that the policy ConfigMap enables them by.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum AnalyzerName {
        /// Token-based saturation (V2).
        Saturation = "saturation",
        /// Decode throughput from the latency line.
        Throughput = "throughput",
        /// State-dependent M/M/1/K queueing model.
        QueueingModel = "queueing-model",
        /// Arrivals against what a replica does within the latency objectives.
        Slo = "slo",
    }
}

/// The unit of demand and capacity of one analyzer; figures of different units are never added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityUnit {
    /// Tokens resident in KV caches.
    KvTokens,
    /// Tokens per second.
    TokensPerSecond,
    /// Requests per second.
    RequestsPerSecond,
    /// Replicas, where nothing is asked of them: whatever one can do is enough.
    Replicas,
}

/// The view of one analyzer on one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// Who says it.
    pub analyzer: AnalyzerName,
    /// In which unit.
    pub unit: CapacityUnit,
    /// Demand by role. A role without an entry is one that the analyzer has no opinion on, which
    /// is different from no demand.
    pub demand: BTreeMap<ServingRole, f64>,
    /// Supply by variant. A variant without an entry is one that the analyzer cannot size.
    pub variants: BTreeMap<VariantKey, VariantCapacity>,
}

/// What one variant supplies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct VariantCapacity {
    /// The role that the supply counts for.
    pub role: ServingRole,
    /// Capacity of one ready replica, in the unit of the analyzer; finite and not negative.
    pub per_replica: f64,
    /// Replicas that serve.
    pub ready: Replicas,
    /// Replicas on their way up.
    pub pending: Replicas,
}

impl VariantCapacity {
    /// A variant by the number of its replicas ([`CapacityUnit::Replicas`]).
    pub fn counted(role: ServingRole, ready: Replicas, pending: Replicas) -> Self {
        Self { role, per_replica: 1.0, ready, pending }
    }
}

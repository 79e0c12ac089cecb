//! Capacity of a variant that no instance reports of: from what was learned, from its arguments, or
//! from an engine like it.

use serde::{Deserialize, Serialize};

use super::bound::derived_from;
use super::history::EngineKey;
use super::input::TokenVariantInput;
use super::learned::{CapacityRecord, LearnedTokens};
use super::workload::MeanWorkload;
use crate::engine_args::{EngineArgs, KvTokens};
use crate::params::SaturationThresholds;

/// Everything that is known without a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleFigures {
    /// What one instance of the variant could hold when it last reported; final.
    pub own: Option<KvTokens>,
    /// From arguments and the model's mean request.
    pub derived: Option<KvTokens>,
    /// The usable share of a KV cache whose size the arguments fix.
    pub by_size: Option<KvTokens>,
    /// What an engine like it could hold when it last reported.
    pub compatible: Option<KvTokens>,
    /// Instances of one replica, as they were when it or an engine like it last reported, else as its
    /// arguments say.
    pub ranks: u32,
}

impl IdleFigures {
    pub(super) fn of(
        variant: &TokenVariantInput,
        engine: &EngineKey,
        record: Option<&CapacityRecord>,
        learned: &LearnedTokens,
        workload: MeanWorkload,
        thresholds: &SaturationThresholds,
    ) -> Self {
        let args = variant.engine.as_ref();
        let request = workload.input_tokens.unwrap_or(0.0);
        let answer = workload.output_tokens.unwrap_or(0.0);
        let compatible = learned.compatible(&engine.likeness(args));
        Self {
            own: record.map(|record| record.capacity),
            derived: derived_from(args, request, answer),
            by_size: args
                .and_then(EngineArgs::kv_capacity)
                .map(|size| size.share(thresholds.kv_cache_threshold)),
            compatible: compatible.map(|exemplar| exemplar.capacity),
            ranks: record
                .map(|record| record.ranks)
                .or_else(|| compatible.map(|exemplar| exemplar.ranks))
                .or_else(|| args.map(|args| args.data_parallel_size))
                .unwrap_or(1)
                .max(1),
        }
    }

    /// The capacity of one instance: its own, else the least of the others; `None` if there is none.
    pub fn capacity(&self) -> Option<KvTokens> {
        let others = [self.derived, self.by_size, self.compatible];
        let least = || others.into_iter().flatten().reduce(KvTokens::min);
        self.own.or_else(least).filter(|tokens| tokens.is_some())
    }
}

//! Every number that led to an assessment.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounds::CEILING;
use crate::key::VariantKey;
use crate::queueing::quantity::RequestRate;
use crate::queueing::service::{ServiceParameters, Workload};
use crate::queueing::sizing::Sizing;
use crate::queueing::targets::{Latencies, ModelTargets};
use crate::queueing::tuner::TuningStep;
use crate::units::Replicas;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueingModelFigures {
    pub targets: Option<ModelTargets>,
    /// Its latencies, by the rates of the replicas.
    pub observed: Option<Latencies>,
    /// Requests sent to variants that could be sized.
    pub demand: RequestRate,
    /// What their ready replicas can take.
    pub supply: RequestRate,
    /// What their ready and pending replicas can take.
    pub anticipated: RequestRate,
    /// Demand beyond what is anticipated.
    pub required: RequestRate,
    /// Supply beyond the demand.
    pub spare: RequestRate,
    pub variants: BTreeMap<VariantKey, QueueingVariantFigures>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueingVariantFigures {
    pub busy: Replicas,
    /// Ready replicas whose rate is not known.
    pub unknown: Replicas,
    /// Requests that its replicas are sent.
    pub demand: RequestRate,
    /// Mean request: its own, else the model's, else the one seen last.
    pub workload: Option<Workload>,
    pub parameters: Option<ServiceParameters>,
    /// Rounds since the filter accepted an observation.
    pub refused_rounds: Option<u32>,
    pub tuning: Option<TuningStep>,
    pub sizing: Option<Sizing>,
    pub unsized_because: Option<Unsized>,
    pub supply: Option<Supply>,
}

/// What a variant can take, and how many replicas its load needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Supply {
    /// What one replica can take while it meets the targets.
    pub per_replica: RequestRate,
    /// What the ready replicas can take.
    #[serde(rename = "supply")]
    pub ready: RequestRate,
    /// What the ready and pending replicas can take.
    pub anticipated: RequestRate,
    /// Demand over supply; absent without supply.
    pub utilisation: Option<f64>,
    /// Fewest replicas that can take the demand.
    pub needed: Replicas,
}

/// Why a variant cannot be sized.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Unsized {
    #[error("the queueing model describes replicas that serve whole requests")]
    PartOfRequests,
    #[error("nothing has been learned of its service times yet")]
    NothingLearned,
    #[error("the number of tokens of its requests is not known")]
    NoWorkload,
    #[error("its model has no latency targets, and nothing to infer them from")]
    NoTargets,
    #[error("{0}")]
    Impossible(String),
}

/// What replicas of a capacity can take.
pub(crate) fn supply(
    demand: RequestRate,
    per_replica: RequestRate,
    ready: Replicas,
    pending: Replicas,
) -> Supply {
    let supply = ready.to_f64() * per_replica.0;
    let anticipated = (ready.to_f64() + pending.to_f64()) * per_replica.0;
    Supply {
        per_replica,
        ready: RequestRate(supply),
        anticipated: RequestRate(anticipated),
        utilisation: (supply > 0.0).then(|| demand.0 / supply),
        needed: whole(demand.0 / per_replica.0),
    }
}

fn whole(replicas: f64) -> Replicas {
    let whole =
        Duration::try_from_secs_f64(replicas.ceil()).map_or(u64::MAX, |count| count.as_secs());
    u32::try_from(whole).map_or(CEILING, |count| Replicas(count).min(CEILING))
}

impl QueueingModelFigures {
    pub(super) fn of(
        targets: Option<ModelTargets>,
        observed: Option<Latencies>,
        variants: BTreeMap<VariantKey, QueueingVariantFigures>,
    ) -> Self {
        let (mut demand, mut supply, mut anticipated) = (0.0, 0.0, 0.0);
        for variant in variants.values() {
            if let Some(own) = variant.supply {
                demand += variant.demand.0;
                supply += own.ready.0;
                anticipated += own.anticipated.0;
            }
        }
        Self {
            targets,
            observed,
            demand: RequestRate(demand),
            supply: RequestRate(supply),
            anticipated: RequestRate(anticipated),
            required: RequestRate((demand - anticipated).max(0.0)),
            spare: RequestRate((supply - demand).max(0.0)),
            variants,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.variants.values().all(|variant| variant.unknown == Replicas::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::{CEILING, supply};
    use crate::queueing::quantity::RequestRate;
    use crate::units::Replicas;

    #[test]
    fn no_demand_needs_more_replicas_than_there_can_be() {
        let needed = |demand, per_replica| {
            let rates = (RequestRate(demand), RequestRate(per_replica));
            supply(rates.0, rates.1, Replicas::ONE, Replicas::ZERO).needed
        };
        assert_eq!(needed(2.5, 1.0), Replicas(3));
        assert_eq!(needed(4e9, 1.0), CEILING);
        assert_eq!(needed(1e30, 1e-9), CEILING);
    }
}

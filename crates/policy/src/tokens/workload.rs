//! The mean request of a model.

use serde::{Deserialize, Serialize};

use super::input::{InstanceInput, TokenModelInput};
use crate::capacity::ServingRole;

/// Plain means over the instances that say anything about requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanWorkload {
    /// Tokens of a prompt.
    pub input_tokens: Option<f64>,
    /// Tokens of an answer. Instances that only read prompts are not asked while others answer.
    pub output_tokens: Option<f64>,
    /// Share of prompt tokens found in the cache.
    pub hit_rate: Option<f64>,
}

impl MeanWorkload {
    /// The mean request of a model.
    pub fn of(input: &TokenModelInput) -> Self {
        let instances: Vec<(ServingRole, InstanceInput)> = input
            .variants
            .values()
            .flat_map(|variant| {
                variant
                    .instances
                    .values()
                    .map(|instance| (variant.role, instance.sane()))
            })
            .filter(|(_, instance)| {
                let any = |tokens: Option<f64>| tokens.is_some_and(|tokens| tokens > 0.0);
                any(instance.input_tokens) || any(instance.output_tokens)
            })
            .collect();
        let all = |read: fn(&InstanceInput) -> Option<f64>| {
            mean(instances.iter().filter_map(|(_, instance)| read(instance)))
        };
        let writers = instances
            .iter()
            .filter(|(role, _)| *role != ServingRole::Prefill)
            .filter_map(|(_, instance)| instance.output_tokens);
        Self {
            input_tokens: all(|instance| instance.input_tokens),
            output_tokens: mean(writers).or_else(|| all(|instance| instance.output_tokens)),
            hit_rate: all(|instance| instance.hit_rate),
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

//! The mean request of a model.

use serde::{Deserialize, Serialize};

use super::input::TokenModelInput;
use crate::capacity::ServingRole;

/// Plain means over the instances that say anything about requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanWorkload {
    pub input_tokens: Option<f64>,
    /// Tokens of an answer. Instances that only read prompts are not asked while others answer.
    pub output_tokens: Option<f64>,
    /// Share of prompt tokens found in the cache.
    pub hit_rate: Option<f64>,
}

impl MeanWorkload {
    pub fn of(input: &TokenModelInput) -> Self {
        let (mut prompts, mut answers) = (Mean::default(), Mean::default());
        let (mut written, mut hits) = (Mean::default(), Mean::default());
        for variant in input.variants.values() {
            for instance in variant.instances.values() {
                let instance = instance.sane();
                let any = |tokens: Option<f64>| tokens.is_some_and(|tokens| tokens > 0.0);
                if !any(instance.input_tokens) && !any(instance.output_tokens) {
                    continue;
                }
                prompts.add(instance.input_tokens);
                answers.add(instance.output_tokens);
                if variant.role != ServingRole::Prefill {
                    written.add(instance.output_tokens);
                }
                hits.add(instance.hit_rate);
            }
        }
        Self {
            input_tokens: prompts.known(),
            output_tokens: written.known().or_else(|| answers.known()),
            hit_rate: hits.known(),
        }
    }
}

#[derive(Debug, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1.0;
        }
    }

    fn known(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

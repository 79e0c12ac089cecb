//! Demand that has not reached an engine yet.

use serde::{Deserialize, Serialize};

use super::input::{RouterQueue, amount};
use super::workload::MeanWorkload;
use crate::capacity::ServingRole;

const BYTES_PER_TOKEN: f64 = 4.0;

/// What the requests in a router's queue will hold, in KV tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RouterDemand {
    /// For their prompts.
    pub input: f64,
    /// For their answers.
    pub output: f64,
    /// Together.
    pub total: f64,
    /// Whether that is all of it; otherwise it is at least so much.
    pub is_complete: bool,
}

impl RouterDemand {
    /// Prices a queue by the mean request: prompts by their bytes or by their number, whichever is
    /// more, without what the cache holds already.
    pub fn of(queue: Option<RouterQueue>, workload: MeanWorkload) -> Self {
        let Some(queue) = queue else {
            return Self {
                is_complete: true,
                ..Self::default()
            };
        };
        let requests = amount(queue.requests);
        let known = requests.unwrap_or(0.0);
        let by_bytes = amount(queue.bytes).unwrap_or(0.0) / BYTES_PER_TOKEN;
        let by_number = known * workload.input_tokens.unwrap_or(0.0);
        let input = by_bytes.max(by_number) * (1.0 - workload.hit_rate.unwrap_or(0.0));
        let output = known * workload.output_tokens.unwrap_or(0.0);
        // Without the bytes a few long prompts would pass for as many short ones, and without the mean
        // prompt many tokens of few bytes each for as many of the usual ones.
        let is_priced = known <= 0.0
            || (workload.output_tokens.is_some()
                && amount(queue.bytes).is_some()
                && workload.input_tokens.is_some());
        Self {
            input,
            output,
            total: input + output,
            is_complete: requests.is_some() && is_priced,
        }
    }

    /// The part that a role will hold. Whoever decodes holds the prompt too.
    pub fn of_role(&self, role: ServingRole) -> f64 {
        match role {
            ServingRole::Prefill => self.input,
            ServingRole::Decode | ServingRole::Both => self.total,
        }
    }
}

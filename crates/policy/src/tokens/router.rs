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
    pub total: f64,
    /// Whether that is all of it; otherwise it is at least so much.
    pub is_complete: bool,
}

impl RouterDemand {
    /// Prices a queue by the mean request: prompts by their bytes or by their number, whichever is
    /// more, without what the cache holds already. Answers of an unknown length count with `default_output`
    /// tokens, which is a guess: the price stays incomplete.
    pub fn of(
        queue: Option<RouterQueue>,
        workload: MeanWorkload,
        default_output: Option<f64>,
    ) -> Self {
        let Some(queue) = queue else {
            return Self { is_complete: true, ..Self::default() };
        };
        let requests = amount(queue.requests);
        let known = requests.unwrap_or(0.0);
        let by_bytes = amount(queue.bytes).unwrap_or(0.0) / BYTES_PER_TOKEN;
        let by_number = known * workload.input_tokens.unwrap_or(0.0);
        let input = by_bytes.max(by_number) * (1.0 - workload.hit_rate.unwrap_or(0.0));
        let output = known * workload.output_tokens.or(default_output).unwrap_or(0.0);
        // Without the bytes a few long prompts would pass for as many short ones, and without the mean
        // prompt many tokens of few bytes each for as many of the usual ones.
        let is_priced = known <= 0.0
            || (workload.output_tokens.is_some()
                && amount(queue.bytes).is_some()
                && workload.input_tokens.is_some());
        Self { input, output, total: input + output, is_complete: requests.is_some() && is_priced }
    }

    /// The part that a role will hold. Decode holds the prompt too.
    pub fn of_role(&self, role: ServingRole) -> f64 {
        match role {
            ServingRole::Prefill => self.input,
            ServingRole::Decode | ServingRole::Both => self.total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MeanWorkload, RouterDemand, RouterQueue};

    #[test]
    fn a_stated_answer_prices_a_queue_until_one_is_known_and_permits_no_release() {
        let queue = Some(RouterQueue { requests: Some(3.0), bytes: Some(400.0) });
        let priced = |answer, stated| {
            let workload =
                MeanWorkload { input_tokens: Some(10.0), output_tokens: answer, hit_rate: None };
            let demand = RouterDemand::of(queue, workload, stated);
            (demand.total, demand.is_complete)
        };
        assert_eq!(priced(None, None), (100.0, false));
        assert_eq!(priced(None, Some(200.0)), (700.0, false));
        assert_eq!(priced(Some(20.0), Some(200.0)), (160.0, true));
    }
}

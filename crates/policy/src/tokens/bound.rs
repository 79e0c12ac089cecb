//! What bounds the tokens of one instance, and where the number comes from.

use serde::{Deserialize, Serialize};

use crate::engine_args::{EngineArgs, KvTokens, StepTokens};

/// Where a capacity comes from, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CapacityReason {
    /// Its queue is long now, so it holds what it can.
    #[serde(rename = "P1-obs")]
    Observed,
    /// What engines like it held when their queues were long.
    #[serde(rename = "P2-hist")]
    History,
    /// Derived from the engine's arguments and the mean request.
    #[serde(rename = "P3-k2")]
    Derived,
    /// Its memory; nothing is known of compute.
    #[serde(rename = "P4-k1")]
    Memory,
    /// Nothing was measured now; from what was learned before, or from arguments.
    #[serde(rename = "P0-store")]
    Stored,
    /// Nothing at all.
    #[serde(rename = "no-data")]
    NoData,
}

/// Tokens held by as many requests as can run at once: `n = min(B·O/(I+O), S)` of them, each half
/// written on average, so `n·(I + O/2)`. A step computes a whole prompt once and one token per
/// running request afterwards, so that the share `O/(I+O)` of its budget is left for those.
///
/// `None` without answers, budget or sequences.
pub(super) fn derived(
    budget: StepTokens,
    max_seqs: u32,
    input_tokens: f64,
    output_tokens: f64,
) -> Option<KvTokens> {
    if output_tokens <= 0.0 {
        return None;
    }
    let request = input_tokens + output_tokens;
    let by_budget = f64::from(budget.0) * output_tokens / request;
    let running = by_budget.min(f64::from(max_seqs));
    let tokens = KvTokens((running * (input_tokens + output_tokens / 2.0)).floor());
    (tokens.is_some() && tokens.0.is_finite()).then_some(tokens)
}

/// [`derived`] from arguments.
pub(super) fn derived_from(
    args: Option<&EngineArgs>,
    input_tokens: f64,
    output_tokens: f64,
) -> Option<KvTokens> {
    let args = args?;
    derived(args.step_budget(), args.max_num_seqs, input_tokens, output_tokens)
}

/// The middle of several capacities with its reason. Of an even number, the mean of the two in the
/// middle, rounded down, with the reason of the smaller one.
pub(super) fn median(
    capacities: impl IntoIterator<Item = (KvTokens, CapacityReason)>,
) -> Option<(KvTokens, CapacityReason)> {
    let mut sorted: Vec<_> = capacities.into_iter().collect();
    sorted.sort_by(|one, other| one.0.order(other.0).then(one.1.cmp(&other.1)));
    let (low, reason) = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    let (high, _) = *sorted.get(sorted.len() / 2)?;
    Some((KvTokens(f64::midpoint(low.0, high.0).floor()), reason))
}

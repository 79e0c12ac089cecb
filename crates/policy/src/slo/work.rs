//! The work of a request: its generated tokens, and its prompt tokens at a fixed weight.

use crate::capacity::ServingRole;
use crate::throughput::ThroughputReplicaInput;
use crate::throughput::shape::RequestShape;

/// Generated tokens that one computed prompt token is worth. Measured servers of 8 and 70 billion
/// parameters need 17 to 30 µs for a prompt token and 50 to 100 µs for a generated one at the batches
/// that they run full with; see `docs/development/simulator.md`.
pub const PROMPT_WEIGHT: f64 = 0.25;

/// Work of one request for a role, in generated tokens; for prefill, in computed prompt tokens.
pub fn of_request(role: ServingRole, shape: RequestShape) -> f64 {
    match role {
        ServingRole::Prefill => shape.effective_input(),
        ServingRole::Decode => shape.output,
        ServingRole::Both => PROMPT_WEIGHT.mul_add(shape.effective_input(), shape.output),
    }
}

/// Work that a replica does per second; none where it does not say what it generates, or for what requests. As long
/// as only short answers have ended, tokens over the mean answer are no requests.
pub(super) fn done(role: ServingRole, replica: &ThroughputReplicaInput) -> Option<f64> {
    let (tokens, (shape, _)) = replica.decode_rate.zip(replica.shape())?;
    let requests = replica.request_rate().unwrap_or(tokens / shape.output);
    let prompts = of_request(role, shape) - shape.output;
    Some(requests.mul_add(prompts, tokens))
}

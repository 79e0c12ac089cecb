//! Signals that engines do not expose, by those that they do.

use super::AnalyzedModel;
use crate::capacity::ServingRole;
use crate::snapshot::SignalName;
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput};
use crate::total::total;

/// Tokens of the shortest mean prompt.
const LEAST_PROMPT: f64 = 2.0;

type Read<T> = fn(&ThroughputReplicaInput) -> Option<T>;

/// Fills in what no engine of a model exposes, and notes it. A signal that one of them has, or whose query failed, is
/// missing and stays so. The size of the KV cache and its use only bound what latency says, and are noted alone.
///
/// By Little's law the requests that an engine works on are the tokens that it generates per second times the time
/// between tokens, so that each of the three follows from the two others.
pub(super) fn fill(subject: AnalyzedModel<'_>, model: &mut ThroughputModelInput) {
    let lacks = |model: &ThroughputModelInput, signal: SignalName, read: Read<f64>| {
        let mut replicas = (model.variants.values()).flat_map(|variant| variant.replicas.values());
        !subject.reader.failed(signal) && replicas.all(|replica| read(replica).is_none())
    };
    if lacks(model, SignalName::InterTokenLatency, |one| {
        one.inter_token_latency
    }) {
        derive(model, SignalName::InterTokenLatency, |one| {
            one.inter_token_latency = ratio(one.running, one.decode_rate);
            one.inter_token_latency.is_some()
        });
    }
    if lacks(model, SignalName::GenerationRate, |one| one.decode_rate) {
        derive(model, SignalName::GenerationRate, |one| {
            let idle = one.running.filter(|running| *running <= 0.0);
            one.decode_rate = idle.or_else(|| ratio(one.running, one.inter_token_latency));
            one.decode_rate.is_some()
        });
    }
    // Those that wait in an engine arrived within the time to the first token, by Little's law once more.
    if lacks(model, SignalName::QueueLength, |one| one.waiting) {
        derive(model, SignalName::QueueLength, |one| {
            let idle = one.arrivals.filter(|arrivals| *arrivals <= 0.0);
            let waiting = one.request_rate().zip(one.time_to_first_token);
            one.waiting = idle.or_else(|| waiting.map(|(rate, seconds)| rate * seconds));
            one.waiting.is_some()
        });
    }
    let bounds: [(SignalName, Read<f64>); 2] = [
        (SignalName::KvCapacity, |one| one.kv_capacity),
        (SignalName::KvUsage, |one| one.usage),
    ];
    let mut replicas = (model.variants.values()).flat_map(|variant| variant.replicas.values());
    let serves = replicas.any(|replica| replica.inter_token_latency.is_some());
    for (signal, read) in bounds {
        if serves && lacks(model, signal, read) {
            model.derived.push(signal);
        }
    }
    if lacks(model, SignalName::InputTokens, |one| one.input_tokens)
        && lacks(model, SignalName::OutputTokens, |one| one.output_tokens)
        && let Some((input, output)) = lengths(model)
    {
        derive(model, SignalName::InputTokens, |one| {
            one.input_tokens = Some(input);
            true
        });
        derive(model, SignalName::OutputTokens, |one| {
            one.output_tokens = Some(output);
            true
        });
    }
}

/// Changes every replica that generates, and notes the signal if one of them has it now.
fn derive(
    model: &mut ThroughputModelInput,
    signal: SignalName,
    change: impl Fn(&mut ThroughputReplicaInput) -> bool,
) {
    let variants = (model.variants.values_mut()).filter(|one| one.role != ServingRole::Prefill);
    let mut is_derived = false;
    for replica in variants.flat_map(|variant| variant.replicas.values_mut()) {
        is_derived |= change(replica);
    }
    if is_derived {
        model.derived.push(signal);
    }
}

/// Mean tokens of a prompt and of an answer: what is generated for each request that is completed, and what is held of
/// a request in the middle of its answer.
fn lengths(model: &ThroughputModelInput) -> Option<(f64, f64)> {
    let mean = |read: Read<(f64, f64)>| {
        let variants = (model.variants.values()).filter(|one| one.role != ServingRole::Prefill);
        let known: Vec<_> = (variants.flat_map(|variant| variant.replicas.values()))
            .filter_map(read)
            .collect();
        let sum = |part: fn(&(f64, f64)) -> f64| Some(total(known.iter().map(part)));
        ratio(sum(|(above, _)| *above), sum(|(_, below)| *below))
    };
    let output = mean(|one| one.decode_rate.zip(one.completions))?;
    let held = mean(|one| Some((one.usage? * one.kv_capacity?, one.running?)))?;
    Some(((held - output / 2.0).max(LEAST_PROMPT), output))
}

/// One positive number to another.
fn ratio(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    let (above, below) = above.zip(below)?;
    (above > 0.0 && below > 0.0).then(|| above / below)
}

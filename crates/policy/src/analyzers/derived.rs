//! Signals that engines do not expose, by those that they do.

use super::AnalyzedModel;
use crate::capacity::ServingRole;
use crate::key::ModelKey;
use crate::samples::PodSamples;
use crate::signal::SignalName;
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput};
use crate::total::total;

/// Tokens of the shortest mean prompt.
const LEAST_PROMPT: f64 = 2.0;

type Read<T> = fn(&ThroughputReplicaInput) -> Option<T>;

/// Fills in what no engine of a model exposes, and notes it. A signal that one of them has, or whose query failed, is
/// missing and stays so.
///
/// By Little's law the requests that an engine works on are the tokens that it generates per second times the time
/// between tokens, so that each of the three follows from the two others.
pub(super) fn fill(subject: AnalyzedModel<'_>, key: &ModelKey, model: &mut ThroughputModelInput) {
    let reader = subject.reader;
    let lacks = |signal: SignalName| {
        let mut pods = reader.samples(key).into_iter().flatten();
        !reader.failed(signal) && pods.all(|(_, samples)| !is_exposed(signal, samples))
    };
    if lacks(SignalName::InterTokenLatency) {
        derive(model, SignalName::InterTokenLatency, |one| {
            one.inter_token_latency = ratio(one.running, one.decode_rate);
            one.inter_token_latency.is_some()
        });
    }
    if lacks(SignalName::GenerationRate) {
        derive(model, SignalName::GenerationRate, |one| {
            let idle = one.running.filter(|running| *running <= 0.0);
            one.decode_rate = idle.or_else(|| ratio(one.running, one.inter_token_latency));
            one.decode_rate.is_some()
        });
    }
    // Those that wait in an engine arrived within the time to the first token, by Little's law once more.
    if lacks(SignalName::QueueLength) {
        derive(model, SignalName::QueueLength, |one| {
            let flows = [one.running, one.arrivals, one.completions];
            let idle = flows.iter().all(|flow| *flow == Some(0.0)).then_some(0.0);
            let waiting = one.request_rate().zip(one.time_to_first_token);
            one.waiting = idle.or_else(|| waiting.map(|(rate, seconds)| rate * seconds));
            one.waiting.is_some()
        });
    }
    if lacks(SignalName::KvUsage) && lacks(SignalName::KvUsageNow) {
        derive(model, SignalName::KvUsage, |one| {
            let share = one.held_tokens().zip(one.kv_capacity);
            let share = share.map(|(held, capacity)| (held / capacity).min(1.0));
            one.usage = share.filter(|share| share.is_finite());
            one.usage.is_some()
        });
    }
    if lacks(SignalName::KvCapacity) {
        derive_capacities(model);
    }
    if lacks(SignalName::InputTokens)
        && lacks(SignalName::OutputTokens)
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
    // One that some engine exposes, or whose query failed, is not 0 where it is not known.
    if !lacks(SignalName::Running) {
        let mut replicas = (model.variants.values()).flat_map(|variant| variant.replicas.values());
        let hides_running = replicas.any(|one| one.running.is_none());
        let running = hides_running.then_some(SignalName::Running);
        model.hides_requests = model.hides_requests.or(running);
    }
}

fn is_exposed(signal: SignalName, samples: &PodSamples) -> bool {
    let mut ranks = samples.ranks.values();
    samples.get(signal).is_some() || ranks.any(|rank| rank.get(signal).is_some())
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

/// The size of a KV cache by the share of it that the requests of a variant fill.
fn derive_capacities(model: &mut ThroughputModelInput) {
    let variants = (model.variants.values_mut()).filter(|one| one.role != ServingRole::Prefill);
    let mut is_derived = false;
    for variant in variants {
        let full = |one: &ThroughputReplicaInput| one.held_tokens().zip(one.usage);
        let known: Vec<_> = variant.replicas.values().filter_map(full).collect();
        let held = total(known.iter().map(|(held, _)| *held));
        let used = total(known.iter().map(|(_, used)| *used));
        if let Some(capacity) = ratio(Some(held), Some(used)) {
            is_derived = true;
            for replica in variant.replicas.values_mut() {
                replica.kv_capacity = Some(capacity);
            }
        }
    }
    if is_derived {
        model.derived.push(SignalName::KvCapacity);
    }
}

/// Mean tokens of a prompt and of an answer: what is generated for each request that is completed, and what is held of
/// a request in the middle of its answer.
fn lengths(model: &ThroughputModelInput) -> Option<(f64, f64)> {
    let mean = |read: Read<(f64, f64)>| {
        let variants = (model.variants.values()).filter(|one| one.role != ServingRole::Prefill);
        let known: Vec<_> =
            (variants.flat_map(|variant| variant.replicas.values())).filter_map(read).collect();
        let sum = |part: fn(&(f64, f64)) -> f64| Some(total(known.iter().map(part)));
        ratio(sum(|(above, _)| *above), sum(|(_, below)| *below))
    };
    let output = mean(|one| one.decode_rate.zip(one.completions))?;
    let held = mean(|one| Some((one.usage? * one.kv_capacity?, one.running?)))?;
    Some(((held - output / 2.0).max(LEAST_PROMPT), output))
}

fn ratio(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    let (above, below) = above.zip(below)?;
    (above > 0.0 && below > 0.0).then(|| above / below)
}

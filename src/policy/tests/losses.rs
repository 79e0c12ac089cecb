//! Signals that are lost, or too old to shrink on.

use std::time::Duration;

use crate::policy::document::{PodDocument, Reading, SignalsDocument, SnapshotDocument, Span};

/// One signal that goes missing: of one pod, or, without one, of all.
pub(super) fn lose(document: &mut SnapshotDocument, pod: Option<usize>, signal: usize) {
    let mut pods: Vec<&mut PodDocument> = document
        .variants
        .iter_mut()
        .flat_map(|variant| &mut variant.pods)
        .collect();
    let count = pods.len().max(1);
    let lost = pod.map(|pod| pod % count);
    for (number, pod) in pods.iter_mut().enumerate() {
        if lost.is_none_or(|lost| lost == number) {
            match signal.checked_sub(SIGNALS) {
                None => lose_of(&mut pod.signals, signal),
                Some(signal) => age_of(&mut pod.signals, signal),
            }
        }
    }
}

/// Ways to lose a signal of a pod, all of them at once among them.
pub(super) const SIGNALS: usize = 14;

/// Makes a sample too old to shrink on.
pub(super) fn age(reading: &mut Option<Reading>) {
    if let Some(reading) = reading {
        reading.age = Some(Span(Duration::from_secs(90)));
    }
}

/// Makes a signal old instead of losing it.
fn age_of(signals: &mut SignalsDocument, signal: usize) {
    let whole = signals.clone();
    lose_of(signals, signal);
    let lost = signals.clone();
    *signals = whole.clone();
    for (lost, whole, signal) in [
        (lost.kv_usage, whole.kv_usage, &mut signals.kv_usage),
        (
            lost.queue_length,
            whole.queue_length,
            &mut signals.queue_length,
        ),
        (
            lost.kv_capacity,
            whole.kv_capacity,
            &mut signals.kv_capacity,
        ),
        (
            lost.input_tokens,
            whole.input_tokens,
            &mut signals.input_tokens,
        ),
        (
            lost.output_tokens,
            whole.output_tokens,
            &mut signals.output_tokens,
        ),
        (
            lost.arrival_rate,
            whole.arrival_rate,
            &mut signals.arrival_rate,
        ),
        (lost.running, whole.running, &mut signals.running),
    ] {
        if lost != whole {
            age(signal);
        }
    }
}

fn lose_of(signals: &mut SignalsDocument, signal: usize) {
    match signal {
        0 => signals.kv_usage = None,
        1 => signals.queue_length = None,
        2 => signals.kv_capacity = None,
        3 => signals.input_tokens = None,
        4 => signals.output_tokens = None,
        5 => signals.arrival_rate = None,
        6 => signals.time_to_first_token = None,
        7 => signals.running = None,
        8 => signals.prefix_hit_rate = None,
        9 => signals.inter_token_latency = None,
        10 => signals.kv_usage_now = None,
        11 => signals.completion_rate = None,
        12 => signals.generation_rate = None,
        _ => *signals = SignalsDocument::default(),
    }
}

//! Signals that are lost, or too old to shrink on.

use std::time::Duration;

use wva_policy::document::{DocumentReading, PodDocument, SignalsDocument, SnapshotDocument, Span};

/// One signal that goes missing: of one pod, or, without one, of all.
pub(super) fn lose(document: &mut SnapshotDocument, pod: Option<usize>, signal: usize) {
    let mut pods: Vec<&mut PodDocument> =
        document.variants.iter_mut().flat_map(|variant| &mut variant.pods).collect();
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

pub(super) fn age(reading: &mut Option<DocumentReading>) {
    if let Some(reading) = reading {
        reading.age = Some(Span(Duration::from_secs(90)));
    }
}

fn lose_of(signals: &mut SignalsDocument, signal: usize) {
    match one_of(signals, signal) {
        Some(reading) => *reading = None,
        None => *signals = SignalsDocument::default(),
    }
}

/// Makes a signal old instead of losing it.
fn age_of(signals: &mut SignalsDocument, signal: usize) {
    if let Some(reading) = one_of(signals, signal) {
        age(reading);
        return;
    }
    for signal in 0..SIGNALS {
        one_of(signals, signal).map(age);
    }
}

/// The signal of this number; `None` stands for all of them.
fn one_of(signals: &mut SignalsDocument, signal: usize) -> Option<&mut Option<DocumentReading>> {
    Some(match signal {
        0 => &mut signals.kv_usage,
        1 => &mut signals.queue_length,
        2 => &mut signals.kv_capacity,
        3 => &mut signals.input_tokens,
        4 => &mut signals.output_tokens,
        5 => &mut signals.arrival_rate,
        6 => &mut signals.time_to_first_token,
        7 => &mut signals.running,
        8 => &mut signals.prefix_hit_rate,
        9 => &mut signals.inter_token_latency,
        10 => &mut signals.kv_usage_now,
        11 => &mut signals.completion_rate,
        12 => &mut signals.generation_rate,
        _ => return None,
    })
}

//! One moment of a run, as text.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::files::{read_run, wrong};
use super::super::record::{LabRecord, ModelSeries, Samples, ScaleChange, SizingTerms};
use super::text::{optional, percent, put, quantity, seconds, tick};
use super::timeline::moment;

const DECISIONS: usize = 8;

/// Returns the state of each model and variant at a moment of a run, in seconds since its start, and
/// the last decisions before it with their reasons.
pub(crate) fn explain(path: &Path, at: f64) -> Result<String, String> {
    let run = read_run(path)?;
    let (Some(first), Some(last)) = (run.series.at.first(), run.series.at.last()) else {
        return Err(wrong(path, "series.at", "is empty"));
    };
    let end = last.max(run.virtual_seconds);
    // An end of its own, so that no number is neither inside nor outside.
    if !(*first..=end).contains(&at) {
        return Err(format!(
            "{}: no sample at {at} s: the run has samples from {first} s to {end} s",
            path.display()
        ));
    }
    let index = run.series.at.partition_point(|sample| *sample <= at).saturating_sub(1);
    let sampled = run.series.at.get(index).copied().unwrap_or(at);
    let mut text = format!(
        "{} under {}, seed {}, at {} s ({}); last sample at {} s{}\n",
        run.scenario,
        run.policy,
        run.seed,
        tick(at),
        moment(at),
        tick(sampled),
        if at < run.score.from { "; not scored yet" } else { "" },
    );
    for (name, model) in &run.series.models {
        text.push_str(&model_text(name, model, index));
    }
    text.push_str(&decisions_text(&run, at));
    text.push_str(&terms_text(&run, at));
    Ok(text)
}

fn model_text(name: &str, model: &ModelSeries, index: usize) -> String {
    let value = |samples: &Samples| samples.get(index).copied().flatten();
    let number = |samples| optional(value(samples), quantity);
    let share = |samples| optional(value(samples), |share| format!("{} %", percent(share)));
    let mut text = format!(
        "\nmodel {name}\n  arrivals {} a second, held by the router {}\n  a ready server: waiting {}, \
         running {}, KV cache {}\n  TTFT p95 {}, within SLO {}\n",
        number(&model.arrivals),
        number(&model.held),
        number(&model.queue),
        number(&model.running),
        share(&model.kv),
        optional(value(&model.ttft_p95), seconds),
        share(&model.good),
    );
    for (variant, counts) in &model.variants {
        let count = |samples| optional(value(samples), tick);
        put!(
            text,
            "  variant {variant}: desired {}, scale {}, ready {}, starting {}\n",
            count(&counts.desired),
            count(&counts.scale),
            count(&counts.ready),
            count(&counts.starting)
        );
    }
    text
}

/// The latest decisions before the moment, the last one of each variant among them.
fn decisions_text(run: &LabRecord, at: f64) -> String {
    let mut before: Vec<&ScaleChange> = run.decisions.iter().filter(|it| it.at <= at).collect();
    before.sort_by(|one, other| other.at.total_cmp(&one.at));
    let is_latest = |position: usize, decision: &ScaleChange| {
        let mut newer = before.iter().take(position);
        !newer.any(|newer| newer.variant == decision.variant)
    };
    let shown: Vec<&&ScaleChange> = before
        .iter()
        .enumerate()
        .filter(|(position, decision)| *position < DECISIONS || is_latest(*position, decision))
        .map(|(_, decision)| decision)
        .collect();
    if shown.is_empty() {
        return "\nno decision until then\n".to_owned();
    }
    let mut text = format!("\nlast decisions, of {} until then\n", before.len());
    for decision in shown {
        put!(
            text,
            "  {} s ({}) {} {} -> {}: {}\n",
            tick(decision.at),
            moment(decision.at),
            decision.variant,
            decision.from,
            decision.to,
            decision.why
        );
    }
    text
}

/// The latest terms of each model until the moment.
fn terms_text(run: &LabRecord, at: f64) -> String {
    let until = run.terms.iter().filter(|terms| terms.at <= at);
    let latest: BTreeMap<&str, &SizingTerms> =
        until.map(|terms| (terms.model.as_str(), terms)).collect();
    let mut text = String::new();
    for terms in latest.values() {
        let SizingTerms { at, model, lines } = terms;
        let moment = moment(*at);
        put!(text, "\nterms of {model} at {} s ({moment})\n", tick(*at));
        for line in lines {
            put!(text, "  {line}\n");
        }
    }
    text
}

//! Latency lines from the history of engines: what a process that begins knows of them.

use super::situation;
use wva_base::moment::Moment;
use wva_policy::document::Situation;
use wva_policy::key::{ModelKey, VariantKey};
use wva_policy::learned::Learned;
use wva_policy::params::DynamicSettings;
use wva_policy::snapshot::MetricsSnapshot;
use wva_policy::throughput::LatencyModelSource;
use wva_policy::{learn, plan, refit};

fn settings() -> DynamicSettings {
    super::settings("saturation: {default: {analyzers: [{name: throughput}]}}")
}

/// Two replicas on the line of 6 ms + 20 ms × usage, so many minutes after the start.
fn at_minute(minute: u32, usage: f64) -> Situation {
    let latency = 0.006 + 0.02 * usage;
    let pod = |name: &str| {
        format!(
            "{{name: {name}, age: 3h, signals: {{kvUsage: {usage}, kvUsageNow: {usage}, queueLength: 0, \
             kvCapacity: 100000, inputTokens: 1000, outputTokens: 200, interTokenLatency: {latency}, \
             completionRate: 1}}}}"
        )
    };
    let text = format!(
        "version: 1\ntime: {{now: \"2026-03-01T12:{minute:02}:00Z\", uptime: {}m}}\nvariants:\n- \
         {{namespace: ns, name: v, model: m, target: {{current: 2}}, pods: [{}, {}]}}\nmodels: [{{\
         namespace: ns, model: m, router: {{queueRequests: 0, arrivalRate: 2}}}}]\n",
        60 + minute,
        pod("a"),
        pod("b"),
    );
    situation(&text, &settings())
}

/// What engines did, minute by minute.
fn story() -> Vec<Situation> {
    let usages = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.6, 0.4, 0.3];
    let minutes = (0..).zip(usages);
    minutes.map(|(minute, usage)| at_minute(minute, usage)).collect()
}

fn history(story: &[Situation]) -> Vec<(Moment, MetricsSnapshot)> {
    let steps = story.iter();
    steps.map(|step| (step.now, (*step.snapshot.metrics).clone())).collect()
}

/// The source of the line, and what a full replica generates.
fn line(now: &Situation, learned: &Learned) -> (LatencyModelSource, Option<f64>) {
    let plan = plan(&now.snapshot, learned, &settings(), 1, now.now);
    let report = plan.models[&ModelKey::new("ns", "m")].throughput.clone().unwrap();
    let variant = &report.variants[&VariantKey::new("ns", "v")];
    let slope = variant.model.unwrap().line.map(|line| line.slope);
    (variant.model.unwrap().source, slope)
}

#[test]
fn a_history_teaches_what_the_cycles_would_have_taught() {
    let (settings, story) = (settings(), story());
    let lived = story.iter().fold(Learned::default(), |learned, step| {
        learn(&step.snapshot, &learned, &settings, step.now)
    });
    let now = story.last().unwrap();
    let read = refit(&now.snapshot, &history(&story), &Learned::default(), &settings);
    assert_ne!(read.throughput, Learned::default().throughput);
    assert_eq!(read.throughput, lived.throughput.clone().lines());
    // Nothing else is learned of the past.
    let rest = Learned { throughput: Learned::default().throughput, ..read };
    assert_eq!(rest, Learned::default());
}

#[test]
fn the_first_cycle_after_a_start_has_the_line() {
    let (settings, story) = (settings(), story());
    let now = at_minute(10, 0.3);
    let began = |known: &Learned| line(&now, &learn(&now.snapshot, known, &settings, now.now));
    let (source, slope) = began(&Learned::default());
    assert_eq!(source, LatencyModelSource::Default);
    assert!(slope.is_some());
    let read = refit(&now.snapshot, &history(&story), &Learned::default(), &settings);
    let (source, slope) = began(&read);
    assert_eq!(source, LatencyModelSource::Fitted);
    assert!((slope.unwrap() - 0.02).abs() < 1e-9, "{slope:?}");
    // A history of nothing, or of pods that are gone, is none.
    let gone = refit(&now.snapshot, &[], &Learned::default(), &settings);
    assert_eq!(gone, Learned::default());
    let mut strangers = history(&story);
    for (_, metrics) in &mut strangers {
        metrics.models.clear();
    }
    let gone = refit(&now.snapshot, &strangers, &Learned::default(), &settings);
    assert_eq!(began(&gone).0, LatencyModelSource::Default);
}

#[test]
fn what_is_known_is_not_overwritten() {
    let (settings, story) = (settings(), story());
    let now = story.last().unwrap();
    let known = learn(&now.snapshot, &Learned::default(), &settings, now.now);
    assert_eq!(refit(&now.snapshot, &history(&story), &known, &settings), known);
}

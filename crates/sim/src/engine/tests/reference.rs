//! The plan against the reference engine: vessels of requests that obey its step times, scaled by
//! nothing but what is planned for them.

use std::fmt::Write as _;
use std::time::Duration;

use super::coarse::{MIX, coarse};
use crate::engine::{CoarseEngine, Profile};
use crate::exposition::Histogram;
use wva::policy::document::{
    DocumentReading, ModelDocument, PodDocument, RouterDocument, SignalsDocument, Situation,
    SnapshotDocument, Span,
};
use wva::policy::learned::Learned;
use wva::policy::params::DynamicSettings;
use wva::policy::{check_plan, learn, plan};
use wva::settings::bundle::read_bundle;

const CYCLE: Duration = Duration::from_secs(15);
const START: Duration = Duration::from_hours(2);
/// Cycles that a replica takes to start.
const STARTING: u32 = 4;

/// One replica.
struct Replica {
    name: String,
    created: Duration,
    ready: Option<Duration>,
    engine: CoarseEngine,
    /// What it had counted a cycle ago.
    before: Counted,
    signals: SignalsDocument,
}

/// Sums and counts that rates are read from.
#[derive(Clone, Copy, Default)]
struct Counted {
    tokens: f64,
    requests: f64,
    /// Sums of times, and how many there were.
    gaps: (f64, f64),
    first: (f64, f64),
}

#[expect(clippy::unnecessary_wraps, reason = "the fields take it so")]
fn reading(value: f64) -> Option<DocumentReading> {
    Some(DocumentReading { value: Some(value), ..DocumentReading::default() })
}

impl Replica {
    fn new(number: usize, at: Duration, is_ready: bool) -> Self {
        Self {
            name: format!("v-{number}"),
            created: at,
            ready: is_ready.then_some(at),
            engine: coarse(at),
            before: Counted::default(),
            signals: SignalsDocument::default(),
        }
    }

    /// Serves until `to`, and shows the last cycle.
    fn serve(&mut self, to: Duration, rate: f64) {
        self.engine.advance(to, rate);
        let counted = &self.engine.statistics;
        let seconds = CYCLE.as_secs_f64();
        let number = |count: u64| f64::from(u32::try_from(count).unwrap());
        let both = |times: &Histogram| (times.sum(), number(times.count()));
        let now = Counted {
            tokens: number(counted.generation_tokens),
            requests: number(counted.finished),
            gaps: both(&counted.between_tokens),
            first: both(&counted.first_token),
        };
        let mean = |now: (f64, f64), before: (f64, f64)| {
            (now.1 > before.1).then(|| (now.0 - before.0) / (now.1 - before.1))
        };
        let usage = self.engine.kv_usage();
        self.signals = SignalsDocument {
            kv_usage: reading(usage),
            kv_usage_now: reading(usage),
            queue_length: reading(self.engine.waiting().round()),
            running: reading(self.engine.running().round()),
            kv_capacity: reading(f64::from(Profile::QWEN3_8B_BF16_H100.kv_tokens)),
            input_tokens: reading(f64::from(MIX.prompt_tokens)),
            output_tokens: reading(f64::from(MIX.output_tokens)),
            prefix_hit_rate: reading(0.0),
            time_to_first_token: mean(now.first, self.before.first).and_then(reading),
            inter_token_latency: mean(now.gaps, self.before.gaps).and_then(reading),
            arrival_rate: reading(rate),
            completion_rate: reading((now.requests - self.before.requests) / seconds),
            generation_rate: reading((now.tokens - self.before.tokens) / seconds),
            ..SignalsDocument::default()
        };
        self.before = now;
    }
}

/// A variant that is scaled by its plans alone.
struct Fleet {
    replicas: Vec<Replica>,
    made: usize,
    at: Duration,
    desired: Option<u32>,
    learned: Learned,
    settings: DynamicSettings,
}

impl Fleet {
    fn new(count: usize, settings: &str) -> Self {
        Self {
            replicas: (0..count).map(|number| Replica::new(number, START, true)).collect(),
            made: count,
            at: START,
            desired: None,
            learned: Learned::default(),
            settings: read_bundle(settings).unwrap(),
        }
    }

    /// One cycle at a load; the count that is published.
    fn cycle(&mut self, arrivals: f64) -> u32 {
        self.at += CYCLE;
        for replica in &mut self.replicas {
            if replica.ready.is_none()
                && self.at.saturating_sub(replica.created) >= CYCLE * STARTING
            {
                replica.ready = Some(self.at);
                replica.engine.advance(self.at, 0.0);
            }
        }
        let ready = self.replicas.iter().filter(|replica| replica.ready.is_some()).count();
        let each = arrivals / f64::from(u32::try_from(ready).unwrap());
        for replica in &mut self.replicas {
            if replica.ready.is_some() {
                replica.serve(self.at, each);
            }
        }
        let Situation { snapshot, now, .. } =
            self.document(arrivals, ready).situation(&self.settings.freshness).unwrap();
        self.learned = learn(&snapshot, &self.learned, &self.settings, now);
        let made = plan(&snapshot, &self.learned, &self.settings, 1, now);
        assert_eq!(check_plan(&snapshot, &self.settings, &made), Ok(()));
        let target = made.decisions.values().next().unwrap().target.unwrap().0;
        self.desired = Some(target);
        self.scale(usize::try_from(target).unwrap());
        target
    }

    fn scale(&mut self, target: usize) {
        while self.replicas.len() < target {
            self.replicas.push(Replica::new(self.made, self.at, false));
            self.made += 1;
        }
        // What a replica leaves undone goes to the first one.
        for gone in self.replicas.split_off(target) {
            let left = gone.engine.running() + gone.engine.waiting();
            self.replicas[0].engine.pour(left);
        }
    }

    fn document(&self, arrivals: f64, ready: usize) -> SnapshotDocument {
        let mut text = "version: 1\nvariants:\n".to_owned();
        writeln!(
            text,
            "- {{namespace: ns, name: v, model: m, accelerator: H100, target: {{current: {}, ready: {ready}}}}}",
            self.replicas.len()
        )
        .unwrap();
        let mut document = SnapshotDocument::parse(&text).unwrap();
        document.time.uptime = Some(Span(self.at));
        document.variants[0].desired = self.desired;
        document.variants[0].pods = (self.replicas.iter())
            .map(|replica| PodDocument {
                name: replica.name.as_str().into(),
                ready: replica.ready.is_some(),
                gated: false,
                age: Some(Span(self.at.saturating_sub(replica.created))),
                ready_for: replica.ready.map(|ready| Span(self.at.saturating_sub(ready))),
                node: None,
                signals: replica.signals.clone(),
            })
            .collect();
        document.models.push(ModelDocument {
            namespace: "ns".into(),
            model: "m".into(),
            router: Some(RouterDocument {
                queue_requests: reading(0.0),
                arrival_rate: reading(arrivals),
                ..RouterDocument::default()
            }),
            direct_queue: None,
        });
        document
    }
}

/// What one replica of the profile serves of these requests when it is full, per second.
fn full_rate() -> f64 {
    let mut replica = Replica::new(0, START, true);
    let mut at = START;
    for _ in 0..40 {
        at += CYCLE;
        replica.serve(at, 60.0);
    }
    replica.signals.completion_rate.unwrap().value.unwrap()
}

/// Every choice of analyzers.
const ANALYZERS: [&str; 9] = [
    "",
    "saturation: {default: {analyzerName: saturation}}",
    "saturation: {default: {analyzers: [{name: saturation}, {name: throughput}]}}",
    "saturation: {default: {analyzers: [{name: throughput}]}}",
    "queueingModel: {default: {}}",
    "queueingModel: {default: {}}\nsaturation: {default: {analyzers: [{name: saturation}, {name: queueing-model}]}}",
    "queueingModel: {default: {}}\nsaturation: {default: {analyzers: [{name: saturation}, {name: queueing-model}, {name: throughput}]}}",
    "EXPERIMENTAL_PROACTIVE_MODEL: true",
    "EXPERIMENTAL_PROACTIVE_MODEL: true\nsaturation: {default: {analyzerName: saturation}}",
];

/// Arrivals per second, and replicas to begin with.
const LOADS: [(f64, usize); 5] = [(30.0, 1), (5.0, 1), (30.0, 6), (75.0, 2), (100.0, 9)];

/// Loads to try, and cycles within which a load is met and for which the count must stay then. The
/// queueing model takes its time for every cycle.
fn effort(settings: &str) -> (&'static [(f64, usize)], usize, usize) {
    if settings.contains("queueing") || settings.contains("PROACTIVE") {
        (LOADS.get(..1).unwrap(), 120, 60)
    } else {
        (&LOADS, 240, 120)
    }
}

#[test]
fn a_constant_load_is_met_and_then_nothing_moves() {
    let full = full_rate();
    assert!((15.0..30.0).contains(&full), "{full}");
    let mut broken = Vec::new();
    for settings in ANALYZERS {
        let (loads, settling, steady) = effort(settings);
        for (arrivals, begin) in loads {
            let (arrivals, begin) = (*arrivals, *begin);
            let mut fleet = Fleet::new(begin, settings);
            let cycles = 0..settling + steady;
            let mut history: Vec<u32> = cycles.map(|_| fleet.cycle(arrivals)).collect();
            let end = history.split_off(settling);
            let count = f64::from(end[0]);
            let needed = arrivals / full;
            if count < needed || end.iter().any(|count| *count != end[0]) {
                broken.push(format!(
                    "{settings}, {arrivals}/s from {begin}, {needed:.1} needed: {history:?} then {end:?}"
                ));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

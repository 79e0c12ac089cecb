//! The counts of AIBrix's own code over time, and ours by the same inputs.
//!
//! A tick is decided at the count that the original arrived at. Where every tick of a sequence is equal, ours alone
//! arrives at the same counts. `tests/vectors/README.md` says how the sequences were made.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::side_by_side::{is_whole, means};
use super::{READY, codes, name, object, signal};
use crate::pod_autoscaler::amounts::PodsPerReplica;
use crate::pod_autoscaler::amounts::exceeds;
use crate::pod_autoscaler::check::{AutoscalerPolicy, ScalingStrategy};
use crate::pod_autoscaler::decide::{AutoscalerDecision, AutoscalerView, decide};
use crate::pod_autoscaler::demand::{AutoscaledPod, SourceReading};
use crate::pod_autoscaler::formula::{kpa, limited, wanted};
use crate::pod_autoscaler::reason::{AutoscalerReason, SourceFigures};
use crate::pod_autoscaler::source::MetricSource;
use crate::pod_autoscaler::state::AutoscalerState;
use crate::pod_autoscaler::tuning::WithoutEffect;
use crate::units::Replicas;
use wva_base::moment::{Moment, WallTime};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sequence {
    class: String,
    strategy: String,
    bounds: (u32, u32),
    /// The long and the short one, in seconds.
    windows: (u64, u64),
    /// From this tick on the windows have other lengths.
    resized: Option<(usize, u64, u64)>,
    tuning: BTreeMap<String, String>,
    /// Types with targets. A type that ends with `=` has the metric of the first source.
    sources: Vec<(String, String)>,
    start: u32,
    /// Milliseconds; every ten seconds where empty.
    #[serde(default)]
    times: Vec<u64>,
    /// Pods on their way, by tick; none where empty.
    #[serde(default)]
    pending: Vec<u32>,
    /// By source, then by tick; none where the original decided by bounds.
    values: Vec<Vec<Option<Values>>>,
    /// The count before stabilisation, by tick, where it differs.
    #[serde(default)]
    raw: BTreeMap<String, u32>,
    /// What the original decided, by tick.
    counts: Vec<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Values {
    /// The total, or the value of every pod.
    Each(f64),
    /// The first pod has the first value, and so on, then the first again.
    InTurn(Vec<f64>),
}

/// Why a count differs from that of the original, in the order of the questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// An annotation is out of its range.
    Q14,
    /// Two sources have one metric name.
    Q12,
    /// APA compares a total with the target of one pod.
    Q24,
    /// KPA takes the mean of a pod for a total.
    Q10,
    /// APA multiplies by a mean that was measured at other counts, or demand differs between the windows.
    Q25,
    /// Quotients that are whole but for an error of rounding.
    Rounding,
    /// The way to zero and back.
    Q15,
    /// Stabilisation.
    Q20,
    /// A release needs a long window without a gap.
    History,
    /// Q10: panic holds its peak for a long window.
    PanicHolds,
    /// Q10: a total near one target holds any count for a long window only.
    NearOneTarget,
    /// A release leaves room for what is seen now.
    Room,
    /// Tolerances are judged with pods on their way.
    OnTheirWay,
    /// Something else.
    Unexplained,
}

impl Sequence {
    fn policy(&self, (long, short): (u64, u64)) -> AutoscalerPolicy {
        let sources = self.sources.iter().enumerate();
        let sources = sources.map(|(index, (kind, target))| {
            let metric = if kind.ends_with('=') { 0 } else { index };
            let kind = kind.trim_end_matches('=');
            let page = match kind {
                "pod" => "protocolType: http, port: '8000', path: /metrics,",
                _ => "",
            };
            format!("{{metricSourceType: {kind}, {page} targetMetric: m{metric}, targetValue: '{target}'}}")
        });
        let spec = format!(
            "{{scalingStrategy: {}, minReplicas: {}, maxReplicas: {}, observeWindowSeconds: {long}, \
             panicWindowSeconds: {short}, metricsSources: [{}]}}",
            self.strategy,
            self.bounds.0,
            self.bounds.1,
            sources.collect::<Vec<_>>().join(", ")
        );
        let tuning = self.tuning.iter();
        let tuning: Vec<(String, &str)> = tuning
            .map(|(key, value)| (format!("autoscaling.aibrix.ai/{key}"), value.as_str()))
            .collect();
        let tuning: Vec<(&str, &str)> =
            tuning.iter().map(|(key, value)| (&**key, *value)).collect();
        object("pa", &spec, &tuning).check().unwrap()
    }

    fn time(&self, tick: usize) -> Moment {
        let regular = u64::try_from(tick).unwrap() * 10_000;
        let time = 1_000_000_000 + self.times.get(tick).copied().unwrap_or(regular);
        Moment {
            monotonic: Duration::from_millis(time),
            wall: WallTime(i64::try_from(time).unwrap()),
        }
    }

    fn ready(&self, tick: usize, current: u32) -> u32 {
        current - self.pending.get(tick).copied().unwrap_or(0)
    }

    fn view(&self, tick: usize, current: u32) -> AutoscalerView {
        let ready = usize::try_from(self.ready(tick, current)).unwrap();
        let pod = |number| {
            if number < ready { READY } else { AutoscaledPod::Pending }
        };
        let all = usize::try_from(current).unwrap();
        let each = |value: &dyn Fn(usize) -> f64| {
            let pods = (0..ready).map(|number| (name(number), signal(value(number))));
            SourceReading::Pods(pods.collect())
        };
        let readings = self.sources.iter().zip(&self.values);
        let readings = readings.filter_map(|((kind, _), values)| {
            Some(match values[tick].as_ref()? {
                Values::Each(total) if kind.starts_with("external") => {
                    SourceReading::Total(signal(*total))
                }
                Values::Each(value) => each(&|_| *value),
                Values::InTurn(values) => each(&|number| values[number % values.len()]),
            })
        });
        AutoscalerView {
            current: Replicas(current),
            pods_per_replica: PodsPerReplica::ONE,
            held: None,
            pods: (0..all).map(|number| (name(number), pod(number))).collect(),
            readings: readings.collect(),
        }
    }
}

/// One tick, decided by both.
struct Tick<'a> {
    policy: &'a AutoscalerPolicy,
    decision: &'a AutoscalerDecision,
    /// What the original decided, and that before stabilisation.
    theirs: (u32, u32),
    ready: u32,
    /// Whether a sample of the long window was taken at another count.
    is_mixed: bool,
}

impl Tick<'_> {
    fn measured(&self) -> impl Iterator<Item = (&MetricSource, &SourceFigures)> {
        let steps = self.decision.steps.iter();
        let figures = steps.filter_map(|step| match &step.why {
            AutoscalerReason::Measured { figures } => Some(&**figures),
            _ => None,
        });
        self.policy.sources.iter().zip(figures)
    }

    fn has_step(&self, code: &str) -> bool {
        codes(self.decision).iter().any(|step| step == code)
    }

    /// The formula of the original by our means: its own panic, and neither history nor room for what is seen now.
    fn arithmetic(&self) -> Option<u32> {
        let (n, tuning) = (self.decision.current, &self.policy.tuning);
        let counts = self.measured().map(|(source, figures)| {
            let (stable, panic) = (figures.stable.low, figures.panic.low);
            let means = means(stable, panic);
            let needed = if self.policy.strategy == ScalingStrategy::Kpa {
                let in_panic = stable <= 0.0 || panic / stable > tuning.panic_threshold.get();
                kpa(means, in_panic, n, Replicas::ONE, source.target, tuning)
            } else {
                wanted(means.stable, n, n, source.target, tuning)
            };
            let bounds = self.decision.bounds.bounds;
            limited(needed, n, tuning).clamp(bounds.min, bounds.max).0
        });
        counts.max()
    }

    fn has_rounded(&self) -> bool {
        let (n, tuning) = (self.decision.current.to_f64(), &self.policy.tuning);
        let limits = [n / tuning.scale_down_rate.get(), n * tuning.scale_up_rate.get()];
        let needs = self.measured().flat_map(|(source, figures)| {
            let target = source.target.get();
            [figures.stable.low, figures.stable.high, figures.panic.low].map(|demand| {
                [demand / target, n * (demand / n / target), n * (demand / n) / target]
            })
        });
        limits.into_iter().chain(needs.flatten()).any(is_whole)
    }

    /// A quirk that the arithmetic of the original has here.
    fn quirk(&self) -> Option<Cause> {
        let n = self.decision.current.0;
        let sources = &self.policy.sources;
        let is_kpa = self.policy.strategy == ScalingStrategy::Kpa;
        let has_total = sources.iter().any(MetricSource::is_total);
        let differs = |figures: &SourceFigures| figures.stable != figures.panic;
        // In the place of a value out of its range.
        let is_kept = |fault: &WithoutEffect| fault.to_string().ends_with(" is kept");
        let has_default = self.policy.faults.iter().any(is_kept);
        let quirks = wva_base::cases! {
            (has_default, Cause::Q14),
            (sources.len() > 1 && sources[0].metric == sources[1].metric, Cause::Q12),
            (!is_kpa && has_total && n != 1, Cause::Q24),
            (is_kpa && !has_total && (n != 1 || self.is_mixed), Cause::Q10),
            (!is_kpa && (self.is_mixed || self.measured().any(|(_, figures)| differs(figures))), Cause::Q25),
        };
        let found = quirks.into_iter().find(|(is_one, _)| *is_one);
        found.map(|(_, cause)| cause)
    }

    /// KPA by pods never needs fewer than the original, and a shared total never more.
    fn directed(&self, cause: Cause) -> Cause {
        let is_above = self.decision.desired.0 > self.theirs.0;
        match cause {
            Cause::Q10 if !is_above => Cause::Unexplained,
            Cause::Q24 if is_above => Cause::Unexplained,
            cause => cause,
        }
    }

    /// What holds or moves a count whose arithmetic is equal.
    fn rule(&self) -> Option<Cause> {
        let (n, ours) = (self.decision.current.0, self.decision.desired.0);
        let (theirs, raw) = self.theirs;
        let tuning = &self.policy.tuning;
        let is_held = ours > theirs;
        let is_stabilised = self.has_step("GrowthStabilised") || self.has_step("ReleaseStabilised");
        let mut measured = self.measured();
        let (source, figures) = measured.next()?;
        let one = source.target.get() * (1.0 + tuning.scale_up_tolerance.get());
        let carried = source.target.of(Replicas(n));
        let (upper, lower) = (
            carried * (1.0 + tuning.scale_up_tolerance.get()),
            carried * (1.0 - tuning.scale_down_tolerance.get()),
        );
        let is_tolerated =
            !exceeds(figures.stable.low, upper) && !exceeds(lower, figures.stable.high);
        let has_room = figures.now.high > figures.stable.high
            || measured.any(|(_, figures)| figures.now.high > figures.stable.high);
        let rules = wva_base::cases! {
            (is_held && (n == 0 || theirs == 0), Cause::Q15),
            (theirs != raw || is_stabilised, Cause::Q20),
            (is_held && ours == n && self.has_step("ReleaseNeedsHistory"), Cause::History),
            (is_held && self.has_step("Panic"), Cause::PanicHolds),
            (!is_held && theirs == n && !exceeds(figures.stable.high, one), Cause::NearOneTarget),
            (self.ready < n && ours == n && is_tolerated, Cause::OnTheirWay),
            (is_held && has_room, Cause::Room),
            (self.ready < n && self.has_rounded(), Cause::Rounding),
        };
        let found = rules.into_iter().find(|(is_one, _)| *is_one);
        found.map(|(_, cause)| cause)
    }

    /// `None` if both are equal. Where the arithmetic of the original is right, ours has the same result.
    fn cause(&self) -> Option<Cause> {
        let is_equal = self.decision.desired.0 == self.theirs.0;
        let quirk = self.quirk();
        if quirk.is_some() {
            return quirk.filter(|_| !is_equal).map(|cause| self.directed(cause));
        }
        let arithmetic = self.arithmetic();
        let is_guarded = self.ready < self.decision.current.0;
        let is_right = arithmetic.is_none_or(|count| count == self.theirs.1) || is_guarded;
        if !is_right && !self.has_rounded() {
            Some(Cause::Unexplained)
        } else if is_equal {
            None
        } else if is_right {
            Some(self.rule().unwrap_or(Cause::Unexplained))
        } else {
            Some(Cause::Rounding)
        }
    }
}

/// The causes of the ticks that differ.
fn compare(sequence: &Sequence) -> Vec<Cause> {
    let mut policy = sequence.policy(sequence.windows);
    let mut state = AutoscalerState::default();
    let mut current = sequence.start;
    let mut sampled_at = BTreeMap::new();
    let mut causes = Vec::new();
    for (tick, count) in sequence.counts.iter().enumerate() {
        if let Some((_, long, short)) = sequence.resized.filter(|(from, ..)| *from == tick) {
            policy = sequence.policy((long, short));
            sampled_at.clear();
        }
        let now = sequence.time(tick);
        let ready = sequence.ready(tick, current);
        sampled_at.insert(now.monotonic.as_secs(), ready);
        let oldest = now.monotonic.saturating_sub(policy.windows.stable).as_secs();
        let (decision, next) = decide(&policy, &sequence.view(tick, current), &state, now);
        let raw = sequence.raw.get(&tick.to_string());
        let cause = Tick {
            policy: &policy,
            decision: &decision,
            theirs: (*count, raw.copied().unwrap_or(*count)),
            ready,
            is_mixed: sampled_at.range(oldest..).any(|(_, other)| *other != ready),
        }
        .cause();
        let class = &sequence.class;
        assert_ne!(
            cause,
            Some(Cause::Unexplained),
            "{class}, tick {tick}: {current} to {count}, {decision:?}"
        );
        causes.extend(cause);
        (state, current) = (next, *count);
    }
    causes
}

#[test]
fn as_the_original_counts() {
    let text = include_str!("../../../../../tests/vectors/pod-autoscaler-sequences.json");
    let sequences: Vec<Sequence> = serde_json::from_str(text).unwrap();
    let compared: Vec<Vec<Cause>> = sequences.iter().map(compare).collect();
    let mut differ = BTreeMap::<Cause, usize>::new();
    for cause in compared.iter().flatten() {
        *differ.entry(*cause).or_default() += 1;
    }
    let expected = [
        (Cause::Q14, 104),
        (Cause::Q12, 86),
        (Cause::Q24, 124),
        (Cause::Q10, 254),
        (Cause::Q25, 320),
        (Cause::Rounding, 9),
        (Cause::Q15, 7),
        (Cause::Q20, 72),
        (Cause::History, 97),
        (Cause::PanicHolds, 74),
        (Cause::NearOneTarget, 25),
        (Cause::Room, 40),
        (Cause::OnTheirWay, 21),
    ];
    assert_eq!(differ, BTreeMap::from(expected));
    let ticks: usize = sequences.iter().map(|sequence| sequence.counts.len()).sum();
    let equal = ticks - differ.values().sum::<usize>();
    let same = compared.iter().filter(|causes| causes.is_empty()).count();
    let sentence = format!(
        "{equal} of {ticks} counts are equal, {same} of {} sequences at every tick",
        sequences.len()
    );
    let page = include_str!("../../../../../docs/development/differences.md");
    assert!(page.replace('\n', " ").contains(&sentence), "{sentence}");
}

//! The same inputs by AIBrix's formulas, as its specification states them, and by ours. Where its arithmetic is right
//! the counts are equal.

use std::collections::BTreeMap;

use super::over_time::total;
use super::{Loop, policy};
use crate::pod_autoscaler::amounts::{DemandRange, TargetValue};
use crate::pod_autoscaler::check::AutoscalerPolicy;
use crate::pod_autoscaler::formula::{WindowMeans, apa, kpa, limited};
use crate::rounding::floor;
use crate::units::Replicas;

const COUNTS: [u32; 9] = [0, 1, 2, 3, 4, 5, 7, 10, 50];
const MEANS: [f64; 16] =
    [0.0, 0.3, 4.0, 7.2, 7.5, 8.0, 8.4, 8.8, 9.0, 12.0, 16.0, 20.0, 33.0, 50.0, 90.0, 1000.0];
const TARGETS: [f64; 4] = [0.6, 8.0, 10.0, 250.0];
/// Growth, release, and both tolerances.
const TUNINGS: [(f64, f64, f64); 5] =
    [(2.0, 2.0, 0.1), (1.5, 3.0, 0.0), (4.0, 1.0, 0.25), (1.0, 10.0, 0.5), (1.2, 1.2, 0.01)];
const THRESHOLD: f64 = 2.0;

/// The formulas of the original, in its order of floating-point operations.
#[derive(Clone, Copy)]
struct Original {
    n: f64,
    target: f64,
    rates: (f64, f64),
    tolerance: f64,
}

impl Original {
    /// `stable` is the mean of a pod.
    fn apa(self, stable: f64) -> f64 {
        let Self { n, rates, .. } = self;
        let ratio = stable / self.target;
        if ratio > 1.0 + self.tolerance {
            (n * ratio).ceil().min((rates.0 * n).ceil())
        } else if ratio < 1.0 - self.tolerance {
            (n * ratio).ceil().max((n / rates.1).floor())
        } else {
            n
        }
    }

    /// `mean` is a total.
    fn kpa_by(self, mean: f64) -> f64 {
        let Self { n, target, .. } = self;
        let is_within =
            mean <= target * (1.0 + self.tolerance) && mean >= target * (1.0 - self.tolerance);
        let wanted = if is_within { n } else { (mean / target).ceil() };
        let (least, most) = ((n / self.rates.1).floor(), (self.rates.0 * n).ceil());
        wanted.max(least).min(most.max(1.0))
    }

    fn kpa(self, stable: f64, panic: f64) -> f64 {
        let by_stable = self.kpa_by(stable);
        if stable <= 0.0 || panic / stable > THRESHOLD {
            by_stable.max(self.kpa_by(panic))
        } else {
            by_stable
        }
    }
}

/// Every combination of counts, targets and tuning, with the same by a policy of ours.
fn each(mut check: impl FnMut(Original, &AutoscalerPolicy)) {
    for (up, down, tolerance) in TUNINGS {
        let texts = [up, down, tolerance].map(|number| number.to_string());
        let tuned = policy(
            "",
            &[
                ("max-scale-up-rate", &texts[0]),
                ("max-scale-down-rate", &texts[1]),
                ("scale-up-tolerance", &texts[2]),
                ("scale-down-tolerance", &texts[2]),
            ],
        );
        for (n, target) in COUNTS.iter().flat_map(|n| TARGETS.map(|target| (*n, target))) {
            let original = Original { n: f64::from(n), target, rates: (up, down), tolerance };
            check(original, &tuned);
        }
    }
}

/// The means of a demand that is now as small as its means allow: ours leave room for what is seen now.
pub(super) fn means(stable: f64, panic: f64) -> WindowMeans {
    WindowMeans {
        now: DemandRange::exactly(stable.min(panic)),
        stable: DemandRange::exactly(stable),
        panic: DemandRange::exactly(panic),
    }
}

fn target(original: Original) -> TargetValue {
    TargetValue::parse(&original.target.to_string()).unwrap()
}

/// A count that has no fraction.
fn whole(count: f64) -> Replicas {
    Replicas(floor(count))
}

/// Whether a quotient that is no whole number is one but for an error of rounding, which the original rounds up.
pub(super) fn is_whole(quotient: f64) -> bool {
    let error = (quotient - quotient.round()).abs();
    error > 0.0 && error < 1e-9
}

/// The mean of a pod was taken at the present count, so that times the count it is the demand of all pods.
#[test]
fn apa_at_a_constant_count() {
    let (mut compared, mut rounded) = (0, 0);
    each(|original, tuned| {
        let n = whole(original.n);
        for mean in MEANS {
            let all = mean * original.n;
            let wanted = apa(means(all, all), n, target(original), &tuned.tuning);
            let ours = limited(wanted, n, &tuned.tuning);
            let theirs = whole(original.apa(mean));
            let is_rounded = theirs > ours && is_whole(original.n * (mean / original.target));
            assert!(
                ours == theirs || is_rounded,
                "{n} pods at {mean} of {}: {ours}, {theirs}",
                original.target
            );
            rounded += u32::from(is_rounded);
            compared += 1;
        }
    });
    assert_eq!((compared, rounded), (2_880, 8));
}

/// A source that reports a total is what the original's formula is made for.
#[test]
fn kpa_by_a_total() {
    let (mut compared, mut rounded, mut woken, mut calmer) = (0, 0, 0, 0);
    each(|original, tuned| {
        let n = whole(original.n);
        let (target, tuning) = (target(original), &tuned.tuning);
        for (stable, panic) in MEANS.iter().flat_map(|stable| MEANS.map(|panic| (*stable, panic))) {
            let means = means(stable, panic);
            let band = n.min(Replicas::ONE);
            let in_panic = means.exceed(n, target, tuning);
            let ours = limited(kpa(means, in_panic, n, band, target, tuning), n, tuning);
            let theirs = whole(original.kpa(stable, panic));
            compared += 1;
            if ours == theirs {
                continue;
            }
            if theirs > ours && [stable, panic].iter().any(|mean| is_whole(mean / original.target))
            {
                rounded += 1;
                continue;
            }
            // Q15: a target at zero leaves it for any demand.
            if n == Replicas::ZERO {
                assert_eq!((ours, theirs), (Replicas::ONE, Replicas::ZERO));
                woken += 1;
                continue;
            }
            // Q10: what the replicas carry already is no burst here. There nothing at all is one.
            let carried = target.of(n) * (1.0 + original.tolerance);
            let is_burst = stable <= 0.0 || panic / stable > THRESHOLD;
            let text =
                format!("{n} at {stable} and {panic} of {}: {ours}, {theirs}", original.target);
            assert!(is_burst && !in_panic && panic <= carried, "{text}");
            assert!(ours < theirs, "{text}");
            calmer += 1;
        }
    });
    assert_eq!((compared, rounded, woken, calmer), (46_080, 105, 416, 1_720));
}

/// Tick by tick, with the windows of both: a total that rises in steps, each of them too small for panic. After one the
/// original falls back to what the long window says (Q10).
#[test]
fn kpa_over_a_rising_total() {
    let spec = "
        maxReplicas: 100
        metricsSources:
        - {metricSourceType: external, targetMetric: queue, targetValue: '8'}
    ";
    let trace = [(4, 6.0), (20, 18.0), (25, 40.0), (3, 55.0), (30, 90.0), (40, 91.0), (30, 170.0)];
    let trace = trace.iter().flat_map(|(ticks, load)| std::iter::repeat_n(*load, *ticks));
    let mut run = Loop::new(policy(spec, &[]), 1);
    let (mut slots, mut n) = (BTreeMap::new(), 1.0);
    for (tick, load) in trace.enumerate() {
        let at = tick * 10;
        slots.insert(at, load);
        let mean = |length: usize| {
            let within = slots.range(at.saturating_sub(length)..);
            let all: Vec<f64> = within.map(|(_, load)| *load).collect();
            all.iter().sum::<f64>() / f64::from(u32::try_from(all.len()).unwrap())
        };
        let original = Original { n, target: 8.0, rates: (2.0, 2.0), tolerance: 0.1 };
        n = original.kpa(mean(180), mean(60)).clamp(1.0, 100.0);
        let ours = run.decide(&total(run.current, load));
        assert_eq!(ours.desired, whole(n), "tick {tick}: {ours:?}");
    }
    assert_eq!(run.current, 22);
}

//! Demand ahead of time.

use std::time::Duration;

use super::statuses::judged;
use super::{Loop, at, codes, name, object, policy, view};
use crate::pod_autoscaler::AutoscalerDecision;
use crate::pod_autoscaler::amounts::DemandRange;
use crate::pod_autoscaler::demand::{AutoscaledPod, DemandEvidence};
use crate::pod_autoscaler::forecast::{Forecast, ForecastMode};
use crate::pod_autoscaler::record::AutoscalerVerdict;
use crate::pod_autoscaler::state::DemandWindow;
use crate::pod_autoscaler::status::{
    PodAutoscalerStatus, PredictiveStatus, ScaleOutcome, next_status,
};
use crate::units::Replicas;
use wva_base::moment::WallTime;

/// What it shows, demands by second, and what is expected 100 s after the last at a window of 180 s.
type LineCase = (&'static str, &'static [(u64, f64)], Option<f64>);

const LINES: [LineCase; 7] = wva_base::cases! {
    ("rising", &[(0, 10.0), (50, 20.0), (100, 30.0)], Some(50.0)),
    ("constant", &[(0, 7.0), (20, 7.0), (100, 7.0)], Some(7.0)),
    ("at most four times the mean", &[(0, 0.0), (50, 0.0), (100, 30.0)], Some(40.0)),
    ("at least nothing", &[(0, 30.0), (50, 20.0), (100, 10.0)], Some(0.0)),
    ("two samples", &[(0, 10.0), (100, 30.0)], None),
    ("less than half", &[(0, 10.0), (40, 20.0), (80, 30.0)], None),
    ("half", &[(0, 10.0), (45, 20.0), (90, 30.0)], Some(10.0 + 190.0 / 4.5)),
};

#[test]
fn a_line_needs_three_samples_of_half_the_window_and_is_bounded() {
    for (case, demands, expected) in LINES {
        let mut window = DemandWindow::default();
        let length = Duration::from_mins(3);
        let mut now = at(1000);
        for (second, low) in demands {
            now = at(1000 + second);
            let demand = DemandRange { low: *low, high: *low };
            window.push(now, demand, DemandEvidence::Whole, length);
        }
        let found = window.forecast(now, length, Duration::from_secs(100));
        assert_eq!(found.is_some(), expected.is_some(), "{case}");
        let difference = found.unwrap_or(0.0) - expected.unwrap_or(0.0);
        assert!(difference.abs() < 1e-6, "{case}: {found:?}");
    }
}

/// Eight of ten pods are not read for a while, and then are again.
#[test]
fn samples_that_come_back_are_no_growth() {
    let length = Duration::from_mins(3);
    let forecast = |unread: std::ops::Range<u64>| {
        let mut window = DemandWindow::default();
        for second in (0..=300).step_by(10) {
            let (low, high, evidence) = if unread.contains(&second) {
                (18.0, 98.0, DemandEvidence::Partial)
            } else {
                (90.0, 90.0, DemandEvidence::Whole)
            };
            let demand = DemandRange { low, high };
            window.push(at(1000 + second), demand, evidence, length);
        }
        window.forecast(at(1300), length, Duration::from_secs(100))
    };
    for unread in [0..0, 120..200] {
        let found = forecast(unread).unwrap();
        assert!((found - 90.0).abs() < 1e-6, "{found}");
    }
    // What is left is no half of the window.
    assert_eq!(forecast(120..270), None);
}

/// Decisions on a demand that rises for ten minutes and falls for twenty.
fn slope(spec: &str) -> Vec<AutoscalerDecision> {
    let mut run = Loop::new(policy(spec, &[]), 2);
    let rising = (0..60).map(|cycle| 20.0 + f64::from(cycle));
    let falling = (0..120).map(|cycle| 80.0 - f64::from(cycle) / 2.0);
    rising.chain(falling).map(|total| run.share(total)).collect()
}

#[test]
fn a_forecast_grows_earlier_and_lowers_nothing() {
    for strategy in ["APA", "KPA"] {
        let with = |rest: &str| slope(&format!("scalingStrategy: {strategy}\n{rest}"));
        let counts = |decisions: &[AutoscalerDecision]| -> Vec<u32> {
            decisions.iter().map(|one| one.desired.0).collect()
        };
        let plain = counts(&with(""));
        let preview = with("predictive: {mode: Preview, horizonSeconds: 120}");
        assert_eq!(counts(&preview), plain, "{strategy}");
        let is_shown = |one: &AutoscalerDecision| codes(one).contains(&"Forecast".to_owned());
        assert!(!is_shown(&preview[8]) && is_shown(&preview[9]), "{strategy}");
        let auto = counts(&with("predictive: {mode: Auto}"));
        assert!(auto.iter().zip(&plain).all(|(auto, plain)| auto >= plain), "{auto:?} {plain:?}");
        let first = |counts: &[u32]| counts.iter().position(|count| *count >= 5);
        assert!(first(&auto) < first(&plain), "{auto:?} {plain:?}");
    }
}

/// A pod on its way serves nothing that is unmeasured; one that drains takes its load out of what is measured.
#[test]
fn a_pod_on_its_way_ends_no_forecast() {
    for (pod, is_shown) in
        [(None, true), (Some(AutoscaledPod::Pending), true), (Some(AutoscaledPod::Draining), false)]
    {
        let spec = "predictive: {mode: Preview, horizonSeconds: 120}";
        let mut run = Loop::new(policy(spec, &[]), 2);
        let mut last = Vec::new();
        for tick in 0..30 {
            let mut seen = view(2, &[vec![10.0 + f64::from(tick) / 2.0; 2]]);
            if let Some(pod) = pod {
                seen.current = Replicas(3);
                seen.pods.insert(name(2), pod);
            }
            last = codes(&run.decide(&seen));
        }
        assert_eq!(last.contains(&"Forecast".to_owned()), is_shown, "{pod:?}");
    }
}

#[test]
fn a_forecast_is_checked() {
    let refused = |predictive: &str| {
        let violations = object("pa", &format!("predictive: {predictive}"), &[]).check();
        violations.unwrap_err().to_string()
    };
    assert_eq!(
        refused("{mode: auto, horizonSeconds: 0}"),
        "PodAutoscaler default/pa: spec.predictive.mode: \"auto\" is no mode; write Preview or Auto\n\
         PodAutoscaler default/pa: spec.predictive.horizonSeconds: 0 is no horizon; write 1 to 3600"
    );
    assert!(refused("{mode: Auto, horizonSeconds: -1}").contains("-1 is no horizon"));
    assert!(refused("{mode: Auto, horizonSeconds: 3601}").contains("3601 is no horizon"));
    let forecast = policy("predictive: {mode: Auto}", &[]).forecast;
    let expected = Forecast { mode: ForecastMode::Auto, horizon: Duration::from_mins(2) };
    assert_eq!(forecast, Some(expected));
    let unnamed = policy("predictive: {horizonSeconds: 60}", &[]).forecast;
    let mode = unnamed.map(|forecast| forecast.mode);
    assert_eq!(mode, Some(ForecastMode::Preview));
}

/// The status after each of some ticks of a demand that rises.
fn shown(spec: &str, ticks: u32) -> Vec<(AutoscalerDecision, PodAutoscalerStatus)> {
    let mut run = Loop::new(policy(spec, &[]), 2);
    let mut status = PodAutoscalerStatus::default();
    let mut all = Vec::new();
    for tick in 0..ticks {
        let second = run.seconds;
        let decision = run.share(20.0 + f64::from(tick));
        let verdict = AutoscalerVerdict::Decided(Box::new(decision.clone()));
        let record = judged(Some(run.policy.clone()), verdict, second);
        let now = record.decided.wall;
        status = next_status(&record, &status, &ScaleOutcome::Written, now);
        all.push((decision, status.clone()));
    }
    all
}

#[test]
fn the_status_shows_the_last_forecast_and_what_it_would_do() {
    let plain = shown("", 20);
    assert!(
        plain.iter().all(|(one, status)| one.would_be.is_none() && status.predictive.is_none())
    );
    for mode in ["Preview", "Auto"] {
        let spec = format!("predictive: {{mode: {mode}}}");
        let all = shown(&spec, 40);
        assert_eq!(all[8].1.predictive, None);
        let first = all[9].1.predictive.clone().unwrap();
        assert_eq!((&*first.mode, &*first.metric), (mode, "load"));
        // The line rises by 1 in 10 s: a mean of 24.5, 29 now, and 41 in two minutes.
        let values = (first.observed_value.as_str(), first.predicted_value.as_str());
        assert_eq!(values, ("24.5", "41"));
        assert_eq!(first.predicted_replicas, Replicas(5));
        let mut differs = false;
        for (decision, status) in &all[9..] {
            let shown = status.predictive.as_ref().unwrap();
            let decided = decision.desired;
            assert_eq!(decision.would_be, Some(shown.would_be_replicas));
            assert!(shown.would_be_replicas >= decided, "{mode}");
            differs |= shown.would_be_replicas != decided;
        }
        assert_eq!(differs, mode == "Preview");
        for pair in all[9..].windows(2) {
            let (before, after) = (&pair[0].1.predictive, &pair[1].1.predictive);
            let (before, after) = (before.as_ref().unwrap(), after.as_ref().unwrap());
            let age = after.last_updated.wall().since(before.last_updated.wall());
            let counts = |one: &PredictiveStatus| {
                (one.predicted_replicas, one.reactive_replicas, one.would_be_replicas)
            };
            let is_due = counts(before) != counts(after) || age >= Duration::from_mins(1);
            assert!(before == after || is_due, "{before:?} {after:?}");
        }
        // It goes with the specification.
        let last = &all[39];
        let verdict = AutoscalerVerdict::Decided(Box::new(last.0.clone()));
        let without = judged(Some(policy("", &[])), verdict, 200_000);
        let status =
            next_status(&without, &last.1, &ScaleOutcome::NotWritten, WallTime(200_000_000));
        assert_eq!(status.predictive, None);
    }
}

//! Published cases.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::statuses::{first, judged};
use super::{object, view};
use crate::key::ObjectKey;
use crate::pod_autoscaler::amounts::{DemandRange, TargetValue};
use crate::pod_autoscaler::check::{AutoscalerPolicy, Violations};
use crate::pod_autoscaler::claims::{ClaimKind, TargetClaim, conflict};
use crate::pod_autoscaler::decide::{AutoscalerDecision, decide};
use crate::pod_autoscaler::demand::DemandEvidence;
use crate::pod_autoscaler::formula::{WindowMeans, apa, kpa, limited};
use crate::pod_autoscaler::hpa::GeneratedHpa;
use crate::pod_autoscaler::object::PodAutoscalerObject;
use crate::pod_autoscaler::reason::AutoscalerReason;
use crate::pod_autoscaler::record::{AutoscalerRecord, AutoscalerVerdict, TargetOwner};
use crate::pod_autoscaler::state::{AutoscalerState, DemandWindow};
use crate::pod_autoscaler::status::{GeneratedHpaStatus, ScaleOutcome};
use crate::pod_autoscaler::tuning::Tuning;
use crate::tests::vectors::{Tally, run};
use crate::units::Replicas;
use wva_base::duration::format_duration;
use wva_base::moment::{Moment, WallTime};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    spec: serde_yaml::Mapping,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    foreign: BTreeMap<String, String>,
    now: Option<String>,
    current: Option<u32>,
    #[serde(default)]
    pods: Vec<Vec<f64>>,
    formula: Option<Formula>,
    window: Option<Window>,
    #[serde(default)]
    claims: BTreeMap<String, i64>,
    hpa_scales: Option<(u32, u32)>,
    unseen: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Formula {
    strategy: String,
    target: f64,
    n: u32,
    #[serde(default)]
    each: bool,
    stable: f64,
    panic: Option<f64>,
    #[serde(default)]
    in_panic: bool,
    up: Option<String>,
    tolerance: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    lengths: (u64, u64),
    pushes: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    refused: Option<Vec<String>>,
    problem: Option<String>,
    bounds: Option<(u32, u32, Option<String>, bool)>,
    next: Option<String>,
    desired: Option<u32>,
    reason: Option<String>,
    means: Option<(f64, f64)>,
    sources: Option<Vec<String>>,
    untuned: Option<usize>,
    #[serde(default)]
    hpa: BTreeMap<String, Value>,
    #[serde(default)]
    object: BTreeMap<String, Value>,
    /// Types and statuses of all conditions.
    conditions: Option<Vec<String>>,
    /// The actual and the desired count of the status.
    scales: Option<(u32, u32)>,
    /// Entries of the history.
    history: Option<usize>,
}

fn written(given: &Given) -> PodAutoscalerObject {
    let ours = given.annotations.iter();
    let ours = ours.map(|(key, value)| (format!("autoscaling.aibrix.ai/{key}"), value.clone()));
    let all: Vec<(String, String)> = ours.chain(given.foreign.clone()).collect();
    let all: Vec<(&str, &str)> = all.iter().map(|(key, value)| (&**key, &**value)).collect();
    let spec = serde_yaml::to_string(&given.spec).unwrap();
    object(given.name.as_deref().unwrap_or("pa"), &spec, &all)
}

fn time(given: &Given) -> Timestamp {
    let now = given.now.as_deref().unwrap_or("2026-08-08T09:30:00Z");
    now.parse().unwrap()
}

impl Formula {
    fn run(&self) -> u32 {
        let mut annotations = BTreeMap::new();
        let mut tune = |key: &str, value: &Option<String>| {
            let key = format!("autoscaling.aibrix.ai/{key}");
            annotations.extend(value.as_deref().map(|value| (key.into(), value.into())));
        };
        tune("max-scale-up-rate", &self.up);
        tune("scale-up-tolerance", &self.tolerance);
        tune("scale-down-tolerance", &self.tolerance);
        let (tuning, faults) = Tuning::read(&annotations);
        assert_eq!(faults, []);
        let pods = if self.each { f64::from(self.n) } else { 1.0 };
        let total = |value: f64| DemandRange::exactly(value * pods);
        let means = WindowMeans {
            now: total(self.stable),
            stable: total(self.stable),
            panic: total(self.panic.unwrap_or(self.stable)),
        };
        let target = TargetValue::parse(&self.target.to_string()).unwrap();
        let n = Replicas(self.n);
        let wanted = if self.strategy == "APA" {
            apa(means, n, target, &tuning)
        } else {
            let band = if self.each { n } else { Replicas::ONE };
            kpa(means, self.in_panic, n, band, target, &tuning)
        };
        limited(wanted, n, &tuning).0
    }
}

impl Window {
    fn means(&self) -> (f64, f64) {
        let (stable, panic) =
            (Duration::from_secs(self.lengths.0), Duration::from_secs(self.lengths.1));
        let mut window = DemandWindow::default();
        let mut now = super::at(0);
        for (second, value) in &self.pushes {
            now = Moment {
                monotonic: Duration::from_secs(1000) + Duration::from_secs_f64(*second),
                wall: WallTime(0),
            };
            window.push(now, DemandRange::exactly(*value), DemandEvidence::Whole, stable);
        }
        let mean = |length| window.mean(now, length).unwrap().low;
        (mean(stable), mean(panic))
    }
}

fn check_places(id: &str, places: &BTreeMap<String, Value>, found: &Value) {
    for (place, expected) in places {
        let found = found.pointer(place).unwrap_or(&Value::Null);
        assert_eq!(found, expected, "{id}: {place}");
    }
}

/// Whether a policy is left to look at.
fn check_validation(
    id: &str,
    expect: &Expect,
    checked: Result<AutoscalerPolicy, Violations>,
) -> Option<AutoscalerPolicy> {
    if let Some(texts) = &expect.refused {
        let said = checked.as_ref().err().map(ToString::to_string);
        assert_eq!(said.is_some(), !texts.is_empty(), "{id}: {said:?}");
        for text in texts {
            assert!(said.as_ref().unwrap().contains(text), "{id}: {said:?}");
        }
    }
    if let Some(problem) = &expect.problem {
        let found = checked.as_ref().unwrap_err().problem().unwrap();
        assert_eq!(found.as_str(), problem, "{id}");
    }
    let is_judged = expect.refused.is_some() || !expect.object.is_empty();
    assert!(is_judged || checked.is_ok(), "{id}: {checked:?}");
    checked.ok()
}

fn check_policy(id: &str, expect: &Expect, policy: &AutoscalerPolicy, now: Timestamp) {
    if let Some((min, max, active, explicit)) = &expect.bounds {
        let found = policy.bounds(now);
        let found_bounds = (found.bounds.min.0, found.bounds.max.0, found.explicit_min);
        assert_eq!(found_bounds, (*min, *max, *explicit), "{id}");
        assert_eq!(found.active.as_deref(), active.as_deref(), "{id}");
    }
    if let Some(next) = &expect.next {
        let schedules = policy.schedules.as_ref().unwrap();
        let length = schedules.next_boundary(now).unwrap().duration_since(now);
        assert_eq!(&format_duration(length.unsigned_abs()), next, "{id}");
    }
    if let Some(sources) = &expect.sources {
        let found = policy.sources.iter();
        let found: Vec<String> =
            found.map(|source| format!("{source} {}", source.target)).collect();
        assert_eq!(&found, sources, "{id}");
    }
    if let Some(faults) = expect.untuned {
        assert_eq!(policy.tuning, Tuning::default(), "{id}");
        assert_eq!(policy.faults.len(), faults, "{id}");
    }
    if !expect.hpa.is_empty() {
        let hpa = GeneratedHpa::of(policy, policy.bounds(now).bounds);
        check_places(id, &expect.hpa, &hpa.manifest());
    }
}

fn check_decision(id: &str, expect: &Expect, decision: &AutoscalerDecision) {
    if let Some(desired) = expect.desired {
        assert_eq!(decision.desired, Replicas(desired), "{id}: {decision:?}");
    }
    if let Some(reason) = &expect.reason {
        assert_eq!(&decision.reason(), reason, "{id}");
    }
    if let Some((stable, panic)) = expect.means {
        let figures = decision.steps.iter().find_map(|step| match &step.why {
            AutoscalerReason::Measured { figures } => Some(figures),
            _ => None,
        });
        let figures = figures.unwrap();
        assert_eq!(figures.stable, DemandRange::exactly(stable), "{id}");
        assert_eq!(figures.panic, DemandRange::exactly(panic), "{id}");
    }
}

/// The object that has the target instead.
fn holder(given: &Given) -> Option<TargetOwner> {
    let claims = given.claims.iter().map(|(name, created)| TargetClaim {
        owner: TargetOwner {
            kind: "PodAutoscaler".into(),
            key: ObjectKey::new("default", name.as_str()),
        },
        created: WallTime(*created),
        kind: ClaimKind::PodAutoscaler { role: None },
    });
    let claims: Vec<TargetClaim> = claims.collect();
    let name = given.name.as_deref();
    let own = claims.iter().find(|claim| Some(&*claim.owner.key.name) == name)?;
    conflict(own, &claims)
}

fn verdict(
    given: &Given,
    checked: &Result<AutoscalerPolicy, Violations>,
    now: Moment,
) -> AutoscalerVerdict {
    let policy = match checked {
        Ok(policy) => policy,
        Err(violations) => {
            return AutoscalerVerdict::Invalid {
                problem: violations.problem().unwrap(),
                why: violations.to_string(),
            };
        }
    };
    if let Some(owner) = holder(given) {
        return AutoscalerVerdict::Conflict(owner);
    }
    if let Some(why) = &given.unseen {
        let why = why.as_str().into();
        return AutoscalerVerdict::Unseen { why };
    }
    let view = view(given.current.unwrap_or(1), &given.pods);
    let (decision, _) = decide(policy, &view, &AutoscalerState::default(), now);
    AutoscalerVerdict::Decided(Box::new(decision))
}

fn check_status(id: &str, given: &Given, expect: &Expect, object: &PodAutoscalerObject) {
    let now = Moment {
        monotonic: Duration::from_hours(24),
        wall: WallTime(time(given).as_millisecond()),
    };
    let checked = object.check();
    let verdict = verdict(given, &checked, now);
    let record =
        AutoscalerRecord { base: object.spec.base_bounds(), ..judged(checked.ok(), verdict, 0) };
    let reported = |(current, desired)| {
        ScaleOutcome::HpaApplied(GeneratedHpaStatus {
            current: Replicas(current),
            desired: Replicas(desired),
            ..GeneratedHpaStatus::default()
        })
    };
    let outcome = given.hpa_scales.map_or(ScaleOutcome::NotWritten, reported);
    let status = first(&record, &outcome);
    if let Some(expected) = &expect.conditions {
        let conditions = status.conditions.iter();
        let found: Vec<String> =
            conditions.map(|one| format!("{} {}", one.kind, one.status)).collect();
        assert_eq!(&found, expected, "{id}");
    }
    if let Some(scales) = expect.scales {
        let found = (status.actual_scale.0, status.desired_scale.0);
        assert_eq!(found, scales, "{id}");
    }
    if let Some(entries) = expect.history {
        assert_eq!(status.scaling_history.len(), entries, "{id}");
    }
}

fn check_case(id: &str, given: &Given, expect: &Expect) {
    let object = written(given);
    check_places(id, &expect.object, &serde_json::to_value(&object).unwrap());
    let policy = check_validation(id, expect, object.check());
    check_status(id, given, expect, &object);
    if let Some(formula) = &given.formula {
        assert_eq!(Some(formula.run()), expect.desired, "{id}");
    } else if let Some(window) = &given.window {
        assert_eq!(Some(window.means()), expect.means, "{id}");
    } else if let Some(policy) = policy {
        let now = time(given);
        check_policy(id, expect, &policy, now);
        let moment =
            Moment { monotonic: Duration::from_hours(24), wall: WallTime(now.as_millisecond()) };
        if let Some(current) = given.current {
            let state = AutoscalerState::default();
            let (decision, _) = decide(&policy, &view(current, &given.pods), &state, moment);
            check_decision(id, expect, &decision);
        }
    }
}

#[test]
fn published_cases() {
    let table = include_str!("../../../../../tests/vectors/pod-autoscaler.yaml");
    let tally = run(table, |id, given: Given, expect: Expect| {
        check_case(id, &given, &expect);
    });
    // 69 of the catalogue, and second parts of three.
    assert_eq!(tally, Tally::of(72, 2, 24));
}

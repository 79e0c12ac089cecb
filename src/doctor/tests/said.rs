//! Where the running controller says a cause that the doctor names, made from what maps one to the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster::event::EventReason;
use crate::doctor::checks::{autoscaler_code, obstacle_code};
use crate::doctor::finding::FindingCode;
use crate::doctor::observed::{of_condition, of_gap};
use crate::policy::actuation::ActuationObstacle;
use crate::policy::condition::{
    Condition, ConditionReason, ConditionStatus, ConditionType, obstacle_reason,
};
use crate::policy::metrics_gap::MetricsGap;
use crate::policy::scaler::ScalerKind;
use crate::policy::units::Replicas;

const OBSERVED: &str = include_str!("../observed.rs");
const ALERTS: &str = include_str!("../../../config/prometheus/alerts.yaml");

/// Code that maps what the controller sees to codes: its text, and where it begins and ends.
const MAPPINGS: [(&str, &str); 6] = wva_base::cases! {
    (include_str!("../checks/scalers.rs"), "fn obstacle_code("),
    (include_str!("../checks/autoscalers.rs"), "fn autoscaler_code("),
    (include_str!("../checks/prometheus.rs"), "fn prometheus_code("),
    (include_str!("../checks/engines.rs"), "fn spelling_code"),
    (OBSERVED, "fn of_condition("),
    (OBSERVED, "fn of_gap("),
};

/// The codes that a text names.
fn named(text: &str) -> BTreeSet<FindingCode> {
    let names: BTreeSet<&str> = text
        .split("FindingCode::")
        .skip(1)
        .filter_map(|rest| rest.split(|letter: char| !letter.is_alphanumeric()).next())
        .collect();
    let all = FindingCode::ALL.into_iter();
    all.filter(|code| names.contains(&*format!("{code:?}"))).collect()
}

/// The codes that a function names.
fn named_by(text: &str, function: &str) -> BTreeSet<FindingCode> {
    let from = text.split_once(function).unwrap().1;
    named(from.split_once("\n}\n").unwrap().0)
}

/// Codes with the conditions by which they are said, as `type` and `reason`.
pub(super) type Said = BTreeMap<FindingCode, BTreeSet<String>>;

fn say(said: &mut Said, code: FindingCode, kind: &str, reason: &str) {
    let reason = match reason {
        "" => format!("`{kind}`"),
        reason => format!("`{kind}` `{reason}`"),
    };
    said.entry(code).or_default().insert(reason);
}

fn obstacles() -> [ActuationObstacle; 12] {
    let (title, text) = (String::new, String::new);
    let (kind, one) = (ScalerKind::ScaledObject, Replicas(1));
    wva_base::cases! {
        ActuationObstacle::NoScaler,
        ActuationObstacle::SeveralScalers { titles: Vec::new() },
        ActuationObstacle::NotRead { title: title() },
        ActuationObstacle::WrongAim { title: title(), aim: text() },
        ActuationObstacle::Paused { title: title(), annotation: text() },
        ActuationObstacle::GrowthPaused { title: title(), by: text() },
        ActuationObstacle::AtZeroByHand { title: title() },
        ActuationObstacle::Failing { title: title(), reason: text(), message: text() },
        ActuationObstacle::Minimum { title: title(), kind, field: "minReplicaCount", min: one, wanted: one },
        ActuationObstacle::Maximum { title: title(), max: one, wanted: one },
        ActuationObstacle::Tolerance { title: title(), kind, from: one },
        ActuationObstacle::NullIsZero { title: title() },
    }
}

fn of_obstacles(said: &mut Said) {
    for obstacle in obstacles() {
        let kind = ConditionType::ActuationReady.as_str();
        let reason = obstacle_reason(&obstacle).as_str();
        say(said, obstacle_code(&obstacle), kind, reason);
    }
}

fn of_conditions(said: &mut Said) {
    for (kind, reason) in wva_base::cases! {
        (ConditionType::TargetResolved, ConditionReason::TargetNotFound),
        (ConditionType::TargetResolved, ConditionReason::TargetContested),
        (ConditionType::TargetResolved, ConditionReason::UnsupportedTargetKind),
        (ConditionType::TargetResolved, ConditionReason::MalformedObject),
        (ConditionType::OptimizationReady, ConditionReason::RequestsWaiting),
        (ConditionType::Ready, ConditionReason::VariantQuarantined),
    } {
        let condition =
            Condition { kind, status: ConditionStatus::False, reason, message: String::new() };
        let code = of_condition(&condition).unwrap();
        say(said, code, kind.as_str(), reason.as_str());
    }
}

fn of_gaps(said: &mut Said) {
    let text = || -> Arc<str> { Arc::from("") };
    let list = |name: &str| -> Arc<[Arc<str>]> { Arc::from([Arc::from(name)]) };
    let plain = "the server does not answer with TLS";
    for (gap, reason) in wva_base::cases! {
        (MetricsGap::QueryFailed { error: text() }, ConditionReason::PrometheusError),
        (MetricsGap::QueryFailed { error: Arc::from(plain) }, ConditionReason::PrometheusError),
        (MetricsGap::NoValue, ConditionReason::MetricsMissing),
        (MetricsGap::OtherModel { models: list("x") }, ConditionReason::MetricsMissing),
        (MetricsGap::OtherModel { models: list("MODEL") }, ConditionReason::MetricsMissing),
        (MetricsGap::NoPodLabel, ConditionReason::MetricsMissing),
        (MetricsGap::Nothing, ConditionReason::MetricsMissing),
    } {
        let code = of_gap(&gap, "model").unwrap();
        let kind = ConditionType::MetricsAvailable.as_str();
        say(said, code, kind, reason.as_str());
    }
}

fn of_autoscalers(said: &mut Said) {
    for (kind, reason, shown) in [
        ("ValidSpec", "", ""),
        ("AnnotationsAccepted", "", ""),
        ("MultiPodAutoscalerConflict", "", ""),
        ("MetricsAvailable", "MetricsAbsent", "MetricsAbsent"),
        ("MetricsAvailable", "PodsGated", "PodsGated"),
        ("MetricsAvailable", "", ""),
        ("ScalingActive", "FailedGetExternalMetric", "Failed…"),
        ("AbleToScale", "", ""),
        ("Asleep", "", ""),
    ] {
        let code = autoscaler_code(kind, "False", reason).unwrap();
        say(said, code, kind, shown);
    }
}

/// Every condition that says a code.
pub(super) fn conditions() -> Said {
    let mut said = Said::new();
    for part in [of_obstacles, of_conditions, of_gaps, of_autoscalers] {
        part(&mut said);
    }
    for reason in [ConditionReason::OtherController, ConditionReason::SecondSeries] {
        let kind = ConditionType::ControllerConflict.as_str();
        say(&mut said, FindingCode::NotApplied, kind, reason.as_str());
    }
    said
}

/// Every code that `wva_findings` may have.
fn observed() -> BTreeSet<FindingCode> {
    let mapped = MAPPINGS.map(|(text, function)| named_by(text, function));
    let mapped = mapped.into_iter().flatten();
    named(OBSERVED).into_iter().chain(mapped).collect()
}

/// Codes of which the alert says nothing, and how long a finding lasts before it fires.
fn alert() -> (Vec<String>, &'static str) {
    let rule = ALERTS.split_once("alert: WVAFinding").unwrap().1;
    let left_out = rule.split_once("code!~\"").unwrap().1;
    let left_out = left_out.split_once('"').unwrap().0;
    let lasts = rule.split_once("for: ").unwrap().1.lines().next();
    let left_out = left_out.split('|').map(str::to_owned);
    (left_out.collect(), lasts.unwrap())
}

/// The event of a code that no condition is about.
pub(super) fn own_event(code: FindingCode) -> Option<EventReason> {
    match code {
        FindingCode::SettingIgnored => Some(EventReason::InvalidConfigEntry),
        FindingCode::RightMissing => Some(EventReason::PermissionMissing),
        _ => None,
    }
}

/// Conditions, and events of their own, of each code that has any.
pub(super) fn by_code() -> Said {
    let mut said = conditions();
    for code in FindingCode::ALL {
        let event = own_event(code).map(|reason| format!("event `{}`", reason.as_str()));
        if let Some(event) = event {
            said.entry(code).or_default().insert(event);
        }
    }
    said
}

/// The section of the page.
pub(super) fn section() -> String {
    let (said, observed) = (by_code(), observed());
    let (left_out, lasts) = alert();
    let unsaid = observed.iter().filter(|code| !said.contains_key(*code));
    let unsaid: Vec<String> = unsaid.map(|code| code.id()).collect();
    let events: Vec<String> = FindingCode::ALL
        .into_iter()
        .filter(|code| own_event(*code).is_some())
        .map(FindingCode::id)
        .collect();
    format!(
        "
## Where each is said

The controller finds by itself, once a cycle, the codes with a condition below, and
{}.
`wva_findings` has them by code, namespace and name. A condition of a code has its reason, and is an
[event](../events.md), too; those of WVA160 and later are of PodAutoscalers. {} are events alone.
The alert `WVAFinding` fires when a finding lasts {lasts}, but for
{}.
",
        unsaid.join(", "),
        events.join(" and "),
        left_out.join(", "),
    )
}

/// A code that is added to a mapping needs an example here, or the page lacks its condition.
#[test]
fn every_mapping_has_an_example_of_each_of_its_codes() {
    let examples = |part: fn(&mut Said)| {
        let mut said = Said::new();
        part(&mut said);
        said.into_keys().collect::<BTreeSet<FindingCode>>()
    };
    let [obstacles, autoscalers, prometheus, spelling, conditions, gaps] =
        MAPPINGS.map(|(text, function)| named_by(text, function));
    assert_eq!(obstacles.len(), 11);
    assert_eq!(examples(of_obstacles), obstacles);
    assert_eq!(examples(of_autoscalers), autoscalers);
    assert_eq!(examples(of_conditions), conditions);
    let gaps: BTreeSet<FindingCode> = [gaps, prometheus, spelling].into_iter().flatten().collect();
    assert_eq!(examples(of_gaps), gaps);
}

/// What a condition says, the series says; and no more codes than those of the doctor's are left out of the alert.
#[test]
fn conditions_and_alerts_are_about_codes_of_the_series() {
    let observed = observed();
    assert!(observed.contains(&FindingCode::TierWithoutEffect));
    assert!(!observed.contains(&FindingCode::ClockSkew));
    for code in conditions().keys() {
        assert!(observed.contains(code), "{code:?}");
    }
    let ids: BTreeSet<String> = observed.iter().map(|code| code.id()).collect();
    let (left_out, lasts) = alert();
    assert_eq!(lasts, "10m");
    for id in left_out {
        assert!(ids.contains(&id), "{id}");
    }
}

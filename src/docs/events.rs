//! `docs/events.md`: a table of every reason, made from the one enum that events take theirs from.

use std::collections::BTreeSet;

use super::{check, code, row};
use crate::cluster::event::EventReason;
use crate::policy::pod_autoscaler::event::AutoscalerEventReason;

const INTRODUCTION: &str = "\
# Events

<!-- Made from src/docs/events.rs and the reasons in src/cluster/event/reason.rs. Do not edit: run the tests with UPDATE=1. -->

Events are of `events.k8s.io/v1`, from `llmd.ai/workload-variant-autoscaler`. Of one object and reason at most one a
minute is sent; what comes in between follows in one event, or is counted up. `wva_events_dropped_total` counts what was
not sent. The cycle in a note is that of log and status.

| Reason | Type | On | When |
|---|---|---|---|
";

const CONDITIONS: &str = "
A [condition](operations.md#conditions-and-what-to-do) of a VariantAutoscaling that begins to fail, fails otherwise, or
recovers, is an event of its reason, too: Warning where it fails, else Normal.
";

/// Type, object and occasion; `None` where the reason is that of a condition.
fn described(reason: EventReason) -> Option<[&'static str; 3]> {
    let (variant, autoscaler) = ("VariantAutoscaling", "PodAutoscaler");
    let described = match reason {
        EventReason::ScaledUp => [
            "Normal",
            variant,
            "the published count changed, above the replicas that exist, or rose to them",
        ],
        EventReason::ScaledDown => [
            "Normal",
            variant,
            "the published count changed, below the replicas that exist, or fell to them",
        ],
        EventReason::ScaledToZero => ["Normal", variant, "the published count became 0"],
        EventReason::VariantRefused => {
            ["Warning", variant, "the controller handles as many variants as it accepts"]
        }
        EventReason::VariantQuarantined => {
            ["Warning", variant, "its handling keeps failing; the count is kept"]
        }
        EventReason::NoOtherController => {
            ["Normal", variant, "a conflict with another controller is over"]
        }
        EventReason::AutoscalerQuarantined => {
            ["Warning", autoscaler, "its handling keeps failing; the target keeps its replicas"]
        }
        EventReason::Autoscaler(reason) => {
            let (kind, event) = autoscaler_event(reason);
            [kind, autoscaler, event]
        }
        EventReason::PermissionMissing => [
            "Warning",
            "the controller's pod",
            "the API server refuses what the shipped roles grant",
        ],
        EventReason::ServiceMonitorDeleted => {
            ["Warning", "ServiceMonitor", "Prometheus will no longer scrape the controller"]
        }
        EventReason::ImmutableConfigChangeRejected => {
            ["Warning", "ConfigMap", "an edit needs a restart; the rest of it was applied"]
        }
        EventReason::InvalidConfigEntry => [
            "Warning",
            "ConfigMap",
            "settings or entries are invalid or unknown; the note names each with its remedy, the rest is applied",
        ],
        EventReason::Condition(_) => return None,
    };
    Some(described)
}

fn autoscaler_event(reason: AutoscalerEventReason) -> (&'static str, &'static str) {
    match reason {
        AutoscalerEventReason::AlgorithmRun => ("Normal", "another count was decided"),
        AutoscalerEventReason::MultiPodAutoscalerConflict => {
            ("Warning", "several objects name the target; the note names the one that scales it")
        }
        AutoscalerEventReason::SuccessfulRescale => ("Normal", "the count was written"),
        AutoscalerEventReason::FailedGetScale => ("Warning", "the target cannot be read"),
        AutoscalerEventReason::FailedGetReplicas => ("Warning", "the target states no count"),
        AutoscalerEventReason::FailedComputeScale => (
            "Warning",
            "no count can be decided, the target keeps its replicas; pods have ten minutes to start",
        ),
        AutoscalerEventReason::FailedRescale => ("Warning", "the count was not written"),
    }
}

fn page() -> String {
    let mut text = INTRODUCTION.to_owned();
    let autoscaler = AutoscalerEventReason::ALL.map(EventReason::Autoscaler);
    for reason in EventReason::OWN.iter().chain(&autoscaler) {
        let [kind, object, event] = described(*reason).unwrap();
        text.push_str(&row(&[
            code(reason.as_str()),
            kind.to_owned(),
            object.to_owned(),
            event.to_owned(),
        ]));
    }
    text.push_str(CONDITIONS);
    text
}

#[test]
fn the_page_in_the_repository_has_every_reason() {
    check("docs/events.md", &page());
}

#[test]
fn every_reason_is_walked_once_and_none_is_that_of_a_condition() {
    let words: BTreeSet<&str> = EventReason::OWN.iter().map(|one| one.as_str()).collect();
    assert_eq!(words.len(), EventReason::OWN.len());
    assert!(words.contains("InvalidConfigEntry"));
    let own = |reason: &EventReason| described(*reason).is_some();
    assert!(EventReason::OWN.iter().all(own));
}

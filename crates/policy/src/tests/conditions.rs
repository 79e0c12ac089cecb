//! Conditions: every state of a variant has its own truthful words.

use std::sync::Arc;

use super::world::{EVEN, HIGH, LOW, START, Variant, World, at, published, scaler};
use crate::capacity::AnalyzerName;
use crate::condition::{Condition, Conditions, Hints, conditions};
use crate::key::{TargetKey, TargetKind, VariantKey};
use crate::learned::Learned;
use crate::metrics_gap::metrics_gaps;
use crate::ownership::Exposure;
use crate::plan::{Decision, PlanStage, Step};
use crate::reason::{Method, Reason};
use crate::scaler::{Aim, Input, Scaler, ScalerActivity, ScalerKind, Scalers};
use crate::signal::SignalName;
use crate::snapshot::{TargetPast, TargetView};
use crate::units::Replicas;
use wva_base::moment::WallTime;

fn target() -> TargetKey {
    TargetKey::new("ns", TargetKind::Deployment, "d")
}

fn not_found(past: TargetPast) -> TargetView {
    TargetView::NotFound { target: target(), past }
}

/// The conditions of the only variant of a world after one cycle, as `status/reason: message`.
fn after_cycle(world: &World) -> [String; 4] {
    let plan = world.plan(at(0));
    let gaps = metrics_gaps(&world.snapshot(at(0)), &plan);
    let key = &world.variants[0].view.key;
    let view = &world.variants[0].view;
    let hints = Hints { gap: gaps.get(key), ..Hints::default() };
    said(&conditions(view, plan.decisions.get(key), hints))
}

/// All but what is said of scalers, of which these worlds have none.
fn said([target, metrics, optimization, _, ready]: &Conditions) -> [String; 4] {
    [target, metrics, optimization, ready].map(words)
}

fn words(condition: &Condition) -> String {
    format!("{}/{}: {}", condition.status.as_str(), condition.reason.as_str(), condition.message)
}

#[test]
fn a_resolved_variant_waits_for_its_first_decision_and_is_ready_after_it() {
    let world = World::of([Variant::new("d").replicas(2, 0.75, 0.0)]);
    let before = said(&conditions(&world.variants[0].view, None, Hints::default()));
    let waiting = "Unknown/AwaitingFirstDecision: No planning cycle has looked at this variant yet";
    assert_eq!(
        before,
        ["True/TargetFound: Scale target Deployment d found", waiting, waiting, waiting]
    );
    assert_eq!(
        after_cycle(&world),
        [
            "True/TargetFound: Scale target Deployment d found",
            "True/MetricsFound: Saturation metrics data is available for scaling decisions",
            "True/SaturationOnlyMode: saturation-only decision: saturation-only mode: scale-up, spare KV cache is below its trigger (target: 3 replicas)",
            "True/VariantReady: Scale target and metrics are there, and a decision is published",
        ]
    );
}

#[test]
fn a_target_that_cannot_be_scaled_says_so_in_its_own_way() {
    let claimants: Vec<VariantKey> =
        (0..7).map(|number| VariantKey::new("ns", format!("v{number}"))).collect();
    for (view, resolved, ready) in [
        (
            not_found(TargetPast::Existed),
            "False/TargetNotFound: Scale target Deployment d not found; create it in namespace ns, or correct spec.scaleTargetRef",
            "False/DeploymentNotFound: Target deployment 'd' no longer exists",
        ),
        (
            not_found(TargetPast::Unseen),
            "False/TargetNotFound: Scale target Deployment d not found; create it in namespace ns, or correct spec.scaleTargetRef",
            "False/DeploymentNotFound: Target deployment 'd' does not exist; create it in namespace ns, or correct spec.scaleTargetRef",
        ),
        (
            TargetView::NotFound {
                target: TargetKey::new("ns", TargetKind::StatefulSet, "d"),
                past: TargetPast::Existed,
            },
            "False/TargetNotFound: Scale target StatefulSet d not found; create it in namespace ns, or correct spec.scaleTargetRef",
            "False/DeploymentNotFound: Target StatefulSet 'd' no longer exists",
        ),
        (
            TargetView::Unknown { target: target() },
            "Unknown/TargetUnknown: Scale target Deployment d has not been seen yet",
            "Unknown/TargetUnknown: Scale target Deployment d has not been seen yet",
        ),
        (
            TargetView::Contested { target: target(), claimants: claimants.into(), owner: None },
            "False/TargetContested: Scale target Deployment d is named by several VariantAutoscalings, and none of them scales it; keep one of: ns/v0, ns/v1, ns/v2, ns/v3, ns/v4 and 2 more",
            "False/TargetContested: Scale target Deployment d is named by several VariantAutoscalings, and none of them scales it; keep one of: ns/v0, ns/v1, ns/v2, ns/v3, ns/v4 and 2 more",
        ),
        (
            TargetView::UnsupportedKind {
                kind: "Rollout".into(),
                name: "d".into(),
                why: "name its group".into(),
            },
            "False/UnsupportedTargetKind: Scale target Rollout d cannot be scaled: name its group",
            "False/UnsupportedTargetKind: Scale target Rollout d cannot be scaled: name its group",
        ),
        (
            TargetView::Malformed { why: "ns/d: spec.modelID is empty".into() },
            "False/MalformedObject: ns/d: spec.modelID is empty",
            "False/MalformedObject: ns/d: spec.modelID is empty",
        ),
    ] {
        let said = after_cycle(&World::of([Variant::new("d").target(view)]));
        assert_eq!(said[0], resolved);
        assert_eq!(
            said[1],
            "Unknown/SkippedProcessing: Metrics are not looked at while the scale target is not resolved"
        );
        assert_eq!(said[3], ready);
    }
}

#[test]
fn the_safety_net_says_what_it_keeps_and_why() {
    let variant = Variant::new("d").desired(Some(4)).replicas(4, 0.1, 0.0);
    let mut silent = variant.clone();
    for pod in &mut silent.pods {
        (pod.kv, pod.queue) = (None, None);
    }
    let mut old = variant.clone();
    for pod in &mut old.pods {
        (pod.kv, pod.queue) = (Some((0.1, 150)), Some((0.0, 400)));
    }
    let mut failed = World::of([variant.desired(None)]);
    failed.failed = vec![SignalName::QueueLength];
    let last = "False/SafetyNetActivated: Safety net activated: the last desired count is kept (target: 4 replicas)";
    let current = "False/SafetyNetActivated: Safety net activated: the current count is kept (target: 4 replicas)";
    for (world, reason, optimization) in [
        (World::of([silent]), "False/MetricsMissing", last),
        (World::of([old]), "False/MetricsStale", last),
        (failed, "False/PrometheusError", current),
    ] {
        let said = after_cycle(&world);
        assert!(said[1].starts_with(reason), "{said:?}");
        assert_eq!(said[2], optimization);
        assert_eq!(said[3], said[1], "readiness is what is missing");
    }
    let unseen = Variant::new("d").target(TargetView::Unknown { target: target() });
    assert_eq!(
        after_cycle(&World::of([unseen]))[2],
        "False/SkippedProcessing: No decision is published: the scale target has not been seen yet"
    );
    let gone = Variant::new("d").target(not_found(TargetPast::Existed));
    assert_eq!(
        after_cycle(&World::of([gone]))[2],
        "False/SkippedProcessing: No decision is published: the scale target does not exist"
    );
}

#[test]
fn a_variant_at_zero_is_ready_although_there_is_nothing_to_measure() {
    let said = after_cycle(&World::of([Variant::new("d").bounds(Some(0), None)]));
    assert!(said[1].starts_with("False/NoReplicas: "), "{said:?}");
    assert!(said[2].starts_with("True/SaturationOnlyMode: "), "{said:?}");
    assert!(said[3].starts_with("True/VariantReady: "), "{said:?}");
}

#[test]
fn messages_do_not_change_with_measurements_or_time() {
    let loading = |kv: f64, since: u64| {
        let variant = Variant::new("d")
            .replicas(2, kv, 0.0)
            .loading(WallTime(START))
            .pending_since(at(since));
        World::of([variant])
    };
    let first = after_cycle(&loading(0.75, 0));
    assert!(
        first[2].ends_with("no-change, replicas are not ready yet (target: 3 replicas)"),
        "{first:?}"
    );
    let world = loading(0.78, 0);
    let (_, later) = world.plan_after(&Learned::default(), at(60));
    let view = &world.variants[0].view;
    let second = said(&conditions(view, later.decisions.get(&view.key), Hints::default()));
    assert_eq!(first, second);
}

#[test]
fn growth_shrinking_and_balance_say_why() {
    let optimization = |kv: f64, queue: f64| {
        let variant = Variant::new("d").replicas(2, kv, queue);
        after_cycle(&World::of([variant.bounds(Some(1), None)]))[2].clone()
    };
    let expected = |rest: &str| {
        format!("True/SaturationOnlyMode: saturation-only decision: saturation-only mode: {rest}")
    };
    for (kv, queue, rest) in wva_base::cases! {
        (HIGH, 0.0, "scale-up, spare KV cache is below its trigger (target: 3 replicas)"),
        (EVEN, 4.0, "scale-up, spare queue is below its trigger (target: 3 replicas)"),
        (HIGH, 4.0, "scale-up, spare KV cache and spare queue are below their triggers (target: 3 replicas)"),
        (LOW, 0.0, "scale-down, fewer replicas carry the load (target: 1 replicas)"),
        (EVEN, 0.0, "no-change, neither more nor fewer replicas are due (target: 2 replicas)"),
    } {
        assert_eq!(optimization(kv, queue), expected(rest), "{kv} {queue}");
    }
}

/// Steps begin at the published count, and the action compares with the replicas that exist.
#[test]
fn a_published_count_that_is_not_applied_is_not_called_balance() {
    let world = World::of([Variant::new("d").replicas(2, EVEN, 0.0)]);
    let view = &world.variants[0].view;
    let decision = &world.plan(at(0)).decisions[&view.key];
    let optimization = |current: u32, [from, to]: [u32; 2], why: Reason| {
        let (from, to) = (Replicas(from), Replicas(to));
        let stage = PlanStage::Optimizer;
        let steps = vec![Step { stage, from, to, why }];
        let decision = Decision {
            current: Some(Replicas(current)),
            target: Some(to),
            steps,
            ..decision.clone()
        };
        said(&conditions(view, Some(&decision), Hints::default()))[2].clone()
    };
    let method = Method::LeastCost;
    let stays = || Reason::NotChosen { method };
    let shrinks = || Reason::ScaledDown { method, releasable: Vec::new() };
    let unmeasured = || Reason::NotMeasured {
        analyzer: AnalyzerName::Slo,
        by: None,
        missing: Vec::new(),
        because: Box::new(stays()),
    };
    let balance = "neither more nor fewer replicas are due";
    let unapplied = "the published count is not applied yet";
    let stood_in = "slo has not measured its replicas yet, and percentages decide";
    let spare = "its analyzers have capacity to spare";
    for (current, counts, why, text) in wva_base::cases! {
        (16, [16, 16], stays(), format!("no-change, {balance}")),
        (10, [16, 16], stays(), format!("scale-up, {unapplied}")),
        (20, [16, 16], stays(), format!("scale-down, {unapplied}")),
        (16, [16, 16], unmeasured(), format!("no-change, {stood_in}")),
        (
            10,
            [16, 16],
            unmeasured(),
            format!("scale-up, {stood_in}, {unapplied}"),
        ),
        (18, [18, 16], shrinks(), format!("scale-down, {spare}")),
        (10, [18, 16], shrinks(), format!("scale-up, {spare}, still fewer exist")),
    } {
        let expected = format!(
            "True/SaturationOnlyMode: decision of the analyzers: {text} (target: 16 replicas)"
        );
        assert_eq!(optimization(current, counts, why), expected);
    }
}

#[test]
fn noise_under_constant_load_writes_no_status() {
    // Two replicas around the load at which one of them could go, at their minimum of two: the stage
    // finds balance and a floor in turns.
    let mut learned = Learned::default();
    let mut messages = Vec::new();
    for minute in 0..60_u32 {
        let noise = f64::from(minute * 7 % 11) / 100.0;
        let variant = Variant::new("d")
            .replicas(2, 0.3 + noise, noise)
            .bounds(Some(2), None)
            .desired(Some(2));
        let world = World::of([variant]);
        let (known, plan) = world.plan_after(&learned, at(u64::from(minute) * 60));
        learned = known;
        let view = &world.variants[0].view;
        let decision = &plan.decisions[&view.key];
        let kind = std::mem::discriminant(&decision.decisive().unwrap().why);
        messages.push((kind, said(&conditions(view, Some(decision), Hints::default()))));
    }
    let is_other = |(kind, _): &(_, _)| *kind != messages[0].0;
    assert!(messages.iter().any(is_other), "the noise crosses a threshold");
    messages.dedup_by(|later, earlier| later.1 == earlier.1);
    assert_eq!(messages.len(), 1, "{messages:?}");
}

#[test]
fn a_count_that_is_not_scraped_is_named_where_the_scaler_fails() {
    let mut view = Variant::new("d").replicas(2, EVEN, 0.0).view;
    let inputs = vec![Input::Published(published("d"))];
    let native = Scaler {
        min: Replicas(1),
        max: Replicas(9),
        ..scaler(ScalerKind::HorizontalPodAutoscaler, inputs)
    };
    let mut actuation = |activity: ScalerActivity, exposure: Exposure| {
        let native = native.clone();
        view.scalers = Scalers::Known(Arc::from([Scaler { activity, ..native }]));
        let hints = Hints { exposure, ..Hints::default() };
        let [_, _, _, actuation, _] = conditions(&view, None, hints);
        words(&actuation)
    };
    let failing = || ScalerActivity::Failing {
        reason: "FailedGetExternalMetric".into(),
        message: "no metrics returned".into(),
    };
    let own = "False/ScalerFailing: HorizontalPodAutoscaler s does not work (FailedGetExternalMetric: no metrics returned); see its conditions and events";
    assert_eq!(actuation(failing(), Exposure::Assumed), own);
    let unscraped = actuation(failing(), Exposure::Missing);
    let (reason, own) = own.split_once(": ").unwrap();
    let cause =
        format!("{reason}: Prometheus has no series wva_desired_replicas of this variant; ");
    assert!(unscraped.starts_with(&cause), "{unscraped}");
    assert!(unscraped.ends_with(&format!(". Also {own}")), "{unscraped}");
    assert_eq!(
        actuation(ScalerActivity::Working, Exposure::Missing),
        "True/ScalerFollows: A scaler follows for Deployment d"
    );
    let by = || "scaleDown.selectPolicy is Disabled".into();
    assert_eq!(
        actuation(ScalerActivity::GrowthPaused { by: by() }, Exposure::Assumed),
        "False/ScalerPaused: HorizontalPodAutoscaler s does not scale up: scaleDown.selectPolicy is Disabled; remove that"
    );
    // What does not shrink serves.
    assert_eq!(
        actuation(ScalerActivity::GrowsOnly { by: by() }, Exposure::Assumed),
        "True/ScalerFollows: A scaler follows for Deployment d. Also HorizontalPodAutoscaler s does not scale down: scaleDown.selectPolicy is Disabled"
    );
}

/// KEDA shows that it calls the external scaler, and its HorizontalPodAutoscaler that it gets no answer any more.
#[test]
fn a_scaler_that_keda_serves_follows_from_the_first_call_until_calls_fail() {
    let mut view = Variant::new("d").replicas(2, EVEN, 0.0).view;
    let scaled_object = |is_asked| {
        let input = Input::ExternalScaler { variant: None, aim: Aim::Replicas, is_asked };
        Scaler {
            min: Replicas(1),
            max: Replicas(9),
            ..scaler(ScalerKind::ScaledObject, vec![input])
        }
    };
    let mut actuation = |is_asked, activity: ScalerActivity| {
        let made = Scaler {
            kind: ScalerKind::HorizontalPodAutoscaler,
            name: "keda-hpa-s".into(),
            made_for: Some("s".into()),
            inputs: vec![Input::Other],
            activity,
            ..scaled_object(is_asked)
        };
        view.scalers = Scalers::Known(Arc::from([made, scaled_object(is_asked)]));
        // Nothing reads the series, so that its absence is no cause.
        let exposure = Exposure::Missing;
        let hints = Hints { exposure, ..Hints::default() };
        let [_, _, _, actuation, _] = conditions(&view, None, hints);
        words(&actuation)
    };
    assert_eq!(
        actuation(false, ScalerActivity::Working),
        "True/ScalerFollows: ScaledObject s is to follow for Deployment d, and KEDA has not asked the external scaler for its count yet"
    );
    assert_eq!(
        actuation(true, ScalerActivity::Working),
        "True/ScalerFollows: A scaler follows for Deployment d"
    );
    let failing = ScalerActivity::Failing {
        reason: "FailedGetExternalMetric".into(),
        message: "no metrics returned".into(),
    };
    assert_eq!(
        actuation(true, failing),
        "False/ScalerFailing: HorizontalPodAutoscaler keda-hpa-s does not work (FailedGetExternalMetric: no metrics returned); see its conditions and events"
    );
}

#[test]
fn notes_name_legacy_bounds_and_crossed_bounds() {
    let note = |min, max| {
        let variant = Variant::new("d").bounds(min, max).replicas(1, 0.5, 1.0);
        after_cycle(&World::of([variant]))[2].clone()
    };
    assert!(
        note(Some(1), Some(2))
            .contains("minReplicas 1 and maxReplicas 2 are the original's schema defaults")
    );
    assert!(note(Some(5), Some(3)).contains("minReplicas 5 is above maxReplicas 3"));
    for (min, max) in [(None, None), (Some(1), Some(3)), (Some(0), Some(2)), (Some(1), None)] {
        assert!(!note(min, max).contains("minReplicas"), "{min:?} {max:?}");
    }
}

use super::{Metrics, UnhealthyCondition, VariantLabels, Visibility, analyzer_name};
use crate::policy::accelerator::Accelerator;
use crate::policy::capacity::ServingRole;
use crate::policy::key::{ModelKey, VariantKey};
use crate::policy::params::ActuationMode;
use crate::policy::plan::{
    Action, Decision, DecisionOutcome, MetricsState, PlanStage, Reason, Step, VariantFigures,
};
use crate::policy::record::GaugeValues;
use crate::policy::units::{Cost, Replicas};
use crate::settings::bundle::read_bundle;

fn labels(accelerator: &str) -> VariantLabels {
    VariantLabels { key: VariantKey::new("ns", "va"), accelerator: accelerator.to_owned() }
}

fn values(desired: u32, current: u32) -> GaugeValues {
    let ratio = f64::from(desired) / f64::from(current);
    GaugeValues { desired: Replicas(desired), current: Replicas(current), ratio }
}

fn variant_lines(metrics: &Metrics, visibility: Visibility) -> Vec<String> {
    let text = metrics.exposition(visibility).unwrap();
    text.lines().filter(|line| line.contains("variant_name=")).map(str::to_owned).collect()
}

#[test]
fn a_variant_is_shown_as_the_scalers_read_it_and_hidden_without_the_right_to_write() {
    let metrics = Metrics::new(Some("blue")).unwrap();
    assert_eq!(variant_lines(&metrics, Visibility::Shown), Vec::<String>::new());
    metrics.expose(&labels("H100"), None, values(5, 2));
    let expected = [
        r#"wva_current_replicas{accelerator_type="H100",namespace="ns",variant_name="va",controller_instance="blue"} 2"#,
        r#"wva_desired_ratio{accelerator_type="H100",namespace="ns",variant_name="va",controller_instance="blue"} 2.5"#,
        r#"wva_desired_replicas{accelerator_type="H100",namespace="ns",variant_name="va",controller_instance="blue"} 5"#,
    ];
    assert_eq!(variant_lines(&metrics, Visibility::Shown), expected);
    assert_eq!(variant_lines(&metrics, Visibility::Hidden), Vec::<String>::new());
}

#[test]
fn totals_of_roles_are_counters_and_keep_their_former_names() {
    let metrics = Metrics::new(None).unwrap();
    // The figures of an earlier look may come late.
    for totals in [[7, 5, 1], [9, 9, 2], [8, 6, 1]] {
        metrics.show_role("variant", totals);
    }
    let text = metrics.exposition(Visibility::Hidden).unwrap();
    for (name, former, total) in [
        ("wva_actor_messages_sent_total", "wva_actor_told", 9),
        ("wva_actor_messages_handled_total", "wva_actor_handled", 9),
        ("wva_actor_restarts_total", "wva_actor_restarts", 2),
    ] {
        for line in [
            format!("# TYPE {name} counter\n{name}{{role=\"variant\"}} {total}\n"),
            format!("# TYPE {former} gauge\n{former}{{role=\"variant\"}} {total}\n"),
        ] {
            assert!(text.contains(&line), "{line}: {text}");
        }
        let mut families = metrics.families().iter();
        let former = families.find(|family| family.name == former).unwrap();
        assert_eq!(former.help, format!("Deprecated, removed in version 0.3.0: use `{name}`."));
    }
}

#[test]
fn the_build_is_shown_with_its_version() {
    let text = Metrics::new(None).unwrap();
    let text = text.exposition(Visibility::Hidden).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let line = format!("version=\"{version}\"}} 1\n");
    let shown = text.lines().find(|line| line.starts_with("wva_build_info{"));
    assert!(text.contains(&line), "{shown:?}");
}

#[test]
fn a_change_of_labels_leaves_one_series_and_a_withdrawal_leaves_none() {
    let metrics = Metrics::new(None).unwrap();
    metrics.expose(&labels("H100"), None, values(1, 1));
    metrics.count_scaling(&labels("H100"), Action::ScaleUp, PlanStage::Saturation);
    metrics.expose_metrics_up(&labels("H100").key, true);
    metrics.expose(&labels("L40S"), Some(&labels("H100")), values(2, 1));
    let lines = variant_lines(&metrics, Visibility::Shown);
    assert!(lines.iter().all(|line| !line.contains("H100")), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.contains("desired_replicas")).count(), 1);

    metrics.withdraw(&labels("L40S"));
    assert_eq!(variant_lines(&metrics, Visibility::Shown), Vec::<String>::new());
    // Withdrawing what is not there is no error.
    metrics.withdraw(&labels("L40S"));
}

#[test]
fn a_scrape_sees_one_series_of_a_variant_however_often_its_labels_change() {
    let metrics = std::sync::Arc::new(Metrics::new(None).unwrap());
    metrics.expose(&labels("a"), None, values(1, 1));
    std::thread::scope(|scope| {
        let writer = std::sync::Arc::clone(&metrics);
        scope.spawn(move || {
            for turn in 0..500 {
                let (old, new) = if turn % 2 == 0 { ("a", "b") } else { ("b", "a") };
                writer.expose(&labels(new), Some(&labels(old)), values(1, 1));
            }
        });
        for _ in 0..200 {
            let lines = variant_lines(&metrics, Visibility::Shown);
            let desired = lines.iter().filter(|line| line.contains("wva_desired_replicas"));
            assert_eq!(desired.count(), 1, "{lines:?}");
        }
    });
}

#[test]
fn counters_of_a_namespace_that_is_gone_are_dropped_and_others_keep_counting() {
    let metrics = Metrics::new(None).unwrap();
    let misses = &metrics.engine.mapping_misses;
    for (namespace, count) in [("gone", 3), ("stays", 2)] {
        misses.with_label_values(&[namespace, "unresolved"]).inc_by(count);
    }
    let shown = || {
        let text = metrics.exposition(Visibility::Shown).unwrap();
        text.lines()
            .filter(|line| line.starts_with("wva_pod_mapping_miss_total{"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(shown().len(), 2);
    metrics.engine.keep_namespaces(&["stays"].into());
    let expected = r#"wva_pod_mapping_miss_total{namespace="stays",reason="unresolved"} 2"#;
    assert_eq!(shown(), [expected]);
}

#[test]
fn a_trouble_is_shown_while_it_lasts() {
    let metrics = Metrics::new(None).unwrap();
    let trouble = |condition, reason| UnhealthyCondition { condition, reason };
    let first = [trouble("Ready", "TargetNotFound"), trouble("ActuationReady", "NoScaler")];
    let second = [trouble("ActuationReady", "ScalerPaused")];
    let key = &labels("H100").key;
    metrics.expose_troubles(key, &first, &[]);
    assert_eq!(variant_lines(&metrics, Visibility::Shown).len(), 2);
    metrics.expose_troubles(key, &second, &first);
    let expected = r#"wva_variant_trouble{condition="ActuationReady",namespace="ns",reason="ScalerPaused",variant_name="va"} 1"#;
    assert_eq!(variant_lines(&metrics, Visibility::Shown), [expected]);
    metrics.expose_troubles(key, &[], &second);
    assert_eq!(variant_lines(&metrics, Visibility::Shown), Vec::<String>::new());
}

#[test]
fn what_kept_a_cycle_from_its_wish_is_shown() {
    let metrics = Metrics::new(None).unwrap();
    let step = |stage, from, to, why| Step { stage, from: Replicas(from), to: Replicas(to), why };
    let shown = |steps: Vec<Step>| {
        metrics.expose_limits(&decision(steps));
        let lines = variant_lines(&metrics, Visibility::Shown);
        let value =
            |name: &str| lines.iter().any(|line| line.starts_with(name) && line.ends_with(" 1"));
        [value("wva_variant_at_max_replicas"), value("wva_variant_limited")]
    };
    let cut = step(PlanStage::Bounds, 5, 4, Reason::CutToMaximum { max: Replicas(4) });
    assert_eq!(shown(vec![cut]), [true, false]);
    let limited = step(PlanStage::Limit, 5, 4, Reason::NoReplicas);
    assert_eq!(shown(vec![limited]), [false, true]);
    let granted = step(PlanStage::Limit, 5, 5, Reason::NoReplicas);
    assert_eq!(shown(vec![granted]), [false, false]);
}

fn decision(steps: Vec<Step>) -> Decision {
    Decision {
        key: VariantKey::new("ns", "va"),
        uid: std::sync::Arc::default(),
        model: ModelKey::new("m", "ns"),
        role: ServingRole::Both,
        accelerator: Accelerator::Unresolved,
        cost: Cost::DEFAULT,
        current: None,
        target: None,
        outcome: DecisionOutcome::Analyzed,
        metrics: MetricsState::Available,
        figures: VariantFigures::default(),
        steps,
        actuation: ActuationMode::default(),
        notes: Vec::new(),
    }
}

#[test]
fn the_analyzer_in_force_is_named() {
    for (text, name) in wva_base::cases! {
        ("", "saturation-percentage"),
        ("saturation: {default: {analyzerName: saturation}}", "saturation"),
        ("queueingModel: {default: {sloMultiplier: 4}}", "queueing-model"),
        ("EXPERIMENTAL_PROACTIVE_MODEL: true", "hybrid"),
    } {
        let settings = read_bundle(text).unwrap();
        assert_eq!(analyzer_name(&settings), name, "{text}");
    }
}

//! Missing metrics: each cause is named with what was looked for, what was found, and what to do.

use std::sync::Arc;

use super::variant_state::{deployment, object, objects};
use super::world::{Variant, World, at, settings};
use crate::key::{ModelKey, VariantKey};
use crate::learned::Learned;
use crate::metrics_gap::metrics_gaps;
use crate::plan;
use crate::snapshot::{
    ClusterSnapshot, MetricsSnapshot, PodSamples, Readiness, Sample, TargetPast, TargetView,
    Unlabelled,
};
use crate::units::Replicas;
use crate::variant::{TargetLookupRef, VariantState};

const LOOKED: &str = r#"looked for model_name "m" in namespace "ns"; "#;

/// A variant with two ready pods of which nothing is read.
fn silent(name: &str) -> Variant {
    let mut variant = Variant::new(name).replicas(2, 0.5, 0.0);
    for pod in &mut variant.pods {
        (pod.kv, pod.queue) = (None, None);
    }
    variant
}

/// The text about variant `d` once the collection was changed.
fn text(variants: &[Variant], change: impl Fn(&mut MetricsSnapshot)) -> String {
    let mut snapshot = World::of(variants.to_vec()).snapshot(at(0));
    let mut metrics = (*snapshot.metrics).clone();
    change(&mut metrics);
    snapshot.metrics = Arc::new(metrics);
    text_of(&snapshot)
}

fn text_of(snapshot: &ClusterSnapshot) -> String {
    let plan = plan(snapshot, &Learned::default(), &settings(), 1, at(0));
    let gaps = metrics_gaps(snapshot, &plan);
    let key = VariantKey::new("ns", "d");
    gaps[&key].text(&snapshot.variants[&key].model)
}

fn report(metrics: &mut MetricsSnapshot, namespace: &str, model: &str, pod: &str, kv: f64) {
    let samples = PodSamples {
        kv_usage: Some(Sample { value: kv, age: std::time::Duration::ZERO }),
        ..PodSamples::default()
    };
    let pods = metrics.models.entry(ModelKey::new(namespace, model));
    pods.or_default().insert(pod.into(), samples);
}

#[test]
fn a_pod_that_is_not_ready_is_no_fault_of_the_scrape() {
    let mut loading = silent("d");
    for pod in &mut loading.pods {
        pod.readiness = Readiness::NotReady;
    }
    loading.set_counts(2, 0);
    assert_eq!(text(&[loading], |_| {}), "no pod of the scale target is ready");
}

#[test]
fn nothing_is_scraped_here_or_anywhere() {
    let nothing = text(&[silent("d")], |_| {});
    assert_eq!(
        nothing,
        format!(
            "{LOOKED}Prometheus has no engine series at all: check that PROMETHEUS_BASE_URL names the Prometheus that scrapes the engines, and that a PodMonitor or ServiceMonitor selects the pods"
        )
    );
    let elsewhere = text(&[silent("d")], |metrics| {
        report(metrics, "other", "m", "x-1", 0.5);
    });
    assert!(
        elsewhere.starts_with(&format!(
            "{LOOKED}Prometheus has engine series of other namespaces only: "
        )),
        "{elsewhere}"
    );
}

#[test]
fn another_model_name_of_its_own_pods_is_named() {
    let other = text(&[silent("d")], |metrics| {
        report(metrics, "ns", "served", "d-1", 0.5);
        report(metrics, "ns", "unrelated", "x-1", 0.5);
    });
    assert_eq!(
        other,
        format!(
            "{LOOKED}the ready pods are scraped as model_name \"served\": set spec.modelID to the name that the engine reports, or start the engine with --served-model-name"
        )
    );
}

#[test]
fn models_and_pods_that_are_scraped_in_the_namespace_are_named_and_bounded() {
    let models = text(&[silent("d")], |metrics| {
        for number in 0..7 {
            report(metrics, "ns", &format!("m{number}"), &format!("x-{number}"), 0.5);
        }
    });
    assert!(
        models.starts_with(&format!(
            r#"{LOOKED}Prometheus has there model_name "m0", "m1", "m2", "m3", "m4" and more, and no ready pod of this scale target: "#
        )),
        "{models}"
    );
    let sibling = Variant::new("e").replicas(2, 0.5, 0.0);
    let pods = text(&[silent("d"), sibling], |_| {});
    assert!(
        pods.starts_with(&format!(
            r#"{LOOKED}scraped are pods "e-1", "e-2", and no ready pod of this scale target: "#
        )),
        "{pods}"
    );
}

#[test]
fn a_wrong_namespace_is_named_unless_the_pod_is_of_another_variant() {
    let moved = |metrics: &mut MetricsSnapshot| report(metrics, "monitoring", "m", "d-1", 0.5);
    let text_of_moved = text(&[silent("d")], moved);
    assert_eq!(
        text_of_moved,
        format!(
            "{LOOKED}the ready pods are scraped with the namespace label \"monitoring\": have the scrape job attach the namespace of the pod"
        )
    );
    let mut twin = silent("d");
    twin.view.key = VariantKey::new("monitoring", "d");
    twin.view.model = ModelKey::new("monitoring", "m");
    let same_name = text(&[silent("d"), twin], moved);
    assert!(same_name.contains("other namespaces only"), "{same_name}");
}

#[test]
fn series_that_lack_a_label_are_named() {
    let lacking = |change: fn(&mut Unlabelled)| {
        text(&[silent("d")], |metrics| change(&mut metrics.unlabelled))
    };
    let pod = lacking(|unlabelled| unlabelled.add_without_pod(&"ns".into(), &"m".into()));
    assert!(pod.contains("its series have no label pod: "), "{pod}");
    let namespace = lacking(|unlabelled| unlabelled.add_without_namespace(&"m".into()));
    assert!(namespace.contains("series of that model have no label namespace: "), "{namespace}");
    let unrelated = lacking(|unlabelled| unlabelled.add_without_namespace(&"n".into()));
    assert!(unrelated.contains("no engine series at all"), "{unrelated}");
}

#[test]
fn a_pod_without_a_usable_value_is_scraped_all_the_same() {
    let broken = text(&[silent("d")], |metrics| {
        report(metrics, "ns", "m", "d-1", f64::NAN);
    });
    assert!(
        broken.starts_with(r#"the ready pods are scraped as model_name "m", but report neither "#),
        "{broken}"
    );
}

#[test]
fn few_names_are_kept_whatever_their_order() {
    let kept = |numbers: &[u32]| {
        let mut unlabelled = Unlabelled::default();
        for number in numbers {
            unlabelled.add_without_namespace(&format!("m{number}").into());
        }
        unlabelled
    };
    let all = kept(&[0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(all, kept(&[6, 5, 4, 3, 2, 1, 0]));
    assert_eq!(all.without_namespace.len(), Unlabelled::MOST);
}

#[test]
fn a_target_that_never_existed_differs_from_one_that_is_gone() {
    let past = |view: &TargetView| match view {
        TargetView::NotFound { past, .. } => Some(*past),
        _ => None,
    };
    let named = object();
    let look = |state: &mut VariantState, lookup: TargetLookupRef<'_>, second: u64| {
        let refreshed = state.refresh(&objects(&named, lookup), at(second));
        (past(&refreshed.view.target), refreshed.view)
    };
    let mut state = VariantState::new(named.key.clone(), None);
    look(&mut state, TargetLookupRef::Missing, 0);
    let (never, _) = look(&mut state, TargetLookupRef::Missing, 1);
    assert_eq!(never, Some(TargetPast::Unseen));

    let target = deployment(1, 1);
    look(&mut state, TargetLookupRef::Found(&target), 2);
    look(&mut state, TargetLookupRef::Missing, 3);
    let (gone, view) = look(&mut state, TargetLookupRef::Missing, 4);
    assert_eq!(gone, Some(TargetPast::Existed));
    let mut next = VariantState::new(named.key.clone(), Some(view));
    assert_eq!(look(&mut next, TargetLookupRef::Missing, 5).0, Some(TargetPast::Existed));

    // A new process knows by the status that there was one, and goes on to know it once that is cleared.
    let mut decided = object();
    decided.stored.desired = Some(Replicas(3));
    let mut fresh = VariantState::new(named.key.clone(), None);
    fresh.refresh(&objects(&decided, TargetLookupRef::Missing), at(6));
    let seen = fresh.refresh(&objects(&decided, TargetLookupRef::Missing), at(7));
    assert_eq!(past(&seen.view.target), Some(TargetPast::Existed));
    assert_eq!(look(&mut fresh, TargetLookupRef::Missing, 8).0, Some(TargetPast::Existed));
}

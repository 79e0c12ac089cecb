//! Each obstacle, compared with a scaler that lacks nothing.

use super::*;
use crate::key::VariantKey;
use crate::scaler::{Published, Tolerance};
use crate::snapshot::DeclaredBounds;
use crate::tests::world::{self, key, published};
use crate::units::Replicas;

fn variant() -> VariantKey {
    key("va")
}

/// Reads the variant's count and does what it says, from 0 to 20.
fn scaler(kind: ScalerKind) -> Scaler {
    let published = published("va");
    world::scaler(kind, vec![Input::Other, Input::Published(published)])
}

fn native() -> Scaler {
    scaler(ScalerKind::HorizontalPodAutoscaler)
}

fn keda() -> Scaler {
    scaler(ScalerKind::ScaledObject)
}

fn bounds(min: Option<u32>, max: Option<u32>) -> DeclaredBounds {
    DeclaredBounds { min: min.map(Replicas), max: max.map(Replicas) }
}

/// The obstacles, in words, of a variant that is published at 4 within 1 to 8.
fn words(scalers: &[Scaler]) -> Vec<String> {
    let found = judge(scalers, &variant(), bounds(Some(1), Some(8)), Some(Replicas(4)));
    found.iter().map(|one| one.text(&variant())).collect()
}

#[test]
fn a_scaler_that_lacks_nothing_follows() {
    for scaler in [native(), keda()] {
        assert_eq!(words(&[scaler]), Vec::<String>::new());
    }
}

#[test]
fn a_trigger_of_the_external_scaler_is_of_the_variant_that_it_names_or_of_the_target() {
    let with = |variant: Option<&str>, aim| Scaler {
        inputs: vec![Input::ExternalScaler {
            variant: variant.map(Into::into),
            aim,
            is_asked: true,
        }],
        ..keda()
    };
    for named in [None, Some("va")] {
        assert_eq!(words(&[with(named, Aim::Replicas)]), Vec::<String>::new());
    }
    let other = words(&[with(Some("vb"), Aim::Replicas)]);
    assert!(other[0].contains("does not read"), "{other:?}");
    let average = words(&[with(None, Aim::Other("Value 1".into()))]);
    assert!(average[0].contains("aims at Value 1"), "{average:?}");
}

/// Each of these lacks one thing, and it is said in these words.
fn lack(rows: &[(Scaler, &str)]) {
    for (lacking, expected) in rows {
        assert_eq!(words(std::slice::from_ref(lacking)), [*expected], "{lacking:?}");
    }
}

#[test]
fn what_a_scaler_does_not_read_is_named_with_its_remedy() {
    let reading = |change: fn(&mut Published)| {
        let mut published = published("va");
        change(&mut published);
        vec![Input::Published(published)]
    };
    let unread = "s does not read wva_desired_replicas with variant_name \"va\" and this namespace; select both";
    let of_native = format!("HorizontalPodAutoscaler {unread}");
    let of_keda = format!("ScaledObject {unread}");
    let native = |inputs| Scaler { inputs, ..native() };
    let keda = |inputs| Scaler { inputs, ..keda() };
    lack(&wva_base::cases! {
        (native(vec![Input::Other]), of_native.as_str()),
        (native(reading(|read| read.variant = Some("other".into()))), of_native.as_str()),
        (native(reading(|read| read.variant = None)), of_native.as_str()),
        (keda(reading(|read| read.namespace = Some("other".into()))), of_keda.as_str()),
        (native(reading(|read| read.aim = Aim::Other("Value 1".into()))),
         "HorizontalPodAutoscaler s aims at Value 1; aim at an AverageValue of 1, so that the count is the number of \
         replicas"),
        (keda(reading(|read| read.absence = Absence::Zero)),
         "ScaledObject s counts a missing value as 0, so that a lost controller takes the target to its minimum; set \
         ignoreNullValues to \"false\" and a fallback"),
    });
}

#[test]
fn what_a_scaler_does_not_do_is_named_with_its_remedy() {
    let does = |activity| Scaler { activity, ..native() };
    let paused =
        ScalerActivity::Paused { annotation: "autoscaling.keda.sh/paused=\"true\"".into() };
    let failing = ScalerActivity::Failing {
        reason: "FailedGetExternalMetric".into(),
        message: "no metrics returned from external metrics API".into(),
    };
    let by = "scaleUp.selectPolicy Disabled".into();
    let min = Replicas(2);
    let tolerance = Tolerance { up: 0.0, down: 0.2 };
    lack(&wva_base::cases! {
        (Scaler { activity: paused, ..keda() },
         r#"ScaledObject s is paused by its annotation autoscaling.keda.sh/paused="true"; remove it"#),
        (does(ScalerActivity::GrowthPaused { by }),
         "HorizontalPodAutoscaler s does not scale up: scaleUp.selectPolicy Disabled; remove that"),
        (does(ScalerActivity::AtZeroByHand),
         "HorizontalPodAutoscaler s rests: the target was scaled to 0, and not by it; scale the target to 1 to go on"),
        (does(failing),
         "HorizontalPodAutoscaler s does not work (FailedGetExternalMetric: no metrics returned from external metrics \
         API); see its conditions and events"),
        (Scaler { min, ..native() },
         "HorizontalPodAutoscaler s keeps at least 2 replicas where 1 may be wanted; lower its minReplicas"),
        (Scaler { min, ..keda() },
         "ScaledObject s keeps at least 2 replicas where 1 may be wanted; lower its minReplicaCount"),
        (Scaler { min, min_field: "idleReplicaCount", ..keda() },
         "ScaledObject s keeps at least 2 replicas where 1 may be wanted; lower its idleReplicaCount"),
        (Scaler { max: Replicas(7), ..native() },
         "HorizontalPodAutoscaler s allows at most 7 replicas where 8 may be wanted; raise its maximum or lower \
         maxReplicas of the variant"),
        (Scaler { tolerance, ..native() },
         "HorizontalPodAutoscaler s ignores steps of one replica from 5 replicas on; set \
         spec.behavior.scaleUp.tolerance and spec.behavior.scaleDown.tolerance to 0"),
    });
}

#[test]
fn none_and_several_are_said_and_what_keda_makes_counts_once() {
    let nothing = words(&[]);
    assert_eq!(nothing.len(), 1);
    assert!(nothing[0].starts_with("nothing scales the target; create"), "{nothing:?}");
    let second = Scaler { name: "t".into(), ..native() };
    assert_eq!(
        words(&[native(), second, keda()]),
        [
            "HorizontalPodAutoscaler s and HorizontalPodAutoscaler t and ScaledObject s fight over the target; keep one of them"
        ]
    );
    let made = Scaler {
        name: "keda-hpa-s".into(),
        made_for: Some("s".into()),
        min: Replicas(1),
        inputs: vec![Input::Other],
        ..native()
    };
    assert_eq!(words(&[made.clone(), keda()]), Vec::<String>::new());
    let failing = Scaler {
        activity: ScalerActivity::Failing { reason: "FailedGetScale".into(), message: "".into() },
        ..made.clone()
    };
    assert_eq!(
        words(&[failing, keda()]),
        [
            "HorizontalPodAutoscaler keda-hpa-s does not work (FailedGetScale); see its conditions and events"
        ]
    );
    // Its ScaledObject is gone: it stands for itself.
    assert_eq!(words(&[made]).len(), 1);
}

#[test]
fn zero_is_hidden_by_a_native_minimum_and_reached_by_keda() {
    let at_zero = |scaler: &Scaler| {
        judge(std::slice::from_ref(scaler), &variant(), bounds(None, None), Some(Replicas::ZERO))
    };
    assert_eq!(at_zero(&keda()), []);
    let native = Scaler { min: Replicas(1), ..native() };
    let found = at_zero(&native);
    let text = found[0].text(&variant());
    assert_eq!(
        text,
        "HorizontalPodAutoscaler s keeps at least 1 replica where 0 may be wanted; lower its minReplicas (before Kubernetes 1.37 with the feature gate HPAScaleToZero), use a ScaledObject with minReplicaCount 0, or set minReplicas of the variant"
    );
    let one = judge(&[native], &variant(), bounds(None, None), Some(Replicas(1)));
    assert_eq!(one, []);
}

#[test]
fn a_tolerance_matters_from_the_first_step_that_it_swallows() {
    let below = |declared, up: f64, down: f64, max: u32| {
        let scaler = Scaler { tolerance: Tolerance { up, down }, max: Replicas(max), ..native() };
        let found = judge(&[scaler], &variant(), bounds(None, declared), None);
        found.iter().find_map(|one| match one {
            ActuationObstacle::Tolerance { from, .. } => Some(from.0),
            _ => None,
        })
    };
    let from = |up, down, max| below(None, up, down, max);
    // 10 to 11 deviates by a tenth, and so does 10 to 9; below, every step is larger.
    assert_eq!(from(0.1, 0.0, 10), None);
    assert_eq!(from(0.1, 0.0, 11), Some(10));
    assert_eq!(from(0.0, 0.1, 9), None);
    assert_eq!(from(0.0, 0.1, 10), Some(10));
    assert_eq!(from(0.5, 0.1, 20), Some(2));
    assert_eq!(from(0.0, 0.0, 1_000), None);
    assert_eq!(from(1e-12, 0.0, u32::MAX), None);
    // The variant never has so many.
    assert_eq!(below(Some(9), 0.1, 0.1, 12), None);
    assert_eq!(below(Some(10), 0.1, 0.1, 12), Some(10));
}

#[test]
fn the_worst_comes_first() {
    let scaler = Scaler {
        max: Replicas(2),
        min: Replicas(2),
        activity: ScalerActivity::Paused {
            annotation: "autoscaling.keda.sh/paused=\"true\"".into(),
        },
        ..keda()
    };
    let found = judge(&[scaler], &variant(), bounds(Some(1), None), Some(Replicas(4)));
    let kinds: Vec<bool> =
        found.iter().map(|one| matches!(one, ActuationObstacle::Paused { .. })).collect();
    assert_eq!(kinds, [true, false, false]);
}

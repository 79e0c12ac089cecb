//! Tables SAT1A and SAT1R: figures of the V1 analysis.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::vectors::{Tally, run};
use super::world::{Variant, World, at, settings};
use crate::key::{ModelKey, VariantKey};
use crate::params::SaturationThresholds;
use crate::reason::Reason;
use crate::sample_reader::SampleReader;
use crate::saturation::analyze;
use crate::snapshot::VariantView;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replicas {
    thresholds: Option<(f64, f64, f64, f64)>,
    replicas: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Figures {
    total: u32,
    non_saturated: u32,
    spare_kv: f64,
    spare_queue: f64,
    up: bool,
    down_safe: bool,
}

#[track_caller]
fn assert_close(id: &str, what: &str, actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-6, "{id}: {what} is {actual}, expected {expected}");
}

#[test]
fn sat1a_figures_of_a_model() {
    let tally = run(
        include_str!("../../../../tests/vectors/sat1a.yaml"),
        |id, given: Replicas, expect: Figures| {
            let world = World::of([Variant::new("v").loads(&given.replicas)]);
            let snapshot = world.snapshot(at(0));
            let views: Vec<&VariantView> = snapshot.variants.values().map(|view| &**view).collect();
            let thresholds = given.thresholds.map_or_else(
                SaturationThresholds::default,
                |(kv, queue, kv_trigger, queue_trigger)| SaturationThresholds {
                    kv_cache_threshold: kv,
                    queue_length_threshold: queue,
                    kv_spare_trigger: kv_trigger,
                    queue_spare_trigger: queue_trigger,
                },
            );
            let settings = settings();
            let reader = SampleReader::new(
                &snapshot.metrics,
                &settings.freshness,
                settings.cache.reuse,
                at(0),
            );
            let figures = analyze(&views, reader, &thresholds).0.figures;
            assert_eq!(figures.replicas, expect.total, "{id}: total");
            assert_eq!(figures.non_saturated, expect.non_saturated, "{id}");
            assert_close(id, "spare KV", figures.spare_kv, expect.spare_kv);
            assert_close(id, "spare queue", figures.spare_queue, expect.spare_queue);
            assert_eq!(figures.scale_up, expect.up, "{id}: up");
            assert_eq!(figures.scale_down_safe, expect.down_safe, "{id}: down-safe");
        },
    );
    assert_eq!(tally, Tally::of(14, 0, 0));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Detail {
    reason: Option<String>,
    spare_kv: Option<f64>,
    #[serde(default)]
    variants: BTreeMap<String, OwnFigures>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnFigures {
    replicas: u32,
    saturated: Option<Vec<String>>,
    max_kv: Option<f64>,
    max_queue: Option<f64>,
    non_saturated: Option<u32>,
    spare_kv: Option<f64>,
}

#[test]
fn sat1r_reason_and_figures_of_each_variant() {
    let tally = run(
        include_str!("../../../../tests/vectors/sat1r.yaml"),
        |id, given: BTreeMap<String, Vec<(f64, f64)>>, expect: Detail| {
            let variants = given.iter().map(|(name, loads)| Variant::new(name).loads(loads));
            let plan = World::of(variants).plan(at(0));
            if let Some(expected) = &expect.reason {
                let grown = plan.decisions.values().find_map(|decision| {
                    decision.steps.iter().find_map(|step| match step.why {
                        Reason::Grown { trigger } => Some((trigger, decision.reason())),
                        _ => None,
                    })
                });
                let (trigger, text) = grown.unwrap_or_else(|| panic!("{id}: nothing grew"));
                assert_eq!(trigger.to_string(), *expected, "{id}");
                assert!(text.starts_with(expected), "{id}: {text}");
            }
            if let Some(expected) = expect.spare_kv {
                let figures = plan.models[&ModelKey::new("ns", "m")].percentage.unwrap();
                assert_close(id, "spare KV", figures.spare_kv, expected);
            }
            for (name, expected) in &expect.variants {
                let figures = &plan.decisions[&VariantKey::new("ns", name.as_str())].figures;
                assert_eq!(figures.reporting, expected.replicas, "{id}: {name}");
                if let Some(pods) = &expected.saturated {
                    let saturated: Vec<&str> = figures.saturated.iter().map(|pod| &**pod).collect();
                    assert_eq!(saturated, *pods, "{id}: {name}");
                }
                for (what, actual, expected) in wva_base::cases! {
                    ("max KV", figures.max_kv, expected.max_kv),
                    ("max queue", figures.max_queue, expected.max_queue),
                    ("spare KV", figures.spare_kv, expected.spare_kv),
                    ("non-saturated", f64::from(figures.non_saturated), expected.non_saturated.map(f64::from)),
                } {
                    if let Some(expected) = expected {
                        assert_close(id, what, actual, expected);
                    }
                }
            }
        },
    );
    assert_eq!(tally, Tally::of(4, 0, 0));
}

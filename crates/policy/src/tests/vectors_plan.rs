//! Tables SAT1T, ENF, SNET and REC: targets, minimum of one, safety net, replica records.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::vectors::{Tally, run};
use super::world::{Pod, Variant, World, at, reason, targets};
use crate::accelerator::Accelerator;
use crate::key::{TargetKey, TargetKind, VariantKey};
use crate::plan::DecisionOutcome;
use crate::safety_net::fallback_source;
use crate::series::VariantGauges;
use crate::signal::SignalName;
use crate::snapshot::TargetView;
use crate::units::Replicas;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    load: Load,
    variants: BTreeMap<String, State>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Load {
    Up,
    Down,
    Balanced,
    Silent,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    cost: String,
    metrics: u32,
    current: u32,
    desired: Option<u32>,
    ready: Option<u32>,
    min: Option<u32>,
    max: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Targets {
    targets: BTreeMap<String, u32>,
    why: BTreeMap<String, String>,
}

impl State {
    fn variant(&self, name: &str, load: Load) -> Variant {
        let (kv, queue) = match load {
            Load::Up => (0.75, 0.0),
            Load::Down => (0.1, 0.0),
            Load::Balanced | Load::Silent => (0.5, 1.0),
        };
        let mut variant = Variant::new(name)
            .cost(&self.cost)
            .bounds(self.min, self.max)
            .desired(self.desired)
            .replicas(self.metrics.max(self.current), kv, queue)
            .counts(self.current, self.ready.unwrap_or(self.current));
        for (number, pod) in (1..).zip(&mut variant.pods) {
            pod.mirrored = number <= self.current;
            if number > self.metrics {
                (pod.kv, pod.queue) = (None, None);
            }
        }
        variant
    }
}

#[test]
fn sat1t_targets() {
    let tally = run(
        include_str!("../../../../tests/vectors/sat1t.yaml"),
        |id, given: Model, expect: Targets| {
            let variants =
                given.variants.iter().map(|(name, state)| state.variant(name, given.load));
            let plan = World::of(variants).plan(at(0));
            assert_eq!(targets(&plan), expect.targets, "{id}");
            for (name, part) in &expect.why {
                let reason = reason(&plan, name);
                assert!(reason.contains(part), "{id}: {name}: {reason}");
            }
        },
    );
    assert_eq!(tally, Tally::of(8, 3, 1));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Idle {
    cost: Option<String>,
}

#[test]
fn enf_minimum_of_one() {
    let tally = run(
        include_str!("../../../../tests/vectors/enf.yaml"),
        |id, given: BTreeMap<String, Idle>, expect: BTreeMap<String, u32>| {
            let variants = given.iter().map(|(name, idle)| {
                Variant::new(name).cost(idle.cost.as_deref().unwrap_or("10.0"))
            });
            assert_eq!(targets(&World::of(variants).plan(at(0))), expect, "{id}");
        },
    );
    assert_eq!(tally, Tally::of(1, 3, 5));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fallen {
    stored: u32,
    target: Option<u32>,
    accelerator: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fallback {
    desired: u32,
    current: Option<u32>,
    ratio: Option<f64>,
    accelerator: String,
    source: String,
}

#[test]
fn snet_fallback() {
    let tally = run(
        include_str!("../../../../tests/vectors/snet.yaml"),
        |id, given: Fallen, expect: Fallback| {
            let mut variant = Variant::new("v").desired(Some(given.stored));
            variant.view.accelerator = given
                .accelerator
                .as_deref()
                .map_or(Accelerator::Unresolved, |name| Accelerator::Named(name.into()));
            variant = match given.target {
                Some(current) => variant.replicas(current, 0.1, 0.0),
                None => variant.target(TargetView::Unknown {
                    target: TargetKey::new("ns", TargetKind::Deployment, "v"),
                }),
            };
            let mut world = World::of([variant]);
            world.failed = vec![SignalName::KvUsage];
            let plan = world.plan(at(0));
            let decision = &plan.decisions[&VariantKey::new("ns", "v")];
            assert_eq!(decision.outcome, DecisionOutcome::SafetyNet, "{id}");
            let series = VariantGauges::of(decision).unwrap();
            assert_eq!(series.desired, Replicas(expect.desired), "{id}");
            assert_eq!(series.current, expect.current.map(Replicas), "{id}");
            assert_eq!(series.ratio(), expect.ratio, "{id}");
            assert_eq!(series.labels.accelerator_type, expect.accelerator, "{id}");
            let source = fallback_source(decision).unwrap().as_str();
            assert_eq!(source, expect.source, "{id}");
        },
    );
    assert_eq!(tally, Tally::of(1, 2, 0));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Collected {
    #[serde(default)]
    p1: SampleGiven,
    #[serde(default)]
    failed: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleGiven {
    kv: Option<f64>,
    queue: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    reporting: u32,
    max_kv: f64,
    max_queue: f64,
    #[serde(default)]
    without_queue: u32,
    cost: String,
    outcome: DecisionOutcome,
}

#[test]
fn rec_replica_records() {
    let tally = run(
        include_str!("../../../../tests/vectors/rec.yaml"),
        |id, given: Collected, expect: Record| {
            let mut variant = Variant::new("v1").cost("5.0").replicas(1, 0.0, 0.0);
            variant.pods = vec![Pod {
                name: "p1".into(),
                kv: given.p1.kv.map(|value| (value, 0)),
                queue: given.p1.queue.map(|value| (value, 0)),
                ..variant.pods[0].clone()
            }];
            let mut world = World::of([variant]);
            if given.failed {
                world.failed = vec![SignalName::KvUsage];
            }
            let plan = world.plan(at(0));
            let decision = &plan.decisions[&VariantKey::new("ns", "v1")];
            let figures = &decision.figures;
            assert_eq!(decision.outcome, expect.outcome, "{id}");
            assert_eq!(decision.cost.to_string(), expect.cost, "{id}");
            assert_eq!(
                (figures.reporting, figures.without_queue),
                (expect.reporting, expect.without_queue),
                "{id}"
            );
            assert!((figures.max_kv - expect.max_kv).abs() < 1e-6, "{id}");
            assert!((figures.max_queue - expect.max_queue).abs() < 1e-6, "{id}");
        },
    );
    assert_eq!(tally, Tally::of(4, 1, 7));
}

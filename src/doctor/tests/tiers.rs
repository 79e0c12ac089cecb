//! Tiers without effect are the same to the doctor and to the running controller.

use std::collections::BTreeSet;

use serde_json::json;

use super::causes::objects;
use super::declared::{fleet, tier, with_settings};
use crate::doctor::examine;
use crate::doctor::facts::{Facts, LiveKind};
use crate::doctor::finding::FindingCode;
use crate::doctor::object::LiveObject;
use crate::doctor::observed::{ObservedFindings, tiers};
use crate::policy::document::SnapshotDocument;

const MAP: &str = "wva-saturation-scaling-config";

/// The healthy fleet with these tiers in the global ConfigMap, and what the variants a and b name.
fn with_tiers(entries: &[&str], named: [&str; 2]) -> Facts {
    let mut facts = fleet();
    let mut map = json!({
        "kind": "ConfigMap", "metadata": { "namespace": "system", "name": MAP }, "data": {},
    });
    for entry in entries {
        map["data"][entry] = json!("kvSpareTrigger: 0.2");
    }
    objects(&mut facts, LiveKind::ConfigMap).push(LiveObject::new(map));
    with_settings(&mut facts, &[]);
    let kinds = [LiveKind::HorizontalPodAutoscaler, LiveKind::ScaledObject];
    for ((kind, name), named) in kinds.into_iter().zip(["a", "b"]).zip(named) {
        if !named.is_empty() {
            tier(&mut facts, kind, name, named);
        }
    }
    facts.declare();
    facts
}

/// What the controller finds, which has the same variants.
fn observed(facts: &Facts, named: [&str; 2]) -> ObservedFindings {
    let variants = ["a", "b"].into_iter().zip(named).map(|(name, tier)| {
        let policy = match tier {
            "" => json!({}),
            tier => json!({ "scalingPolicy": tier }),
        };
        json!({ "namespace": "ns", "name": name, "model": "meta/llama", "target": { "current": 1 }, "policy": policy })
    });
    let document = json!({ "version": 1, "variants": variants.collect::<Vec<_>>() });
    let document = SnapshotDocument::parse(&document.to_string()).unwrap();
    let generation = facts.controllers()[0].generation().unwrap();
    let situation = document.situation(&generation.dynamic.freshness).unwrap();
    let views = situation.snapshot.variants.values();
    tiers(views.map(|view| &**view), generation)
}

#[test]
fn the_running_controller_finds_the_tiers_that_the_doctor_finds() {
    let map = format!("system/{MAP}");
    let map = map.as_str();
    for (entries, named, expected) in [
        (&[][..], ["", ""], &[][..]),
        (&["gold"], ["", ""], &[map]),
        (&["gold"], ["gold", ""], &[]),
        (&["gold"], ["gold", "gold"], &[]),
        (&["gold", "lead"], ["gold", ""], &[map]),
        (&[], ["gold", ""], &["ns/a"]),
        (&["gold"], ["gold", "lead"], &["ns/b"]),
        (&["gold", "lead"], ["gold", "lead"], &["ns/a", "ns/b"]),
    ] {
        let facts = with_tiers(entries, named);
        let expected: BTreeSet<String> = expected.iter().map(|one| (*one).to_owned()).collect();
        let diagnosis = examine(&facts);
        let by_doctor = diagnosis.findings().map(|one| {
            assert_eq!(one.code, FindingCode::TierWithoutEffect, "{one:?}");
            format!("{}/{}", one.object.namespace, one.object.name)
        });
        assert_eq!(by_doctor.collect::<BTreeSet<_>>(), expected, "{named:?}");
        let by_controller = observed(&facts, named).into_iter().map(|(code, object)| {
            assert_eq!(code, FindingCode::TierWithoutEffect);
            object.to_string()
        });
        assert_eq!(by_controller.collect::<BTreeSet<_>>(), expected, "{named:?}");
    }
}

#[test]
fn a_controller_of_a_part_leaves_tiers_to_the_variants_of_others() {
    let named = ["", ""];
    for part in [("CONTROLLER_INSTANCE", "blue"), ("WATCH_NAMESPACE", "ns")] {
        let mut facts = with_tiers(&["gold"], named);
        assert_eq!(observed(&facts, named).len(), 1);
        with_settings(&mut facts, &[part]);
        assert_eq!(observed(&facts, named), ObservedFindings::new(), "{part:?}");
    }
}

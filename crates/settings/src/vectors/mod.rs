//! The published cases of settings, as tables. Corrected expectations carry their reason.

mod policies;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::config_maps::{ConfigMapNames, ConfigMapView, gather};
use super::fixtures::data;
use super::sources::Data;
use super::*;
use wva_base::duration::format_duration;
use wva_policy::filter::{ConfigReach, Management, NamespaceObject, OptIn, Tracking, WatchScope};
use wva_policy::key::ModelKey;

const IMMUTABLE: &str = include_str!("../../../../tests/vectors/immutable.yaml");
const NAMESPACES: &str = include_str!("../../../../tests/vectors/namespace-resolution.yaml");
const VALIDATION: &str = include_str!("../../../../tests/vectors/saturation-validation.yaml");
const RESOLUTION: &str = include_str!("../../../../tests/vectors/saturation-resolution.yaml");
const ZERO: &str = include_str!("../../../../tests/vectors/scale-to-zero.yaml");
const QUEUEING: &str = include_str!("../../../../tests/vectors/queueing-config.yaml");

fn cases<T: DeserializeOwned>(text: &str, least: usize) -> Vec<T> {
    let cases: Vec<T> = serde_yaml::from_str(text).unwrap();
    assert!(cases.len() >= least, "{} cases", cases.len());
    cases
}

/// Numbers come from texts on both sides, so they are equal to the last bit.
fn same(id: &str, name: &str, actual: f64, expected: Option<f64>) {
    if let Some(expected) = expected {
        assert_eq!(actual.to_bits(), expected.to_bits(), "{id}: {name} is {actual}");
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ImmutableCase {
    id: String,
    #[serde(rename = "corrected")]
    _corrected: Option<String>,
    #[serde(default)]
    start: Data,
    edit: Data,
    #[serde(default)]
    rejected: Vec<[String; 3]>,
    #[serde(default)]
    applied: Vec<String>,
    text: Option<String>,
}

#[test]
fn immutable_key_cases() {
    for case in cases::<ImmutableCase>(IMMUTABLE, 15) {
        let mut sources = Sources {
            environment: data(&[
                ("PROMETHEUS_BASE_URL", "https://p:9090"),
                ("METRICS_BIND_ADDRESS", ":8443"),
                ("HEALTH_PROBE_BIND_ADDRESS", ":8081"),
                ("LEADER_ELECTION_ID", "72dd1cf1.llm-d.ai"),
            ]),
            main: MainConfigMap::Present(case.start.clone()),
            ..Sources::default()
        };
        let before = start(&sources).unwrap().generation;
        let unchanged = transition(&before, &sources);
        assert!(unchanged.rejected.is_empty() && unchanged.next.is_none(), "{}", case.id);

        sources.main = MainConfigMap::Present(case.edit);
        let after = transition(&before, &sources);
        let rejected: Vec<[String; 3]> = after
            .rejected
            .iter()
            .map(|one| [one.display.to_owned(), one.old.clone(), one.new.clone()])
            .collect();
        assert_eq!(rejected, case.rejected, "{}", case.id);
        let applied: Vec<&str> = after.changes.iter().map(|change| change.key).collect();
        assert_eq!(applied, case.applied, "{}", case.id);
        let number = after.next.as_ref().map(|next| next.number);
        assert_eq!(number, (!applied.is_empty()).then_some(2), "{}", case.id);
        if let Some(next) = after.next {
            assert_eq!(next.statics, before.statics, "{}", case.id);
        }
        if let Some(text) = case.text {
            assert_eq!(rejection_error(&after.rejected), text, "{}", case.id);
        }
    }
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "mirrors the facts under test")]
struct Facts {
    watched_alone: bool,
    excluded: bool,
    opted_in: bool,
    has_variants: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamespaceCase {
    id: String,
    #[serde(rename = "corrected")]
    _corrected: Option<String>,
    before: Option<BTreeMap<String, Data>>,
    config_maps: BTreeMap<String, Data>,
    #[serde(default)]
    namespaces: BTreeMap<String, Facts>,
    expect: BTreeMap<String, ExpectedInNamespace>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedInNamespace {
    kv: Option<f64>,
    queue: Option<f64>,
    zero: Option<bool>,
    retention: Option<String>,
}

impl NamespaceCase {
    fn gather(&self, sources: &mut Sources, config_maps: &BTreeMap<String, Data>) -> Vec<Warning> {
        let names = ConfigMapNames {
            main: "wva-variantautoscaling-config".to_owned(),
            saturation: "wva-saturation-scaling-config".to_owned(),
            queueing_model: "wva-queueing-model-config".to_owned(),
            service_classes: "service-classes-config".to_owned(),
        };
        let may_override = |namespace: &str| {
            let facts = self.namespaces.get(namespace).copied().unwrap_or_default();
            let scope = WatchScope {
                system_namespace: "sys".into(),
                watch_namespace: facts.watched_alone.then(|| namespace.into()),
                instance: None,
            };
            let object = NamespaceObject {
                name: namespace.into(),
                management: if facts.excluded { Management::Excluded } else { Management::Managed },
                opt_in: if facts.opted_in { OptIn::Given } else { OptIn::Absent },
            };
            let tracking = if facts.has_variants { Tracking::Tracked } else { Tracking::Untracked };
            scope.reach(namespace, Some(&object), tracking) == ConfigReach::Local
        };
        let views = config_maps.iter().map(|(path, data)| {
            let (namespace, name) = path.split_once('/').unwrap();
            ConfigMapView { namespace, name, data }
        });
        gather(sources, &names, "sys", may_override, views)
    }
}

#[test]
fn namespace_resolution_cases() {
    for case in cases::<NamespaceCase>(NAMESPACES, 18) {
        let mut sources = Sources {
            environment: data(&[("PROMETHEUS_BASE_URL", "https://p:9090")]),
            ..Sources::default()
        };
        case.gather(&mut sources, case.before.as_ref().unwrap_or(&case.config_maps));
        let mut generation = start(&sources).unwrap().generation;
        let notices = case.gather(&mut sources, &case.config_maps);
        if let Some(next) = transition(&generation, &sources).next {
            generation = next;
        }
        let older = case.config_maps.keys().filter(|path| !path.contains("/wva-")).count();
        let unknown = case.config_maps.keys().filter(|path| path.ends_with("/unknown")).count();
        assert_eq!(notices.len(), older - unknown, "{}: {notices:?}", case.id);
        for (namespace, expected) in &case.expect {
            let model = ModelKey::new(namespace.as_str(), "m");
            let id = format!("{} in {namespace:?}", case.id);
            let thresholds = generation.dynamic.saturation.resolve(&model);
            same(&id, "kv", thresholds.kv_cache_threshold, expected.kv);
            same(&id, "queue", thresholds.queue_length_threshold, expected.queue);
            let zero = &generation.dynamic.scale_to_zero;
            if let Some(enabled) = expected.zero {
                assert_eq!(zero.enabled(&model), enabled, "{id}");
            }
            if let Some(retention) = &expected.retention {
                assert_eq!(&format_duration(zero.retention(&model)), retention, "{id}");
            }
        }
    }
}

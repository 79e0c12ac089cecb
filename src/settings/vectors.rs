//! The published cases of settings, as tables. Corrected expectations carry their reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::config_maps::{ConfigMapNames, ConfigMapView, gather};
use super::duration::format_duration;
use super::namespace::NamespaceFacts;
use super::queueing_model::QueueingModelLayers;
use super::saturation::{Analysis, SaturationPolicy};
use super::sources::Data;
use super::*;
use crate::policy::key::ModelKey;

const CONFIG: &str = include_str!("../../tests/vectors/config.yaml");
const IMMUTABLE: &str = include_str!("../../tests/vectors/immutable.yaml");
const NAMESPACES: &str = include_str!("../../tests/vectors/namespace-resolution.yaml");
const VALIDATION: &str = include_str!("../../tests/vectors/saturation-validation.yaml");
const RESOLUTION: &str = include_str!("../../tests/vectors/saturation-resolution.yaml");
const ZERO: &str = include_str!("../../tests/vectors/scale-to-zero.yaml");
const QUEUEING: &str = include_str!("../../tests/vectors/queueing-config.yaml");
const CORRECTIONS: &str = include_str!("../../tests/vectors/corrections-settings.yaml");

fn cases<T: DeserializeOwned>(text: &str, least: usize) -> Vec<T> {
    let cases: Vec<T> = serde_yaml::from_str(text).unwrap();
    assert!(cases.len() >= least, "{} cases", cases.len());
    cases
}

fn data(pairs: &[(&str, &str)]) -> Data {
    pairs
        .iter()
        .map(|(key, text)| ((*key).to_owned(), (*text).to_owned()))
        .collect()
}

fn refused(findings: &Findings) -> Vec<&str> {
    findings
        .problems
        .iter()
        .filter_map(|problem| match problem {
            Problem::Entry(problem) => Some(problem.place.entry.as_str()),
            Problem::Setting { .. } => None,
        })
        .collect()
}

fn advised(findings: &Findings) -> Vec<&str> {
    findings
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::EntryAdvice { place, .. } => Some(place.entry.as_str()),
            _ => None,
        })
        .collect()
}

/// Numbers come from texts on both sides, so they are equal to the last bit.
fn same(id: &str, name: &str, actual: f64, expected: Option<f64>) {
    if let Some(expected) = expected {
        assert_eq!(
            actual.to_bits(),
            expected.to_bits(),
            "{id}: {name} is {actual}"
        );
    }
}

#[test]
fn every_corrected_case_is_listed_with_its_reason() {
    #[derive(Deserialize)]
    struct Case {
        id: String,
        corrected: Option<String>,
    }
    let mut ids = BTreeSet::new();
    let mut corrected = BTreeMap::new();
    for file in [
        CONFIG, IMMUTABLE, NAMESPACES, VALIDATION, RESOLUTION, ZERO, QUEUEING,
    ] {
        for case in cases::<Case>(file, 1) {
            assert!(ids.insert(case.id.clone()), "{} stands twice", case.id);
            corrected.extend(case.corrected.map(|reason| (case.id, reason)));
        }
    }
    let listed: BTreeMap<String, String> = serde_yaml::from_str(CORRECTIONS).unwrap();
    assert_eq!(corrected, listed);
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
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
    for case in cases::<Edit>(IMMUTABLE, 15) {
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
        assert!(
            unchanged.rejected.is_empty() && unchanged.next.is_none(),
            "{}",
            case.id
        );

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
#[expect(
    clippy::struct_excessive_bools,
    reason = "mirrors the facts under test"
)]
struct Facts {
    watched_alone: bool,
    excluded: bool,
    opted_in: bool,
    has_variants: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Namespaces {
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

impl Namespaces {
    fn gather(&self, sources: &mut Sources, config_maps: &BTreeMap<String, Data>) -> Vec<Notice> {
        let names = ConfigMapNames {
            main: "wva-variantautoscaling-config".to_owned(),
            saturation: "wva-saturation-scaling-config".to_owned(),
            queueing_model: "wva-queueing-model-config".to_owned(),
            service_classes: "service-classes-config".to_owned(),
        };
        let may_override = |namespace: &str| {
            let facts = self.namespaces.get(namespace).copied().unwrap_or_default();
            NamespaceFacts {
                watched_alone: facts.watched_alone,
                excluded: facts.excluded,
                opted_in: facts.opted_in,
                has_variants: facts.has_variants,
            }
            .may_override()
        };
        let views = config_maps.iter().map(|(path, data)| {
            let (namespace, name) = path.split_once('/').unwrap();
            ConfigMapView {
                namespace,
                name,
                data,
            }
        });
        gather(sources, &names, "sys", may_override, views)
    }
}

#[test]
fn namespace_resolution_cases() {
    for case in cases::<Namespaces>(NAMESPACES, 18) {
        let mut sources = Sources {
            environment: data(&[("PROMETHEUS_BASE_URL", "https://p:9090")]),
            ..Sources::default()
        };
        case.gather(
            &mut sources,
            case.before.as_ref().unwrap_or(&case.config_maps),
        );
        let mut generation = start(&sources).unwrap().generation;
        let notices = case.gather(&mut sources, &case.config_maps);
        if let Some(next) = transition(&generation, &sources).next {
            generation = next;
        }
        let older = case
            .config_maps
            .keys()
            .filter(|path| !path.contains("/wva-"))
            .count();
        let unknown = case
            .config_maps
            .keys()
            .filter(|path| path.ends_with("/unknown"))
            .count();
        assert_eq!(notices.len(), older - unknown, "{}: {notices:?}", case.id);
        for (namespace, expected) in &case.expect {
            let model = ModelKey::new(namespace.as_str(), "m");
            let id = format!("{} in {namespace:?}", case.id);
            let thresholds = generation.dynamic.saturation.resolve(&model);
            same(&id, "kv", thresholds.kv_cache_threshold, expected.kv);
            same(
                &id,
                "queue",
                thresholds.queue_length_threshold,
                expected.queue,
            );
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

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct ExpectedPolicy {
    model: String,
    namespace: String,
    kv: Option<f64>,
    queue: Option<f64>,
    kv_spare: Option<f64>,
    queue_spare: Option<f64>,
    up: Option<f64>,
    down: Option<f64>,
    priority: Option<f64>,
    tokens: Option<bool>,
    zero: Option<bool>,
    analyzers: Option<Vec<ExpectedAnalyzer>>,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct ExpectedAnalyzer {
    kind: String,
    enabled: bool,
    score: f64,
}

fn check_policy(id: &str, policy: &SaturationPolicy, expected: &ExpectedPolicy) {
    let thresholds = policy.thresholds;
    same(id, "kv", thresholds.kv_cache_threshold, expected.kv);
    same(
        id,
        "queue",
        thresholds.queue_length_threshold,
        expected.queue,
    );
    same(
        id,
        "kv_spare",
        thresholds.kv_spare_trigger,
        expected.kv_spare,
    );
    same(
        id,
        "queue_spare",
        thresholds.queue_spare_trigger,
        expected.queue_spare,
    );
    same(id, "up", policy.band.scale_up_threshold, expected.up);
    same(id, "down", policy.band.scale_down_boundary, expected.down);
    same(id, "priority", policy.priority, expected.priority);
    if let Some(tokens) = expected.tokens {
        assert_eq!(policy.analysis == Analysis::Tokens, tokens, "{id}");
    }
    if expected.zero.is_some() {
        assert_eq!(policy.scale_to_zero, expected.zero, "{id}");
    }
    if let Some(analyzers) = &expected.analyzers {
        let actual: Vec<ExpectedAnalyzer> = policy
            .analyzers
            .iter()
            .map(|analyzer| ExpectedAnalyzer {
                kind: analyzer.kind.clone(),
                enabled: analyzer.enabled,
                score: analyzer.score,
            })
            .collect();
        assert_eq!(&actual, analyzers, "{id}");
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Validation {
    id: String,
    entry: serde_yaml::Value,
    error: Option<String>,
    policy: Option<ExpectedPolicy>,
}

#[test]
fn saturation_validation_cases() {
    for case in cases::<Validation>(VALIDATION, 20) {
        let text = serde_yaml::to_string(&case.entry).unwrap();
        let sources = PolicySources {
            global: Some(data(&[("default", &text)])),
            ..PolicySources::default()
        };
        let mut findings = Findings::default();
        let layers = SaturationLayers::read(&sources, None, &mut findings);
        let shown: Vec<String> = findings.problems.iter().map(ToString::to_string).collect();
        match &case.error {
            Some(error) => {
                assert_eq!(shown.len(), 1, "{}: {shown:?}", case.id);
                assert!(shown[0].contains(error), "{}: {shown:?}", case.id);
            }
            None => assert_eq!(shown, Vec::<String>::new(), "{}", case.id),
        }
        if let Some(expected) = &case.policy {
            check_policy(
                &case.id,
                &layers.policy(&ModelKey::new("ns", "m")),
                expected,
            );
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resolution {
    id: String,
    #[serde(rename = "corrected")]
    _corrected: Option<String>,
    #[serde(default)]
    global: BTreeMap<String, serde_yaml::Value>,
    #[serde(default)]
    namespaces: BTreeMap<String, BTreeMap<String, serde_yaml::Value>>,
    #[serde(default)]
    refused: Vec<String>,
    #[serde(default)]
    advised: Vec<String>,
    expect: Vec<ExpectedPolicy>,
}

#[test]
fn saturation_resolution_cases() {
    let texts = |entries: &BTreeMap<String, serde_yaml::Value>| -> Data {
        entries
            .iter()
            .map(|(key, entry)| (key.clone(), serde_yaml::to_string(entry).unwrap()))
            .collect()
    };
    for case in cases::<Resolution>(RESOLUTION, 10) {
        let sources = PolicySources {
            global: Some(texts(&case.global)),
            namespaces: case
                .namespaces
                .iter()
                .map(|(name, entries)| (Arc::from(name.as_str()), texts(entries)))
                .collect(),
        };
        let mut findings = Findings::default();
        let layers = SaturationLayers::read(&sources, None, &mut findings);
        assert_eq!(refused(&findings), case.refused, "{}", case.id);
        assert_eq!(advised(&findings), case.advised, "{}", case.id);
        for expected in &case.expect {
            let model = ModelKey::new(expected.namespace.as_str(), expected.model.as_str());
            let id = format!("{} for {model}", case.id);
            check_policy(&id, &layers.policy(&model), expected);
            assert_eq!(
                layers.resolve(&model),
                layers.policy(&model).thresholds,
                "{id}"
            );
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Zero {
    id: String,
    #[serde(default)]
    switch: bool,
    #[serde(default)]
    data: Data,
    #[serde(default)]
    refused: Vec<String>,
    #[serde(default)]
    advised: Vec<String>,
    expect: Vec<ExpectedZero>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedZero {
    model: String,
    #[serde(default)]
    namespace: String,
    enabled: Option<bool>,
    retention: Option<String>,
    minimum: Option<u32>,
}

#[test]
fn scale_to_zero_cases() {
    for case in cases::<Zero>(ZERO, 12) {
        let sources = PolicySources {
            global: Some(case.data),
            ..PolicySources::default()
        };
        let mut findings = Findings::default();
        let layers = ScaleToZeroLayers::read(&sources, case.switch, None, &mut findings);
        assert_eq!(refused(&findings), case.refused, "{}", case.id);
        assert_eq!(advised(&findings), case.advised, "{}", case.id);
        for expected in &case.expect {
            let model = ModelKey::new(expected.namespace.as_str(), expected.model.as_str());
            let id = format!("{} for {model}", case.id);
            if let Some(enabled) = expected.enabled {
                assert_eq!(layers.enabled(&model), enabled, "{id}");
            }
            if let Some(retention) = &expected.retention {
                assert_eq!(
                    &format_duration(layers.retention(&model)),
                    retention,
                    "{id}"
                );
            }
            if let Some(minimum) = expected.minimum {
                assert_eq!(layers.least_replicas(&model).0, minimum, "{id}");
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Queueing {
    id: String,
    data: Data,
    selected: Option<bool>,
    #[serde(default)]
    refused: BTreeMap<String, String>,
    #[serde(default)]
    expect: Vec<ExpectedQueueing>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedQueueing {
    model: String,
    multiplier: Option<f64>,
    tuning: Option<bool>,
    targets: Option<String>,
}

#[test]
fn queueing_model_cases() {
    assert_eq!(queueing_model::ANALYZER_NAME, "queueing-model", "QMC-13");
    for case in cases::<Queueing>(QUEUEING, 10) {
        let sources = PolicySources {
            global: Some(case.data),
            ..PolicySources::default()
        };
        let mut findings = Findings::default();
        let layers = QueueingModelLayers::read(&sources, None, &mut findings);
        assert_eq!(findings.problems.len(), case.refused.len(), "{}", case.id);
        for problem in &findings.problems {
            let Problem::Entry(problem) = problem else {
                panic!("{}: {problem}", case.id);
            };
            let expected = &case.refused[&problem.place.entry];
            assert!(problem.why.contains(expected), "{}: {problem}", case.id);
        }
        if let Some(selected) = case.selected {
            assert_eq!(layers.selected(), selected, "{}", case.id);
        }
        for expected in &case.expect {
            let policy = layers.policy(&ModelKey::new("ns", expected.model.as_str()));
            let id = format!("{} for {}", case.id, expected.model);
            same(
                &id,
                "multiplier",
                policy.slo_multiplier,
                expected.multiplier,
            );
            if let Some(tuning) = expected.tuning {
                assert_eq!(policy.tuning, tuning, "{id}");
            }
            if let Some(targets) = &expected.targets {
                let shown = policy.targets.map_or_else(
                    || "none".to_owned(),
                    |targets| {
                        let first = targets.time_to_first_token.as_millis();
                        format!("{first}/{}", targets.inter_token_latency.as_millis())
                    },
                );
                assert_eq!(&shown, targets, "{id}");
            }
        }
    }
}

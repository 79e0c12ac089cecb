//! Entries of the policy ConfigMaps: which are accepted, and what a model gets from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::{QUEUEING, RESOLUTION, VALIDATION, ZERO, cases, same};
use crate::fixtures::{data, global_sources, texts};
use crate::problem::Severity;
use crate::saturation::BandUse;
use crate::sources::{Data, PolicySources};
use crate::{Diagnostics, Problem, Warning};
use wva_base::duration::format_duration;
use wva_policy::key::ModelKey;
use wva_policy::params::{ANALYZER_NAME, SaturationMethod, SaturationPolicy};

fn refused(diagnostics: &Diagnostics) -> Vec<&str> {
    diagnostics
        .problems
        .iter()
        .filter_map(|problem| match problem {
            Problem::Entry(problem) => Some(problem.place.entry.as_str()),
            Problem::Setting { .. } => None,
        })
        .collect()
}

fn advised(diagnostics: &Diagnostics) -> Vec<&str> {
    let notices = diagnostics.notices.iter();
    let advice = notices.filter(|notice| notice.severity() == Severity::Warning);
    advice.filter_map(Warning::key).collect()
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
    same(id, "queue", thresholds.queue_length_threshold, expected.queue);
    same(id, "kv_spare", thresholds.kv_spare_trigger, expected.kv_spare);
    same(id, "queue_spare", thresholds.queue_spare_trigger, expected.queue_spare);
    same(id, "up", policy.band.scale_up_threshold, expected.up);
    same(id, "down", policy.band.scale_down_boundary, expected.down);
    same(id, "priority", policy.priority, expected.priority);
    if let Some(tokens) = expected.tokens {
        assert_eq!(policy.analysis == SaturationMethod::Tokens, tokens, "{id}");
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
    /// Whether the queueing model decides.
    #[serde(default)]
    queueing_model: bool,
    error: Option<String>,
    /// What is to be known of an entry that is accepted.
    advice: Option<String>,
    policy: Option<ExpectedPolicy>,
}

#[test]
fn saturation_validation_cases() {
    for case in cases::<Validation>(VALIDATION, 20) {
        let text = serde_yaml::to_string(&case.entry).unwrap();
        let sources = global_sources(data(&[("default", &text)]));
        let mut diagnostics = Diagnostics::default();
        let band = if case.queueing_model { BandUse::Everywhere } else { BandUse::Tokens };
        let layers = crate::saturation::read(&sources, band, None, &mut diagnostics);
        let shown = texts(&diagnostics.problems);
        match &case.error {
            Some(error) => {
                assert_eq!(shown.len(), 1, "{}: {shown:?}", case.id);
                assert!(shown[0].contains(error), "{}: {shown:?}", case.id);
            }
            None => assert_eq!(shown, Vec::<String>::new(), "{}", case.id),
        }
        let advice = texts(&diagnostics.notices);
        if let Some(expected) = &case.advice {
            assert!(advice.len() == 1 && advice[0].ends_with(expected), "{}: {advice:?}", case.id);
        }
        if let Some(expected) = &case.policy {
            check_policy(&case.id, &layers.policy(&ModelKey::new("ns", "m")), expected);
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
    let written = |entries: &BTreeMap<String, serde_yaml::Value>| -> Data {
        entries
            .iter()
            .map(|(key, entry)| (key.clone(), serde_yaml::to_string(entry).unwrap()))
            .collect()
    };
    for case in cases::<Resolution>(RESOLUTION, 10) {
        let sources = PolicySources {
            global: Some(written(&case.global)),
            namespaces: case
                .namespaces
                .iter()
                .map(|(name, entries)| (Arc::from(name.as_str()), written(entries)))
                .collect(),
        };
        let mut diagnostics = Diagnostics::default();
        let layers = crate::saturation::read(&sources, BandUse::Tokens, None, &mut diagnostics);
        assert_eq!(refused(&diagnostics), case.refused, "{}", case.id);
        assert_eq!(advised(&diagnostics), case.advised, "{}", case.id);
        for expected in &case.expect {
            let model = ModelKey::new(expected.namespace.as_str(), expected.model.as_str());
            let id = format!("{} for {model}", case.id);
            check_policy(&id, &layers.policy(&model), expected);
            assert_eq!(layers.resolve(&model), layers.policy(&model).thresholds, "{id}");
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
        let sources = global_sources(case.data);
        let mut diagnostics = Diagnostics::default();
        let layers = crate::scale_to_zero::read(&sources, case.switch, None, &mut diagnostics);
        assert_eq!(refused(&diagnostics), case.refused, "{}", case.id);
        assert_eq!(advised(&diagnostics), case.advised, "{}", case.id);
        for expected in &case.expect {
            let model = ModelKey::new(expected.namespace.as_str(), expected.model.as_str());
            let id = format!("{} for {model}", case.id);
            if let Some(enabled) = expected.enabled {
                assert_eq!(layers.enabled(&model), enabled, "{id}");
            }
            if let Some(retention) = &expected.retention {
                assert_eq!(&format_duration(layers.retention(&model)), retention, "{id}");
            }
            if let Some(minimum) = expected.minimum {
                assert_eq!(u32::from(!layers.enabled(&model)), minimum, "{id}");
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
    assert_eq!(ANALYZER_NAME, "queueing-model", "QMC-13");
    for case in cases::<Queueing>(QUEUEING, 10) {
        let sources = global_sources(case.data);
        let mut diagnostics = Diagnostics::default();
        let layers = crate::queueing_model::read(&sources, None, &mut diagnostics);
        assert_eq!(diagnostics.problems.len(), case.refused.len(), "{}", case.id);
        for problem in &diagnostics.problems {
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
            same(&id, "multiplier", policy.slo_multiplier, expected.multiplier);
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

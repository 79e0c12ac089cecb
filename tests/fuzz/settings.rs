//! Texts of every ConfigMap, of the configuration file and of the settings file of `wva plan`.

use std::sync::Arc;

use wva::policy::key::ModelKey;
use wva::policy::params::{ScaleToZeroLayers, ServiceClasses};
use wva::settings::bundle::read_bundle;
use wva::settings::purpose::Purpose;
use wva::settings::saturation::BandUse;
use wva::settings::sources::Data;
use wva::settings::{Diagnostics, MainConfigMap, PolicySources, Sources, start, transition};

use crate::campaign::{Campaign, Memory, Outcome};
use crate::mutate::Grammar;
use crate::seeds::{all, blocks, owned, texts, vectors, yaml};

/// Between the entries of one input.
const BETWEEN: &str = "\n%%\n";

/// A parser of YAML holds several times its text, by kind of token.
const YAML: Memory = Memory::kib(256, 1_500);

const LONGEST_ERROR: usize = 8_000;

/// Entries of a ConfigMap: each a line with its key, and its text.
fn data(text: &str) -> Data {
    let entry = |part: &str| {
        let (key, text) = part.split_once('\n').unwrap_or(("default", part));
        (key.to_owned(), text.to_owned())
    };
    text.split(BETWEEN).map(entry).collect()
}

/// As [`data`] reads it.
fn entries(data: impl IntoIterator<Item = (String, String)>) -> String {
    let parts: Vec<String> = data.into_iter().map(|(key, text)| format!("{key}\n{text}")).collect();
    parts.join(BETWEEN)
}

/// Every `data` of a file of vectors.
fn config_maps(file: &str) -> Vec<String> {
    let vectors = vectors(file);
    let found = all(&vectors, "data").into_iter();
    let found = found.filter_map(|data| serde_yaml::from_value::<Data>(data.clone()).ok());
    found.map(entries).collect()
}

fn are_short(said: impl IntoIterator<Item = impl ToString>) {
    for one in said {
        let text = one.to_string();
        assert!(text.len() <= LONGEST_ERROR, "{text:.400}");
    }
}

fn said(diagnostics: &Diagnostics) {
    are_short(&diagnostics.problems);
    are_short(&diagnostics.notices);
}

/// Reads one ConfigMap as the global one and as one of a namespace, twice.
fn policy<L: PartialEq + std::fmt::Debug>(
    name: &str,
    seeds: Vec<String>,
    words: Vec<String>,
    read: impl Fn(&PolicySources, Option<&L>, &mut Diagnostics) -> L,
    resolve: impl Fn(&L, &ModelKey),
) {
    let check = |input: &[u8]| {
        let data = data(&String::from_utf8_lossy(input));
        let sources = PolicySources {
            global: Some(data.clone()),
            namespaces: [(Arc::from("ns"), data)].into(),
        };
        let mut diagnostics = Diagnostics::default();
        let layers = read(&sources, None, &mut diagnostics);
        said(&diagnostics);
        for model in ["m", "m1", ""] {
            resolve(&layers, &ModelKey::new("ns", model));
        }
        let again = read(&sources, Some(&layers), &mut Diagnostics::default());
        assert_eq!(layers, again, "what was in force is the same text");
        Outcome::from(diagnostics.problems.is_empty())
    };
    Campaign::run(name, Grammar::new(seeds, words, 2 * 1024), YAML, &check);
}

#[test]
fn saturation() {
    let vectors = vectors(include_str!("../vectors/saturation-validation.yaml"));
    let mut seeds: Vec<String> = all(&vectors, "entry")
        .into_iter()
        .map(|entry| entries([("default".to_owned(), yaml(entry))]))
        .collect();
    seeds.push(entries([
        ("default".to_owned(), "kvCacheThreshold: 0.8\nkvSpareTrigger: 0.1\n".to_owned()),
        ("one".to_owned(), "modelId: m\nnamespace: ns\nscaleToZero: {enabled: true}\n".to_owned()),
    ]));
    let words = owned([
        "modelId: m",
        "namespace: ns",
        "analyzers:",
        "limiters:",
        "quotas:",
        "exclude: [",
        "score: ",
    ]);
    policy(
        "settings::saturation",
        seeds,
        words,
        |sources, previous, diagnostics| {
            wva::settings::saturation::read(sources, BandUse::Everywhere, previous, diagnostics)
        },
        |layers, model| {
            let policy = layers.policy(model);
            let shares = [policy.thresholds.kv_cache_threshold, policy.thresholds.kv_spare_trigger];
            assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{policy:?}");
            assert!(policy.priority > 0.0 && policy.priority.is_finite(), "{policy:?}");
            let band = policy.band;
            assert!(band.scale_up_threshold > band.scale_down_boundary, "{policy:?}");
        },
    );
}

#[test]
fn scale_to_zero() {
    let seeds = config_maps(include_str!("../vectors/scale-to-zero.yaml"));
    let words =
        owned(["model_id: ", "enable_scale_to_zero: ", "retention_period: ", "namespace: ns"]);
    let read = |sources: &PolicySources,
                previous: Option<&ScaleToZeroLayers>,
                diagnostics: &mut Diagnostics| {
        wva::settings::scale_to_zero::read(sources, false, previous, diagnostics)
    };
    policy("settings::scale_to_zero", seeds, words, read, |layers, model| {
        assert!(!layers.retention(model).is_zero());
    });
}

#[test]
fn queueing_model() {
    let seeds = config_maps(include_str!("../vectors/queueing-config.yaml"));
    let words = owned([
        "model_id: m",
        "namespace: ns",
        "sloMultiplier: ",
        "targetTTFT: ",
        "targetITL: ",
        "tuningEnabled: ",
    ]);
    policy(
        "settings::queueing_model",
        seeds,
        words,
        wva::settings::queueing_model::read,
        |layers, model| {
            let policy = layers.policy(model);
            assert!(policy.slo_multiplier > 1.0 && policy.slo_multiplier.is_finite(), "{policy:?}");
        },
    );
}

#[test]
fn service_classes() {
    let class = "name: Premium\npriority: 1\ndata:\n- model: m\n  slo-tpot: 24\n  slo-ttft: 500\n- {model: \"*\", slo-tpot: 80.5, slo-ttft: 2000}\n";
    let flat = "- name: Premium\n  priority: 1\n  data: [{model: m, slo-tpot: 24, slo-ttft: 500}]\n- {name: Free, priority: 9, data: []}\n";
    let mut seeds = vec![
        entries([
            ("premium.yaml".to_owned(), class.to_owned()),
            ("free".to_owned(), class.replace("Premium", "Free")),
        ]),
        entries([("serviceClasses".to_owned(), flat.to_owned())]),
    ];
    seeds.extend(config_maps(include_str!("../vectors/queueing-config.yaml")));
    let read = |sources: &PolicySources,
                previous: Option<&ServiceClasses>,
                diagnostics: &mut Diagnostics| {
        wva::settings::service_class::read(sources.global.as_ref(), previous, diagnostics)
    };
    policy(
        "settings::service_classes",
        seeds,
        owned(["slo-tpot: ", "slo-ttft: ", "priority: "]),
        read,
        |classes, model| {
            let _found = classes.targets(&model.model, Some("premium"));
        },
    );
}

/// Environment, configuration file and main ConfigMap together, and then their edit.
#[test]
fn sources() {
    let vectors = vectors(include_str!("../vectors/config.yaml"));
    let mut seeds: Vec<String> = all(&vectors, "file").into_iter().map(yaml).collect();
    seeds.extend(
        all(&vectors, "environment").into_iter().map(|given| format!("{BETWEEN}{}", yaml(given))),
    );
    seeds.push(format!("GLOBAL_OPT_INTERVAL: 30s\nV: 3{BETWEEN}LOG_LEVEL: debug\nWATCH_NAMESPACE: a{BETWEEN}GLOBAL_OPT_INTERVAL: 45s"));
    let words = wva::settings::schema::all().map(|spec| format!("\n{}: ", spec.name));
    let check = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        let mut parts = text.split(BETWEEN);
        let file = parts.next().unwrap_or_default();
        let mut pairs = || -> Data {
            let lines = parts.next().unwrap_or_default().lines();
            let pairs = lines.filter_map(|line| line.split_once(": "));
            pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
        };
        let mut sources = Sources {
            environment: pairs(),
            config_file: Some(file.to_owned()),
            ..Sources::default()
        };
        let main = pairs();
        let url = "https://prometheus.invalid".to_owned();
        sources.environment.entry("PROMETHEUS_BASE_URL".to_owned()).or_insert(url);
        let started = start(&sources);
        match &started {
            Ok(started) => {
                said(&started.diagnostics);
                sources.main = MainConfigMap::Present(main);
                let next = transition(&started.generation, &sources);
                said(&next.diagnostics);
                let current = next.next.as_ref().unwrap_or(&started.generation);
                let settled = transition(current, &sources);
                assert!(settled.next.is_none(), "{:?}", settled.changes);
            }
            Err(errors) => are_short(errors),
        }
        Outcome::from(&started)
    };
    Campaign::run(
        "settings::sources",
        Grammar::new(seeds, words, 2 * 1024),
        Memory::kib(512, 2_000),
        &check,
    );
}

/// The settings file of `wva plan`.
#[test]
fn bundle() {
    let page = include_str!("../../docs/user-guide/plan.md");
    let mut seeds = blocks(page, "yaml");
    seeds.extend(blocks(include_str!("../../docs/user-guide/configuration.md"), "yaml"));
    seeds.extend(texts(&vectors(include_str!("../vectors/config.yaml")), "file"));
    seeds.extend(owned([
        "GLOBAL_OPT_INTERVAL: 45s\nWVA_SCALE_TO_ZERO: true\nsaturation:\n  default:\n    kvCacheThreshold: 0.7\n    kvSpareTrigger: 0.2\nscaleToZero:\n  default: |\n    retention_period: 3m\nqueueingModel:\n  default: {sloMultiplier: 4}\nserviceClasses:\n  premium.yaml: {name: Premium, priority: 1, data: [{model: m, slo-tpot: 24, slo-ttft: 500}]}\nnamespaces:\n  quiet:\n    saturation:\n      default: {kvCacheThreshold: 0.6}\n",
        "saturation: {default: &a {analyzerName: saturation, limiters: [{name: q, type: quota, scope: cluster, quotas: {H100: 4}}]}, one: {<<: *a, modelId: m}}\n",
    ]));
    let words = Purpose::ALL.map(|purpose| format!("\n{}:\n", purpose.as_str()));
    let check = |input: &[u8]| {
        let read = read_bundle(&String::from_utf8_lossy(input));
        if let Err(errors) = &read {
            assert!(!errors.is_empty());
            are_short(errors);
        }
        Outcome::from(&read)
    };
    Campaign::run(
        "settings::bundle",
        Grammar::new(seeds, words, 2 * 1024),
        Memory::kib(512, 2_000),
        &check,
    );
}

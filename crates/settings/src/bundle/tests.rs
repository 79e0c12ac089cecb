use super::*;
use wva_policy::key::ModelKey;
use wva_policy::params::RequiredSignals;

#[test]
fn a_position_is_named_in_a_written_text() {
    let fault = |text: &str| read_bundle(text).unwrap_err().remove(0);
    let as_text = fault("saturation:\n  default: |\n    kvCacheThreshold: 0.7\n    priority: x\n");
    assert!(as_text.ends_with("expected a number at line 2 column 11"), "{as_text}");
    let as_yaml = fault("saturation:\n  default:\n    kvCacheThreshold: 0.7\n    priority: x\n");
    assert!(as_yaml.ends_with("expected a number"), "{as_yaml}");
}

const WHOLE: &str = "
GLOBAL_OPT_INTERVAL: 45s
WVA_SCALE_TO_ZERO: true
saturation:
  default:
    kvCacheThreshold: 0.7
    kvSpareTrigger: 0.2
scaleToZero:
  default: |
    retention_period: 3m
queueingModel:
  default: {sloMultiplier: 4}
serviceClasses:
  premium.yaml: {name: Premium, priority: 1, data: [{model: m, slo-tpot: 24, slo-ttft: 500}]}
namespaces:
  quiet:
    saturation:
      default: {kvCacheThreshold: 0.6}
";

#[test]
fn one_file_holds_every_kind_of_setting() {
    let built_in = DynamicSettings::default();
    let model = ModelKey::new("ns", "m");
    assert_ne!(built_in.interval.as_secs(), 45);
    assert!(!built_in.queueing_model.selected());

    let settings = read_bundle(WHOLE).unwrap();
    assert_eq!(settings.interval.as_secs(), 45);
    assert!(settings.may_go_to_zero(&model));
    let threshold = |namespace| {
        let model = ModelKey::new(namespace, "m");
        settings.saturation.resolve(&model).kv_cache_threshold
    };
    assert!((threshold("ns") - 0.7).abs() < 1e-12);
    assert!((threshold("quiet") - 0.6).abs() < 1e-12);
    assert_eq!(settings.scale_to_zero.retention(&model).as_secs(), 180);
    assert!(settings.queueing_model.selected());
    assert!(settings.service_classes.named("premium").is_some());
}

#[test]
fn no_more_signals_are_needed_than_decisions_rest_on() {
    let tokens = "saturation: {default: {analyzerName: saturation}}";
    let one_model =
        "namespaces: {a: {saturation: {x: {model_id: m, namespace: a, analyzerName: saturation}}}}";
    let tier = "saturation: {default: {kvCacheThreshold: 0.7}, gold: {analyzerName: saturation}}";
    for (text, required_signals) in [
        ("", RequiredSignals::Saturation),
        ("saturation: {default: {kvCacheThreshold: 0.7}}", RequiredSignals::Saturation),
        ("WVA_SCALE_TO_ZERO: true", RequiredSignals::Use),
        ("scaleToZero: {default: {enable_scale_to_zero: true}}", RequiredSignals::Use),
        (tokens, RequiredSignals::Everything),
        (one_model, RequiredSignals::Everything),
        (tier, RequiredSignals::Everything),
        ("saturation: {gold: {scaleToZero: {enabled: true}}}", RequiredSignals::Use),
        ("queueingModel: {default: {sloMultiplier: 4}}", RequiredSignals::Everything),
        ("EXPERIMENTAL_PROACTIVE_MODEL: true", RequiredSignals::Everything),
    ] {
        let settings = read_bundle(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!(settings.required_signals(), required_signals, "{text}");
    }
}

#[test]
fn latency_targets_act_by_whichever_analyzer_reads_them() {
    let targets = "queueingModel: {m: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}}\n\
                   serviceClasses: {a: {name: A, priority: 1, data: [{model: m, slo-tpot: 24, slo-ttft: 500}]}}";
    for (saturation, notes, asks_queueing_model) in [
        ("analyzerName: saturation", 2, false),
        ("analyzers: [{name: saturation}, {name: queueing-model, enabled: false}]", 2, false),
        ("analyzerName: slo", 0, false),
        ("analyzers: [{name: saturation}, {name: slo}]", 0, false),
        ("analyzers: [{name: saturation}, {name: queueing-model}]", 0, true),
    ] {
        let text = format!("saturation: {{default: {{{saturation}}}}}\n{targets}");
        let read = read_noted(&text).unwrap();
        assert_eq!(read.notes.len(), notes, "{saturation}: {:?}", read.notes);
        let asks = read.settings.asks_queueing_model();
        assert_eq!(asks, asks_queueing_model, "{saturation}");
    }
}

#[test]
fn nothing_stated_is_everything_at_its_default() {
    assert_eq!(read_bundle("").unwrap(), DynamicSettings::default());
}

/// What is not accepted, each with a part of its message.
const MISTAKES: &[(&str, &str)] = &[
    ("GLOBAL_OPT_INTERVL: 45s", "did you mean \"GLOBAL_OPT_INTERVAL\"?"),
    ("GLOBAL_OPT_INTERVAL: 45", "GLOBAL_OPT_INTERVAL"),
    ("saturation: 3", "saturation: write the entries"),
    ("saturation: {default: {kvCacheTreshold: 0.7}}", "kvCacheThreshold"),
    ("saturation: {default: {kvCacheThreshold: 70}}", "kvCacheThreshold"),
    (
        "namespaces: {a: {serviceClasses: {}}}",
        "namespaces.a.serviceClasses: service classes are for all namespaces; write \
             serviceClasses at the level of namespaces",
    ),
    (
        "namespaces: {a: {saturaton: {}}}",
        "namespaces.a: unknown section \"saturaton\"; did you mean \"saturation\"? A \
             namespace has saturation, scaleToZero, queueingModel",
    ),
    (
        "foo: 1",
        "no setting is named \"foo\"; remove it, or write a name that wva controller \
             --print-config shows",
    ),
    (
        "saturation: {default: {foo: 1}}",
        "unknown field \"foo\"; write one of modelId, namespace, kvCacheThreshold, ",
    ),
    (
        "saturation: {default: {scaleToZero: {foo: 1}}}",
        "unknown field \"scaleToZero.foo\"; write one of enabled",
    ),
    (
        "scaleToZero: {default: {enabled: true}}",
        "unknown field \"enabled\"; write one of model_id, namespace, \
             enable_scale_to_zero, retention_period",
    ),
    (
        "queueingModel: {default: {slo: 3}}",
        "unknown field \"slo\"; write one of model_id, namespace, sloMultiplier, \
             tuningEnabled, targetTTFT, targetITL",
    ),
    ("namespaces: 7", "write each namespace"),
    ("saturaton: {default: {}}", "unknown section \"saturaton\"; did you mean \"saturation\"?"),
    ("saturation: {default: {kvCacheThreshold: 0.05}}", "should be >= kvSpareTrigger (0.10)"),
    ("saturation: {default: {queueLengthThreshold: 2}}", "should be >= queueSpareTrigger (3.0)"),
    ("saturation: {default: {priority: 1e300}}", "priority must be 0 or between"),
    ("saturation: {default: {analyzerName: saturaton}}", "did you mean \"saturation\"?"),
    ("saturation: {default: {analyzers: [{type: thoughput}]}}", "analyzers[0].type"),
    ("PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD: 3m", "write at most 2m0s"),
    (
        "queueingModel: {default: {}}\nsaturation: {default: {scaleUpThreshold: 0.5}}",
        "scaleUpThreshold (0.50) must be > scaleDownBoundary (0.70)",
    ),
    (
        "EXPERIMENTAL_PROACTIVE_MODEL: true\nsaturation: {default: {scaleUpThreshold: 1.2}}",
        "scaleUpThreshold must be in (0, 1], got 1.20",
    ),
    ("[1, 2]", "not a list of keys"),
    ("a: [", "line"),
];

#[test]
fn every_mistake_is_named_with_its_place() {
    for (text, said) in MISTAKES {
        let texts = read_bundle(text).expect_err(text);
        assert!(texts.join("\n").contains(said), "{text}: {texts:?}");
    }
    let long = "a".repeat(MAX_BUNDLE + 1);
    assert!(read_bundle(&long).is_err());
}

#[test]
fn no_mistake_hides_another_one() {
    let file = |limited: &str, pending: &str, section: &str, kv: &str, more: &str| {
        format!(
            "WVA_LIMITED_MODE: {limited}\nWVA_PENDING_TIME_LIMIT: {pending}\n\
             {section}: {{default: {{}}}}\n\
             saturation: {{default: {{kvCacheThreshold: {kv}}}}}{more}\n"
        )
    };
    let sound = file("true", "5m", "queueingModel", "0.7", "");
    assert!(read_bundle(&sound).is_ok());
    let faulty = file("2", "-5m", "queueingModl", "70", "\nPROMETHEUS_BASE_URL: p");
    let texts = read_bundle(&faulty).unwrap_err();
    let parts = [
        "unknown section \"queueingModl\"",
        "PROMETHEUS_BASE_URL=\"p\"",
        "WVA_LIMITED_MODE=\"2\"",
        "WVA_PENDING_TIME_LIMIT=\"-5m\"",
        "kvCacheThreshold must be between 0 and 1",
    ];
    for part in parts {
        let found = texts.iter().filter(|text| text.contains(part)).count();
        assert_eq!(found, 1, "{part}: {texts:?}");
    }
    assert_eq!(texts.len(), parts.len(), "{texts:?}");
}

#[test]
fn aliases_cannot_make_it_grow_without_end() {
    let part = "x, ".repeat(1_000);
    let uses = "*a, ".repeat(1_000);
    let bomb = format!("a: &a [{part}]\nb: [{uses}]\n");
    let errors = read_bundle(&bomb).unwrap_err();
    assert!(errors[0].contains("too large"), "{errors:?}");
}

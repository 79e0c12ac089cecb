//! All settings in one file: the keys of the configuration file beside the policy ConfigMaps, for a
//! plan that is made at a desk.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_yaml::{Mapping, Value};

use super::problem::{Severity, Warning};
use super::sources::{Data, PolicySources, Sources};
use super::start;
use wva_base::nearest::with_suggestion;
use wva_base::yaml::{MAX_TEXT, YamlError, check_bounds};
use wva_policy::params::DynamicSettings;

/// Largest file that is read, in bytes.
pub const MAX_BUNDLE: usize = 16 * MAX_TEXT;

/// Sections that hold entries of policy ConfigMaps.
const SECTIONS: [&str; 4] = [
    "saturation",
    "scaleToZero",
    "queueingModel",
    "serviceClasses",
];

/// The section of namespaces, each with policy sections of its own.
const NAMESPACES: &str = "namespaces";

/// An address that every setting needs and no plan uses.
const NO_PROMETHEUS: (&str, &str) = ("PROMETHEUS_BASE_URL", "https://prometheus.invalid");

/// Something in a settings file that is not accepted; with its path and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BundleError(pub String);

/// Settings, and what is to be known about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// What is in force.
    pub settings: DynamicSettings,
    /// What a running controller would mention in its log.
    pub notes: Vec<String>,
}

/// Reads settings for one plan, as [`read_noted`] does, without the notes.
pub fn read_bundle(text: &str) -> Result<DynamicSettings, Vec<BundleError>> {
    Ok(read_noted(text)?.settings)
}

/// Reads settings for one plan. What was meant and does not act, such as a key that nobody knows, is
/// refused, where a running controller would only mention it: nobody watches a log at a desk.
pub fn read_noted(text: &str) -> Result<Bundle, Vec<BundleError>> {
    let (sources, form) = sources(text)?;
    let said = |error: &dyn ToString| BundleError(form.placed(&error.to_string()));
    let started = start(&sources)
        .map_err(|errors| errors.iter().map(|error| said(error)).collect::<Vec<_>>())?;
    // Nothing is in force instead: there is no plan.
    let problems = started.diagnostics.problems.iter();
    let mut errors: Vec<BundleError> = problems.map(|problem| said(&problem.subject())).collect();
    let is_mistake = |notice: &&Warning| notice.severity() == Severity::Mistake;
    let (mistakes, notes): (Vec<_>, Vec<_>) =
        started.diagnostics.notices.iter().partition(is_mistake);
    errors.extend(mistakes.into_iter().map(|mistake| said(mistake)));
    if errors.is_empty() {
        Ok(Bundle {
            settings: (*started.generation.dynamic).clone(),
            notes: notes.into_iter().map(ToString::to_string).collect(),
        })
    } else {
        Err(errors)
    }
}

/// How the entries of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Each as the text that a ConfigMap holds, or there are none.
    Text,
    /// At least one as YAML of the file itself, which is written anew before it is read.
    Yaml,
}

impl Form {
    /// A message without the position in a text that nobody wrote.
    fn placed(self, message: &str) -> String {
        match message.rsplit_once(" at line ") {
            Some((before, position)) if self == Self::Yaml => {
                let mut rest = position.split_once(" column ").map_or("", |(_, rest)| rest);
                rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
                format!("{before}{rest}")
            }
            _ => message.to_owned(),
        }
    }
}

fn sources(text: &str) -> Result<(Sources, Form), Vec<BundleError>> {
    let one = |why: String| vec![BundleError(why)];
    if text.len() > MAX_BUNDLE {
        let size = text.len();
        return Err(one(format!(
            "the settings have {size} bytes; at most {MAX_BUNDLE} are read"
        )));
    }
    let text = text.trim_start_matches('\u{feff}');
    check_bounds(text).map_err(|error| one(error.to_string()))?;
    let mut keys = match serde_yaml::from_str(text) {
        Ok(Value::Null) => Mapping::new(),
        Ok(Value::Mapping(keys)) => keys,
        Ok(_) => {
            return Err(one(
                "the settings are not a list of keys with values".to_owned()
            ));
        }
        Err(error) => return Err(one(YamlError::from(error).to_string())),
    };
    let form = form_of(&keys);
    let mut errors = Vec::new();
    let mut sources = Sources::default();
    let [saturation, to_zero, queueing, classes] =
        SECTIONS.map(|section| take(&mut keys, section, section, &mut errors));
    sources.saturation.global = saturation;
    sources.scale_to_zero.global = to_zero;
    sources.queueing_model.global = queueing;
    sources.service_classes = classes;
    if let Some(namespaces) = keys.remove(NAMESPACES) {
        read_namespaces(namespaces, &mut sources, &mut errors);
    }
    errors.extend(keys.iter().filter_map(unknown_section));
    if !errors.is_empty() {
        return Err(errors);
    }
    let (key, address) = NO_PROMETHEUS;
    if !keys.contains_key(key) {
        sources
            .environment
            .insert(key.to_owned(), address.to_owned());
    }
    let rest = serde_yaml::to_string(&keys).map_err(|error| one(error.to_string()))?;
    sources.config_file = Some(rest);
    Ok((sources, form))
}

fn form_of(keys: &Mapping) -> Form {
    let namespaces = keys.get(NAMESPACES).and_then(Value::as_mapping);
    let namespaces = namespaces.into_iter().flat_map(Mapping::values);
    let scopes = std::iter::once(keys).chain(namespaces.filter_map(Value::as_mapping));
    let sections = scopes.flat_map(|scope| SECTIONS.iter().filter_map(|name| scope.get(*name)));
    let mut entries = sections
        .filter_map(Value::as_mapping)
        .flat_map(Mapping::values);
    if entries.all(Value::is_string) {
        Form::Text
    } else {
        Form::Yaml
    }
}

/// A key with more than a single value below it, which none of the settings has.
fn unknown_section((key, value): (&Value, &Value)) -> Option<BundleError> {
    let key = key.as_str()?;
    matches!(value, Value::Mapping(_) | Value::Sequence(_)).then(|| {
        let known = SECTIONS.into_iter().chain([NAMESPACES]);
        BundleError(format!(
            "sections are {}, and other keys take a single value: unknown section {}",
            known.clone().collect::<Vec<_>>().join(", "),
            with_suggestion(key, known)
        ))
    })
}

fn read_namespaces(value: Value, sources: &mut Sources, errors: &mut Vec<BundleError>) {
    let Value::Mapping(namespaces) = value else {
        errors.push(BundleError(format!(
            "{NAMESPACES}: write each namespace with its policy sections below it"
        )));
        return;
    };
    for (name, sections) in namespaces {
        let (Value::String(name), Value::Mapping(mut sections)) = (name, sections) else {
            errors.push(BundleError(format!(
                "{NAMESPACES}: write each namespace with its policy sections below it"
            )));
            continue;
        };
        let mut put = |policy: &mut PolicySources, section: &str| {
            let path = format!("{NAMESPACES}.{name}.{section}");
            if let Some(data) = take(&mut sections, section, &path, errors) {
                policy.namespaces.insert(Arc::from(name.as_str()), data);
            }
        };
        put(&mut sources.saturation, SECTIONS[0]);
        put(&mut sources.scale_to_zero, SECTIONS[1]);
        put(&mut sources.queueing_model, SECTIONS[2]);
        let unknown = sections.keys().filter_map(Value::as_str);
        errors.extend(unknown.map(|key| BundleError(unknown_of_namespace(&name, key))));
    }
}

/// A section that a namespace does not have.
fn unknown_of_namespace(name: &str, key: &str) -> String {
    let [saturation, to_zero, queueing, classes] = SECTIONS;
    if key == classes {
        return format!(
            "{NAMESPACES}.{name}.{classes}: service classes are for all namespaces; write {classes} \
             beside {NAMESPACES}"
        );
    }
    let own = [saturation, to_zero, queueing];
    let unknown = with_suggestion(key, own);
    let dot = if unknown.ends_with('?') { "" } else { "." };
    format!(
        "{NAMESPACES}.{name}: unknown section {unknown}{dot} A namespace has {}",
        own.join(", ")
    )
}

/// Takes the entries of one ConfigMap out of a mapping: each a text, as in a ConfigMap, or YAML.
fn take(
    keys: &mut Mapping,
    section: &str,
    path: &str,
    errors: &mut Vec<BundleError>,
) -> Option<Data> {
    let Value::Mapping(entries) = keys.remove(section)? else {
        errors.push(BundleError(format!(
            "{path}: write the entries of its ConfigMap below it, such as default"
        )));
        return None;
    };
    let mut data = BTreeMap::new();
    for (name, entry) in entries {
        let text = match entry {
            Value::String(text) => Ok(text),
            other => serde_yaml::to_string(&other),
        };
        match (name, text) {
            (Value::String(name), Ok(text)) => {
                data.insert(name, text);
            }
            (_, Err(error)) => errors.push(BundleError(format!("{path}: {error}"))),
            (name, Ok(_)) => errors.push(BundleError(format!(
                "{path}: {name:?} is no name of an entry; write text such as default"
            ))),
        }
    }
    Some(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wva_policy::key::ModelKey;
    use wva_policy::params::RequiredSignals;

    #[test]
    fn a_position_is_told_in_a_text_that_somebody_wrote() {
        let fault = |text: &str| read_bundle(text).unwrap_err().remove(0).to_string();
        let as_text =
            fault("saturation:\n  default: |\n    kvCacheThreshold: 0.7\n    priority: x\n");
        assert!(
            as_text.ends_with("expected a number at line 2 column 11"),
            "{as_text}"
        );
        let as_yaml =
            fault("saturation:\n  default:\n    kvCacheThreshold: 0.7\n    priority: x\n");
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
        let one_model = "namespaces: {a: {saturation: {x: {model_id: m, namespace: a, analyzerName: saturation}}}}";
        let tier =
            "saturation: {default: {kvCacheThreshold: 0.7}, gold: {analyzerName: saturation}}";
        for (text, required_signals) in [
            ("", RequiredSignals::Saturation),
            (
                "saturation: {default: {kvCacheThreshold: 0.7}}",
                RequiredSignals::Saturation,
            ),
            ("WVA_SCALE_TO_ZERO: true", RequiredSignals::Use),
            (
                "scaleToZero: {default: {enable_scale_to_zero: true}}",
                RequiredSignals::Use,
            ),
            (tokens, RequiredSignals::Everything),
            (one_model, RequiredSignals::Everything),
            (tier, RequiredSignals::Everything),
            (
                "saturation: {gold: {scaleToZero: {enabled: true}}}",
                RequiredSignals::Use,
            ),
            (
                "queueingModel: {default: {sloMultiplier: 4}}",
                RequiredSignals::Everything,
            ),
            (
                "EXPERIMENTAL_PROACTIVE_MODEL: true",
                RequiredSignals::Everything,
            ),
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
            (
                "analyzers: [{name: saturation}, {name: queueing-model, enabled: false}]",
                2,
                false,
            ),
            ("analyzerName: slo", 0, false),
            ("analyzers: [{name: saturation}, {name: slo}]", 0, false),
            (
                "analyzers: [{name: saturation}, {name: queueing-model}]",
                0,
                true,
            ),
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
        (
            "GLOBAL_OPT_INTERVL: 45s",
            "did you mean \"GLOBAL_OPT_INTERVAL\"?",
        ),
        ("GLOBAL_OPT_INTERVAL: 45", "GLOBAL_OPT_INTERVAL"),
        ("saturation: 3", "saturation: write the entries"),
        (
            "saturation: {default: {kvCacheTreshold: 0.7}}",
            "kvCacheThreshold",
        ),
        (
            "saturation: {default: {kvCacheThreshold: 70}}",
            "kvCacheThreshold",
        ),
        (
            "namespaces: {a: {serviceClasses: {}}}",
            "namespaces.a.serviceClasses: service classes are for all namespaces; write \
                 serviceClasses beside namespaces",
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
        (
            "saturaton: {default: {}}",
            "unknown section \"saturaton\"; did you mean \"saturation\"?",
        ),
        (
            "saturation: {default: {kvCacheThreshold: 0.05}}",
            "should be >= kvSpareTrigger (0.10)",
        ),
        (
            "saturation: {default: {queueLengthThreshold: 2}}",
            "should be >= queueSpareTrigger (3.0)",
        ),
        (
            "saturation: {default: {priority: 1e300}}",
            "priority must be 0 or between",
        ),
        (
            "saturation: {default: {analyzerName: saturaton}}",
            "did you mean \"saturation\"?",
        ),
        (
            "saturation: {default: {analyzers: [{type: thoughput}]}}",
            "analyzers[0].type",
        ),
        (
            "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD: 3m",
            "write at most 2m0s",
        ),
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
            let errors = read_bundle(text).expect_err(text);
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert!(texts.join("\n").contains(said), "{text}: {texts:?}");
        }
        let long = "a".repeat(MAX_BUNDLE + 1);
        assert!(read_bundle(&long).is_err());
    }

    #[test]
    fn aliases_cannot_make_it_grow_without_end() {
        let part = "x, ".repeat(1_000);
        let uses = "*a, ".repeat(1_000);
        let bomb = format!("a: &a [{part}]\nb: [{uses}]\n");
        let errors = read_bundle(&bomb).unwrap_err();
        assert!(errors[0].to_string().contains("too large"), "{errors:?}");
    }
}

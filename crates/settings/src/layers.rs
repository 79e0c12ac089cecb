//! From sources to values: flags beat the environment, that beats the main ConfigMap (or the file in
//! its place), that beats the defaults.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::help::dashed;
use super::problem::{
    Diagnostics, FallbackApplied, InvalidValue, Layer, Origin, Problem, SettingError, Severity,
    Warning,
};
use super::schema::{self, Mutability, Reach, SettingState, Spec};
use super::sources::{Data, MainConfigMap, Sources};
use super::value::Value;
use super::values::{Resolved, SettingValues};
use wva_base::nearest::{nearest, with_suggestion};
use wva_base::text::shortened;
use wva_base::yaml::{FlatYaml, flat_yaml};

/// Key of a main ConfigMap that holds further keys as one YAML document, as the original's chart
/// ships it.
const NESTED_FILE: &str = "config.yaml";

const MAX_UNKNOWN: usize = 32;

const SINGLE: &str = "a single value is expected";
const FILE_IN_PLACE: &str = "--config-file takes the place of the main ConfigMap, which is not read; drop the flag to \
                             change settings while running";
/// What to do about a name that resembles none.
const UNNAMED: &str = "; remove it, or write a name that wva controller --print-config shows";

/// What came out of the sources.
#[derive(Debug, Clone)]
pub struct Resolution {
    /// A value for every setting.
    pub values: SettingValues,
    /// What forbids to start.
    pub fatal: Vec<SettingError>,
    /// What is refused or worth a line without forbidding it.
    pub diagnostics: Diagnostics,
}

/// Resolves every setting. Without `previous` this is a start: a live value of the ConfigMap that is
/// not accepted takes the layer below, and everything else that is not accepted is fatal. With
/// `previous` static settings keep their value, and so does a live one whose new text is refused.
pub fn resolve(sources: &Sources, previous: Option<&SettingValues>) -> Resolution {
    let mut resolver = Resolver {
        previous,
        found: Resolution {
            values: previous.cloned().unwrap_or_default(),
            fatal: Vec::new(),
            diagnostics: Diagnostics::default(),
        },
    };
    let base = match base_texts(sources) {
        Ok(base) => base,
        Err(error) if previous.is_some() => {
            resolver.report(error, FallbackApplied::Previous);
            return resolver.found;
        }
        Err(error) => {
            resolver.found.fatal.push(error);
            Base::default()
        }
    };
    let layers = [
        Texts::of_flags(sources),
        Texts::new(Layer::Environment, &sources.environment),
        Texts { nested: Some(&base.nested), ..Texts::new(base.layer, &base.texts) },
    ];
    for spec in schema::all() {
        if previous.is_none() || spec.change == Mutability::Live {
            resolver.resolve(spec, &layers);
        }
    }
    resolver.unknown_keys(&base);
    resolver.refuse_nested(sources, &base);
    if previous.is_none() {
        resolver.check_required();
        resolver.mention_effectless();
    }
    if sources.config_file.is_some() && matches!(sources.main, MainConfigMap::Present(_)) {
        resolver.remark(FILE_IN_PLACE.to_owned());
    }
    resolver.found
}

struct Resolver<'a> {
    previous: Option<&'a SettingValues>,
    found: Resolution,
}

impl Resolver<'_> {
    fn resolve(&mut self, spec: &'static Spec, layers: &[Texts<'_>]) {
        let mut chosen: Option<Resolved> = None;
        for texts in layers {
            let Some((origin, text)) = texts.find(spec) else {
                continue;
            };
            self.mention_alias(spec, &origin);
            for second in texts.others(spec, &origin) {
                let text = format!(
                    "{second} does not count next to {}, which names the same setting; remove one",
                    origin.name
                );
                self.note(Severity::Warning, &second, text);
            }
            match texts.parse(spec, &origin, text) {
                Ok(value) if chosen.is_none() => chosen = Some(Resolved { value, origin }),
                Ok(_) => {}
                Err(refusal) => {
                    let error =
                        SettingError { key: spec.name, value: spec.show(text), origin, refusal };
                    self.refuse(spec, error, &mut chosen);
                }
            }
        }
        let resolved = chosen.unwrap_or_else(|| SettingValues::default().get(spec));
        self.found.values.put(spec, resolved);
    }

    /// Decides what a refused text means: the end, the previous value, or the layer below.
    fn refuse(&mut self, spec: &Spec, error: SettingError, chosen: &mut Option<Resolved>) {
        let own_process = matches!(error.origin.layer, Layer::Flag | Layer::Environment);
        match self.previous {
            None if own_process => self.found.fatal.push(error),
            _ if chosen.is_some() => self.report(error, FallbackApplied::Above),
            None if spec.change == Mutability::Static => self.found.fatal.push(error),
            None => self.report(error, FallbackApplied::Below),
            Some(previous) => {
                *chosen = Some(previous.get(spec));
                self.report(error, FallbackApplied::Previous);
            }
        }
    }

    fn report(&mut self, error: SettingError, instead: FallbackApplied) {
        let problem = Problem::Setting { error, instead };
        self.found.diagnostics.problems.push(problem);
    }

    fn note(&mut self, severity: Severity, origin: &Origin, text: String) {
        let notice = Warning::of_text(severity, origin, text);
        self.found.diagnostics.notices.push(notice);
    }

    fn remark(&mut self, text: String) {
        self.found.diagnostics.notices.push(Warning::remark(text));
    }

    fn mention_alias(&mut self, spec: &'static Spec, origin: &Origin) {
        let recommended = match origin.layer {
            Layer::Flag => {
                spec.flags.first().map_or_else(|| spec.name.to_owned(), |flag| dashed(flag))
            }
            _ => spec.name.to_owned(),
        };
        if !origin.name.eq_ignore_ascii_case(&recommended) {
            let text = format!("{origin} is an older name; write {recommended}");
            self.note(Severity::Remark, origin, text);
        }
    }

    /// Names keys of the ConfigMap or file that no setting has, or that act elsewhere only.
    fn unknown_keys(&mut self, base: &Base) {
        let mut unknown = 0;
        for name in base.texts.keys().filter(|name| !base.nested.contains(*name)) {
            let origin = Origin { layer: base.layer, name: shortened(name) };
            match schema::all().find(|spec| spec.is_named(name)) {
                Some(spec) if spec.reach == Reach::Everywhere => {}
                Some(_) => {
                    let text = format!("{origin} has no effect there; set it in the environment");
                    self.note(Severity::Mistake, &origin, text);
                }
                None if unknown >= MAX_UNKNOWN => {}
                None => {
                    unknown += 1;
                    let nearest = nearest(name, schema::all().flat_map(Spec::names));
                    let remedy = nearest.map_or(UNNAMED, |_| "");
                    let suggestion = with_suggestion(&origin.name, nearest);
                    let text =
                        format!("{}: no setting is named {suggestion}{remedy}", origin.layer);
                    self.note(Severity::Mistake, &origin, text);
                }
            }
        }
    }

    fn refuse_nested(&mut self, sources: &Sources, base: &Base) {
        let is_read = |name: &str| {
            schema::all().any(|spec| spec.reach == Reach::Everywhere && spec.is_named(name))
        };
        let unread = base.nested.iter().filter(|name| !is_read(name));
        for name in unread.take(MAX_UNKNOWN) {
            let why = format!("{}: {SINGLE}", shortened(name));
            let error = unreadable(sources, base.layer, &why);
            match self.previous {
                None => self.found.fatal.push(error),
                Some(_) => self.report(error, FallbackApplied::Previous),
            }
        }
    }

    fn check_required(&mut self) {
        let spec = &schema::PROMETHEUS_BASE_URL;
        let refused = self.found.fatal.iter().any(|error| error.key == spec.name);
        let resolved = self.found.values.get(spec);
        if resolved.value == Value::Unset && !refused {
            self.found.fatal.push(SettingError {
                key: spec.name,
                value: String::new(),
                origin: resolved.origin,
                refusal: InvalidValue::new(
                    "prometheus configuration is required but not found. set \
                     PROMETHEUS_BASE_URL in config file or environment variable",
                    "the main ConfigMap will do as well; write for example \
                     https://prometheus.monitoring.svc:9090",
                ),
            });
        }
    }

    fn mention_effectless(&mut self) {
        for spec in schema::all().filter(|spec| spec.state != SettingState::Active) {
            if self.found.values.get(spec).origin.layer != Layer::Default {
                self.remark(format!("{} is {}", spec.name, spec.state));
            }
        }
    }
}

struct Texts<'a> {
    layer: Layer,
    /// Spellings of a name that came after the one that counts.
    later: Vec<&'a str>,
    /// Names of lists and mappings.
    nested: Option<&'a BTreeSet<String>>,
    by_name: BTreeMap<String, (&'a str, &'a str)>,
}

impl<'a> Texts<'a> {
    /// Of several spellings of one name the first in byte order counts; upper case comes first. An
    /// empty text is no text.
    fn new(layer: Layer, data: &'a Data) -> Self {
        let mut by_name = BTreeMap::new();
        let mut further = Vec::new();
        for (name, text) in data.iter().filter(|(_, text)| !text.is_empty()) {
            match by_name.entry(name.to_ascii_uppercase()) {
                Entry::Vacant(place) => {
                    place.insert((name.as_str(), text.as_str()));
                }
                Entry::Occupied(_) => further.push(name.as_str()),
            }
        }
        Self { layer, later: further, nested: None, by_name }
    }

    fn of_flags(sources: &'a Sources) -> Self {
        let flags = sources.flags.iter();
        let by_name = flags
            .map(|(key, given)| ((*key).to_owned(), (given.name, given.text.as_str())))
            .collect();
        Self { layer: Layer::Flag, later: Vec::new(), nested: None, by_name }
    }

    fn others(&self, spec: &Spec, counts: &Origin) -> Vec<Origin> {
        if matches!(self.layer, Layer::Flag | Layer::Default) {
            return Vec::new();
        }
        let aliases =
            spec.names().filter_map(|name| self.by_name.get(name).map(|(written, _)| *written));
        let same = self.later.iter().copied().filter(|name| spec.is_named(name));
        aliases
            .chain(same)
            .filter(|name| *name != counts.name)
            .map(|name| Origin { layer: self.layer, name: shortened(name) })
            .collect()
    }

    fn parse(&self, spec: &Spec, origin: &Origin, text: &str) -> Result<Value, InvalidValue> {
        if self.nested.is_some_and(|nested| nested.contains(&origin.name)) {
            return Err(InvalidValue::new(SINGLE, "write KEY: value on one line"));
        }
        spec.parse(text)
    }

    fn find(&self, spec: &Spec) -> Option<(Origin, &'a str)> {
        let reached = match self.layer {
            Layer::Flag | Layer::Default => true,
            Layer::Environment => spec.reach != Reach::Flag,
            Layer::ConfigMap | Layer::ConfigFile => spec.reach == Reach::Everywhere,
        };
        let (name, text) =
            spec.names().filter(|_| reached).find_map(|name| self.by_name.get(name).copied())?;
        let name = match self.layer {
            Layer::Flag => dashed(name),
            _ => name.to_owned(),
        };
        let layer = self.layer;
        Some((Origin { layer, name }, text))
    }
}

/// The layer under the environment: keys of the main ConfigMap, or of the file in its place.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) layer: Layer,
    pub(super) texts: Data,
    /// Keys with a list or a mapping.
    nested: BTreeSet<String>,
}

impl Default for Base {
    fn default() -> Self {
        Self { layer: Layer::ConfigMap, texts: Data::new(), nested: BTreeSet::new() }
    }
}

impl Base {
    /// The text for a setting as the cluster says it, under any of its names; empty texts count.
    pub(super) fn written(&self, spec: &Spec) -> Option<&str> {
        spec.names().find_map(|known| {
            self.texts
                .iter()
                .find(|(name, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, text)| text.as_str())
        })
    }
}

pub(super) fn base_texts(sources: &Sources) -> Result<Base, SettingError> {
    let read = |layer, text: &str| {
        flat_yaml(text).map_err(|error| unreadable(sources, layer, &error.to_string()))
    };
    let (layer, found) = match (&sources.config_file, &sources.main) {
        (Some(text), _) => (Layer::ConfigFile, read(Layer::ConfigFile, text)?),
        (None, MainConfigMap::Present(data)) => {
            let layer = Layer::ConfigMap;
            let nested = data.get(NESTED_FILE).map(|text| read(layer, text));
            let mut found = nested.transpose()?.unwrap_or_default();
            for (name, text) in data.iter().filter(|(name, _)| *name != NESTED_FILE) {
                found.nested.remove(name);
                found.texts.insert(name.clone(), text.clone());
            }
            (layer, found)
        }
        (None, MainConfigMap::Absent | MainConfigMap::NotRead) => return Ok(Base::default()),
    };
    let FlatYaml { texts, nested } = found;
    Ok(Base { layer, texts, nested })
}

fn unreadable(sources: &Sources, layer: Layer, why: &str) -> SettingError {
    let path = sources.flags.get(schema::CONFIG_FILE.name);
    let (name, path) = match layer {
        Layer::ConfigFile => ("--config-file", path),
        _ => (NESTED_FILE, None),
    };
    SettingError {
        key: schema::CONFIG_FILE.name,
        value: path.map_or_else(String::new, |given| given.text.clone()),
        origin: Origin { layer, name: name.to_owned() },
        refusal: InvalidValue::new(
            format!("failed to load config: {why}"),
            "write one KEY: value per line",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::{start, transition};
    use crate::sources::GivenFlag;
    use std::time::Duration;

    fn of_file(text: &str) -> Sources {
        Sources { config_file: Some(text.to_owned()), ..Sources::default() }
    }

    #[test]
    fn a_key_with_several_values_hides_no_other_fault() {
        let address = "PROMETHEUS_BASE_URL: https://p:9090\n";
        assert!(start(&of_file(address)).is_ok());
        let faults = "LEADER_ELECT: [true]\nMETRICS_SECURE: maybe\nCONFIG_MAP_NAME: {a: b}\n\
                      POD_NAMESPACE: [a]\nextra: {b: 1}\n";
        let mut sources = of_file(&format!("{address}{faults}"));
        let given = GivenFlag { name: "config-file", text: "/wva.yaml".to_owned() };
        sources.flags.insert(schema::CONFIG_FILE.name, given);
        let refused = start(&sources).unwrap_err();
        let mut refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
        refused.sort();
        assert_eq!(
            refused,
            [
                "CONFIG_FILE=\"/wva.yaml\" (configuration file --config-file): failed to load config: CONFIG_MAP_NAME: \
                 a single value is expected; write one KEY: value per line",
                "CONFIG_FILE=\"/wva.yaml\" (configuration file --config-file): failed to load config: POD_NAMESPACE: \
                 a single value is expected; write one KEY: value per line",
                "CONFIG_FILE=\"/wva.yaml\" (configuration file --config-file): failed to load config: extra: \
                 a single value is expected; write one KEY: value per line",
                "LEADER_ELECT=\"[true]\" (configuration file LEADER_ELECT): a single value is expected; \
                 write KEY: value on one line",
                "METRICS_SECURE=\"maybe\" (configuration file METRICS_SECURE): it is neither true nor false; \
                 write true or false",
            ]
        );
    }

    #[test]
    fn a_live_key_with_several_values_keeps_its_value_and_no_other_one() {
        let with = |nested: &str| {
            let nested = (NESTED_FILE.to_owned(), nested.to_owned());
            let address = ("PROMETHEUS_BASE_URL".to_owned(), "https://p".to_owned());
            Sources {
                main: MainConfigMap::Present(Data::from([nested, address])),
                ..Sources::default()
            }
        };
        let before = start(&with("GLOBAL_OPT_INTERVAL: 5s\nWVA_REPLICA_START_TIME: 30s"));
        let before = before.unwrap().generation;
        let edited = with("GLOBAL_OPT_INTERVAL: [9s]\nWVA_REPLICA_START_TIME: 40s\nextra: []");
        let after = transition(&before, &edited);
        let said: Vec<String> =
            (after.diagnostics.problems.iter()).map(ToString::to_string).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        let kept = "GLOBAL_OPT_INTERVAL=\"[9s]\" (main ConfigMap GLOBAL_OPT_INTERVAL): a single value is \
                    expected; write KEY: value on one line; what was in force stays in force";
        assert_eq!(said[0], kept);
        let next = after.next.unwrap();
        assert_eq!(next.dynamic.interval, Duration::from_secs(5));
        assert_eq!(next.dynamic.start_time, Duration::from_secs(40));
    }
}

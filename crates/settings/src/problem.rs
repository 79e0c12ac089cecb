//! What is said about settings: values and entries that are refused, and things worth a line that
//! are in force all the same. All of it is ordered, so that new findings differ from old ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::config_maps::Purpose;
use super::schema::SettingState;
use super::value::InvalidValue;
use wva_base::nearest::{LONGEST_KEY, with_suggestion};
use wva_base::text::bounded;

wva_base::named! {
    shown
    /// A layer of sources; an earlier one wins.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Layer {
        /// The command line.
        Flag = "flag",
        /// The environment of the process.
        Environment = "environment",
        /// The main ConfigMap.
        ConfigMap = "main ConfigMap",
        /// The file in its place.
        ConfigFile = "configuration file",
        /// Built in.
        Default = "default",
    }
}

/// Where exactly a text was found: the layer and the name used there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The layer.
    pub layer: Layer,
    /// Flag with dashes, or key as written.
    pub name: String,
}

impl Origin {
    /// The key in the data of the main ConfigMap, if the text is there.
    fn key(&self) -> Option<&str> {
        (self.layer == Layer::ConfigMap).then_some(self.name.as_str())
    }
}

wva_base::display_of! { Origin:
    Self { layer: Layer::Default, .. } => "{}", Layer::Default;
    Self { layer, name } => "{layer} {name}";
}

/// A value that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{key}={value:?} ({origin}): {why}; {remedy}", why = .refusal.why, remedy = .refusal.remedy)]
pub struct SettingError {
    /// Key of the schema.
    pub key: &'static str,
    /// The value as people may see it.
    pub value: String,
    /// Where it was found.
    pub origin: Origin,
    /// Why, and what to write instead.
    pub refusal: InvalidValue,
}

wva_base::named! {
    shown
    /// What is in force instead of an entry or value that was refused while running or at start.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum FallbackApplied {
        /// What was in force before the edit.
        Previous = "what was in force stays in force",
        /// The layers below.
        Below = "the layers below apply",
        /// A layer above, which shadows it anyway.
        Above = "a flag or the environment is in force",
        /// What is built in, where layers contradict each other.
        BuiltIn = "there the built-in values apply",
    }
}

/// Where an entry of a policy ConfigMap is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryPlace {
    /// Which ConfigMap.
    pub purpose: Purpose,
    /// The namespace that overrides, or `None` for the global one.
    pub namespace: Option<Arc<str>>,
    /// Key in its data.
    pub entry: String,
}

impl EntryPlace {
    /// That of an entry under a key.
    pub fn new(purpose: Purpose, namespace: Option<&Arc<str>>, entry: &str) -> Self {
        Self {
            purpose,
            namespace: namespace.cloned(),
            entry: entry.to_owned(),
        }
    }

    /// What its ConfigMap is for, and the namespace.
    pub fn config_map(&self) -> (Purpose, Option<&Arc<str>>) {
        (self.purpose, self.namespace.as_ref())
    }
}

/// Most letters of a text about one entry: it quotes the entry, which may be as long as a ConfigMap.
const LONGEST_TEXT: usize = 4_000;

wva_base::display_of! { EntryPlace:
    Self { purpose, namespace: Some(namespace), entry } =>
        "{purpose} of namespace {namespace}, entry {:?}", bounded(entry, LONGEST_KEY);
    Self { purpose, namespace: None, entry } => "global {purpose}, entry {:?}", bounded(entry, LONGEST_KEY);
}

/// An entry of a policy ConfigMap, or a part of it, that is not accepted; the others are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{place}: {why}; {instead}", why = bounded(.why, LONGEST_TEXT))]
pub struct EntryProblem {
    /// Where.
    pub place: EntryPlace,
    /// Every fault of the entry.
    pub why: String,
    /// What is in force instead.
    pub instead: FallbackApplied,
}

/// Something that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Problem {
    /// A value of the main ConfigMap.
    #[error("{error}; {instead}")]
    Setting {
        /// What is wrong with it.
        error: SettingError,
        /// What is in force instead.
        instead: FallbackApplied,
    },
    /// An entry of a policy ConfigMap.
    #[error(transparent)]
    Entry(#[from] EntryProblem),
}

impl Problem {
    /// The ConfigMap that it is about.
    pub fn purpose(&self) -> Purpose {
        match self {
            Self::Setting { .. } => Purpose::Main,
            Self::Entry(problem) => problem.place.purpose,
        }
    }

    /// What the ConfigMap that it is about is for, and its namespace; `None` is the controller's.
    pub fn config_map(&self) -> (Purpose, Option<&Arc<str>>) {
        match self {
            Self::Setting { .. } => (Purpose::Main, None),
            Self::Entry(problem) => problem.place.config_map(),
        }
    }

    /// The key in the data of that ConfigMap; `None` where the value is in another layer.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Setting { error, .. } => error.origin.key(),
            Self::Entry(problem) => Some(&problem.place.entry),
        }
    }

    /// What is wrong, whatever is in force instead: that changes from the first look to the second.
    pub fn subject(&self) -> String {
        match self {
            Self::Setting { error, .. } => error.to_string(),
            Self::Entry(EntryProblem { place, why, .. }) => format!("{place}: {why}"),
        }
    }
}

/// Something worth a line in the log that refuses nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warning {
    /// An older documented name was used.
    AliasUsed {
        /// Where.
        origin: Origin,
        /// The name to use.
        key: String,
    },
    /// A second spelling of a setting in the same layer, which does not count.
    SecondSpelling {
        /// Where.
        origin: Origin,
        /// The spelling that counts.
        counts: String,
    },
    /// A key of the main ConfigMap that no setting has.
    UnknownKey {
        /// Where.
        origin: Origin,
        /// The key it was probably meant to be.
        nearest: Option<&'static str>,
    },
    /// A key that has no effect in this layer.
    OutOfReach {
        /// Where.
        origin: Origin,
    },
    /// A setting is set that does not act.
    WithoutEffect {
        /// The setting.
        key: &'static str,
        /// Whether it acts.
        state: SettingState,
    },
    /// A field that no entry of this kind has.
    UnknownField {
        /// The entry.
        place: EntryPlace,
        /// Path of the field.
        field: String,
        /// What to write instead.
        remedy: String,
    },
    /// A ConfigMap with an older documented name.
    OlderConfigMap {
        /// What it is for.
        purpose: Purpose,
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        name: String,
        /// The name to use.
        current: String,
        /// Whether it is read; it is not if the current one exists too.
        read: bool,
    },
    /// The configuration file takes the place of a main ConfigMap that exists.
    FileInPlaceOfConfigMap,
    /// A value of an entry that is accepted and means nothing.
    WithoutMeaning {
        /// The entry.
        place: EntryPlace,
        /// The value, with its path, and what to write instead.
        text: String,
    },
    /// Anything else about settings as a whole.
    Advice {
        /// What is set.
        subject: String,
        /// What to know about it.
        text: String,
    },
    /// Anything else about an entry.
    EntryAdvice {
        /// The entry.
        place: EntryPlace,
        /// What to know about it.
        text: String,
    },
}

wva_base::display_of! { Warning:
    Self::AliasUsed { origin, key } => "{origin} is an older name; write {key}";
    Self::SecondSpelling { origin, counts } =>
        "{origin} does not count next to {counts}, which names the same setting; remove one";
    Self::UnknownKey { origin, nearest: Some(nearest) } =>
        "{}: no setting is named {}", origin.layer, with_suggestion(&origin.name, Some(*nearest));
    Self::UnknownKey { origin, nearest: None } =>
        "{}: no setting is named {}; remove it, or write a name that wva controller --print-config shows",
        origin.layer,
        with_suggestion(&origin.name, None);
    Self::OutOfReach { origin } => "{origin} has no effect there; set it in the environment";
    Self::WithoutEffect { key, state } => "{key} is {state}";
    Self::UnknownField { place, field, remedy } =>
        "{place}: unknown field {:?}; {remedy}", bounded(field, LONGEST_TEXT);
    Self::OlderConfigMap { purpose, namespace, name, current, read: true } =>
        "{purpose} {namespace}/{name} has an older name; rename it to {current}";
    Self::OlderConfigMap { purpose, namespace, name, current, read: false } =>
        "{purpose} {namespace}/{name} is not read, since {namespace}/{current} exists";
    Self::FileInPlaceOfConfigMap =>
        "--config-file takes the place of the main ConfigMap, which is not read; drop the flag to change settings \
         while running";
    Self::Advice { subject, text } => "{subject}: {}", bounded(text, LONGEST_TEXT);
    Self::EntryAdvice { place, text } | Self::WithoutMeaning { place, text } =>
        "{place}: {}", bounded(text, LONGEST_TEXT);
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Something was meant that does not act: refused at a desk, a warning in the log.
    Mistake,
    /// It acts otherwise than expected: a warning.
    Warning,
    /// Worth knowing.
    Remark,
}

impl Warning {
    /// How much it matters.
    pub fn severity(&self) -> Severity {
        match self {
            Self::UnknownKey { .. }
            | Self::UnknownField { .. }
            | Self::OutOfReach { .. }
            | Self::WithoutMeaning { .. } => Severity::Mistake,
            Self::EntryAdvice { .. } | Self::SecondSpelling { .. } => Severity::Warning,
            Self::AliasUsed { .. }
            | Self::WithoutEffect { .. }
            | Self::OlderConfigMap { .. }
            | Self::FileInPlaceOfConfigMap
            | Self::Advice { .. } => Severity::Remark,
        }
    }

    fn origin(&self) -> Option<&Origin> {
        match self {
            Self::UnknownKey { origin, .. }
            | Self::OutOfReach { origin }
            | Self::SecondSpelling { origin, .. }
            | Self::AliasUsed { origin, .. } => Some(origin),
            _ => None,
        }
    }

    fn place(&self) -> Option<&EntryPlace> {
        match self {
            Self::UnknownField { place, .. }
            | Self::WithoutMeaning { place, .. }
            | Self::EntryAdvice { place, .. } => Some(place),
            _ => None,
        }
    }

    /// What the ConfigMap that it is about is for, and its namespace, where it is about a place in one.
    pub fn config_map(&self) -> Option<(Purpose, Option<&Arc<str>>)> {
        let entry = self.place().map(EntryPlace::config_map);
        entry.or_else(|| self.key().map(|_| (Purpose::Main, None)))
    }

    /// The key in the data of that ConfigMap.
    pub fn key(&self) -> Option<&str> {
        let entry = self.place().map(|place| &*place.entry);
        entry.or_else(|| self.origin().and_then(Origin::key))
    }
}

/// What was found while settings were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// What is not accepted.
    pub problems: Vec<Problem>,
    /// What is worth a line.
    pub notices: Vec<Warning>,
}

impl Diagnostics {
    /// Number of refused entries per ConfigMap and namespace (`None` is the global one).
    pub fn invalid_entries(&self) -> BTreeMap<(Purpose, Option<Arc<str>>), usize> {
        let mut counts = BTreeMap::new();
        for problem in &self.problems {
            let (purpose, namespace) = problem.config_map();
            *counts.entry((purpose, namespace.cloned())).or_insert(0) += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(entry: &str) -> EntryPlace {
        EntryPlace::new(Purpose::Saturation, None, entry)
    }

    #[test]
    fn the_key_of_an_entry_is_shown_as_far_as_a_config_map_could_have_it() {
        let text = |length: usize| place(&"k".repeat(length)).to_string();
        let whole = format!("global saturation ConfigMap, entry {:?}", "k".repeat(253));
        assert_eq!(text(253), whole);
        assert_eq!(text(100_000), whole.replace("k\"", "k…\""));
    }

    #[test]
    fn of_a_long_text_about_an_entry_the_beginning_is_shown() {
        let text = |length: usize| {
            let (place, text) = (place("default"), "t".repeat(length));
            Warning::EntryAdvice { place, text }.to_string()
        };
        let whole = format!(
            "global saturation ConfigMap, entry \"default\": {}",
            "t".repeat(4_000)
        );
        assert_eq!(text(4_000), whole);
        assert_eq!(text(1_000_000), format!("{whole}…"));
    }
}

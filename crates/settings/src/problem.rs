//! What is said about settings: values and entries that are refused, and things worth a line that
//! are in force all the same. All of it compares, so that new findings differ from old ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::purpose::Purpose;
use wva_base::nearest::LONGEST_KEY;
use wva_base::text::bounded;

/// Why a text is not accepted, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InvalidValue {
    /// What is wrong.
    pub why: String,
    /// What to write instead.
    pub remedy: String,
}

impl InvalidValue {
    /// A refusal.
    pub fn new(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { why: why.into(), remedy: remedy.into() }
    }
}

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
        Self { purpose, namespace: namespace.cloned(), entry: entry.to_owned() }
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
        self.config_map().0
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

/// Something worth a line in the log that refuses nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    severity: Severity,
    /// The entry or key of a ConfigMap that it is about.
    place: Option<EntryPlace>,
    text: String,
}

wva_base::display_of! { Warning:
    Self { text, .. } => "{text}";
}

impl Warning {
    /// A remark on settings as a whole.
    pub(crate) const fn remark(text: String) -> Self {
        Self { severity: Severity::Remark, place: None, text }
    }

    pub(crate) fn of_text(severity: Severity, origin: &Origin, text: String) -> Self {
        let key = origin.key();
        Self { severity, place: key.map(|key| EntryPlace::new(Purpose::Main, None, key)), text }
    }

    pub(crate) fn of_entry(severity: Severity, place: &EntryPlace, text: &str) -> Self {
        Self {
            severity,
            place: Some(place.clone()),
            text: format!("{place}: {}", bounded(text, LONGEST_TEXT)),
        }
    }

    pub(crate) fn advice(place: &EntryPlace, text: &str) -> Self {
        Self::of_entry(Severity::Warning, place, text)
    }

    /// A field that no entry of this kind has, by its path, and what to write instead.
    pub(crate) fn unknown_field(place: &EntryPlace, field: &str, remedy: &str) -> Self {
        Self {
            severity: Severity::Mistake,
            place: Some(place.clone()),
            text: format!("{place}: unknown field {:?}; {remedy}", bounded(field, LONGEST_TEXT)),
        }
    }

    /// How much it matters.
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// What the ConfigMap that it is about is for, and its namespace, where it is about a place in one.
    pub fn config_map(&self) -> Option<(Purpose, Option<&Arc<str>>)> {
        self.place.as_ref().map(EntryPlace::config_map)
    }

    /// The key in the data of that ConfigMap.
    pub fn key(&self) -> Option<&str> {
        self.place.as_ref().map(|place| &*place.entry)
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
        let text =
            |length: usize| Warning::advice(&place("default"), &"t".repeat(length)).to_string();
        let whole =
            format!("global saturation ConfigMap, entry \"default\": {}", "t".repeat(4_000));
        assert_eq!(text(4_000), whole);
        assert_eq!(text(1_000_000), format!("{whole}…"));
    }
}

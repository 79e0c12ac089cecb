//! The one table of every setting. Parsing, `--help`, `--print-config` and the documentation are all
//! made from it.

/// Defines rows and their list. What a setting says documents its constant.
macro_rules! settings {
    ($rows:ident: $(
        $constant:ident = $new:ident($group:ident, $name:literal, $title:literal, $kind:expr)
            $(.$with:ident($value:expr))*,
            $meaning:literal;
    )*) => {
        $(
            #[doc = $meaning]
            pub const $constant: Spec = Spec {
                $($with: $value,)*
                meaning: $meaning,
                ..Spec::$new(SettingGroup::$group, $name, $title, $kind)
            };
        )*

        pub(super) const $rows: &[Spec] = &[$($constant),*];
    };
}

mod cluster;
mod process;
mod prometheus;
mod scaling;

pub use cluster::*;
pub use process::*;
pub use prometheus::*;
pub use scaling::*;

use super::problem::InvalidValue;
use super::secret::MASK;
use super::url::mask_url;
use super::value::{Value, ValueKind};
use wva_base::text::shortened;

/// The table, in the order in which people read it.
pub const SCHEMA: &[&[Spec]] = &[PROMETHEUS_ROWS, SCALING_ROWS, CLUSTER_ROWS, PROCESS_ROWS];

/// Every setting, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    SCHEMA.iter().copied().flatten()
}

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Key in the environment and in ConfigMaps.
    pub name: &'static str,
    /// Words for messages; those of the immutable keys are what the original shows.
    pub title: &'static str,
    /// Flags without dashes; the first is the one to recommend.
    pub flags: &'static [&'static str],
    /// Older documented names of the key.
    pub aliases: &'static [&'static str],
    /// What it is.
    pub kind: ValueKind,
    /// Default, as a text of its kind.
    pub default: &'static str,
    /// Whether it may change while the process runs.
    pub change: Mutability,
    /// Layers that may set it.
    pub reach: Reach,
    /// Where it stands in `--help` and in the documentation.
    pub group: SettingGroup,
    /// What it says and changes, in one line.
    pub meaning: &'static str,
    /// Whether it does that already.
    pub state: SettingState,
    /// The log text of an applied change.
    pub applied: &'static str,
}

/// Whether a setting may change while the process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutability {
    /// Read at start; a later edit is rejected.
    Static,
    /// Follows the ConfigMap.
    Live,
}

/// Layers that may set a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Flag, environment, main ConfigMap or configuration file.
    Everywhere,
    /// Flag or environment, because it says where the ConfigMap is.
    Process,
    /// Flag only.
    Flag,
}

wva_base::named! {
    shown
    /// Whether a setting or a field acts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum SettingState {
        /// It does what its row says.
        Active = "active",
        /// It is accepted for compatibility and steers nothing.
        Inert = "accepted, inert",
    }
}

wva_base::named! {
    listed
    /// A heading of `--help` and of the documentation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum SettingGroup {
        /// How Prometheus is reached.
        Prometheus = "Prometheus connection",
        /// When it is asked and how old an answer may be.
        Collection = "Metrics collection",
        /// How often and within which limits decisions are made.
        Optimization,
        /// Scaling to and from zero.
        Zero = "Scale to and from zero",
        /// Which objects are ours.
        Scope,
        /// Where settings are read.
        Configuration = "Configuration sources",
        /// What is served.
        Serving,
        /// Who writes, and how the API server is talked to.
        Cluster = "Leader election and API server",
        /// What is logged.
        Logging,
    }
}

impl Spec {
    const fn fixed(
        group: SettingGroup,
        name: &'static str,
        title: &'static str,
        kind: ValueKind,
    ) -> Self {
        Self {
            name,
            title,
            flags: &[],
            aliases: &[],
            kind,
            default: "",
            change: Mutability::Static,
            reach: Reach::Everywhere,
            group,
            meaning: "",
            state: SettingState::Active,
            applied: "Updated setting",
        }
    }

    const fn live(
        group: SettingGroup,
        name: &'static str,
        title: &'static str,
        kind: ValueKind,
    ) -> Self {
        Self { change: Mutability::Live, ..Self::fixed(group, name, title, kind) }
    }

    /// Reads a text.
    pub fn parse(&self, text: &str) -> Result<Value, InvalidValue> {
        self.kind.parse(self.title, text)
    }

    /// A text of this setting as people may see it: secrets and credentials masked, bounded.
    pub fn show(&self, text: &str) -> String {
        match self.kind {
            ValueKind::Secret if text.is_empty() => String::new(),
            ValueKind::Secret => MASK.to_owned(),
            ValueKind::Url => shortened(&mask_url(text)),
            _ => shortened(text),
        }
    }

    /// The value when no layer sets it.
    pub fn default_value(&self) -> Value {
        self.parse(self.default).unwrap_or(Value::Unset)
    }

    /// Whether `name` is this key or one of its older names, in any letter case.
    pub fn is_named(&self, name: &str) -> bool {
        self.names().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// The key and its older names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

#[cfg(test)]
mod tests;

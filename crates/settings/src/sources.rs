//! Everything that settings are read from, as plain texts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Data of one ConfigMap.
pub type Data = BTreeMap<String, String>;

/// Every source. Flags, environment and file are read once; ConfigMaps follow the cluster.
#[derive(Clone, Default)]
pub struct Sources {
    /// Flags that were given.
    pub flags: FlagValues,
    /// The environment of the process.
    pub environment: BTreeMap<String, String>,
    /// Text of the file that `--config-file` names.
    pub config_file: Option<String>,
    /// The main ConfigMap.
    pub main: MainConfigMap,
    /// Saturation ConfigMaps.
    pub saturation: PolicySources,
    /// Scale-to-zero ConfigMaps.
    pub scale_to_zero: PolicySources,
    /// Queueing-model ConfigMaps.
    pub queueing_model: PolicySources,
    /// The service-class ConfigMap.
    pub service_classes: Option<Data>,
}

/// Texts contain tokens: only names are printed.
impl fmt::Debug for Sources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Sources")
            .field("flags", &self.flags.keys())
            .field("environment", &self.environment.len())
            .field("config_file", &self.config_file.is_some())
            .field("main", &self.main)
            .finish_non_exhaustive()
    }
}

/// What is known about the main ConfigMap.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum MainConfigMap {
    /// Not looked for, for want of a cluster.
    #[default]
    NotRead,
    /// It does not exist.
    Absent,
    /// It exists.
    Present(Data),
}

impl fmt::Debug for MainConfigMap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRead => formatter.write_str("NotRead"),
            Self::Absent => formatter.write_str("Absent"),
            Self::Present(data) => formatter.debug_tuple("Present").field(&data.keys()).finish(),
        }
    }
}

/// ConfigMaps of one purpose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicySources {
    /// The one in the system namespace.
    pub global: Option<Data>,
    /// Those of namespaces that may override.
    pub namespaces: BTreeMap<Arc<str>, Data>,
}

/// Flags by key of the schema.
pub type FlagValues = BTreeMap<&'static str, GivenFlag>;

/// A flag as it was given.
#[derive(Clone, PartialEq, Eq)]
pub struct GivenFlag {
    /// Its name, without dashes.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

impl fmt::Debug for GivenFlag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "--{}", self.name)
    }
}

//! The value of every setting, with where it came from.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::address::BindAddress;
use super::endpoint_hosts::EndpointHosts;
use super::logging::{LogFormatSetting, LogLevel};
use super::pool_group::PoolGroup;
use super::problem::{Layer, Origin};
use super::schema::Spec;
use super::secret::Secret;
use super::url::BaseUrl;
use super::value::Value;
use wva_policy::params::LabelSelector;

/// One value in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The value.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

/// A value for every row of the schema. The typed readers fall back to the row's default, and a test
/// reads every row with its own type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingValues(BTreeMap<&'static str, Resolved>);

impl SettingValues {
    pub(super) fn put(&mut self, spec: &Spec, resolved: Resolved) {
        self.0.insert(spec.name, resolved);
    }

    /// Value and origin of a setting.
    pub fn get(&self, spec: &Spec) -> Resolved {
        self.0.get(spec.name).cloned().unwrap_or_else(|| Resolved {
            value: spec.default_value(),
            origin: Origin { layer: Layer::Default, name: String::new() },
        })
    }

    /// A text, or `None` if there is none.
    pub fn text(&self, spec: &Spec) -> Option<String> {
        match self.get(spec).value {
            Value::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    pub(super) fn path(&self, spec: &Spec) -> Option<PathBuf> {
        self.text(spec).map(PathBuf::from)
    }

    pub(super) fn name(&self, spec: &Spec) -> String {
        self.text(spec).unwrap_or_else(|| spec.default.to_owned())
    }

    pub(super) fn secret(&self, spec: &Spec) -> Option<Secret> {
        match self.get(spec).value {
            Value::Secret(secret) if !secret.is_empty() => Some(secret),
            _ => None,
        }
    }

    pub(super) fn url(&self, spec: &Spec) -> Option<BaseUrl> {
        match self.get(spec).value {
            Value::Url(url) => Some(url),
            _ => None,
        }
    }
}

/// Readers of values of one kind, each with what stands for a value of another.
macro_rules! readers {
    ($($reader:ident, $kind:ident: $value:ty = $absent:expr;)*) => {
        impl SettingValues {$(
            pub(super) fn $reader(&self, spec: &Spec) -> $value {
                match self.get(spec).value {
                    Value::$kind(value) => value,
                    _ => $absent,
                }
            }
        )*}
    };
}

readers! {
    bool, Bool: bool = false;
    duration, Duration: Duration = Duration::ZERO;
    count, Count: u64 = 0;
    address, Address: BindAddress = BindAddress::Off;
    selector, Selector: LabelSelector = LabelSelector::default();
    hosts, Hosts: EndpointHosts = EndpointHosts::default();
    pool_group, PoolGroup: PoolGroup = PoolGroup::default();
    log_level, LogLevel: LogLevel = LogLevel::default();
    log_format, LogFormat: LogFormatSetting = LogFormatSetting::default();
}

//! The value of every setting, with where it came from.

use std::collections::BTreeMap;
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
            origin: Origin {
                layer: Layer::Default,
                name: String::new(),
            },
        })
    }

    pub(super) fn bool(&self, spec: &Spec) -> bool {
        matches!(self.get(spec).value, Value::Bool(true))
    }

    pub(super) fn duration(&self, spec: &Spec) -> Duration {
        match self.get(spec).value {
            Value::Duration(length) => length,
            _ => Duration::ZERO,
        }
    }

    pub(super) fn count(&self, spec: &Spec) -> u64 {
        match self.get(spec).value {
            Value::Count(count) => count,
            _ => 0,
        }
    }

    /// A text, or `None` if there is none.
    pub fn text(&self, spec: &Spec) -> Option<String> {
        match self.get(spec).value {
            Value::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
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

    pub(super) fn address(&self, spec: &Spec) -> BindAddress {
        match self.get(spec).value {
            Value::Address(address) => address,
            _ => BindAddress::Off,
        }
    }

    pub(super) fn selector(&self, spec: &Spec) -> LabelSelector {
        match self.get(spec).value {
            Value::Selector(selector) => selector,
            _ => LabelSelector::default(),
        }
    }

    pub(super) fn hosts(&self, spec: &Spec) -> EndpointHosts {
        match self.get(spec).value {
            Value::Hosts(hosts) => hosts,
            _ => EndpointHosts::default(),
        }
    }

    pub(super) fn pool_group(&self, spec: &Spec) -> PoolGroup {
        match self.get(spec).value {
            Value::PoolGroup(group) => group,
            _ => PoolGroup::default(),
        }
    }

    pub(super) fn log_level(&self, spec: &Spec) -> LogLevel {
        match self.get(spec).value {
            Value::LogLevel(level) => level,
            _ => LogLevel::default(),
        }
    }

    pub(super) fn log_format(&self, spec: &Spec) -> LogFormatSetting {
        match self.get(spec).value {
            Value::LogFormat(format) => format,
            _ => LogFormatSetting::default(),
        }
    }
}

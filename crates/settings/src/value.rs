//! Typed values of settings, and how each kind of setting reads its text.

use std::time::Duration;

use super::address::BindAddress;
use super::controllers::check_controllers;
use super::endpoint_hosts::EndpointHosts;
use super::logging::{LogFormatSetting, LogLevel};
use super::pool_group::PoolGroup;
use super::problem::InvalidValue;
use super::secret::Secret;
use super::url::BaseUrl;
use wva_base::duration::{DurationError, format_duration, parse_duration};
use wva_base::names::{check_label_value, check_namespace, check_object_name};
use wva_policy::params::LabelSelector;

/// What a setting is, and so which texts it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// `true` or `false`.
    Bool,
    /// A length of time within bounds.
    Duration {
        /// Least accepted.
        least: Duration,
        /// Most accepted.
        most: Duration,
    },
    /// A whole number within bounds.
    Count {
        /// Least accepted.
        least: u64,
        /// Most accepted.
        most: u64,
    },
    /// Any text.
    Text,
    /// Any text, never shown.
    Secret,
    /// A file or folder.
    Path,
    /// An `http` or `https` URL.
    Url,
    /// A listening address.
    Address,
    /// A Kubernetes namespace.
    Namespace,
    /// The name of a Kubernetes object.
    ObjectName,
    /// The value of a label.
    LabelValue,
    /// A label selector.
    Selector,
    /// An API group of InferencePool.
    PoolGroup,
    /// Names of controllers.
    Controllers,
    /// Patterns of hosts.
    Hosts,
    /// A log level.
    LogLevel,
    /// A log format.
    LogFormat,
}

/// A value, typed. `Display` is the form shown to people, with secrets masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Deliberately nothing.
    Unset,
    /// Of [`ValueKind::Bool`].
    Bool(bool),
    /// Of [`ValueKind::Duration`].
    Duration(Duration),
    /// Of [`ValueKind::Count`].
    Count(u64),
    /// Of every kind that stays a text once it is checked.
    Text(String),
    /// Of [`ValueKind::Secret`].
    Secret(Secret),
    /// Of [`ValueKind::Url`].
    Url(BaseUrl),
    /// Of [`ValueKind::Address`].
    Address(BindAddress),
    /// Of [`ValueKind::Selector`].
    Selector(LabelSelector),
    /// Of [`ValueKind::Hosts`].
    Hosts(EndpointHosts),
    /// Of [`ValueKind::PoolGroup`].
    PoolGroup(PoolGroup),
    /// Of [`ValueKind::LogLevel`].
    LogLevel(LogLevel),
    /// Of [`ValueKind::LogFormat`].
    LogFormat(LogFormatSetting),
}

impl ValueKind {
    /// Whether an explicitly empty text means "none" instead of being an error.
    pub(super) fn may_be_empty(self) -> bool {
        !matches!(
            self,
            Self::Bool
                | Self::Duration { .. }
                | Self::Count { .. }
                | Self::Controllers
                | Self::LogLevel
                | Self::LogFormat
        )
    }

    /// Reads a text. `title` names the setting in messages.
    ///
    /// # Errors
    /// Says why the text is not accepted and what would be; never repeats a secret.
    pub fn parse(self, title: &str, text: &str) -> Result<Value, InvalidValue> {
        if text.is_empty() && self.may_be_empty() {
            return Ok(match self {
                Self::Address => Value::Address(BindAddress::Off),
                Self::Selector => Value::Selector(LabelSelector::default()),
                Self::Hosts => Value::Hosts(EndpointHosts::default()),
                Self::PoolGroup => Value::PoolGroup(PoolGroup::default()),
                _ => Value::Unset,
            });
        }
        match self {
            Self::Bool => parse_bool(text).map(Value::Bool).ok_or_else(|| {
                InvalidValue::new("it is neither true nor false", "write true or false")
            }),
            Self::Duration { least, most } => duration_value(title, text, least, most),
            Self::Count { least, most } => count_value(title, text, least, most),
            Self::Text | Self::Path => Ok(Value::Text(text.to_owned())),
            Self::Secret => Ok(Value::Secret(Secret::new(text))),
            Self::Url => BaseUrl::parse(text).map(Value::Url).map_err(|why| {
                InvalidValue::new(why, "write a URL like https://prometheus.monitoring.svc:9090")
            }),
            Self::Address => BindAddress::parse(text).map(Value::Address).ok_or_else(|| {
                InvalidValue::new(
                    "it is not a listening address",
                    "write :8443, 127.0.0.1:8443, [::1]:8443, or 0 for none",
                )
            }),
            Self::Namespace => named(text, check_namespace(text)),
            Self::ObjectName => named(text, check_object_name(text)),
            Self::LabelValue => named(text, check_label_value(text)),
            Self::Selector => LabelSelector::parse(text).map(Value::Selector).map_err(|error| {
                InvalidValue::new(error.to_string(), "write for example gpu=true")
            }),
            Self::PoolGroup => PoolGroup::parse(text).map(Value::PoolGroup).ok_or_else(|| {
                InvalidValue::new(
                    format!(
                        "invalid poolGroup: must be either '{}' or '{}', or '{}' or '{}'",
                        PoolGroup::STABLE,
                        PoolGroup::ALPHA,
                        PoolGroup::GATEWAY,
                        PoolGroup::LLM_D
                    ),
                    "write one of them, or nothing for every group that the cluster serves",
                )
            }),
            Self::Hosts => EndpointHosts::parse(text).map(Value::Hosts),
            Self::Controllers => check_controllers(text).map(|()| Value::Text(text.to_owned())),
            Self::LogLevel => LogLevel::parse(text).map(Value::LogLevel).ok_or_else(|| {
                InvalidValue::new(
                    "it is not a log level",
                    "write error, warn, info, debug or trace",
                )
            }),
            Self::LogFormat => LogFormatSetting::parse(text)
                .map(Value::LogFormat)
                .ok_or_else(|| InvalidValue::new("it is not a log format", "write json or text")),
        }
    }

    /// The word for the table of the documentation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "boolean",
            Self::Duration { .. } => "duration",
            Self::Count { .. } => "number",
            Self::Text => "text",
            Self::Secret => "secret",
            Self::Path => "path",
            Self::Url => "URL",
            Self::Address => "address",
            Self::Namespace => "namespace",
            Self::ObjectName => "name",
            Self::LabelValue => "label value",
            Self::Selector => "label selector",
            Self::PoolGroup => "API group",
            Self::Controllers => "list",
            Self::Hosts => "hosts",
            Self::LogLevel => "level",
            Self::LogFormat => "json or text",
        }
    }
}

/// Reads `1`, `t`, `true` and `0`, `f`, `false` in any letter case, as Go's flags do. Everything else is no answer;
/// in particular `yes` is not quietly read as false.
fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" => Some(true),
        "0" | "f" | "false" => Some(false),
        _ => None,
    }
}

fn named(
    text: &str,
    checked: Result<(), wva_base::names::InvalidName>,
) -> Result<Value, InvalidValue> {
    match checked {
        Ok(()) => Ok(Value::Text(text.to_owned())),
        Err(error) => Err(InvalidValue::new(error.to_string(), "correct the name")),
    }
}

fn duration_value(
    title: &str,
    text: &str,
    least: Duration,
    most: Duration,
) -> Result<Value, InvalidValue> {
    let remedy = format!(
        "write a duration from {} to {}, like 90s or 1m30s",
        format_duration(least),
        format_duration(most)
    );
    let positive = |shown: String| format!("{} must be positive, got {shown}", lower_first(title));
    match parse_duration(text) {
        Ok(length) if length.is_zero() && !least.is_zero() => {
            Err(InvalidValue::new(positive("0s".to_owned()), remedy))
        }
        Err(DurationError::Negative(length)) => {
            Err(InvalidValue::new(positive(format!("-{}", format_duration(length))), remedy))
        }
        Ok(length) if length < least || length > most => Err(InvalidValue::new(
            format!(
                "{} must be between {} and {}, got {}",
                lower_first(title),
                format_duration(least),
                format_duration(most),
                format_duration(length)
            ),
            remedy,
        )),
        Ok(length) => Ok(Value::Duration(length)),
        Err(error) => Err(InvalidValue::new(format!("it is not a duration: {error}"), remedy)),
    }
}

fn count_value(title: &str, text: &str, least: u64, most: u64) -> Result<Value, InvalidValue> {
    let remedy = format!("write a whole number from {least} to {most}");
    let subject = lower_first(title);
    // Signed and wide, so that -1 differs from a text that is no number.
    match text.parse::<i128>() {
        Ok(number) => match u64::try_from(number) {
            Ok(count) if (least..=most).contains(&count) => Ok(Value::Count(count)),
            Ok(0) => Err(InvalidValue::new(format!("{subject} must be positive, got 0"), remedy)),
            Ok(count) => Err(InvalidValue::new(
                format!("{subject} must be between {least} and {most}, got {count}"),
                remedy,
            )),
            Err(_) => {
                Err(InvalidValue::new(format!("{subject} must be positive, got {number}"), remedy))
            }
        },
        Err(_) => Err(InvalidValue::new("it is not a whole number", remedy)),
    }
}

/// `Optimization interval` inside a sentence; an acronym keeps its capitals.
fn lower_first(title: &str) -> String {
    let mut letters = title.chars();
    match letters.next() {
        Some(first) if !letters.clone().next().is_some_and(char::is_uppercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => title.to_owned(),
    }
}

wva_base::display_of! { Value:
    Self::Unset => "";
    Self::Bool(value) => "{value}";
    Self::Duration(value) => "{}", format_duration(*value);
    Self::Count(value) => "{value}";
    Self::Text(value) => "{value}";
    Self::Secret(value) => "{value}";
    Self::Url(value) => "{value}";
    Self::Address(value) => "{value}";
    Self::Hosts(value) => "{value}";
    Self::Selector(value) => "{value}";
    Self::PoolGroup(value) => "{value}";
    Self::LogLevel(value) => "{value}";
    Self::LogFormat(value) => "{value}";
}

#[cfg(test)]
mod tests {
    use super::parse_bool;

    #[test]
    fn only_unmistakable_spellings_are_read() {
        for text in ["1", "t", "T", "true", "TRUE", "True", "tRuE"] {
            assert_eq!(parse_bool(text), Some(true), "{text}");
        }
        for text in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(parse_bool(text), Some(false), "{text}");
        }
        for text in ["", "yes", "no", "on", "off", " true", "2", "y"] {
            assert_eq!(parse_bool(text), None, "{text}");
        }
    }
}

//! `--print-config`: every setting with the value in force, where it came from, and whether it acts.

use std::fmt::Write as _;

use serde::Serialize;

use super::controllers::has_pod_autoscalers;
use super::layers::Resolution;
use super::problem::{Diagnostics, Layer, SettingError};
use super::schema::{self, Mutability, Spec};
use super::sources::{MainConfigMap, Sources};
use super::values::SettingValues;
use wva_base::text::{aligned, shortened};

/// The report, in the order of the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingsReport {
    /// Whether the main ConfigMap was looked at, and what was found.
    pub main_config_map: &'static str,
    /// One row per setting.
    pub settings: Vec<SettingRow>,
    /// What is refused without forbidding to start, and what is worth knowing.
    pub remarks: Vec<String>,
    /// What forbids to start with these sources.
    pub errors: Vec<String>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingRow {
    /// Its key.
    pub key: &'static str,
    /// The value in force, secrets masked.
    pub value: String,
    /// The layer and, if not a default, the name used there.
    pub source: String,
    /// Whether it may change while running.
    pub live: bool,
    /// Whether it acts.
    pub state: String,
}

impl SettingRow {
    /// Every setting, in the order of the schema.
    pub fn all(values: &SettingValues) -> Vec<Self> {
        let rows = schema::all().map(|spec| {
            let resolved = values.get(spec);
            Self {
                key: spec.name,
                value: resolved.value.to_string(),
                source: resolved.origin.to_string(),
                live: spec.change == Mutability::Live,
                state: overruled(spec, values)
                    .map_or_else(|| spec.state.to_string(), |flag| format!("inactive: {flag}")),
            }
        });
        rows.collect()
    }
}

fn overruled(spec: &Spec, values: &SettingValues) -> Option<&'static str> {
    let is = |one: &Spec| one.name == spec.name;
    let is_listed = has_pod_autoscalers(&values.name(&schema::CONTROLLERS));
    if is(&schema::POD_AUTOSCALERS_ENABLED) && !is_listed {
        Some("--controllers")
    } else if is(&schema::WEBHOOK_BIND_ADDRESS) && values.bool(&schema::DISABLE_WEBHOOK) {
        Some("--disable-webhook")
    } else {
        None
    }
}

impl SettingsReport {
    /// Reports on what was resolved from `sources`.
    pub fn new(resolution: &Resolution, sources: &Sources) -> Self {
        let Diagnostics { problems, notices } = &resolution.diagnostics;
        let refused = problems.iter().map(ToString::to_string);
        let notices = notices.iter().map(ToString::to_string);
        let not_read = sources.main == MainConfigMap::NotRead && sources.config_file.is_none();
        // What is missing everywhere else may stand in the ConfigMap that was not read.
        let may_be_there = |error: &&SettingError| not_read && error.origin.layer == Layer::Default;
        Self {
            main_config_map: match &sources.main {
                _ if sources.config_file.is_some() => "replaced by the configuration file",
                MainConfigMap::NotRead => "not read",
                MainConfigMap::Absent => "absent",
                MainConfigMap::Present(_) => "read",
            },
            settings: SettingRow::all(&resolution.values),
            remarks: refused.chain(notices).collect(),
            errors: resolution
                .fatal
                .iter()
                .filter(|error| !may_be_there(error))
                .map(ToString::to_string)
                .collect(),
        }
    }

    /// As a table for people.
    pub fn to_text(&self) -> String {
        let header = ["KEY", "VALUE", "SOURCE", "LIVE", "STATE"].map(str::to_owned);
        let rows = self.settings.iter().map(|row| {
            [
                row.key.to_owned(),
                if row.value.is_empty() { "-".to_owned() } else { row.value.clone() },
                row.source.clone(),
                if row.live { "yes" } else { "no" }.to_owned(),
                row.state.clone(),
            ]
        });
        let mut text = format!("main ConfigMap: {}\n\n", self.main_config_map);
        let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
        for line in aligned(&rows) {
            writeln!(text, "{}", line.trim_end()).unwrap_or_default();
        }
        for (title, lines) in [("remarks", &self.remarks), ("errors", &self.errors)] {
            if !lines.is_empty() {
                writeln!(text, "\n{title}:").unwrap_or_default();
            }
            for line in lines {
                writeln!(text, "  {line}").unwrap_or_default();
            }
        }
        text
    }

    /// As one JSON document.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}

/// Every value that is not the default, as `KEY=value`; secrets are masked.
pub fn changed(values: &SettingValues) -> String {
    let changed = schema::all().filter_map(|spec| {
        let value = values.get(spec).value;
        (value != spec.default_value())
            .then(|| format!("{}={}", spec.name, shortened(&value.to_string())))
    });
    changed.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::layers::resolve;
    use super::super::sources::GivenFlag;
    use super::*;

    fn sources() -> Sources {
        let mut sources = Sources::default();
        for (name, text) in [
            ("PROMETHEUS_BASE_URL", "https://user:pw@prom:9090"),
            ("PROMETHEUS_BEARER_TOKEN", "s3cret"),
            ("GLOBAL_OPT_INTERVAL", "90s"),
        ] {
            sources.environment.insert(name.to_owned(), text.to_owned());
        }
        sources
    }

    #[test]
    fn every_key_is_shown_with_value_source_and_state_and_secrets_are_not() {
        let sources = sources();
        let report = SettingsReport::new(&resolve(&sources, None), &sources);
        assert_eq!(report.settings.len(), schema::all().count());
        assert_eq!(report.main_config_map, "not read");
        assert_eq!(
            changed(&resolve(&sources, None).values),
            "PROMETHEUS_BASE_URL=https://****@prom:9090, PROMETHEUS_BEARER_TOKEN=****, \
             GLOBAL_OPT_INTERVAL=1m30s"
        );
        let row = |key: &str| report.settings.iter().find(|row| row.key == key).unwrap();
        assert_eq!(row("GLOBAL_OPT_INTERVAL").value, "1m30s");
        assert_eq!(row("GLOBAL_OPT_INTERVAL").source, "environment GLOBAL_OPT_INTERVAL");
        assert!(row("GLOBAL_OPT_INTERVAL").live);
        assert_eq!(row("PROMETHEUS_BASE_URL").value, "https://****@prom:9090");
        assert_eq!(row("REST_CLIENT_TIMEOUT").source, "default");
        assert!(!row("REST_CLIENT_TIMEOUT").live);
        assert_eq!(row("WEBHOOK_CERT_NAME").state, "active");
        assert_eq!(row("ZAP_DEVEL").state, "accepted, inert");
        assert_eq!(report.errors, Vec::<String>::new());
        for shown in [report.to_text(), report.to_json().unwrap()] {
            assert!(shown.contains("****") && shown.contains("GLOBAL_OPT_INTERVAL"), "{shown}");
            assert!(!shown.contains("s3cret") && !shown.contains("pw@"), "{shown}");
        }
    }

    #[test]
    fn what_a_flag_of_aibrix_switches_off_is_shown_as_inactive() {
        let state = |key: &'static str, name: &'static str, text: &str, shown: &str| {
            let mut sources = sources();
            let text = text.to_owned();
            sources.flags.insert(key, GivenFlag { name, text });
            let report = SettingsReport::new(&resolve(&sources, None), &sources);
            let mut rows = report.settings.into_iter();
            rows.find(|row| row.key == shown).unwrap().state
        };
        let enabled = "POD_AUTOSCALERS_ENABLED";
        let controllers = |text: &str| state("CONTROLLERS", "controllers", text, enabled);
        assert_eq!(controllers("*"), "active");
        let expected = "inactive: --controllers";
        assert_eq!(controllers("-pod-autoscaler-controller"), expected);
        let address = "WEBHOOK_BIND_ADDRESS";
        let webhook = |text: &str| state("DISABLE_WEBHOOK", "disable-webhook", text, address);
        assert_eq!(webhook("false"), "active");
        assert_eq!(webhook("true"), "inactive: --disable-webhook");
    }

    #[test]
    fn a_missing_address_is_an_error_only_if_the_config_map_was_read() {
        let mut sources = Sources::default();
        let report = SettingsReport::new(&resolve(&sources, None), &sources);
        assert_eq!(report.errors, Vec::<String>::new());
        sources.main = MainConfigMap::Absent;
        let report = SettingsReport::new(&resolve(&sources, None), &sources);
        assert_eq!(report.errors.len(), 1);
        assert!(report.to_text().contains("prometheus configuration is required"), "{report:?}");
    }
}

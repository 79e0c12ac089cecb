//! The published start-up cases: from arguments, environment, file and ConfigMap to settings.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::args::parse;
use crate::settings::{MainConfigMap, Problem, Sources, schema, start};
use crate::signals::{InvalidPrometheusSettings, prometheus_settings};

const CASES: &str = include_str!("../../tests/vectors/config.yaml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    #[serde(rename = "corrected")]
    _corrected: Option<String>,
    address: Option<String>,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    file: Option<BTreeMap<String, String>>,
    config_map: Option<BTreeMap<String, String>>,
    #[serde(default)]
    expect: BTreeMap<String, String>,
    error: Option<String>,
    reported: Option<String>,
    missing_files: Option<Vec<String>>,
}

impl Case {
    fn sources(&self) -> Sources {
        let mut environment = self.environment.clone();
        if self.address.is_none() {
            environment.insert("PROMETHEUS_BASE_URL".to_owned(), "https://p:9090".to_owned());
        }
        Sources {
            flags: parse(self.arguments.clone()).0.flags,
            environment,
            config_file: self.file.as_ref().map(|file| serde_yaml::to_string(file).unwrap()),
            main: self.config_map.clone().map_or(MainConfigMap::Absent, MainConfigMap::Present),
            ..Sources::default()
        }
    }
}

#[test]
fn start_up_cases() {
    let cases: Vec<Case> = serde_yaml::from_str(CASES).unwrap();
    assert!(cases.len() > 40);
    for case in &cases {
        let started = start(&case.sources());
        if let Some(text) = &case.error {
            let errors = started.expect_err(&case.id);
            assert_eq!(errors.len(), 1, "{}: {errors:?}", case.id);
            let shown = errors[0].to_string();
            assert!(shown.contains(text), "{}: {shown}", case.id);
            continue;
        }
        let started = started.unwrap_or_else(|errors| panic!("{}: {errors:?}", case.id));
        let shown = |key: &String| {
            let spec = schema::all().find(|spec| spec.name == key).unwrap();
            started.generation.values.get(spec).value.to_string()
        };
        for (key, value) in &case.expect {
            assert_eq!(&shown(key), value, "{}: {key}", case.id);
        }
        let reported: Vec<&str> = started
            .diagnostics
            .problems
            .iter()
            .filter_map(|problem| match problem {
                Problem::Setting { error, .. } => Some(error.key),
                Problem::Entry(_) => None,
            })
            .collect();
        let expected: Vec<&str> = case.reported.iter().map(String::as_str).collect();
        assert_eq!(reported, expected, "{}", case.id);
        if let Some(files) = &case.missing_files {
            let faults = prometheus_settings(&started.generation.statics).validate();
            let missing: Vec<String> = faults
                .into_iter()
                .filter_map(|fault| match fault {
                    InvalidPrometheusSettings::FileNotFound { what, path, .. } => {
                        Some(format!("{what} {path}"))
                    }
                    _ => None,
                })
                .collect();
            assert_eq!(&missing, files, "{}", case.id);
        }
    }
}

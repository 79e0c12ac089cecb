//! What a start refuses, and what is shown of it before.

use super::{SettingsReport, ignored_at_start, refused_at_start, refused_by_file, resolve};
use crate::settings::Sources;

/// A second installation is refused, and means that it is there already.
fn install_provider() {
    drop(rustls::crypto::ring::default_provider().install_default());
}

fn of_environment(environment: &[(&str, &str)]) -> Sources {
    let mut sources = Sources::default();
    for (name, text) in environment {
        let (name, text) = ((*name).to_owned(), (*text).to_owned());
        sources.environment.insert(name, text);
    }
    sources
}

fn refused(environment: &[(&str, &str)]) -> Vec<String> {
    install_provider();
    refused_at_start(&of_environment(environment))
}

#[test]
fn ages_out_of_order_are_remarks() {
    let ignored = |fresh: &str| {
        let address = ("PROMETHEUS_BASE_URL", "https://prom:9090");
        let fresh = ("PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", fresh);
        ignored_at_start(&of_environment(&[address, fresh]))
    };
    assert_eq!(ignored("2m"), Vec::<String>::new());
    let remarks = ignored("10m");
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    let start = "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD=\"10m0s\" (environment \
                 PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD): it is above";
    assert!(remarks[0].starts_with(start), "{remarks:?}");
}

#[test]
fn a_file_is_refused_with_all_its_faults() {
    install_provider();
    let refused = |text: &str| {
        let sources = Sources { config_file: Some(text.to_owned()), ..Sources::default() };
        let resolution = resolve(&sources, None);
        let mut errors = SettingsReport::new(&resolution, &sources).errors;
        let more = refused_by_file(&sources, &resolution.diagnostics, &errors);
        errors.extend(more);
        errors
    };
    let sound = "PROMETHEUS_BASE_URL: https://prom:9090\n";
    assert_eq!(refused(sound), Vec::<String>::new());
    // By itself it forbids no start.
    let live = "GLOBAL_OPT_INTERVAL: soon\n";
    assert_eq!(refused(&format!("{sound}{live}")), Vec::<String>::new());
    let faults = "PROMETHEUS_BASE_URL: http://prom:9090\nPROMETHEUS_CA_CERT_PATH: /none/ca\n\
                  METRICS_SECURE: maybe\nLEADER_ELECT: [true]\n";
    let mut all = refused(&format!("{live}{faults}"));
    all.sort();
    for (error, expected) in all.iter().zip([
        "GLOBAL_OPT_INTERVAL=\"soon\" (configuration file GLOBAL_OPT_INTERVAL): it is not a duration",
        "LEADER_ELECT=\"[true]\" (configuration file LEADER_ELECT): a single value is expected; write",
        "METRICS_SECURE=\"maybe\" (configuration file METRICS_SECURE): it is neither true nor false; write",
        "PROMETHEUS_BASE_URL=\"http://prom:9090\" (configuration file PROMETHEUS_BASE_URL): TLS",
        "PROMETHEUS_CA_CERT_PATH=\"/none/ca\": ",
    ]) {
        assert!(error.starts_with(expected), "{error}");
    }
    assert_eq!(all.len(), 5, "{all:?}");
}

#[test]
fn what_a_start_refuses_is_shown_before_it() {
    let plain = ("PROMETHEUS_BASE_URL", "http://prom:9090");
    let secure = ("PROMETHEUS_BASE_URL", "https://prom:9090");
    let allowed = ("PROMETHEUS_ALLOW_HTTP", "true");
    assert_eq!(refused(&[plain, allowed]), Vec::<String>::new());
    let unnamed = refused(&[("PROMETHEUS_CA_CERT_PATH", "/none/ca")]);
    assert_eq!(unnamed.len(), 2, "{unnamed:?}");
    for (environment, expected) in wva_base::cases! {
        (vec![], "prometheus configuration is required but not found"),
        (vec![plain], "HTTPS is required"),
        (vec![plain, allowed, ("PROMETHEUS_BEARER_TOKEN", "t")],
         "plain http would expose or ignore PROMETHEUS_BEARER_TOKEN"),
        (vec![secure, ("PROMETHEUS_CLIENT_KEY_PATH", "/none/key")], "it needs PROMETHEUS_CLIENT_CERT_PATH as well"),
        (vec![secure, ("LEADER_ELECTION_RENEW_DEADLINE", "1h"), ("LEADER_ELECT", "true")],
         "the renew deadline must be shorter"),
        (vec![secure, ("PROMETHEUS_TOKEN_PATH", "/none/token")], "failed to read the bearer token from /none/token"),
        (vec![secure, ("PROMETHEUS_CA_CERT_PATH", "/none/ca")], "CA certificate file not found: /none/ca"),
    } {
        let errors = refused(&environment);
        assert!(errors.iter().any(|error| error.contains(expected)), "{environment:?}: {errors:?}");
    }
}

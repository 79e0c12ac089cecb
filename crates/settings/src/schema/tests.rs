use std::collections::BTreeSet;

use super::*;

/// What the original documents: key, flags (`-` is none), default as it is shown.
///
/// Collection between cycles is documented as 30s where it never acted; it has to be asked for.
const DOCUMENTED: &str = "
V v 0
METRICS_BIND_ADDRESS metrics-bind-address,metrics-addr 0
HEALTH_PROBE_BIND_ADDRESS health-probe-bind-address,probe-addr :8081
LEADER_ELECT leader-elect,enable-leader-election false
METRICS_SECURE metrics-secure true
WEBHOOK_CERT_PATH webhook-cert-path
WEBHOOK_CERT_NAME webhook-cert-name tls.crt
WEBHOOK_CERT_KEY webhook-cert-key tls.key
METRICS_CERT_PATH metrics-cert-path
METRICS_CERT_NAME metrics-cert-name tls.crt
METRICS_CERT_KEY metrics-cert-key tls.key
ENABLE_HTTP2 enable-http2 false
WATCH_NAMESPACE watch-namespace
LEADER_ELECTION_LEASE_DURATION leader-election-lease-duration 1m0s
LEADER_ELECTION_RENEW_DEADLINE leader-election-renew-deadline 50s
LEADER_ELECTION_RETRY_PERIOD leader-election-retry-period 10s
REST_CLIENT_TIMEOUT rest-client-timeout 1m0s
LEADER_ELECTION_ID leader-election-id 72dd1cf1.llm-d.ai
PROMETHEUS_BASE_URL -
PROMETHEUS_ALLOW_HTTP - false
PROMETHEUS_BEARER_TOKEN -
PROMETHEUS_TOKEN_PATH -
PROMETHEUS_TLS_INSECURE_SKIP_VERIFY - false
PROMETHEUS_CA_CERT_PATH -
PROMETHEUS_CLIENT_CERT_PATH -
PROMETHEUS_CLIENT_KEY_PATH -
PROMETHEUS_SERVER_NAME -
GLOBAL_OPT_INTERVAL - 1m0s
WVA_SCALE_TO_ZERO - false
WVA_LIMITED_MODE - false
EXPERIMENTAL_PROACTIVE_MODEL - false
SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY - 10
EPP_METRIC_READER_BEARER_TOKEN -
PROMETHEUS_METRICS_CACHE_TTL - 30s
PROMETHEUS_METRICS_CACHE_CLEANUP_INTERVAL - 1m0s
PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL - 0s
PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD - 1m0s
PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD - 2m0s
PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD - 5m0s
PROMETHEUS_METRICS_CACHE_MAX_SIZE - 0
POD_NAMESPACE - workload-variant-autoscaler-system
CONFIG_MAP_NAME - wva-variantautoscaling-config
SATURATION_CONFIG_MAP_NAME - wva-saturation-scaling-config
QUEUEING_MODEL_CONFIG_MAP_NAME - wva-queueing-model-config
CONTROLLER_INSTANCE -
POOL_GROUP -
WVA_NODE_SELECTOR -
LOG_LEVEL log-level,zap-log-level info
";

/// Names under which the original shows its immutable keys.
const IMMUTABLE: &[(&str, &str)] = &[
    ("PROMETHEUS_BASE_URL", "Prometheus BaseURL"),
    ("METRICS_BIND_ADDRESS", "Metrics bind address"),
    ("HEALTH_PROBE_BIND_ADDRESS", "Health probe bind address"),
    ("LEADER_ELECTION_ID", "Leader election ID"),
    ("WEBHOOK_CERT_PATH", "Webhook certificate path"),
    ("WEBHOOK_CERT_NAME", "Webhook certificate name"),
    ("WEBHOOK_CERT_KEY", "Webhook certificate key"),
    ("METRICS_CERT_PATH", "Metrics certificate path"),
    ("METRICS_CERT_NAME", "Metrics certificate name"),
    ("METRICS_CERT_KEY", "Metrics certificate key"),
];

fn row(name: &str) -> &'static Spec {
    all().find(|spec| spec.name == name).unwrap_or_else(|| panic!("no row {name}"))
}

#[test]
fn every_documented_key_is_there_with_its_flags_and_default() {
    for documented in DOCUMENTED.trim().lines() {
        let mut columns = documented.split(' ');
        let name = columns.next().unwrap();
        let spec = row(name);
        let flags = columns.next().filter(|flags| *flags != "-");
        let flags: Vec<&str> = flags.into_iter().flat_map(|flags| flags.split(',')).collect();
        assert_eq!(spec.flags, flags, "{name}");
        let default = columns.next().unwrap_or_default();
        assert_eq!(spec.default_value().to_string(), default, "{name}");
    }
    assert_eq!(row("METRICS_BIND_ADDRESS").aliases, ["METRICS_ADDR"]);
    assert_eq!(row("HEALTH_PROBE_BIND_ADDRESS").aliases, ["PROBE_ADDR"]);
}

#[test]
fn immutable_keys_have_their_documented_names() {
    for (name, title) in IMMUTABLE {
        assert_eq!(row(name).title, *title);
        assert_eq!(row(name).change, Mutability::Static, "{name}");
    }
    let live: Vec<&str> =
        all().filter(|spec| spec.change == Mutability::Live).map(|spec| spec.name).collect();
    assert_eq!(
        live,
        [
            "PROMETHEUS_METRICS_CACHE_TTL",
            "PROMETHEUS_METRICS_CACHE_CLEANUP_INTERVAL",
            "PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL",
            "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD",
            "PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD",
            "PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD",
            "PROMETHEUS_METRICS_CACHE_MAX_SIZE",
            "GLOBAL_OPT_INTERVAL",
            "WVA_PENDING_TIME_LIMIT",
            "WVA_UNAPPLIED_TIME_LIMIT",
            "WVA_SILENT_TIME_LIMIT",
            "WVA_REPLICA_START_TIME",
            "SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY",
            "LOG_LEVEL",
            "V",
        ]
    );
}

#[test]
fn rows_are_complete_and_names_are_unique() {
    let mut names = BTreeSet::new();
    let mut flags = BTreeSet::new();
    for spec in all() {
        for name in spec.names() {
            assert!(names.insert(name), "{name} stands twice");
            // The lookup in any letter case relies on it.
            assert_eq!(name, name.to_ascii_uppercase());
        }
        for flag in spec.flags {
            assert!(flags.insert(*flag), "--{flag} stands twice");
        }
        for text in [spec.title, spec.meaning] {
            assert!(!text.is_empty() && !text.contains(['|', '\n']), "{}", spec.name);
        }
        assert!(spec.default.is_empty() || spec.parse(spec.default).is_ok(), "{}", spec.name);
        assert!(
            spec.default.is_empty() == (spec.default_value().to_string().is_empty()),
            "{}",
            spec.name
        );
    }
    assert!(all().count() >= 58);
}

#[test]
fn a_refused_secret_or_url_is_not_repeated() {
    assert_eq!(row("PROMETHEUS_BEARER_TOKEN").show("t0ken"), "****");
    assert_eq!(row("PROMETHEUS_BEARER_TOKEN").show(""), "");
    assert_eq!(row("PROMETHEUS_BASE_URL").show("htp://u:p@h"), "htp://****@h");
    let long = row("WATCH_NAMESPACE").show(&"x".repeat(10_000));
    assert!(long.chars().count() < 200);
}

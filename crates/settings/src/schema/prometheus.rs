//! Rows: how Prometheus is reached, when it is asked, how old an answer may be.

use std::time::Duration;

use super::{SettingGroup, Spec};
use crate::value::ValueKind;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
const AGE: ValueKind = ValueKind::Duration { least: Duration::from_millis(1), most: DAY };
const CACHE_APPLIED: &str = "Updated Prometheus cache config from ConfigMap";

settings! {
    PROMETHEUS_ROWS:
    PROMETHEUS_BASE_URL = fixed(Prometheus, "PROMETHEUS_BASE_URL", "Prometheus BaseURL", ValueKind::Url),
        "Address of the Prometheus API; required. https, unless PROMETHEUS_ALLOW_HTTP is true.";
    PROMETHEUS_ALLOW_HTTP = fixed(Prometheus, "PROMETHEUS_ALLOW_HTTP", "Prometheus plain HTTP", ValueKind::Bool)
        .default("false"),
        "Accept an http:// address. Refused together with any token, certificate or TLS setting.";
    PROMETHEUS_BEARER_TOKEN = fixed(Prometheus, "PROMETHEUS_BEARER_TOKEN",
        "Prometheus bearer token", ValueKind::Secret),
        "Bearer token for Prometheus. Beats PROMETHEUS_TOKEN_PATH.";
    PROMETHEUS_TOKEN_PATH = fixed(Prometheus, "PROMETHEUS_TOKEN_PATH", "Prometheus token path", ValueKind::Path),
        "File with the bearer token; read again when it changes.";
    PROMETHEUS_TLS_INSECURE_SKIP_VERIFY = fixed(Prometheus, "PROMETHEUS_TLS_INSECURE_SKIP_VERIFY",
        "Prometheus TLS verification off", ValueKind::Bool).default("false"),
        "Accept any certificate of Prometheus; certificate files need not exist.";
    PROMETHEUS_CA_CERT_PATH = fixed(Prometheus, "PROMETHEUS_CA_CERT_PATH", "Prometheus CA certificate path",
        ValueKind::Path),
        "PEM file with certificate authorities, in place of the system's.";
    PROMETHEUS_CLIENT_CERT_PATH = fixed(Prometheus, "PROMETHEUS_CLIENT_CERT_PATH", "Prometheus client certificate path",
        ValueKind::Path),
        "PEM file with the client certificate (mutual TLS). Needs PROMETHEUS_CLIENT_KEY_PATH.";
    PROMETHEUS_CLIENT_KEY_PATH = fixed(Prometheus, "PROMETHEUS_CLIENT_KEY_PATH", "Prometheus client key path",
        ValueKind::Path),
        "PEM file with the key of the client certificate. Needs PROMETHEUS_CLIENT_CERT_PATH.";
    PROMETHEUS_SERVER_NAME = fixed(Prometheus, "PROMETHEUS_SERVER_NAME", "Prometheus server name", ValueKind::Text),
        "Server name (SNI) that the certificate must have, instead of the host of the address.";
    CACHE_TTL = live(Collection, "PROMETHEUS_METRICS_CACHE_TTL", "Metrics cache TTL",
        ValueKind::Duration { least: Duration::ZERO, most: HOUR }).default("30s").applied(CACHE_APPLIED),
        "How long early cycles, and ticks without a collection, reuse a snapshot of metrics. Beyond it early cycles \
         collect first, ticks hold.";
    CACHE_CLEANUP_INTERVAL = live(Collection, "PROMETHEUS_METRICS_CACHE_CLEANUP_INTERVAL",
        "Metrics cache cleanup interval",
        ValueKind::Duration { least: Duration::from_secs(1), most: DAY }).default("1m").applied(CACHE_APPLIED),
        "How often series about namespaces that no longer report are purged.";
    CACHE_FETCH_INTERVAL = live(Collection, "PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL", "Metrics cache fetch interval",
        ValueKind::Duration { least: Duration::ZERO, most: HOUR }).default("0s").applied(CACHE_APPLIED),
        "Collect metrics this often between cycles too, at least 1s. 0: only with a cycle, once a minute where a \
         model may go to zero, and every 15s where one is sized by `slo`, whose jumps have a cycle at once.";
    CACHE_FRESH_THRESHOLD = live(Collection, "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", "Metrics fresh threshold", AGE)
        .default("1m").applied(CACHE_APPLIED),
        "A younger sample may grow and shrink a variant.";
    CACHE_STALE_THRESHOLD = live(Collection, "PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD", "Metrics stale threshold", AGE)
        .default("2m").applied(CACHE_APPLIED),
        "A sample that is not fresh but younger than this may only grow a variant.";
    CACHE_UNAVAILABLE_THRESHOLD = live(Collection, "PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD",
        "Metrics unavailable threshold", AGE).default("5m").applied(CACHE_APPLIED),
        "A stale sample younger than this holds its variant (MetricsStale); an older one counts as none \
         (MetricsMissing).";
    CACHE_MAX_SIZE = live(Collection, "PROMETHEUS_METRICS_CACHE_MAX_SIZE", "Metrics cache max size",
        ValueKind::Count { least: 0, most: 1_000_000_000 }).default("0").applied(CACHE_APPLIED),
        "Most samples held at a time, 0 for any; signals that do not fit have failed.";
}

//! Rows: what is served and what is logged.

use super::{Reach, SettingGroup, SettingState, Spec};
use crate::value::ValueKind;

settings! {
    PROCESS_ROWS:
    METRICS_BIND_ADDRESS = fixed(Serving, "METRICS_BIND_ADDRESS", "Metrics bind address", ValueKind::Address)
        .flags(&["metrics-bind-address", "metrics-addr"]).aliases(&["METRICS_ADDR"]).default("0"),
        "Where /metrics is served, like :8443; 0 for nowhere.";
    HEALTH_PROBE_BIND_ADDRESS = fixed(Serving, "HEALTH_PROBE_BIND_ADDRESS", "Health probe bind address",
        ValueKind::Address)
        .flags(&["health-probe-bind-address", "probe-addr"]).aliases(&["PROBE_ADDR"]).default(":8081"),
        "Where /healthz and /readyz are served; 0 for nowhere.";
    EXTERNAL_METRICS_BIND_ADDRESS = fixed(Serving, "EXTERNAL_METRICS_BIND_ADDRESS", "External metrics bind address",
        ValueKind::Address).flags(&["external-metrics-bind-address"]).default("0"),
        "Where external.metrics.k8s.io is served; 0 for nowhere.";
    WEBHOOK_BIND_ADDRESS = fixed(Serving, "WEBHOOK_BIND_ADDRESS", "Webhook bind address", ValueKind::Address)
        .flags(&["webhook-bind-address"]).default("0"),
        "Where the admission webhooks for PodAutoscalers are served; 0 for nowhere.";
    EXTERNAL_SCALER_BIND_ADDRESS = fixed(Serving, "EXTERNAL_SCALER_BIND_ADDRESS", "External scaler bind address",
        ValueKind::Address).flags(&["external-scaler-bind-address"]).default("0"),
        "Where KEDA's external scaler (gRPC) is served, like :50051; 0 for nowhere.";
    EXTERNAL_SCALER_SECURE = fixed(Serving, "EXTERNAL_SCALER_SECURE", "External scaler secure serving", ValueKind::Bool)
        .flags(&["external-scaler-secure"]).default("true"),
        "Serve the external scaler over TLS; false serves plain text to every client.";
    METRICS_SECURE = fixed(Serving, "METRICS_SECURE", "Metrics secure serving", ValueKind::Bool)
        .flags(&["metrics-secure"]).default("true"),
        "Serve /metrics over HTTPS, to readers with an authorized token; false serves plain HTTP to everybody.";
    METRICS_CERT_PATH = fixed(Serving, "METRICS_CERT_PATH", "Metrics certificate path", ValueKind::Path)
        .flags(&["metrics-cert-path"]),
        "Folder with the certificate of /metrics, read again when it changes; empty makes a self-signed one.";
    METRICS_CERT_NAME = fixed(Serving, "METRICS_CERT_NAME", "Metrics certificate name", ValueKind::Path)
        .flags(&["metrics-cert-name"]).default("tls.crt"),
        "File name of the metrics certificate.";
    METRICS_CERT_KEY = fixed(Serving, "METRICS_CERT_KEY", "Metrics certificate key", ValueKind::Path)
        .flags(&["metrics-cert-key"]).default("tls.key"),
        "File name of the metrics key.";
    EXTERNAL_METRICS_CERT_PATH = fixed(Serving, "EXTERNAL_METRICS_CERT_PATH", "External metrics certificate path",
        ValueKind::Path).flags(&["external-metrics-cert-path"]),
        "Folder with the certificate of external.metrics.k8s.io, read again when it changes; an APIService takes a \
         self-signed one (empty) only unverified.";
    EXTERNAL_METRICS_CERT_NAME = fixed(Serving, "EXTERNAL_METRICS_CERT_NAME", "External metrics certificate name",
        ValueKind::Path).flags(&["external-metrics-cert-name"]).default("tls.crt"),
        "File name of the external metrics certificate.";
    EXTERNAL_METRICS_CERT_KEY = fixed(Serving, "EXTERNAL_METRICS_CERT_KEY", "External metrics certificate key",
        ValueKind::Path).flags(&["external-metrics-cert-key"]).default("tls.key"),
        "File name of the external metrics key.";
    EXTERNAL_SCALER_CERT_PATH = fixed(Serving, "EXTERNAL_SCALER_CERT_PATH", "External scaler certificate path",
        ValueKind::Path).flags(&["external-scaler-cert-path"]),
        "Folder with the certificate of the external scaler, read again when it changes; KEDA takes a self-signed one \
         (empty) only unverified.";
    EXTERNAL_SCALER_CERT_NAME = fixed(Serving, "EXTERNAL_SCALER_CERT_NAME", "External scaler certificate name",
        ValueKind::Path).flags(&["external-scaler-cert-name"]).default("tls.crt"),
        "File name of the external scaler certificate.";
    EXTERNAL_SCALER_CERT_KEY = fixed(Serving, "EXTERNAL_SCALER_CERT_KEY", "External scaler certificate key",
        ValueKind::Path).flags(&["external-scaler-cert-key"]).default("tls.key"),
        "File name of the external scaler key.";
    EXTERNAL_SCALER_CLIENT_CA_PATH = fixed(Serving, "EXTERNAL_SCALER_CLIENT_CA_PATH", "External scaler client CA path",
        ValueKind::Path).flags(&["external-scaler-client-ca-path"]),
        "File with authorities of client certificates of the external scaler, read again when it changes: a client \
         then shows one or an authorized token. Empty serves every client.";
    WEBHOOK_CERT_PATH = fixed(Serving, "WEBHOOK_CERT_PATH", "Webhook certificate path", ValueKind::Path)
        .flags(&["webhook-cert-path"]),
        "Folder with the certificate of the webhooks, read again when it changes; no API server accepts a self-signed \
         one (empty).";
    WEBHOOK_CERT_NAME = fixed(Serving, "WEBHOOK_CERT_NAME", "Webhook certificate name", ValueKind::Path)
        .flags(&["webhook-cert-name"]).default("tls.crt"),
        "File name of the webhook certificate.";
    WEBHOOK_CERT_KEY = fixed(Serving, "WEBHOOK_CERT_KEY", "Webhook certificate key", ValueKind::Path)
        .flags(&["webhook-cert-key"]).default("tls.key"),
        "File name of the webhook key.";
    ENABLE_HTTP2 = fixed(Serving, "ENABLE_HTTP2", "HTTP/2", ValueKind::Bool).flags(&["enable-http2"]).default("false"),
        "Offer HTTP/2 where TLS is served, not HTTP/1.1 only.";
    LOG_LEVEL = live(Logging, "LOG_LEVEL", "Log level", ValueKind::LogLevel)
        .flags(&["log-level", "zap-log-level"]).default("info"),
        "Least severe line that is logged: error, warn, info, debug, trace.";
    VERBOSITY = live(Logging, "V", "Log verbosity", ValueKind::Count { least: 0, most: 127 })
        .flags(&["v"]).default("0"),
        "Verbosity: 0 adds nothing to LOG_LEVEL, 1 to 3 add debug, more adds trace.";
    LOG_FORMAT = fixed(Logging, "LOG_FORMAT", "Log format", ValueKind::LogFormat)
        .flags(&["log-format", "zap-encoder"]).default("json"),
        "json, or text for people.";
    DECISION_HISTORY_BYTES = fixed(Logging, "DECISION_HISTORY_BYTES", "Decision history bytes",
        ValueKind::Count { least: 0, most: 67_108_864 }).default("16777216"),
        "Most bytes of compressed decisions in memory, for /debug/recording; 0 holds none.";
    DECISION_RECORD_FILE = fixed(Logging, "DECISION_RECORD_FILE", "Decision record file", ValueKind::Path),
        "File of recorded decisions for wva replay, older ones with .1, .2 and .3; empty for none.";
    DECISION_RECORD_FILE_BYTES = fixed(Logging, "DECISION_RECORD_FILE_BYTES", "Decision record file bytes",
        ValueKind::Count { least: 1_048_576, most: 1_099_511_627_776 }).default("209715200"),
        "Most bytes of DECISION_RECORD_FILE and its three older files together; each holds a quarter.";
    ZAP_DEVEL = fixed(Logging, "ZAP_DEVEL", "Zap development mode", ValueKind::Bool)
        .flags(&["zap-devel"]).reach(Reach::Flag).default("false").state(SettingState::Inert),
        "Development mode of the original's logger.";
    ZAP_STACKTRACE_LEVEL = fixed(Logging, "ZAP_STACKTRACE_LEVEL", "Zap stack trace level", ValueKind::Text)
        .flags(&["zap-stacktrace-level"]).reach(Reach::Flag).state(SettingState::Inert),
        "Level with stack traces in the original's log.";
    ZAP_TIME_ENCODING = fixed(Logging, "ZAP_TIME_ENCODING", "Zap time encoding", ValueKind::Text)
        .flags(&["zap-time-encoding"]).reach(Reach::Flag).state(SettingState::Inert),
        "Form of times in the original's log; here RFC 3339.";
}

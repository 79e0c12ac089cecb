//! Rows: what is served and what is logged.

use super::{Reach, SettingGroup, SettingState, Spec};
use crate::value::ValueKind;

/// Where metrics are served.
pub const METRICS_BIND_ADDRESS: Spec = Spec::fixed(
    SettingGroup::Serving,
    "METRICS_BIND_ADDRESS",
    "Metrics bind address",
    ValueKind::Address,
)
.flags(&["metrics-bind-address", "metrics-addr"])
.aliases(&["METRICS_ADDR"])
.default("0")
.means(
    "Where /metrics is served, such as :8443; 0 for nowhere.",
    "Prometheus scrapes there",
);

/// Where probes are served.
pub const HEALTH_PROBE_BIND_ADDRESS: Spec = Spec::fixed(
    SettingGroup::Serving,
    "HEALTH_PROBE_BIND_ADDRESS",
    "Health probe bind address",
    ValueKind::Address,
)
.flags(&["health-probe-bind-address", "probe-addr"])
.aliases(&["PROBE_ADDR"])
.default(":8081")
.means(
    "Where /healthz and /readyz are served; 0 for nowhere.",
    "the kubelet probes there",
);

/// Where external metrics are served.
pub const EXTERNAL_METRICS_BIND_ADDRESS: Spec = Spec::fixed(
    SettingGroup::Serving,
    "EXTERNAL_METRICS_BIND_ADDRESS",
    "External metrics bind address",
    ValueKind::Address,
)
.flags(&["external-metrics-bind-address"])
.default("0")
.means(
    "Where external.metrics.k8s.io is served; 0 for nowhere.",
    "an HPA can read decisions without an adapter",
);

/// Where admission webhooks are served.
pub const WEBHOOK_BIND_ADDRESS: Spec = Spec::fixed(
    SettingGroup::Serving,
    "WEBHOOK_BIND_ADDRESS",
    "Webhook bind address",
    ValueKind::Address,
)
.flags(&["webhook-bind-address"])
.default("0")
.means(
    "Where the admission webhooks for PodAutoscalers are served; 0 for nowhere.",
    "the API server refuses a PodAutoscaler that could not be acted on",
);

/// Where the external scaler is served.
pub const EXTERNAL_SCALER_BIND_ADDRESS: Spec = Spec::fixed(
    SettingGroup::Serving,
    "EXTERNAL_SCALER_BIND_ADDRESS",
    "External scaler bind address",
    ValueKind::Address,
)
.flags(&["external-scaler-bind-address"])
.default("0")
.means(
    "Where KEDA's external scaler (gRPC) is served, such as :50051; 0 for nowhere.",
    "a ScaledObject can follow decisions without Prometheus",
);

/// Whether the external scaler is served over TLS.
pub const EXTERNAL_SCALER_SECURE: Spec = Spec::fixed(
    SettingGroup::Serving,
    "EXTERNAL_SCALER_SECURE",
    "External scaler secure serving",
    ValueKind::Bool,
)
.flags(&["external-scaler-secure"])
.default("true")
.means(
    "Serve the external scaler over TLS.",
    "false serves plain text to every client",
);

/// Whether metrics are served over TLS to authorized readers only.
pub const METRICS_SECURE: Spec = Spec::fixed(
    SettingGroup::Serving,
    "METRICS_SECURE",
    "Metrics secure serving",
    ValueKind::Bool,
)
.flags(&["metrics-secure"])
.default("true")
.means(
    "Serve /metrics over HTTPS, to readers with a valid and authorized token.",
    "false serves plain HTTP to everybody",
);

/// Folder of the metrics certificate.
pub const METRICS_CERT_PATH: Spec = Spec::fixed(
    SettingGroup::Serving,
    "METRICS_CERT_PATH",
    "Metrics certificate path",
    ValueKind::Path,
)
.flags(&["metrics-cert-path"])
.means(
    "Folder with the certificate of /metrics; empty makes a self-signed one.",
    "the files are used, and read again when they change",
);

/// File name of the metrics certificate.
pub const METRICS_CERT_NAME: Spec = Spec::fixed(
    SettingGroup::Serving,
    "METRICS_CERT_NAME",
    "Metrics certificate name",
    ValueKind::Path,
)
.flags(&["metrics-cert-name"])
.default("tls.crt")
.means(
    "File name of the metrics certificate.",
    "see METRICS_CERT_PATH",
);

/// File name of the metrics key.
pub const METRICS_CERT_KEY: Spec = Spec::fixed(
    SettingGroup::Serving,
    "METRICS_CERT_KEY",
    "Metrics certificate key",
    ValueKind::Path,
)
.flags(&["metrics-cert-key"])
.default("tls.key")
.means("File name of the metrics key.", "see METRICS_CERT_PATH");

/// Folder of the external metrics certificate.
pub const EXTERNAL_METRICS_CERT_PATH: Spec = Spec::fixed(
    SettingGroup::Serving,
    "EXTERNAL_METRICS_CERT_PATH",
    "External metrics certificate path",
    ValueKind::Path,
)
.flags(&["external-metrics-cert-path"])
.means(
    "Folder with the certificate of external.metrics.k8s.io; empty makes a self-signed one, which \
     an APIService can only take unverified.",
    "the files are used, and read again when they change",
);

/// File name of the external metrics certificate.
pub const EXTERNAL_METRICS_CERT_NAME: Spec = Spec::fixed(
    SettingGroup::Serving,
    "EXTERNAL_METRICS_CERT_NAME",
    "External metrics certificate name",
    ValueKind::Path,
)
.flags(&["external-metrics-cert-name"])
.default("tls.crt")
.means(
    "File name of the external metrics certificate.",
    "see EXTERNAL_METRICS_CERT_PATH",
);

/// File name of the external metrics key.
pub const EXTERNAL_METRICS_CERT_KEY: Spec = Spec::fixed(
    SettingGroup::Serving,
    "EXTERNAL_METRICS_CERT_KEY",
    "External metrics certificate key",
    ValueKind::Path,
)
.flags(&["external-metrics-cert-key"])
.default("tls.key")
.means(
    "File name of the external metrics key.",
    "see EXTERNAL_METRICS_CERT_PATH",
);

/// Folder of the external scaler certificate.
pub const EXTERNAL_SCALER_CERT_PATH: Spec = Spec::fixed(
    SettingGroup::Serving,
    "EXTERNAL_SCALER_CERT_PATH",
    "External scaler certificate path",
    ValueKind::Path,
)
.flags(&["external-scaler-cert-path"])
.means(
    "Folder with the certificate of the external scaler; empty makes a self-signed one, which KEDA \
     can only take unverified.",
    "the files are used, and read again when they change",
);

/// File name of the external scaler certificate.
pub const EXTERNAL_SCALER_CERT_NAME: Spec = Spec::fixed(
    SettingGroup::Serving,
    "EXTERNAL_SCALER_CERT_NAME",
    "External scaler certificate name",
    ValueKind::Path,
)
.flags(&["external-scaler-cert-name"])
.default("tls.crt")
.means(
    "File name of the external scaler certificate.",
    "see EXTERNAL_SCALER_CERT_PATH",
);

/// File name of the external scaler key.
pub const EXTERNAL_SCALER_CERT_KEY: Spec = Spec::fixed(
    SettingGroup::Serving,
    "EXTERNAL_SCALER_CERT_KEY",
    "External scaler certificate key",
    ValueKind::Path,
)
.flags(&["external-scaler-cert-key"])
.default("tls.key")
.means(
    "File name of the external scaler key.",
    "see EXTERNAL_SCALER_CERT_PATH",
);

/// File with the authorities of the clients of the external scaler.
pub const EXTERNAL_SCALER_CLIENT_CA_PATH: Spec = Spec::fixed(
    SettingGroup::Serving,
    "EXTERNAL_SCALER_CLIENT_CA_PATH",
    "External scaler client CA path",
    ValueKind::Path,
)
.flags(&["external-scaler-client-ca-path"])
.means(
    "File with the authorities that sign client certificates of the external scaler; empty serves \
     every client.",
    "a client shows a certificate of theirs or an authorized token; the file is read again when it \
     changes",
);

/// Folder of the webhook certificate.
pub const WEBHOOK_CERT_PATH: Spec = Spec::fixed(
    SettingGroup::Serving,
    "WEBHOOK_CERT_PATH",
    "Webhook certificate path",
    ValueKind::Path,
)
.flags(&["webhook-cert-path"])
.means(
    "Folder with the certificate of the webhooks; empty makes a self-signed one, which no API \
     server accepts.",
    "the files are used, and read again when they change",
);

/// File name of the webhook certificate.
pub const WEBHOOK_CERT_NAME: Spec = Spec::fixed(
    SettingGroup::Serving,
    "WEBHOOK_CERT_NAME",
    "Webhook certificate name",
    ValueKind::Path,
)
.flags(&["webhook-cert-name"])
.default("tls.crt")
.means(
    "File name of the webhook certificate.",
    "see WEBHOOK_CERT_PATH",
);

/// File name of the webhook key.
pub const WEBHOOK_CERT_KEY: Spec = Spec::fixed(
    SettingGroup::Serving,
    "WEBHOOK_CERT_KEY",
    "Webhook certificate key",
    ValueKind::Path,
)
.flags(&["webhook-cert-key"])
.default("tls.key")
.means("File name of the webhook key.", "see WEBHOOK_CERT_PATH");

/// Whether HTTP/2 is offered.
pub const ENABLE_HTTP2: Spec = Spec::fixed(
    SettingGroup::Serving,
    "ENABLE_HTTP2",
    "HTTP/2",
    ValueKind::Bool,
)
.flags(&["enable-http2"])
.default("false")
.means(
    "Offer HTTP/2 where TLS is served.",
    "false offers HTTP/1.1 only",
);

/// Least severe log line.
pub const LOG_LEVEL: Spec = Spec::live(
    SettingGroup::Logging,
    "LOG_LEVEL",
    "Log level",
    ValueKind::LogLevel,
)
.flags(&["log-level", "zap-log-level"])
.default("info")
.means(
    "Least severe line that is logged: error, warn, info, debug, trace.",
    "filters the log",
);

/// Log verbosity as a number.
pub const VERBOSITY: Spec = Spec::live(
    SettingGroup::Logging,
    "V",
    "Log verbosity",
    ValueKind::Count {
        least: 0,
        most: 127,
    },
)
.flags(&["v"])
.default("0")
.means(
    "Verbosity as a number: 0 adds nothing to LOG_LEVEL, 1 to 3 ask for debug, more for trace.",
    "the more verbose of the two is logged",
);

/// Form of a log line.
pub const LOG_FORMAT: Spec = Spec::fixed(
    SettingGroup::Logging,
    "LOG_FORMAT",
    "Log format",
    ValueKind::LogFormat,
)
.flags(&["log-format", "zap-encoder"])
.default("json")
.means(
    "Form of a log line: json, or text for people.",
    "shapes the log",
);

/// Bytes of decisions that are held in memory.
pub const DECISION_HISTORY_BYTES: Spec = Spec::fixed(
    SettingGroup::Logging,
    "DECISION_HISTORY_BYTES",
    "Decision history bytes",
    ValueKind::Count {
        least: 0,
        most: 67_108_864,
    },
)
.default("16777216")
.means(
    "Most bytes of compressed decisions in memory, where METRICS_BIND_ADDRESS serves them; 0 holds none.",
    "/debug/recording has the last decisions with their inputs",
);

/// File with recorded decisions.
pub const DECISION_RECORD_FILE: Spec = Spec::fixed(
    SettingGroup::Logging,
    "DECISION_RECORD_FILE",
    "Decision record file",
    ValueKind::Path,
)
.means(
    "File in which every decision is recorded with its inputs; empty for none.",
    "wva replay repeats the decisions of the file; older files end in .1, .2 and .3",
);

/// Bytes of all files with recorded decisions.
pub const DECISION_RECORD_FILE_BYTES: Spec = Spec::fixed(
    SettingGroup::Logging,
    "DECISION_RECORD_FILE_BYTES",
    "Decision record file bytes",
    ValueKind::Count {
        least: 1_048_576,
        most: 1_099_511_627_776,
    },
)
.default("209715200")
.means(
    "Most bytes of DECISION_RECORD_FILE and its three older files together.",
    "a file of a quarter is followed by a new one, and the oldest goes",
);

/// Development mode of another logger.
pub const ZAP_DEVEL: Spec = Spec::fixed(
    SettingGroup::Logging,
    "ZAP_DEVEL",
    "Zap development mode",
    ValueKind::Bool,
)
.flags(&["zap-devel"])
.reach(Reach::Flag)
.default("false")
.state(SettingState::Inert)
.means("Development mode of the original's logger.", "none");

/// Stack traces of another logger.
pub const ZAP_STACKTRACE_LEVEL: Spec = Spec::fixed(
    SettingGroup::Logging,
    "ZAP_STACKTRACE_LEVEL",
    "Zap stack trace level",
    ValueKind::Text,
)
.flags(&["zap-stacktrace-level"])
.reach(Reach::Flag)
.state(SettingState::Inert)
.means("Level with stack traces in the original's log.", "none");

/// Time format of another logger.
pub const ZAP_TIME_ENCODING: Spec = Spec::fixed(
    SettingGroup::Logging,
    "ZAP_TIME_ENCODING",
    "Zap time encoding",
    ValueKind::Text,
)
.flags(&["zap-time-encoding"])
.reach(Reach::Flag)
.state(SettingState::Inert)
.means(
    "Form of times in the original's log.",
    "none: times are RFC 3339",
);

pub(super) const PROCESS_ROWS: &[Spec] = &[
    METRICS_BIND_ADDRESS,
    HEALTH_PROBE_BIND_ADDRESS,
    EXTERNAL_METRICS_BIND_ADDRESS,
    WEBHOOK_BIND_ADDRESS,
    EXTERNAL_SCALER_BIND_ADDRESS,
    EXTERNAL_SCALER_SECURE,
    METRICS_SECURE,
    METRICS_CERT_PATH,
    METRICS_CERT_NAME,
    METRICS_CERT_KEY,
    EXTERNAL_METRICS_CERT_PATH,
    EXTERNAL_METRICS_CERT_NAME,
    EXTERNAL_METRICS_CERT_KEY,
    EXTERNAL_SCALER_CERT_PATH,
    EXTERNAL_SCALER_CERT_NAME,
    EXTERNAL_SCALER_CERT_KEY,
    EXTERNAL_SCALER_CLIENT_CA_PATH,
    WEBHOOK_CERT_PATH,
    WEBHOOK_CERT_NAME,
    WEBHOOK_CERT_KEY,
    ENABLE_HTTP2,
    LOG_LEVEL,
    VERBOSITY,
    LOG_FORMAT,
    DECISION_HISTORY_BYTES,
    DECISION_RECORD_FILE,
    DECISION_RECORD_FILE_BYTES,
    ZAP_DEVEL,
    ZAP_STACKTRACE_LEVEL,
    ZAP_TIME_ENCODING,
];

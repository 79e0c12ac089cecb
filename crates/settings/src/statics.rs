//! Settings that are fixed for the life of the process, typed.

use std::path::PathBuf;
use std::time::Duration;

use super::address::BindAddress;
use super::config_maps::ConfigMapNames;
use super::controllers::{FeatureSwitch, has_pod_autoscalers};
use super::endpoint_hosts::EndpointHosts;
use super::logging::LogFormatSetting;
use super::pool_group::PoolGroup;
use super::problem::{InvalidValue, SettingError};
use super::purpose::Purpose;
use super::schema::{self, Spec};
use super::secret::Secret;
use super::url::BaseUrl;
use super::value::Value;
use super::values::SettingValues;
use wva_base::duration::format_duration;
use wva_base::text::shortened;
use wva_policy::params::LabelSelector;

/// The part of the settings that is fixed at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticSettings {
    /// How Prometheus is reached.
    pub prometheus: PrometheusConnection,
    /// What is served, and where.
    pub serving: ServingSettings,
    /// Which objects are ours.
    pub scope: ScopeSettings,
    /// Who writes.
    pub leader_election: LeaderElectionSettings,
    /// Whether PodAutoscalers are decided on; `POD_AUTOSCALERS_ENABLED` and `--controllers`.
    pub pod_autoscalers: FeatureSwitch,
    /// Whether annotated scalers are variants; `ANNOTATED_SCALERS_ENABLED`.
    pub annotated_scalers: FeatureSwitch,
    /// Whether pods that are to go first get a cost; `POD_DELETION_COST_ENABLED`.
    pub deletion_costs: FeatureSwitch,
    /// Which pages PodAutoscalers read.
    pub pod_pages: PodPageSettings,
    /// Names of the ConfigMaps that are read.
    pub config_maps: ConfigMapNames,
    /// Longest request to the API server; `REST_CLIENT_TIMEOUT`.
    pub rest_client_timeout: Duration,
    /// Whether models may go to zero where no entry states anything; `WVA_SCALE_TO_ZERO`.
    pub scale_to_zero_by_default: bool,
    /// GPU limits for all models; `WVA_LIMITED_MODE`.
    pub limited_mode: bool,
    /// The hybrid of saturation and model-based targets; `EXPERIMENTAL_PROACTIVE_MODEL`.
    pub proactive_model: bool,
    /// Nodes whose GPUs count; `WVA_NODE_SELECTOR`.
    pub node_selector: LabelSelector,
    /// Token for the metrics of endpoint pickers; `EPP_METRIC_READER_BEARER_TOKEN`.
    pub endpoint_picker_token: Option<Secret>,
    /// Form of a log line; `LOG_FORMAT`.
    pub log_format: LogFormatSetting,
    /// What is recorded of decisions.
    pub record: RecordSettings,
}

/// What is recorded of decisions, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSettings {
    /// Most bytes in memory.
    pub history_bytes: usize,
    /// The file; `None` for none.
    pub file: Option<PathBuf>,
    /// Most bytes of the file and its older ones.
    pub file_bytes: u64,
}

/// Which pages PodAutoscalers read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodPageSettings {
    /// Hosts that an `endpoint` may name; `POD_AUTOSCALER_ENDPOINT_HOSTS`.
    pub endpoint_hosts: EndpointHosts,
    /// Authorities that may sign certificates, besides the system's; `POD_AUTOSCALER_CA_CERT_PATH`.
    pub ca_path: Option<PathBuf>,
}

/// How Prometheus is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusConnection {
    /// Its address.
    pub base_url: BaseUrl,
    /// Whether an address without TLS is accepted; it carries no credentials.
    pub allow_http: bool,
    /// `PROMETHEUS_BEARER_TOKEN`, which beats `PROMETHEUS_TOKEN_PATH`.
    pub token: TokenSource,
    /// TLS.
    pub tls: PrometheusTls,
}

/// Where a bearer token comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TokenSource {
    /// There is none.
    #[default]
    None,
    /// From the settings.
    Value(Secret),
    /// From a file, which may be renewed at any time.
    File(PathBuf),
}

/// TLS towards Prometheus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrometheusTls {
    /// Authorities that may sign its certificate, instead of the system's.
    pub ca_path: Option<PathBuf>,
    /// Our own certificate.
    pub client: Option<CertificatePair>,
    /// Name to ask for and to verify instead of the host.
    pub server_name: Option<String>,
    /// Accept any certificate.
    pub insecure_skip_verify: bool,
}

/// A certificate with its key, as PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificatePair {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// What is served, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServingSettings {
    /// `/metrics`.
    pub metrics: BindAddress,
    /// `/healthz` and `/readyz`.
    pub probes: BindAddress,
    /// `external.metrics.k8s.io`.
    pub external_metrics: BindAddress,
    /// Admission webhooks.
    pub webhooks: BindAddress,
    /// Serve `/metrics` over TLS to authorized readers only.
    pub metrics_secure: bool,
    /// Certificate and key of `/metrics`; `None` makes a self-signed one.
    pub metrics_certificate: Option<CertificatePair>,
    /// Certificate and key of `external.metrics.k8s.io`; `None` makes a self-signed one.
    pub external_metrics_certificate: Option<CertificatePair>,
    /// Certificate and key of the admission webhooks; `None` makes a self-signed one.
    pub webhook_certificate: Option<CertificatePair>,
    /// KEDA's external scaler.
    pub external_scaler: ExternalScalerSettings,
    /// Offer HTTP/2.
    pub http2: bool,
}

/// How KEDA's external scaler is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalScalerSettings {
    /// Where; `EXTERNAL_SCALER_BIND_ADDRESS`.
    pub address: BindAddress,
    /// Over TLS; `EXTERNAL_SCALER_SECURE`.
    pub secure: bool,
    /// Certificate and key; `None` makes a self-signed one.
    pub certificate: Option<CertificatePair>,
    /// Authorities of clients; `None` serves every client.
    pub client_authorities: Option<PathBuf>,
}

/// Which objects are ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeSettings {
    /// The one namespace to watch; `None` watches all.
    pub watch_namespace: Option<String>,
    /// Where the global ConfigMaps and the lease are.
    pub system_namespace: String,
    /// Value of the instance label on our objects; `None` takes every object.
    pub controller_instance: Option<String>,
    /// Which InferencePools are watched.
    pub pool_group: PoolGroup,
}

/// Who writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElectionSettings {
    /// Whether there is an election; without one this process leads.
    pub enabled: bool,
    /// Name of the Lease.
    pub id: String,
    /// How long followers wait for a silent leader.
    pub lease_duration: Duration,
    /// How long a leader tries to renew.
    pub renew_deadline: Duration,
    /// Time between two attempts.
    pub retry_period: Duration,
}

impl StaticSettings {
    /// Types the values and checks what concerns several of them.
    ///
    /// # Errors
    /// Every contradiction. An address of Prometheus must be among the values.
    pub(super) fn build(values: &SettingValues) -> Result<Self, Vec<SettingError>> {
        let errors = contradictions(values);
        let Some(base_url) = values.url(&schema::PROMETHEUS_BASE_URL) else {
            return Err(errors);
        };
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Self {
            prometheus: prometheus(values, base_url),
            serving: serving(values),
            scope: ScopeSettings {
                watch_namespace: values.text(&schema::WATCH_NAMESPACE),
                system_namespace: values.name(&schema::POD_NAMESPACE),
                controller_instance: values.text(&schema::CONTROLLER_INSTANCE),
                pool_group: values.pool_group(&schema::POOL_GROUP),
            },
            leader_election: LeaderElectionSettings {
                enabled: values.bool(&schema::LEADER_ELECT),
                id: values.name(&schema::LEADER_ELECTION_ID),
                lease_duration: values.duration(&schema::LEASE_DURATION),
                renew_deadline: values.duration(&schema::RENEW_DEADLINE),
                retry_period: values.duration(&schema::RETRY_PERIOD),
            },
            pod_autoscalers: pod_autoscalers(values),
            annotated_scalers: values.bool(&schema::ANNOTATED_SCALERS_ENABLED).into(),
            deletion_costs: values.bool(&schema::POD_DELETION_COST_ENABLED).into(),
            pod_pages: PodPageSettings {
                endpoint_hosts: values.hosts(&schema::POD_AUTOSCALER_ENDPOINT_HOSTS),
                ca_path: values.path(&schema::POD_AUTOSCALER_CA_CERT_PATH),
            },
            config_maps: ConfigMapNames::of(values),
            rest_client_timeout: values.duration(&schema::REST_CLIENT_TIMEOUT),
            scale_to_zero_by_default: values.bool(&schema::SCALE_TO_ZERO),
            limited_mode: values.bool(&schema::LIMITED_MODE),
            proactive_model: values.bool(&schema::PROACTIVE_MODEL),
            node_selector: values.selector(&schema::NODE_SELECTOR),
            endpoint_picker_token: values.secret(&schema::EPP_METRIC_READER_BEARER_TOKEN),
            log_format: values.log_format(&schema::LOG_FORMAT),
            record: record(values),
        })
    }
}

/// Settings that contradict each other.
pub fn contradictions(values: &SettingValues) -> Vec<SettingError> {
    let mut errors = Vec::new();
    check_transport(values, &mut errors);
    check_pairs(values, &mut errors);
    check_external_scaler(values, &mut errors);
    check_lease(values, &mut errors);
    check_names(values, &mut errors);
    errors
}

fn prometheus(values: &SettingValues, base_url: BaseUrl) -> PrometheusConnection {
    let certificate = values.path(&schema::PROMETHEUS_CLIENT_CERT_PATH);
    let key = values.path(&schema::PROMETHEUS_CLIENT_KEY_PATH);
    PrometheusConnection {
        base_url,
        allow_http: values.bool(&schema::PROMETHEUS_ALLOW_HTTP),
        token: match values.secret(&schema::PROMETHEUS_BEARER_TOKEN) {
            Some(token) => TokenSource::Value(token),
            None => (values.path(&schema::PROMETHEUS_TOKEN_PATH))
                .map_or(TokenSource::None, TokenSource::File),
        },
        tls: PrometheusTls {
            ca_path: values.path(&schema::PROMETHEUS_CA_CERT_PATH),
            client: certificate
                .zip(key)
                .map(|(certificate, key)| CertificatePair { certificate, key }),
            server_name: values.text(&schema::PROMETHEUS_SERVER_NAME),
            insecure_skip_verify: values.bool(&schema::PROMETHEUS_TLS_INSECURE_SKIP_VERIFY),
        },
    }
}

fn record(values: &SettingValues) -> RecordSettings {
    let bytes = values.count(&schema::DECISION_HISTORY_BYTES);
    RecordSettings {
        history_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        file: values.path(&schema::DECISION_RECORD_FILE),
        file_bytes: values.count(&schema::DECISION_RECORD_FILE_BYTES),
    }
}

fn serving(values: &SettingValues) -> ServingSettings {
    let pair = |folder, certificate, key| {
        let folder = values.path(folder)?;
        Some(CertificatePair {
            certificate: folder.join(values.name(certificate)),
            key: folder.join(values.name(key)),
        })
    };
    let webhooks = if values.bool(&schema::DISABLE_WEBHOOK) {
        BindAddress::Off
    } else {
        values.address(&schema::WEBHOOK_BIND_ADDRESS)
    };
    ServingSettings {
        metrics: values.address(&schema::METRICS_BIND_ADDRESS),
        probes: values.address(&schema::HEALTH_PROBE_BIND_ADDRESS),
        external_metrics: values.address(&schema::EXTERNAL_METRICS_BIND_ADDRESS),
        webhooks,
        metrics_secure: values.bool(&schema::METRICS_SECURE),
        metrics_certificate: pair(
            &schema::METRICS_CERT_PATH,
            &schema::METRICS_CERT_NAME,
            &schema::METRICS_CERT_KEY,
        ),
        external_metrics_certificate: pair(
            &schema::EXTERNAL_METRICS_CERT_PATH,
            &schema::EXTERNAL_METRICS_CERT_NAME,
            &schema::EXTERNAL_METRICS_CERT_KEY,
        ),
        webhook_certificate: pair(
            &schema::WEBHOOK_CERT_PATH,
            &schema::WEBHOOK_CERT_NAME,
            &schema::WEBHOOK_CERT_KEY,
        ),
        external_scaler: ExternalScalerSettings {
            address: values.address(&schema::EXTERNAL_SCALER_BIND_ADDRESS),
            secure: values.bool(&schema::EXTERNAL_SCALER_SECURE),
            certificate: pair(
                &schema::EXTERNAL_SCALER_CERT_PATH,
                &schema::EXTERNAL_SCALER_CERT_NAME,
                &schema::EXTERNAL_SCALER_CERT_KEY,
            ),
            client_authorities: values.path(&schema::EXTERNAL_SCALER_CLIENT_CA_PATH),
        },
        http2: values.bool(&schema::ENABLE_HTTP2),
    }
}

fn pod_autoscalers(values: &SettingValues) -> FeatureSwitch {
    let is_listed = has_pod_autoscalers(&values.name(&schema::CONTROLLERS));
    FeatureSwitch::from(values.bool(&schema::POD_AUTOSCALERS_ENABLED) && is_listed)
}

fn contradiction(
    values: &SettingValues,
    spec: &'static Spec,
    why: String,
    remedy: impl Into<String>,
) -> SettingError {
    let resolved = values.get(spec);
    SettingError {
        key: spec.name,
        value: spec.show(&resolved.value.to_string()),
        origin: resolved.origin,
        refusal: InvalidValue::new(why, remedy),
    }
}

/// Plain http needs permission, and carries neither credentials nor TLS settings.
fn check_transport(values: &SettingValues, errors: &mut Vec<SettingError>) {
    let spec = &schema::PROMETHEUS_BASE_URL;
    let Some(url) = values.url(spec).filter(|url| !url.has_tls()) else {
        return;
    };
    if !values.bool(&schema::PROMETHEUS_ALLOW_HTTP) {
        let why = format!(
            "TLS configuration validation failed - HTTPS is required: URL must use https:// \
             scheme: {}",
            shortened(&url.to_string())
        );
        let remedy =
            "write https://, or set PROMETHEUS_ALLOW_HTTP=true for a Prometheus without TLS";
        errors.push(contradiction(values, spec, why, remedy));
        return;
    }
    let mut given: Vec<&str> = [
        &schema::PROMETHEUS_BEARER_TOKEN,
        &schema::PROMETHEUS_TOKEN_PATH,
        &schema::PROMETHEUS_CA_CERT_PATH,
        &schema::PROMETHEUS_CLIENT_CERT_PATH,
        &schema::PROMETHEUS_CLIENT_KEY_PATH,
        &schema::PROMETHEUS_SERVER_NAME,
    ]
    .into_iter()
    .filter(|spec| values.get(spec).value != Value::Unset)
    .map(|spec| spec.name)
    .collect();
    if values.bool(&schema::PROMETHEUS_TLS_INSECURE_SKIP_VERIFY) {
        given.push(schema::PROMETHEUS_TLS_INSECURE_SKIP_VERIFY.name);
    }
    if url.has_credentials() {
        given.push("credentials in the address");
    }
    if !given.is_empty() {
        let given = given.join(", ");
        let why = format!("plain http would expose or ignore {given}");
        errors.push(contradiction(values, spec, why, "write https://, or remove them"));
    }
}

fn check_pairs(values: &SettingValues, errors: &mut Vec<SettingError>) {
    let certificate = &schema::PROMETHEUS_CLIENT_CERT_PATH;
    let key = &schema::PROMETHEUS_CLIENT_KEY_PATH;
    for (given, missing) in [(certificate, key), (key, certificate)] {
        if values.text(given).is_some() && values.text(missing).is_none() {
            let why = format!("it needs {} as well", missing.name);
            let remedy = format!("set {}, or remove {}", missing.name, given.name);
            errors.push(contradiction(values, given, why, remedy));
        }
    }
}

/// Without TLS no client can prove itself.
fn check_external_scaler(values: &SettingValues, errors: &mut Vec<SettingError>) {
    let spec = &schema::EXTERNAL_SCALER_CLIENT_CA_PATH;
    if values.text(spec).is_some() && !values.bool(&schema::EXTERNAL_SCALER_SECURE) {
        let why = "clients prove themselves over TLS alone".to_owned();
        let remedy = "set EXTERNAL_SCALER_SECURE=true, or remove it";
        errors.push(contradiction(values, spec, why, remedy));
    }
}

/// A leader must have given up before another takes over, and must have tried more than once.
fn check_lease(values: &SettingValues, errors: &mut Vec<SettingError>) {
    if !values.bool(&schema::LEADER_ELECT) {
        return;
    }
    let lease = values.duration(&schema::LEASE_DURATION);
    let renew = values.duration(&schema::RENEW_DEADLINE);
    let retry = values.duration(&schema::RETRY_PERIOD);
    if renew >= lease {
        let why = format!(
            "the renew deadline must be shorter than the lease duration {}",
            format_duration(lease)
        );
        let remedy = "shorten it, or lengthen LEADER_ELECTION_LEASE_DURATION";
        errors.push(contradiction(values, &schema::RENEW_DEADLINE, why, remedy));
    }
    // 1.2 is the jitter that other controllers put on the period.
    if retry.mul_f64(1.2) >= renew {
        let why = format!(
            "1.2 times the retry period must be shorter than the renew deadline {}",
            format_duration(renew)
        );
        let remedy = "shorten it, or lengthen LEADER_ELECTION_RENEW_DEADLINE";
        errors.push(contradiction(values, &schema::RETRY_PERIOD, why, remedy));
    }
}

/// One ConfigMap cannot serve two purposes.
fn check_names(values: &SettingValues, errors: &mut Vec<SettingError>) {
    let names = ConfigMapNames::of(values);
    for (purpose, spec) in [
        (Purpose::Saturation, &schema::SATURATION_CONFIG_MAP_NAME),
        (Purpose::QueueingModel, &schema::QUEUEING_MODEL_CONFIG_MAP_NAME),
        (Purpose::ServiceClasses, &schema::SERVICE_CLASSES_CONFIG_MAP_NAME),
    ] {
        let other =
            Purpose::ALL.into_iter().find(|other| names.current(*other) == names.current(purpose));
        if let Some(other) = other.filter(|other| *other != purpose) {
            let why = format!("it is the name of the {other} as well");
            errors.push(contradiction(values, spec, why, "give each its own name"));
        }
    }
}

//! Asks Prometheus: as the controller does in a pod, else through the API server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use kube::Client;
use reqwest::Url;
use tokio::time::Instant;

use super::DoctorScope;
use super::objects::fetch;
use crate::cluster::client::{RequestError, within};
use crate::doctor::checks::count_queries;
use crate::doctor::facts::{ControllerFacts, Facts, QueryAnswers, Reading, SeriesFact};
use crate::doctor::probe::PrometheusProbe;
use crate::settings::TokenSource;
use crate::settings::secret::Secret;
use crate::signals::decode::Decoder;
use crate::signals::{
    HttpPrometheus, PromAnswer, PromApi, PrometheusClientSettings, QueryError, QueryResult,
    prometheus_settings, without_user,
};

/// Longest wait for one answer.
const DEADLINE: Duration = Duration::from_secs(20);
/// Most bytes of one answer.
const MOST_BYTES: u64 = 32 * 1024 * 1024;
const AT_ONCE: usize = 3;

#[derive(Debug)]
struct PrometheusRoute {
    api: Arc<dyn PromApi>,
    address: String,
    /// Whether a failure says something about the controller.
    is_controllers: bool,
}

/// Asks everything, and stores it in the facts.
pub(super) async fn ask(client: &Client, scope: &DoctorScope, facts: &mut Facts, begun: Instant) {
    let route = match route(client, scope, facts) {
        Ok(Some(route)) => route,
        Ok(None) if scope.is_before => {
            let why = "no controller names its address; pass --prometheus";
            return could_not_look(facts, why);
        }
        Ok(None) => return,
        Err(why) => return could_not_look(facts, &why),
    };
    facts.prometheus_address = Some(route.address.clone());
    ask_by(&route, facts, begun).await;
}

fn could_not_look(facts: &mut Facts, why: &str) {
    facts.prometheus = Reading::Failed(why.to_owned());
    facts.triggers = Reading::Failed(why.to_owned());
    let all = PrometheusProbe::ALL.into_iter();
    facts.series = all.map(|probe| (probe, Reading::Failed(why.to_owned()))).collect();
}

async fn ask_by(route: &PrometheusRoute, facts: &mut Facts, begun: Instant) {
    let before = begun.elapsed();
    let clock = match route.api.query(PrometheusProbe::Clock.as_str(), DEADLINE).await {
        Ok(answer) => series(&answer),
        Err(error) => {
            let why = error.to_string();
            // Another account, or another way, may fail where the controller does not.
            if route.is_controllers {
                facts.prometheus = Reading::Known(Err(why));
            } else {
                let remedy = "give --prometheus an address that answers from here, like that of a forwarded port";
                could_not_look(facts, &format!("{why}; {remedy}"));
            }
            return;
        }
    };
    // It was read somewhere between question and answer.
    facts.took = (before + begun.elapsed()).as_secs_f64() / 2.0;
    facts.prometheus = Reading::Known(Ok(()));
    let asked = PrometheusProbe::ALL.map(|probe| async move {
        let answer = route.api.query(probe.as_str(), DEADLINE).await;
        let reading = match answer {
            Ok(answer) => Reading::Known(series(&answer)),
            Err(error) => Reading::Failed(error.to_string()),
        };
        (probe, reading)
    });
    facts.series = stream::iter(asked).buffered(AT_ONCE).collect().await;
    let clock = Reading::Known(clock);
    facts.series.insert(PrometheusProbe::Clock, clock);
    facts.triggers = triggers(route, facts).await;
}

/// The answers to the queries of scalers for our counts, each asked once.
async fn triggers(route: &PrometheusRoute, facts: &Facts) -> Reading<QueryAnswers> {
    let queries = count_queries(facts).into_iter();
    let queries: BTreeSet<String> = queries.map(|(_, query)| query).collect();
    let mut answers = QueryAnswers::new();
    for query in queries {
        let answer = match route.api.query(&query, DEADLINE).await {
            Ok(answer) => Ok(series(&answer)),
            Err(error @ QueryError::BadRequest { .. }) => Err(error.to_string()),
            Err(error) => return Reading::Failed(error.to_string()),
        };
        answers.insert(query, answer);
    }
    Reading::Known(answers)
}

fn series(answer: &QueryResult) -> Vec<SeriesFact> {
    let samples = answer.samples().map(|sample| {
        let labels = sample.labels().map(|(name, value)| (name.to_string(), value.to_string()));
        SeriesFact { labels: labels.collect(), value: sample.value }
    });
    samples.collect()
}

/// The way to Prometheus; `None` where there is no address yet.
fn route(
    client: &Client,
    scope: &DoctorScope,
    facts: &Facts,
) -> Result<Option<PrometheusRoute>, String> {
    if let Some(address) = &scope.prometheus {
        let mut settings = PrometheusClientSettings::new(address.clone());
        settings.allow_http = address.starts_with("http://");
        if let Some(token) = scope.environment.get("PROMETHEUS_BEARER_TOKEN") {
            settings.token = TokenSource::Value(Secret::new(token.as_str()));
        }
        let route = direct(settings, false);
        let route = route.map_err(|why| why.replace("PROMETHEUS_BASE_URL", "--prometheus"))?;
        return Ok(Some(route));
    }
    let mut known = facts.controllers().iter();
    let Some((one, settings)) =
        known.find_map(|one| Some((one, prometheus_settings(&one.generation()?.statics))))
    else {
        return match &facts.controllers {
            Reading::Failed(why) => Err(why.clone()),
            Reading::Known(all) if all.iter().any(|one| one.has_secrets) => {
                Err("settings are in a Secret; pass --prometheus".to_owned())
            }
            _ => Ok(None),
        };
    };
    if scope.is_in_cluster() {
        return Ok(Some(direct(settings, is_pod_of(scope, one))?));
    }
    let proxied = Proxied::new(client.clone(), &settings.base_url).ok_or_else(|| {
        format!(
            "{} names no Service that the API server can reach; pass --prometheus",
            one.generation().map_or_else(String::new, |generation| {
                generation.statics.prometheus.base_url.to_string()
            })
        )
    })?;
    Ok(Some(PrometheusRoute {
        api: Arc::new(proxied),
        address: without_user(&settings.base_url).to_owned(),
        is_controllers: false,
    }))
}

/// Whether this process runs in a pod of the controller, with its account and files.
fn is_pod_of(scope: &DoctorScope, one: &ControllerFacts) -> bool {
    let host = scope.environment.get("HOSTNAME");
    host.is_some_and(|host| host.starts_with(&*one.key.name))
}

fn direct(
    mut settings: PrometheusClientSettings,
    is_controllers: bool,
) -> Result<PrometheusRoute, String> {
    settings.response_limit = MOST_BYTES;
    let address = without_user(&settings.base_url).to_owned();
    let api = HttpPrometheus::new(settings).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        texts.join("; ")
    })?;
    Ok(PrometheusRoute { api: Arc::new(api), address, is_controllers })
}

/// Prometheus behind the API server's proxy of Services.
struct Proxied {
    client: Client,
    path: String,
}

wva_base::debug_of!(Proxied: path);

/// The path of the proxy of a Service, from an address like `https://name.namespace.svc:9090/prefix`.
pub(in crate::doctor) fn proxy_path(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?;
    let mut parts = host.split('.');
    let (name, namespace) = (parts.next()?, parts.next()?);
    // An address of the world has two parts, or other ones than those of a cluster.
    let is_service = host.split('.').nth(2).is_none_or(|part| part == "svc");
    let port = url.port_or_known_default()?;
    let prefix = url.path().trim_end_matches('/');
    let scheme = url.scheme();
    is_service.then(|| {
        format!(
            "/api/v1/namespaces/{namespace}/services/{scheme}:{name}:{port}/proxy{prefix}/api/v1/query"
        )
    })
}

impl Proxied {
    fn new(client: Client, address: &str) -> Option<Self> {
        let path = proxy_path(address)?;
        Some(Self { client, path })
    }

    async fn ask(&self, promql: &str, deadline: Duration) -> Result<QueryResult, QueryError> {
        let query: String =
            form_urlencoded::Serializer::new(String::new()).append_pair("query", promql).finish();
        let path = format!("{}?{query}", self.path);
        let bytes = within(deadline, fetch(&self.client, &path)).await;
        let bytes = bytes.map_err(|error| refused(&error))?;
        let mut decoder = Decoder::new(MOST_BYTES);
        decoder.feed(&bytes)?;
        decoder.finish()
    }
}

fn refused(error: &RequestError) -> QueryError {
    match error.code() {
        Some(status @ (400 | 422)) => {
            QueryError::BadRequest { status, message: format!(": {error}") }
        }
        _ => QueryError::Unreachable(format!("through the API server: {error}")),
    }
}

impl PromApi for Proxied {
    fn query<'a>(&'a self, promql: &'a str, deadline: Duration) -> PromAnswer<'a> {
        Box::pin(self.ask(promql, deadline))
    }
}

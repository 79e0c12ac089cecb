//! Looks at an API server, and through it at a Prometheus.

use std::io;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Bytes;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::causes::{objects, remove, scale_to_zero};
use super::cluster::{old_definition, unavailable};
use super::healthy::{NOW, controller, facts};
use crate::doctor::facts::{Facts, LiveKind, Reading, SeriesFact};
use crate::doctor::look::{DoctorScope, look, proxy_path, reach};
use crate::doctor::object::LiveObject;
use crate::doctor::probe::PrometheusProbe;
use crate::doctor::report::Verdict;
use crate::doctor::{Diagnosis, FindingCode, examine};
use crate::settings::pool_group::PoolGroup;

/// An API server that holds facts.
struct Held {
    facts: Facts,
    /// Beginnings of paths with the status that they are answered with.
    refused: Vec<(&'static str, u16)>,
    /// Parts of questions for rights that are answered with no.
    denied: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
    has_controller: bool,
    /// An InferencePool of another group than the facts have.
    other_pool: Option<Value>,
}

impl Held {
    fn new(refused: &[(&'static str, u16)]) -> Arc<Self> {
        Arc::new(Self {
            facts: facts(),
            refused: refused.to_vec(),
            denied: Vec::new(),
            asked: Mutex::default(),
            has_controller: true,
            other_pool: None,
        })
    }

    /// A cluster in which nothing is installed.
    fn bare() -> Arc<Self> {
        let held = Self::new(&[]);
        Arc::new(Self { has_controller: false, ..Arc::into_inner(held).unwrap() })
    }

    fn client(self: &Arc<Self>) -> Client {
        let held = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let held = Arc::clone(&held);
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let (code, document) = held.answer(&parts.uri, &String::from_utf8_lossy(&body));
                let body = Full::new(Bytes::from(document.to_string()));
                Ok::<_, io::Error>(Response::builder().status(code).body(body).unwrap())
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, uri: &http::Uri, body: &str) -> (u16, Value) {
        let (path, query) = (uri.path(), uri.query().unwrap_or_default());
        self.asked.lock().unwrap().push(path.to_owned());
        if let Some((_, code)) = self.refused.iter().find(|(of, _)| path.starts_with(of)) {
            let status = json!({ "kind": "Status", "status": "Failure", "code": code, "message": "refused", "reason": "" });
            return (*code, status);
        }
        if path == "/version" {
            return (200, json!({ "major": "1", "minor": "33+" }));
        }
        if let Some(group) = [PoolGroup::GATEWAY, PoolGroup::LLM_D]
            .iter()
            .find_map(|group| path.strip_prefix("/apis/")?.strip_prefix(group))
        {
            return self.other_pools(group);
        }
        let name = path.strip_prefix("/api/v1/namespaces/");
        if let Some(name) = name.filter(|name| !name.contains('/')) {
            let namespace = self.facts.find(LiveKind::Namespace, "", name);
            let missing = json!({ "kind": "Status", "status": "Failure", "code": 404, "message": "", "reason": "NotFound" });
            return namespace.map_or((404, missing), |one| (200, one.0.clone()));
        }
        if path.contains("/customresourcedefinitions/") {
            let one = self.facts.all(LiveKind::CustomResourceDefinition).first();
            let missing = json!({ "kind": "Status", "status": "Failure", "code": 404, "message": "", "reason": "NotFound" });
            return one.map_or((404, missing), |one| (200, one.0.clone()));
        }
        if path.ends_with("subjectaccessreviews") {
            let is_denied = self.denied.iter().any(|part| body.contains(part));
            return (201, json!({ "status": { "allowed": !is_denied } }));
        }
        if path.ends_with("/proxy/api/v1/query") {
            return (200, self.series(query));
        }
        if query.contains("control-plane") {
            let own = self.has_controller.then(|| controller("wva"));
            let own: Vec<Value> = own.into_iter().collect();
            return (200, json!({ "metadata": {}, "items": own }));
        }
        (200, self.list(path))
    }

    /// The last of the versions of a group alone has pools, if any has.
    fn other_pools(&self, below: &str) -> (u16, Value) {
        match (&self.other_pool, below) {
            (Some(_), "") => {
                let versions = [
                    json!({ "groupVersion": "llm-d.ai/v1" }),
                    json!({ "groupVersion": "llm-d.ai/v2alpha1" }),
                ];
                (200, json!({ "versions": versions }))
            }
            (Some(pool), "/v2alpha1/inferencepools") => {
                (200, json!({ "metadata": {}, "items": [pool] }))
            }
            _ => {
                let missing = json!({ "kind": "Status", "status": "Failure", "code": 404, "message": "", "reason": "NotFound" });
                (404, missing)
            }
        }
    }

    fn list(&self, path: &str) -> Value {
        let kinds = LiveKind::ALL.into_iter();
        let mut served =
            kinds.filter(|kind| path.starts_with(kind.path()) && path.ends_with(kind.resource()));
        let kind = served.next().unwrap_or_else(|| panic!("{path}"));
        let part = path.split('/').skip_while(|part| *part != "namespaces").nth(1);
        let namespace = part.filter(|_| kind.is_namespaced());
        let all = self.facts.all(kind).iter();
        let own = all.filter(|one| namespace.is_none_or(|name| name == one.namespace()));
        // Items of a list have no kind.
        let items = own.map(|one| {
            let mut item = one.0.clone();
            item.as_object_mut().unwrap().remove("kind");
            item
        });
        json!({ "metadata": {}, "items": items.collect::<Vec<Value>>() })
    }

    fn series(&self, query: &str) -> Value {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let promql = pairs.find(|(name, _)| name == "query").unwrap().1;
        let probe = PrometheusProbe::ALL.into_iter().find(|probe| probe.as_str() == promql);
        let own = [super::healthy::series("variant_name=b,exported_namespace=ns", 2.0)];
        let series: &[SeriesFact] = probe.map_or(&own, |probe| self.facts.series(probe));
        let result = series
            .iter()
            .map(|one| json!({ "metric": one.labels, "value": [NOW, one.value.to_string()] }));
        let result: Vec<Value> = result.collect();
        json!({ "status": "success", "data": { "resultType": "vector", "result": result } })
    }
}

async fn diagnose(held: &Arc<Held>, scope: &DoctorScope) -> Diagnosis {
    let (facts, _) = look(&held.client(), scope, NOW).await;
    examine(&facts)
}

fn found(diagnosis: &Diagnosis) -> Vec<FindingCode> {
    diagnosis.findings().map(|one| one.code).collect()
}

#[tokio::test]
async fn a_healthy_cluster_is_fine_through_and_through() {
    let held = Held::new(&[]);
    let diagnosis = diagnose(&held, &DoctorScope::default()).await;
    assert_eq!(diagnosis.verdict(), Verdict::Fine, "{}", diagnosis.to_text());
    let text = diagnosis.to_text();
    for title in [
        "pods start",
        "rights are granted",
        "Prometheus answers the queries of scalers",
        "a replica leads",
    ] {
        assert!(text.contains(&format!("√ {title}")), "{title}: {text}");
    }
    let asked = held.asked.lock().unwrap();
    // ConfigMaps and pods are read where variants and controllers are, not everywhere.
    assert!(asked.contains(&"/api/v1/namespaces/ns/pods".to_owned()));
    assert!(!asked.contains(&"/api/v1/configmaps".to_owned()));
    assert!(asked.contains(&"/api/v1/namespaces/system/configmaps".to_owned()));
}

#[tokio::test]
async fn what_is_refused_could_not_be_looked_at_and_what_is_missing_is_found() {
    let pods = Held::new(&[("/api/v1/namespaces/ns/pods", 403)]);
    let diagnosis = diagnose(&pods, &DoctorScope::default()).await;
    assert_eq!(found(&diagnosis), Vec::new());
    assert_eq!(diagnosis.verdict(), Verdict::Unseen);
    let definition = Held::new(&[("/apis/llmd.ai/v1alpha1/variantautoscalings", 404)]);
    let diagnosis = diagnose(&definition, &DoctorScope::default()).await;
    assert_eq!(found(&diagnosis), [FindingCode::VariantKindMissing], "{}", diagnosis.to_text());
    // Another way than the controller's: that proves nothing about the controller.
    let proxy = Held::new(&[("/api/v1/namespaces/monitoring/services", 503)]);
    let diagnosis = diagnose(&proxy, &DoctorScope::default()).await;
    assert_eq!(found(&diagnosis), Vec::new());
    assert_eq!(diagnosis.verdict(), Verdict::Unseen);
}

#[tokio::test]
async fn a_pool_of_any_group_and_version_wakes_a_model() {
    let found_with = async |pool: Option<Value>, refused: &[(&'static str, u16)]| {
        let mut held = Arc::into_inner(Held::new(refused)).unwrap();
        scale_to_zero(&mut held.facts);
        remove(&mut held.facts, LiveKind::InferencePool, "p");
        held.other_pool = pool;
        found(&diagnose(&Arc::new(held), &DoctorScope::default()).await)
    };
    let pool = json!({
        "metadata": { "namespace": "ns", "name": "p" },
        "spec": { "selector": { "pool": "p" } },
    });
    let no_signal = [FindingCode::NoWakeSignal; 2];
    assert_eq!(found_with(None, &[]).await, no_signal);
    assert_eq!(found_with(Some(pool), &[]).await, []);
    // One that cannot be read may be what wakes it.
    assert_eq!(found_with(None, &[("/apis/llm-d.ai", 403)]).await, []);
}

/// The Deployments of an installation of KEDA, each with an account.
fn keda((namespace, replicas): (&str, u32)) -> [LiveObject; 2] {
    ["keda-operator", "keda-operator-metrics-apiserver"].map(|label| {
        let account = format!("{label}-account");
        LiveObject::new(json!({
            "kind": "Deployment",
            "metadata": { "namespace": namespace, "name": label, "labels": { "app": label } },
            "spec": {
                "replicas": replicas,
                "template": { "spec": { "serviceAccountName": account } },
            },
        }))
    })
}

/// Each scaler is reviewed with its own account, and the finding is about the object that does not work.
#[tokio::test]
async fn a_right_that_the_account_of_a_scaler_lacks_is_found() {
    let found = async |denied: &[&'static str], installed: &[(&str, u32)]| {
        let mut held = Arc::into_inner(Held::new(&[])).unwrap();
        held.denied = denied.to_vec();
        let known = held.facts.objects.get_mut(&LiveKind::Deployment);
        let Some(Reading::Known(known)) = known else {
            panic!("Deployments were not read");
        };
        known.extend(installed.iter().copied().flat_map(keda));
        let diagnosis = diagnose(&Arc::new(held), &DoctorScope::default()).await;
        let findings = diagnosis.findings().map(|one| {
            assert_eq!(one.code, FindingCode::ScalerRightMissing, "{one:?}");
            let account = one.value.trim_start_matches("system:serviceaccount:");
            format!("{} {account}", one.object)
        });
        findings.collect::<Vec<String>>()
    };
    let autoscaler = "HorizontalPodAutoscaler ns/a kube-system:horizontal-pod-autoscaler";
    let operator = "ScaledObject ns/b keda:keda-operator-account";
    let adapter = "ScaledObject ns/b keda:keda-operator-metrics-apiserver-account";
    let review = "\"resource\":\"subjectaccessreviews\"";
    let scale = "\"subresource\":\"scale\"";
    let metric = "\"resource\":\"wva_desired_replicas\"";
    let one: &[(&str, u32)] = &[("keda", 1)];
    for (denied, installed, expected) in wva_base::cases! {
        (&[][..], one, &[][..]),
        (&[metric], one, &[autoscaler]),
        (&["horizontal-pod-autoscaler"], one, &[autoscaler; 3]),
        (&["keda-operator-account"], one, &[operator; 2]),
        (&[review], one, &[adapter]),
        (&[scale], &[], &[autoscaler; 2]),
        // Which account scales is not known.
        (&["serviceaccount:keda:"], &[], &[]),
        (&["serviceaccount:keda:"], &[("keda", 1), ("other", 1)], &[]),
        // One of two does not run.
        (&["keda-operator-account"], &[("keda", 1), ("other", 0)], &[operator; 2]),
    } {
        let found = found(denied, installed).await;
        assert_eq!(found, expected, "{denied:?} {installed:?}");
    }
}

#[tokio::test]
async fn before_the_installation_only_its_surroundings_are_looked_at() {
    let scope = DoctorScope { is_before: true, ..DoctorScope::default() };
    let held = Held::new(&[]);
    let diagnosis = diagnose(&held, &scope).await;
    assert_eq!(diagnosis.verdict(), Verdict::Fine, "{}", diagnosis.to_text());
    let text = diagnosis.to_text();
    assert!(text.contains("√ VariantAutoscaling is served"), "{text}");
    assert!(!text.contains("pods start"), "{text}");
    // The chart brings what is not there.
    let kind = ("/apis/llmd.ai/v1alpha1/variantautoscalings", 404);
    let bare = diagnose(&Held::new(&[kind]), &scope).await;
    assert_eq!(bare.verdict(), Verdict::Fine, "{}", bare.to_text());
    let mut old = Arc::into_inner(Held::new(&[kind])).unwrap();
    old_definition(&mut old.facts);
    let old = diagnose(&Arc::new(old), &scope).await;
    assert_eq!(found(&old), [FindingCode::DefinitionOld]);
    let missing = Held::new(&[("/apis/keda.sh", 404), ("/apis/apiregistration.k8s.io", 404)]);
    let diagnosis = diagnose(&missing, &scope).await;
    assert!(found(&diagnosis).contains(&FindingCode::NoScalerKind));
}

/// Nothing reads external metrics yet, and KEDA or an adapter is to serve them.
#[tokio::test]
async fn before_the_installation_external_metrics_are_to_be_available() {
    let codes = async |is_before: bool, plant: fn(&mut Facts)| {
        let mut held = Arc::into_inner(Held::new(&[])).unwrap();
        for kind in [
            LiveKind::VariantAutoscaling,
            LiveKind::HorizontalPodAutoscaler,
            LiveKind::ScaledObject,
        ] {
            objects(&mut held.facts, kind).clear();
        }
        plant(&mut held.facts);
        let scope = DoctorScope { is_before, ..DoctorScope::default() };
        found(&diagnose(&Arc::new(held), &scope).await)
    };
    let healthy: fn(&mut Facts) = |_| {};
    let down = unavailable;
    let unregistered = |facts: &mut Facts| objects(facts, LiveKind::APIService).clear();
    for (is_before, plant, expected) in [
        (true, healthy, &[][..]),
        (true, down, &[FindingCode::ExternalMetricsMissing]),
        (true, unregistered, &[FindingCode::ExternalMetricsMissing]),
        (false, down, &[]),
        (false, unregistered, &[]),
    ] {
        assert_eq!(codes(is_before, plant).await, expected, "{is_before}");
    }
}

#[tokio::test]
async fn that_no_controller_is_installed_is_found_only_after_the_installation() {
    let held = Held::bare();
    let after = diagnose(&held, &DoctorScope::default()).await;
    assert_eq!(found(&after), [FindingCode::ControllerMissing]);
    let scope = DoctorScope { is_before: true, ..DoctorScope::default() };
    let before = diagnose(&held, &scope).await;
    assert_eq!(found(&before), Vec::new(), "{}", before.to_text());
    assert_eq!(before.verdict(), Verdict::Unseen);
    let text = before.to_text();
    assert!(text.contains("no controller names its address; pass --prometheus"), "{text}");
}

/// The setting of the controller is another one.
#[tokio::test]
async fn an_address_that_is_no_url_is_that_of_its_flag() {
    let scope = DoctorScope { prometheus: Some("foo".to_owned()), ..DoctorScope::default() };
    let text = diagnose(&Held::new(&[]), &scope).await.to_text();
    let why = "could not look: Prometheus: --prometheus \"foo\" is not a URL like ";
    assert!(text.contains(why), "{text}");
    assert!(!text.contains("PROMETHEUS_BASE_URL"), "{text}");
}

#[tokio::test]
async fn a_name_that_nothing_has_is_not_fine() {
    let held = Held::new(&[]);
    let scope = |namespace: &str, variant: Option<&str>, is_before: bool| DoctorScope {
        namespace: Some(namespace.to_owned()),
        variant: variant.map(str::to_owned),
        is_before,
        ..DoctorScope::default()
    };
    for (scope, verdict) in [
        (scope("ns", Some("a"), false), Verdict::Fine),
        (scope("ns", Some("aa"), false), Verdict::Unseen),
        (scope("nss", None, false), Verdict::Unseen),
        (scope("nss", None, true), Verdict::Fine),
    ] {
        let diagnosis = diagnose(&held, &scope).await;
        let text = diagnosis.to_text();
        assert_eq!(diagnosis.verdict(), verdict, "{scope:?}: {text}");
        let is_named = match scope.namespace.as_deref() {
            Some("nss") => text.contains("the namespace does not exist"),
            _ => text.contains("there is no variant of that name"),
        };
        assert_eq!(is_named, verdict == Verdict::Unseen, "{text}");
    }
}

#[tokio::test]
async fn an_api_server_that_does_not_answer_ends_the_look() {
    assert_eq!(reach(&Held::new(&[]).client()).await, Ok(()));
    // One that refuses is there.
    assert_eq!(reach(&Held::new(&[("/version", 403)]).client()).await, Ok(()));
    let service = tower::service_fn(|_request: Request<Body>| async {
        Err::<Response<Full<Bytes>>, _>(io::Error::from(io::ErrorKind::ConnectionRefused))
    });
    let error = reach(&Client::new(service, "default")).await.unwrap_err();
    assert!(error.starts_with("the API server cannot be reached: "), "{error}");
    assert!(
        error.ends_with("or name another one by KUBECONFIG or the context of the kubeconfig"),
        "{error}"
    );
}

#[test]
fn an_address_of_a_service_has_a_path_through_the_api_server() {
    for (address, path) in wva_base::cases! {
        ("https://prom.monitoring.svc.cluster.local:9090/prefix/",
         Some("/api/v1/namespaces/monitoring/services/https:prom:9090/proxy/prefix/api/v1/query")),
        ("http://prom.monitoring:9090",
         Some("/api/v1/namespaces/monitoring/services/http:prom:9090/proxy/api/v1/query")),
        ("https://prometheus.example.com", None),
        ("https://localhost:9090", None),
        ("nowhere", None),
    } {
        assert_eq!(proxy_path(address).as_deref(), path, "{address}");
    }
}

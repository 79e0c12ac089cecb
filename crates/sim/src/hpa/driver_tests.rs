//! Tests of the controller around the arithmetic, on the simulated server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Autoscalers, ExternalMetricSpec, SYNC};
use crate::apiserver::{ApiServer, Insider};
use crate::milli::Milli;
use crate::world::objects::group_definition;
use wva_base::moment::WallTime;
use wva_supervise::{Clock, SeedTree};

/// A metric of this value.
#[derive(Debug, Clone)]
struct Fixed(Arc<Mutex<Result<Milli, String>>>);

impl Fixed {
    fn set(&self, value: Result<u64, &str>) {
        let value = value.map(Milli::units).map_err(str::to_owned);
        *self.0.lock().unwrap() = value;
    }
}

/// A deployment of one replica with an autoscaler up to five.
async fn stage() -> (Insider, Fixed) {
    let clock = Clock::at(WallTime(1_767_225_600_000));
    let server = ApiServer::new(clock.clone(), &SeedTree::new(1));
    let insider = Insider::new(server.clone(), "test");
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "d"}},
        "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    }});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    insider.create(deployments, &deployment).await.unwrap();
    let autoscaler = json!({"metadata": {"name": "h"}, "spec": {
        "minReplicas": 1, "maxReplicas": 5,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "metrics": [{"type": "External", "external": {
            "metric": {"name": "wanted", "selector": {"matchLabels": {"variant_name": "v"}}},
            "target": {"type": "AverageValue", "averageValue": "1"},
        }}],
        "behavior": {"scaleUp": {"stabilizationWindowSeconds": 0}},
    }});
    let autoscalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    insider.create(autoscalers, &autoscaler).await.unwrap();
    let metric = Fixed(Arc::new(Mutex::new(Ok(Milli::units(1)))));
    let fixed = metric.clone();
    let source = Arc::new(move |namespace: &str, metric: &ExternalMetricSpec| {
        assert_eq!((namespace, &*metric.name), ("default", "wanted"));
        fixed.0.lock().unwrap().clone()
    });
    tokio::spawn(Autoscalers::new(server, clock, source, SYNC).run());
    (insider, metric)
}

fn replicas(server: &Insider) -> i64 {
    let found = server.get("deployments.apps", "default", "d").unwrap();
    found["spec"]["replicas"].as_i64().unwrap()
}

fn status(server: &Insider) -> Value {
    let resource = "horizontalpodautoscalers.autoscaling";
    server.get(resource, "default", "h").unwrap()["status"].clone()
}

fn condition(server: &Insider, kind: &str) -> (String, String) {
    let status = status(server);
    let conditions = status["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|one| one["type"] == kind).unwrap();
    let text = |field: &str| found[field].as_str().unwrap().to_owned();
    (text("status"), text("reason"))
}

fn events(server: &Insider) -> Vec<(String, String)> {
    let events = server.list("events");
    let reason_and_message = |event: &Arc<Value>| {
        let text = |field: &str| event[field].as_str().unwrap().to_owned();
        (text("reason"), text("message"))
    };
    events.iter().map(reason_and_message).collect()
}

fn pair(one: &str, other: &str) -> (String, String) {
    (one.to_owned(), other.to_owned())
}

#[track_caller]
fn is(server: &Insider, kind: &str, status: &str, reason: &str) {
    assert_eq!(condition(server, kind), pair(status, reason));
}

#[tokio::test(start_paused = true)]
async fn it_follows_a_metric_at_its_next_look() {
    let (server, metric) = stage().await;
    sleep(Duration::from_secs(16)).await;
    assert_eq!(replicas(&server), 1);
    is(&server, "AbleToScale", "True", "ReadyForNewScale");
    assert!(events(&server).is_empty());
    metric.set(Ok(3));
    sleep(Duration::from_secs(13)).await;
    assert_eq!(replicas(&server), 1, "not before the next look");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(replicas(&server), 3);
    is(&server, "AbleToScale", "True", "SucceededRescale");
    is(&server, "ScalingActive", "True", "ValidMetricFound");
    let status = status(&server);
    assert_eq!(status["desiredReplicas"], 3);
    assert_eq!(status["lastScaleTime"], "2026-01-01T00:00:30Z");
    let reason = "New size: 3; reason: external metric wanted(&LabelSelector{MatchLabels:\
                  map[string]string{variant_name: v,},MatchExpressions:\
                  []LabelSelectorRequirement{},}) above target";
    assert_eq!(events(&server), [pair("SuccessfulRescale", reason)]);
}

#[tokio::test(start_paused = true)]
async fn without_its_metric_it_holds_and_says_so_once() {
    let (server, metric) = stage().await;
    metric.set(Ok(2));
    sleep(Duration::from_secs(16)).await;
    assert_eq!(replicas(&server), 2);
    metric.set(Err("no metrics returned"));
    sleep(Duration::from_mins(2)).await;
    assert_eq!(replicas(&server), 2);
    is(&server, "ScalingActive", "False", "FailedGetExternalMetric");
    let failures = events(&server);
    let failures = failures.iter().filter(|one| one.0 == "FailedGetExternalMetric");
    assert_eq!(failures.count(), 1);
    metric.set(Ok(4));
    sleep(Duration::from_secs(16)).await;
    assert_eq!(replicas(&server), 4);
    is(&server, "ScalingActive", "True", "ValidMetricFound");
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_gone_is_named() {
    let (server, _metric) = stage().await;
    sleep(Duration::from_secs(16)).await;
    assert_eq!(condition(&server, "AbleToScale").0, "True");
    let path = "/apis/apps/v1/namespaces/default/deployments/d";
    server.delete(path, &json!({})).await.unwrap();
    sleep(Duration::from_secs(16)).await;
    is(&server, "AbleToScale", "False", "FailedGetScale");
}

/// Of groups it scales the number of groups, and counts the pods that their scale selects: leaders.
#[tokio::test(start_paused = true)]
async fn it_counts_the_leaders_of_groups() {
    let (server, metric) = stage().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = group_definition();
    server.create(definitions, &definition).await.unwrap();
    let sets = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets";
    let set = json!({"metadata": {"name": "l"}, "spec": {"replicas": 2}});
    server.create(sets, &set).await.unwrap();
    let selector = "of=l,place=0";
    let counted = json!({"replicas": 2, "readyReplicas": 1, "hpaPodSelector": selector});
    let path = format!("{sets}/l/status");
    let change = json!({"status": counted});
    server.merge(&path, &change).await.unwrap();
    for (name, place) in [("l-0", "0"), ("l-0-1", "1"), ("l-1", "0")] {
        let pod = json!({
            "metadata": {"name": name, "labels": {"of": "l", "place": place}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        let pods = "/api/v1/namespaces/default/pods";
        server.create(pods, &pod).await.unwrap();
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let path = format!("{pods}/{name}/status");
        server.merge(&path, &ready).await.unwrap();
    }
    let change = json!({"spec": {
        "scaleTargetRef": {
            "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "l",
        },
        "metrics": [{"type": "External", "external": {
            "metric": {"name": "wanted"}, "target": {"type": "Value", "value": "1"},
        }}],
    }});
    let autoscaler = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/h";
    server.merge(autoscaler, &change).await.unwrap();
    metric.set(Ok(2));
    sleep(Duration::from_secs(16)).await;
    let found = server.get("leaderworkersets.leaderworkerset.x-k8s.io", "default", "l");
    assert_eq!(found.unwrap()["spec"]["replicas"], 4, "twice the two leaders");
    assert_eq!(replicas(&server), 1);
}

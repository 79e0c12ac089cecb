//! Watches, deletion, namespaces and faults, as clients in this process see them.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{ask, server};
use crate::apiserver::{ApiServer, RequestFault};

const MAPS: &str = "/api/v1/namespaces/ns/configmaps";

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn maps(server: &ApiServer) -> Api<ConfigMap> {
    Api::namespaced(server.client(), "ns")
}

#[tokio::test(start_paused = true)]
async fn a_watch_delivers_changes_as_they_come_and_bookmarks_when_it_is_quiet() {
    let server = server().await;
    let api = maps(&server);
    let listed = api.list(&ListParams::default()).await.unwrap();
    let version = listed.metadata.resource_version.unwrap();
    let parameters = WatchParams::default().timeout(120);
    let mut watch = api.watch(&parameters, &version).await.unwrap().boxed();
    api.create(&PostParams::default(), &map("a")).await.unwrap();
    let started = Instant::now();
    let event = watch.try_next().await.unwrap();
    assert!(matches!(event, Some(WatchEvent::Added(_))), "{event:?}");
    assert_eq!(started.elapsed(), Duration::ZERO);
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let event = watch.try_next().await.unwrap();
    assert!(matches!(event, Some(WatchEvent::Deleted(_))), "{event:?}");
    let event = watch.try_next().await.unwrap();
    assert!(matches!(event, Some(WatchEvent::Bookmark(_))), "{event:?}");
    assert_eq!(started.elapsed(), Duration::from_mins(1));
    let rest: Vec<_> = watch.try_collect().await.unwrap();
    assert_eq!(rest.len(), 0);
    assert_eq!(started.elapsed(), Duration::from_mins(2));
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_forgotten_version_ends_with_410_in_the_stream() {
    let server = server().await;
    let api = maps(&server);
    let made = api.create(&PostParams::default(), &map("a")).await.unwrap();
    let version = made.metadata.resource_version.unwrap();
    api.create(&PostParams::default(), &map("b")).await.unwrap();
    let watch = api.watch(&WatchParams::default(), &version).await.unwrap();
    let event = watch.boxed().try_next().await.unwrap();
    assert!(matches!(event, Some(WatchEvent::Added(_))), "{event:?}");
    server.compact();
    let watch = api.watch(&WatchParams::default(), &version).await.unwrap();
    let events: Vec<_> = watch.try_collect().await.unwrap();
    assert!(matches!(&*events, [WatchEvent::Error(status)] if status.code == 410), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_forgotten_version_is_refused_with_410() {
    let server = server().await;
    for name in ["a", "b"] {
        ask(&server, "POST", MAPS, &json!({"metadata": {"name": name}})).await;
    }
    let (_, page) = ask(&server, "GET", &format!("{MAPS}?limit=1"), &Value::Null).await;
    let next =
        format!("{MAPS}?limit=1&continue={}", page["metadata"]["continue"].as_str().unwrap());
    ask(&server, "POST", MAPS, &json!({"metadata": {"name": "aa"}})).await;
    let (code, page) = ask(&server, "GET", &next, &Value::Null).await;
    assert_eq!((code, &page["items"][0]["metadata"]["name"]), (200, &json!("b")));
    server.compact();
    ask(&server, "POST", MAPS, &json!({"metadata": {"name": "c"}})).await;
    let (code, status) = ask(&server, "GET", &next, &Value::Null).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
}

async fn exists(server: &ApiServer, name: &str) -> bool {
    let (code, _) = ask(server, "GET", &format!("{MAPS}/{name}"), &Value::Null).await;
    code == 200
}

async fn make(server: &ApiServer, name: &str, owners: &[&Value], blocking: bool) -> Value {
    let owners: Vec<_> = owners
        .iter()
        .map(|owner| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocking,
            })
        })
        .collect();
    let object = json!({"metadata": {"name": name, "ownerReferences": owners}});
    let (code, made) = ask(server, "POST", MAPS, &object).await;
    assert_eq!(code, 201, "{made}");
    made
}

async fn delete(server: &ApiServer, name: &str, policy: &str) -> Value {
    let path = format!("{MAPS}/{name}?propagationPolicy={policy}");
    let (code, answer) = ask(server, "DELETE", &path, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    answer
}

#[tokio::test(start_paused = true)]
async fn what_an_object_owns_alone_goes_with_it() {
    let server = server().await;
    let (a, b) = (make(&server, "a", &[], false).await, make(&server, "b", &[], false).await);
    let own = make(&server, "own", &[&a], false).await;
    make(&server, "below", &[&own], false).await;
    make(&server, "shared", &[&a, &b], false).await;
    delete(&server, "a", "Background").await;
    for (name, stays) in [("a", false), ("own", false), ("below", false), ("shared", true)] {
        assert_eq!(exists(&server, name).await, stays, "{name}");
    }
    let (_, shared) = ask(&server, "GET", &format!("{MAPS}/shared"), &Value::Null).await;
    assert_eq!(shared["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    delete(&server, "b", "Orphan").await;
    assert!(!exists(&server, "b").await);
    assert!(exists(&server, "shared").await);
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_in_the_foreground_waits_for_those_that_block_it() {
    let server = server().await;
    let owner = make(&server, "owner", &[], false).await;
    make(&server, "held", &[&owner], true).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    ask(&server, "PATCH", &format!("{MAPS}/held"), &hold).await;
    let marked = delete(&server, "owner", "Foreground").await;
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(exists(&server, "owner").await && exists(&server, "held").await);
    let release = json!({"metadata": {"finalizers": null}});
    ask(&server, "PATCH", &format!("{MAPS}/held"), &release).await;
    assert!(!exists(&server, "owner").await && !exists(&server, "held").await);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_all_that_is_in_it() {
    let server = server().await;
    make(&server, "a", &[], false).await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    ask(&server, "POST", MAPS, &held).await;
    let (code, marked) = ask(&server, "DELETE", "/api/v1/namespaces/ns", &Value::Null).await;
    assert_eq!((code, &marked["status"]["phase"]), (200, &json!("Terminating")));
    assert!(!exists(&server, "a").await && exists(&server, "held").await);
    let (code, status) = ask(&server, "POST", MAPS, &json!({"metadata": {"name": "b"}})).await;
    assert_eq!(code, 403);
    assert_eq!(status["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let release = json!({"metadata": {"finalizers": null}});
    ask(&server, "PATCH", &format!("{MAPS}/held"), &release).await;
    let (code, _) = ask(&server, "GET", "/api/v1/namespaces/ns", &Value::Null).await;
    assert_eq!(code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_is_marked_until_the_node_lets_it_go() {
    let server = server().await;
    let pods = "/api/v1/namespaces/ns/pods";
    let pod = |name: &str, node: Option<&str>| {
        json!({"metadata": {"name": name}, "spec": {
            "nodeName": node, "containers": [{"name": "c", "image": "i"}],
        }})
    };
    for (name, node) in [("free", None), ("bound", Some("n1"))] {
        let (code, made) = ask(&server, "POST", pods, &pod(name, node)).await;
        assert_eq!((code, &made["status"]["phase"]), (201, &json!("Pending")), "{made}");
        ask(&server, "DELETE", &format!("{pods}/{name}"), &Value::Null).await;
    }
    let (code, _) = ask(&server, "GET", &format!("{pods}/free"), &Value::Null).await;
    assert_eq!(code, 404);
    let bound = format!("{pods}/bound");
    let (code, pod) = ask(&server, "GET", &bound, &Value::Null).await;
    assert_eq!((code, &pod["metadata"]["deletionGracePeriodSeconds"]), (200, &json!(30)));
    ask(&server, "DELETE", &format!("{bound}?gracePeriodSeconds=0"), &Value::Null).await;
    assert_eq!(ask(&server, "GET", &bound, &Value::Null).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_definition_come_and_go_with_it() {
    let server = server().await;
    let path = "/apis/llmd.ai/v1alpha1/namespaces/ns/variantautoscalings";
    let object = json!({"metadata": {"name": "v"}, "spec": {
        "modelID": "m", "scaleTargetRef": {"name": "d"},
    }});
    assert_eq!(ask(&server, "POST", path, &object).await.0, 201);
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/\
                      variantautoscalings.llmd.ai";
    let (_, found) = ask(&server, "GET", definition, &Value::Null).await;
    assert_eq!(found["status"]["conditions"][1]["type"], "Established");
    ask(&server, "DELETE", definition, &Value::Null).await;
    assert_eq!(ask(&server, "GET", path, &Value::Null).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn faults_meet_one_client_and_spare_the_others() {
    let server = server().await;
    let slow = server.with_faults(Arc::new(|| RequestFault {
        latency: Duration::from_secs(2),
        cut_after: Some(Duration::from_secs(5)),
        ..RequestFault::default()
    }));
    let started = Instant::now();
    let object = json!({"metadata": {"name": "a"}});
    assert_eq!(ask(&slow, "POST", MAPS, &object).await.0, 201);
    assert_eq!(started.elapsed(), Duration::from_secs(2));
    let watch = maps(&slow).watch(&WatchParams::default(), "1").await.unwrap();
    let _events: Vec<_> = watch.try_collect().await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(9));
    assert_eq!(ask(&server, "GET", MAPS, &Value::Null).await.0, 200);
    assert_eq!(started.elapsed(), Duration::from_secs(9));
    let refusing = server
        .with_faults(Arc::new(|| RequestFault { refuse: Some(503), ..RequestFault::default() }));
    assert_eq!(ask(&refusing, "GET", MAPS, &Value::Null).await.0, 503);
}

#[tokio::test(start_paused = true)]
async fn bodies_that_make_no_sense_are_refused_and_hurt_nothing() {
    let server = server().await;
    assert_eq!(ask(&server, "POST", MAPS, &json!({"metadata": {"name": "a"}})).await.0, 201);
    let one = format!("{MAPS}/a");
    for body in
        [json!("text"), json!([1]), json!({"metadata": {"labels": "x"}}), json!({"data": 1})]
    {
        for (method, path) in [("POST", MAPS), ("PUT", &*one), ("PATCH", &*one)] {
            let (code, status) = ask(&server, method, path, &body).await;
            assert!((400..500).contains(&code), "{method} {body}: {code} {status}");
        }
    }
    for (path, body) in [
        ("/api/v1/namespaces", json!({"metadata": {"name": "n"}, "spec": "x"})),
        ("/api/v1/namespaces", json!({"metadata": {"name": "n", "labels": 3}})),
        (
            "/api/v1/namespaces/ns/services",
            json!({"metadata": {"name": "s"}, "spec": {"ports": [1]}}),
        ),
    ] {
        let (code, status) = ask(&server, "POST", path, &body).await;
        assert_eq!(code, 400, "{body}: {status}");
    }
    assert!(exists(&server, "a").await);
}

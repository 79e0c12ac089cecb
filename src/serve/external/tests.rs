use hyper::StatusCode;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use serde_json::json;

use super::{ExternalMetricsRoutes, GROUP_VERSION, Place, discovery, selector};
use crate::actors::variants::tests::shared;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::state::mirrors::tests::{count_writer, list};

#[test]
fn paths_are_distinguished() {
    let base = format!("/apis/{GROUP_VERSION}");
    let values = |namespace, metric| Place::Values { namespace, metric };
    for (path, wanted) in [
        ("/apis".to_owned(), Place::Groups),
        ("/apis/external.metrics.k8s.io".to_owned(), Place::Group),
        (base.clone(), Place::Resources),
        (format!("{base}/namespaces/a/wva_desired_replicas"), values("a", "wva_desired_replicas")),
        (format!("{base}/namespaces/a/x"), values("a", "x")),
        (format!("{base}/namespaces/a/x/y"), Place::Nothing),
        (format!("{base}/namespaces//x"), Place::Nothing),
        (format!("{base}/namespaces/a/"), Place::Nothing),
        (format!("{base}/wva_desired_replicas"), Place::Nothing),
        ("/apis/custom.metrics.k8s.io".to_owned(), Place::Nothing),
        ("/apisx".to_owned(), Place::Nothing),
        ("/metrics".to_owned(), Place::Nothing),
        ("/".to_owned(), Place::Nothing),
    ] {
        assert_eq!(Place::of(&path), wanted, "{path}");
    }
}

#[test]
fn a_selector_arrives_percent_encoded_and_a_watch_is_refused() {
    for (query, shown) in [
        (None, ""),
        (Some(""), ""),
        (Some("labelSelector="), ""),
        (
            Some("labelSelector=exported_namespace%3Da%2Cvariant_name%3Dllama&timeout=5s"),
            "exported_namespace in (a),variant_name in (llama)",
        ),
        (Some("labelSelector=a+in+%28b%29&watch=false"), "a in (b)"),
    ] {
        assert_eq!(selector(query).unwrap().to_string(), shown, "{query:?}");
    }
    for (query, why) in [
        ("labelSelector=a%20b", "labelSelector: \"a b\" is not"),
        ("watch=true", "cannot be watched"),
        ("watch=1&labelSelector=", "cannot be watched"),
    ] {
        let error = selector(Some(query)).unwrap_err();
        assert!(error.contains(why), "{query}: {error}");
    }
}

#[test]
fn discovery_names_every_metric_and_nothing_that_a_namespace_controller_would_delete() {
    let resources = discovery::resources();
    let resources = resources["resources"].as_array().unwrap();
    let names: Vec<_> = resources.iter().map(|resource| resource["name"].as_str()).collect();
    let wanted = ["wva_desired_replicas", "wva_current_replicas", "wva_desired_ratio"];
    assert_eq!(names, wanted.map(Some));
    assert!(resources.iter().all(|resource| resource["verbs"] == serde_json::json!(["get"])));
    let group = &discovery::groups()["groups"][0];
    assert_eq!(group["preferredVersion"]["groupVersion"], GROUP_VERSION);
}

/// An HPA requests one variant, of whichever kind; others are left alone, also those that have no value.
#[test]
fn a_variant_is_found_by_the_name_that_a_selector_wants() {
    let shared = shared();
    let mirrors = &shared.writers.mirrors;
    list::<VariantAutoscaling>(&mirrors.variants, []);
    let scaler = |name: &str, count: &str| {
        json!({
            "metadata": {"namespace": "ns", "name": name, "managedFields": count_writer(), "annotations": {
                "llm-d.ai/managed": "true", "llm-d.ai/model-id": "m", "llm-d.ai/desired-replicas": count,
            }},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": name}, "maxReplicas": 9},
        })
    };
    let mirror = &mirrors.horizontal_pod_autoscalers;
    let scalers = [scaler("a", "3"), scaler("b", "none"), scaler("c", "4")];
    list::<HorizontalPodAutoscaler>(mirror, scalers);
    let routes = ExternalMetricsRoutes::new(shared.readers.clone());
    for (selector, status) in [
        ("variant_name=a", StatusCode::OK),
        ("variant_name in (a,c),exported_namespace=ns", StatusCode::OK),
        ("variant_name in (a,b)", StatusCode::SERVICE_UNAVAILABLE),
        ("variant_name!=b", StatusCode::OK),
        ("", StatusCode::SERVICE_UNAVAILABLE),
        ("variant_name=x", StatusCode::OK),
    ] {
        let query: String = form_urlencoded::Serializer::new(String::new())
            .append_pair("labelSelector", selector)
            .finish();
        let answer = routes.values("ns", "wva_desired_replicas", Some(&query));
        assert_eq!(answer.status(), status, "{selector}");
    }
}

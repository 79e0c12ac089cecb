//! Services, of which the port for metrics matters.

use k8s_openapi::api::core::v1::Service;
use serde_json::json;

use super::project;

#[test]
fn the_first_port_for_metrics_leads_to_that_of_the_pods() {
    for (ports, expected) in wva_base::cases! {
        (json!([{ "name": "http-metrics", "port": 9090 }]), Some(9090)),
        (json!([{ "name": "grpc", "port": 1 }, { "name": "metrics", "port": 2 }, { "name": "metrics2", "port": 3 }]),
         Some(2)),
        (json!([{ "name": "metrics", "port": 8080, "targetPort": 9090 }]), Some(9090)),
        (json!([{ "name": "metrics", "port": 8080, "targetPort": "named" }]), Some(8080)),
        (json!([{ "name": "http", "port": 9090 }]), None),
        (json!([{ "port": 9090 }]), None),
        (json!([{ "name": "metrics", "port": 0 }]), None),
        (json!([]), None),
    } {
        let object = json!({
            "metadata": { "namespace": "ns", "name": "s" },
            "spec": { "ports": ports, "selector": { "app": "epp" } },
        });
        let service = project::<Service>(&object);
        assert_eq!(service.metrics_port, expected, "{object}");
        assert_eq!(service.has_metrics(), expected.is_some(), "{object}");
        let labels = |app: &str| [("app".into(), app.into()), ("x".into(), "y".into())].into();
        assert!(service.selects(&labels("epp")) && !service.selects(&labels("other")));
    }
}

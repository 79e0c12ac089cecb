//! The kinds that every server has, from the schemas of `k8s_openapi`.

use std::sync::{Arc, LazyLock};

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::kind::{Kind, ScalePaths};
use super::overlay;
use super::schema::Schema;

/// Group, version, and package of schemas.
type ApiGroup = (&'static str, &'static str, &'static str);

/// A kind, its plural, its short names and its traits.
type Row = (ApiGroup, &'static str, &'static str, &'static [&'static str], &'static [Trait]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trait {
    Cluster,
    Status,
    Scale,
    Generation,
    All,
}

use Trait::{All, Cluster, Generation, Status};

const WORKLOAD: &[Trait] = &[Status, Trait::Scale, Generation, All];

const CORE: ApiGroup = ("", "v1", "io.k8s.api.core.v1");
const APPS: ApiGroup = ("apps", "v1", "io.k8s.api.apps.v1");
const EVENTS: ApiGroup = ("events.k8s.io", "v1", "io.k8s.api.events.v1");
const LEASES: ApiGroup = ("coordination.k8s.io", "v1", "io.k8s.api.coordination.v1");
const SCALING: ApiGroup = ("autoscaling", "v2", "io.k8s.api.autoscaling.v2");
const DEFINITIONS: ApiGroup =
    ("apiextensions.k8s.io", "v1", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1");

const ROWS: [Row; 15] = [
    (CORE, "ConfigMap", "configmaps", &["cm"], &[]),
    (CORE, "Event", "events", &["ev"], &[]),
    (CORE, "Namespace", "namespaces", &["ns"], &[Cluster, Status]),
    (CORE, "Node", "nodes", &["no"], &[Cluster, Status]),
    (CORE, "Pod", "pods", &["po"], &[Status, All]),
    (CORE, "Secret", "secrets", &[], &[]),
    (CORE, "ServiceAccount", "serviceaccounts", &["sa"], &[]),
    (CORE, "Service", "services", &["svc"], &[Status, All]),
    (
        DEFINITIONS,
        "CustomResourceDefinition",
        "customresourcedefinitions",
        &["crd", "crds"],
        &[Cluster, Status, Generation],
    ),
    (APPS, "Deployment", "deployments", &["deploy"], WORKLOAD),
    (APPS, "ReplicaSet", "replicasets", &["rs"], WORKLOAD),
    (APPS, "StatefulSet", "statefulsets", &["sts"], WORKLOAD),
    (SCALING, "HorizontalPodAutoscaler", "horizontalpodautoscalers", &["hpa"], &[Status, All]),
    (LEASES, "Lease", "leases", &[], &[]),
    (EVENTS, "Event", "events", &["ev"], &[]),
];

type Kinds = (Vec<Arc<Kind>>, Arc<Map<String, Value>>);

pub(super) fn kinds() -> Kinds {
    // The same for every server, and a good part of the time that a short test takes.
    static KINDS: LazyLock<Kinds> = LazyLock::new(|| {
        let definitions = definitions();
        let kinds = ROWS.iter().map(|row| Arc::new(kind(row, &definitions))).collect();
        (kinds, Arc::new(definitions))
    });
    KINDS.clone()
}

fn kind(row: &Row, definitions: &Map<String, Value>) -> Kind {
    let ((group, version, package), kind, plural, short, traits) = *row;
    let has = |one: Trait| traits.contains(&one);
    let reference = json!({
        "$ref": format!("#/components/schemas/{package}.{kind}"),
    });
    let stored_as = match kind {
        "Event" => "events".to_owned(),
        _ => format!("{plural}.{group}"),
    };
    Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: short.iter().map(ToString::to_string).collect(),
        categories: has(All).then(|| "all".to_owned()).into_iter().collect(),
        namespaced: !has(Cluster),
        status: has(Status),
        scale: has(Trait::Scale).then(|| ScalePaths {
            spec: "/spec/replicas".to_owned(),
            status: "/status/replicas".to_owned(),
            selector: None,
        }),
        generation: has(Generation),
        schema: Schema::read(&reference, definitions),
        stored_as,
        columns: None,
    }
}

fn definitions() -> Map<String, Value> {
    let settings = SchemaSettings::default().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let _references = [
        generator.subschema_for::<core::ConfigMap>(),
        generator.subschema_for::<core::Event>(),
        generator.subschema_for::<core::Namespace>(),
        generator.subschema_for::<core::Node>(),
        generator.subschema_for::<core::Pod>(),
        generator.subschema_for::<core::Secret>(),
        generator.subschema_for::<core::Service>(),
        generator.subschema_for::<core::ServiceAccount>(),
        generator.subschema_for::<CustomResourceDefinition>(),
        generator.subschema_for::<Deployment>(),
        generator.subschema_for::<ReplicaSet>(),
        generator.subschema_for::<StatefulSet>(),
        generator.subschema_for::<HorizontalPodAutoscaler>(),
        generator.subschema_for::<Lease>(),
        generator.subschema_for::<Event>(),
        generator.subschema_for::<Scale>(),
    ];
    let mut definitions = generator.take_definitions(false);
    overlay::complete(&mut definitions);
    definitions
}

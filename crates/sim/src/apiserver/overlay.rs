//! What the schemas of `k8s_openapi` leave out: how list elements are distinguished, which objects are
//! one value, and defaults. From the OpenAPI document of Kubernetes 1.33 and its defaulting code.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

const ATOMIC: [&str; 12] = [
    "apimachinery.pkg.apis.meta.v1.LabelSelector",
    "apimachinery.pkg.apis.meta.v1.OwnerReference",
    "api.core.v1.ConfigMapKeySelector",
    "api.core.v1.LocalObjectReference",
    "api.core.v1.NodeSelector",
    "api.core.v1.NodeSelectorTerm",
    "api.core.v1.ObjectFieldSelector",
    "api.core.v1.ObjectReference",
    "api.core.v1.ResourceFieldSelector",
    "api.core.v1.SecretKeySelector",
    "api.core.v1.TopologySelectorTerm",
    "api.core.v1.TypedLocalObjectReference",
];

/// Fields of definitions. `keyed` lists stand under the fields that identify their elements, of which
/// a strategic merge patch looks at the first.
const FIELDS: &str = r"
apimachinery.pkg.apis.meta.v1.ObjectMeta: {sets: [finalizers], keyed: {uid: [ownerReferences]}}
apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus:
  keyed: {type: [conditions]}
api.apps.v1.DeploymentSpec:
  defaults:
    replicas: 1
    revisionHistoryLimit: 10
    progressDeadlineSeconds: 600
    strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 25%, maxSurge: 25%}}
api.apps.v1.DeploymentStatus: {keyed: {type: [conditions]}}
api.apps.v1.ReplicaSetSpec: {defaults: {replicas: 1}}
api.apps.v1.ReplicaSetStatus: {keyed: {type: [conditions]}}
api.apps.v1.StatefulSetSpec:
  defaults:
    replicas: 1
    podManagementPolicy: OrderedReady
    revisionHistoryLimit: 10
    updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0, maxUnavailable: 1}}
    persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}
api.apps.v1.StatefulSetStatus: {keyed: {type: [conditions]}}
api.autoscaling.v2.HorizontalPodAutoscalerSpec: {defaults: {minReplicas: 1}}
api.autoscaling.v2.HorizontalPodAutoscalerStatus: {keyed: {type: [conditions]}}
api.core.v1.Container:
  keyed:
    containerPort protocol: [ports]
    name: [env]
    mountPath: [volumeMounts]
    devicePath: [volumeDevices]
  defaults:
    resources: {}
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    imagePullPolicy: IfNotPresent
api.core.v1.ContainerPort: {defaults: {protocol: TCP}}
api.core.v1.HTTPGetAction: {defaults: {scheme: HTTP}}
api.core.v1.NamespaceStatus: {keyed: {type: [conditions]}}
api.core.v1.NodeSpec: {sets: [podCIDRs]}
api.core.v1.NodeStatus: {keyed: {type: [conditions, addresses]}}
api.core.v1.ObjectFieldSelector: {defaults: {apiVersion: v1}}
api.core.v1.PodSpec:
  atomic: [nodeSelector]
  keyed:
    name:
      - containers
      - initContainers
      - ephemeralContainers
      - volumes
      - imagePullSecrets
      - schedulingGates
      - resourceClaims
    ip: [hostAliases]
    topologyKey whenUnsatisfiable: [topologySpreadConstraints]
  defaults:
    restartPolicy: Always
    terminationGracePeriodSeconds: 30
    dnsPolicy: ClusterFirst
    securityContext: {}
    schedulerName: default-scheduler
api.core.v1.PodStatus: {keyed: {type: [conditions], ip: [podIPs]}}
api.core.v1.Probe:
  defaults: {successThreshold: 1, failureThreshold: 3, periodSeconds: 10, timeoutSeconds: 1}
api.core.v1.Secret: {defaults: {type: Opaque}}
api.core.v1.ServiceAccount: {keyed: {name: [secrets]}}
api.core.v1.ServicePort: {defaults: {protocol: TCP}}
api.core.v1.ServiceSpec:
  atomic: [selector]
  keyed: {port protocol: [ports]}
  defaults: {type: ClusterIP, sessionAffinity: None}
api.core.v1.ServiceStatus: {keyed: {type: [conditions]}}
";

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Overlay {
    atomic: Vec<String>,
    sets: Vec<String>,
    keyed: BTreeMap<String, Vec<String>>,
    defaults: BTreeMap<String, Value>,
}

pub(super) fn complete(definitions: &mut Map<String, Value>) {
    let mut extend = |name: &str, pointer: &str, keyword: &str, value: Value| {
        let definition = definitions.get_mut(&format!("io.k8s.{name}"));
        let place = definition.and_then(|definition| definition.pointer_mut(pointer));
        if let Some(Value::Object(place)) = place {
            place.insert(keyword.to_owned(), value);
        }
    };
    for name in ATOMIC {
        extend(name, "", "x-kubernetes-map-type", json!("atomic"));
    }
    extend("apimachinery.pkg.api.resource.Quantity", "", "format", json!("quantity"));
    let fields: BTreeMap<String, Overlay> = serde_yaml::from_str(FIELDS).unwrap_or_default();
    for (name, overlay) in fields {
        let mut add = |field: &str, keyword: &str, value: Value| {
            extend(&name, &format!("/properties/{field}"), keyword, value);
        };
        for field in &overlay.atomic {
            add(field, "x-kubernetes-map-type", json!("atomic"));
        }
        for field in &overlay.sets {
            add(field, "x-kubernetes-list-type", json!("set"));
            add(field, "x-kubernetes-patch-strategy", json!("merge"));
        }
        for (keys, fields) in &overlay.keyed {
            let keys: Vec<&str> = keys.split(' ').collect();
            for field in fields {
                add(field, "x-kubernetes-list-type", json!("map"));
                add(field, "x-kubernetes-list-map-keys", json!(keys));
                add(field, "x-kubernetes-patch-merge-key", json!(keys.first()));
                add(field, "x-kubernetes-patch-strategy", json!("merge"));
            }
        }
        for (field, default) in overlay.defaults {
            add(&field, "default", default);
        }
    }
}

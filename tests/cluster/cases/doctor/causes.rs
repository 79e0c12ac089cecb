//! The causes: how each is planted, and the one code that names it.

use k8s_openapi::ByteString;
use serde_json::{Value, json};
use wva::api::INSTANCE_LABEL;
use wva::cluster::lease::lease_name;

use super::fleet::{CONTROLLER, Place, Plant, VARIANTS, controller, ending, outside, powerless};
use super::{Delay, Seat};
use crate::harness::fault::Result;
use crate::harness::suite::Cx;
use crate::harness::variants::variant;

/// Pages without the series that is read.
const FOREIGN_ENGINE: &str = "# TYPE tgi_queue_size gauge\ntgi_queue_size 1\n";
const NO_ENGINE: &str = "# TYPE up_to_date gauge\nup_to_date 1\n";
/// An engine whose scrape attaches no pod.
const ENGINE: &str =
    "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"other\"} 1\n";
/// Served by something that outlives the pod.
const GONE: &str = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"meta-llama/Llama-3.1-8B\",pod=\"gone\"} 4\n";
const ROUTER: &str = "# TYPE llm_d_epp_scheduler_attempts_total counter\nllm_d_epp_scheduler_attempts_total{status=\"success\"} 5\n";
/// Starts that last longer than the pods' own.
const STARTS: &str = "# TYPE wva_replica_start_seconds_estimate gauge\nwva_replica_start_seconds_estimate{variant_name=\"llama-a\"} 90\n";

pub(super) struct Cause {
    /// The code of its finding.
    pub(super) code: &'static str,
    /// It in words.
    pub(super) what: &'static str,
    pub(super) plant: Plant,
    pub(super) seat: Seat,
    pub(super) delay: Delay,
    /// The reason of the condition by which the controller says it.
    pub(super) says: Option<&'static str>,
}

/// Names objects of the fleet.
struct Names<'a> {
    own: &'a str,
    system: &'a str,
    prometheus: &'a str,
}

/// Causes as rows: code, words, the seat of the doctor where it is no laptop, the delay where it is more than a look,
/// the reason of a condition, plant.
macro_rules! causes {
    (@seat) => { Seat::Laptop };
    (@seat $seat:ident) => { Seat::$seat };
    (@delay) => { Delay::Look };
    (@delay $delay:ident) => { Delay::$delay };
    (@says) => { None };
    (@says $reason:literal) => { Some($reason) };
    (
        $($code:literal, $what:literal $(at $seat:ident)? $(takes $delay:ident)? $(says $reason:literal)?
            => $plant:expr;)*
    ) => {
        vec![$(Cause {
            code: $code,
            what: $what,
            plant: $plant,
            seat: causes!(@seat $($seat)?),
            delay: causes!(@delay $($delay)?),
            says: causes!(@says $($reason)?),
        }),*]
    };
}

impl Names<'_> {
    fn place(&self, version: &'static str, kind: &'static str, name: &str) -> Place {
        Place { version, kind, namespace: Some(self.own.to_owned()), name: name.to_owned() }
    }

    fn variant(&self) -> Place {
        self.place("llmd.ai/v1alpha1", "VariantAutoscaling", VARIANTS[0].0)
    }

    fn scaled_object(&self) -> Place {
        self.place("keda.sh/v1alpha1", "ScaledObject", VARIANTS[0].0)
    }

    fn target(&self) -> Place {
        self.place("apps/v1", "Deployment", VARIANTS[0].0)
    }

    fn controller(&self) -> Place {
        Place {
            namespace: Some(self.system.to_owned()),
            ..self.place("apps/v1", "Deployment", CONTROLLER)
        }
    }

    /// The trigger of the first variant, with fields of its own.
    fn trigger(&self, query: &str, fields: &Value) -> Plant {
        let mut trigger = json!({ "type": "prometheus", "metricType": "AverageValue", "metadata": {
            "serverAddress": self.prometheus, "query": query, "threshold": "1",
            "activationThreshold": "0", "ignoreNullValues": "false",
        }});
        json_patch(&mut trigger, fields);
        Plant::Patch(self.scaled_object(), json!({ "spec": { "triggers": [trigger] } }))
    }

    /// The series of the first variant.
    fn series(&self, more: &str) -> String {
        let (own, name) = (self.own, VARIANTS[0].0);
        format!(
            "wva_desired_replicas{{variant_name=\"{name}\",exported_namespace=\"{own}\"{more}}}"
        )
    }

    fn query(&self, more: &str) -> String {
        let series = self.series(more);
        format!("max by (variant_name, exported_namespace) ({series})")
    }

    /// The first variant below a HorizontalPodAutoscaler of its own, and further changes. The adapter of the fleet is
    /// KEDA's, which answers for ScaledObjects alone.
    fn natively(&self, labels: &Value, further: Option<Plant>) -> Plant {
        let name = VARIANTS[0].0;
        let rules = json!({ "tolerance": "0", "stabilizationWindowSeconds": 0 });
        let object = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": { "name": name },
            "spec": {
                "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": name },
                "minReplicas": 1, "maxReplicas": 8,
                "metrics": [{ "type": "External", "external": {
                    "metric": { "name": "wva_desired_replicas", "selector": { "matchLabels": labels } },
                    "target": { "type": "AverageValue", "averageValue": "1" },
                }}],
                "behavior": { "scaleUp": rules, "scaleDown": rules },
            },
        });
        let create = Plant::Create(object, Some(self.own.to_owned()));
        let plants = [Plant::Delete(self.scaled_object()), create];
        Plant::Each(plants.into_iter().chain(further).collect())
    }

    /// The container of the controller with another value of a variable.
    fn environment(&self, object: &Value, name: &str, value: &str) -> Plant {
        let mut container = object["spec"]["template"]["spec"]["containers"][0].clone();
        let all = container["env"].as_array_mut().unwrap();
        all.retain(|one| one["name"] != name);
        all.push(json!({ "name": name, "value": value }));
        let patch = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
        Plant::Patch(self.controller(), patch)
    }

    fn config_map(&self, name: &str, entry: &str) -> Plant {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
            "data": { "default": entry },
        });
        Plant::Create(object, Some(self.system.to_owned()))
    }
}

/// A JSON merge patch of objects without nulls.
fn json_patch(value: &mut Value, patch: &Value) {
    match patch {
        Value::Object(fields) => {
            for (name, field) in fields {
                json_patch(&mut value[name], field);
            }
        }
        other => *value = other.clone(),
    }
}

/// Every cause, those that end the fleet last.
pub(super) async fn causes(cx: &Cx) -> Result<Vec<Cause>> {
    let system = &cx.system().await?.name;
    let names = Names { own: &cx.namespace.name, system, prometheus: &cx.world.prometheus.url };
    let mut all = of_metrics(&names);
    all.extend(of_queries(&names));
    all.extend(of_scalers(&names));
    all.extend(of_adapters(&names));
    all.extend(of_variants(&names));
    all.extend(of_targets(&names));
    all.extend(of_controllers(cx, &names));
    all.extend(of_settings(cx, &names));
    all.extend(of_cluster()?);
    Ok(all)
}

fn of_metrics(names: &Names<'_>) -> Vec<Cause> {
    let model = |id: &str| Plant::Patch(names.variant(), json!({ "spec": { "modelID": id } }));
    causes! {
        "WVA063", "modelID of another model" says "MetricsMissing" => model("acme/other");
        "WVA064", "modelID in other letters" says "MetricsMissing" => model("Meta-Llama/llama-3.1-8b");
        "WVA043", "own series not scraped" takes Scrape => Plant::Unscraped;
        "WVA060", "engines not scraped" takes Minute => Plant::EnginesUnscraped;
        "WVA061", "scrapes of engines fail" takes Scrape => Plant::EnginesFail;
        "WVA062", "series without a pod" takes Scrape => Plant::Shows("", ENGINE);
        "WVA066", "series of a dead pod" takes Scrape => Plant::Shows("", GONE);
        "WVA065", "series of another engine" takes Scrape => Plant::EnginesShow(FOREIGN_ENGINE);
        "WVA065", "no engine" takes Scrape => Plant::EnginesShow(NO_ENGINE);
        "WVA067", "router without a queue" takes Scrape => Plant::Shows("epp-0", ROUTER);
        "WVA042", "another Prometheus" at Astray => Plant::Keep;
        "WVA045", "a clock that is ahead" at Late => Plant::Keep;
        "WVA047", "engines scraped twice" takes Scrape => Plant::EnginesTwice;
    }
}

fn of_queries(names: &Names<'_>) -> Vec<Cause> {
    let query = |query: &str| names.trigger(query, &json!({}));
    let one = names.query("");
    let series = names.series("");
    causes! {
        "WVA134", "query that matches nothing" says "ScalerFailing" => query(&names.query(",job=\"other\""));
        "WVA122", "query of another metric" says "CountNotRead" => query("vector(1)");
        "WVA134", "namespace instead of exported_namespace" says "ScalerFailing" =>
            query(&one.replace("exported_namespace=", "namespace="));
        "WVA132", "query that adds up" => query(&format!("sum({series})"));
        "WVA133", "or vector(0)" => query(&format!("{one} or vector(0)"));
        "WVA136", "query that is no PromQL" says "ScalerFailing" => query(&format!("max by ({series}"));
        "WVA123", "metric type Value" says "WrongTarget" => names.trigger(&one, &json!({ "metricType": "Value" }));
        "WVA123", "threshold 2" says "WrongTarget" => names.trigger(&one, &json!({ "metadata": { "threshold": "2" } }));
        "WVA129", "ignoreNullValues" says "NullCountsAsZero" =>
            names.trigger(&one, &json!({ "metadata": { "ignoreNullValues": "true" } }));
        "WVA135", "query with several series" takes Scrape says "ScalerFailing" => match query(&series) {
            Plant::Patch(place, patch) => Plant::ScrapedTwice(place, patch),
            other => other,
        };
        // The last read of the engines is that of a fleet without causes: none of a query changes them.
        "WVA046", "engines scraped every 50 s" at Slow takes Minute => Plant::Keep;
    }
}

fn of_scalers(names: &Names<'_>) -> Vec<Cause> {
    let patch = |spec: Value| Plant::Patch(names.scaled_object(), json!({ "spec": spec }));
    let own = || Some(names.own.to_owned());
    let fallback = json!({ "replicas": 0, "behavior": "static" });
    let behavior = json!({ "scaleUp": { "stabilizationWindowSeconds": 240 } });
    let rules = json!({ "tolerance": "0.2" });
    let coarse = json!({ "scaleUp": rules, "scaleDown": rules });
    let paused = json!({ "metadata": { "annotations": { "autoscaling.keda.sh/paused": "true" } } });
    let second = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "second" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": VARIANTS[0].0 },
            "minReplicas": 1, "maxReplicas": 8,
            "metrics": [{ "type": "Resource", "resource": {
                "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 },
            }}],
        },
    });
    let share = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": { "name": "share" },
        "spec": {
            "scaleTargetRef": { "name": "elsewhere" },
            "triggers": [{ "type": "prometheus", "metricType": "AverageValue", "metadata": {
                "serverAddress": names.prometheus, "query": "avg(vllm:kv_cache_usage_perc)",
                "threshold": "0.7",
            }}],
        },
    });
    causes! {
        "WVA131", "fallback 0" => patch(json!({ "fallback": fallback }));
        "WVA130", "stabilization of 240 s" =>
            patch(json!({ "advanced": { "horizontalPodAutoscalerConfig": { "behavior": behavior } } }));
        "WVA126", "minimum too high" says "ScalerMinimum" => patch(json!({ "minReplicaCount": 2 }));
        "WVA127", "maximum too low" says "ScalerMaximum" => patch(json!({ "maxReplicaCount": 3 }));
        "WVA128", "tolerance of a fifth, and 8 replicas" says "ScalerTolerance" =>
            patch(json!({ "advanced": { "horizontalPodAutoscalerConfig": { "behavior": coarse } } }));
        "WVA124", "paused by its annotation" says "ScalerPaused" => Plant::Patch(names.scaled_object(), paused);
        "WVA120", "no scaler" says "NoScaler" => Plant::Delete(names.scaled_object());
        "WVA121", "two scalers" says "SeveralScalers" => Plant::Create(second, own());
        "WVA137", "a share with AverageValue 0.7" => Plant::Create(share, own());
        "WVA139", "KEDA's account may not scale" => Plant::Create(powerless(), own());
    }
}

fn of_adapters(names: &Names<'_>) -> Vec<Cause> {
    let name = VARIANTS[0].0;
    let right = json!({ "variant_name": name, "exported_namespace": names.own });
    let wrong = json!({ "variant_name": name, "namespace": names.own });
    let zero = Plant::Patch(names.target(), json!({ "spec": { "replicas": 0 } }));
    let silent = json!({ "metadata": { "serverAddress": "http://127.0.0.1:9" } });
    causes! {
        "WVA134", "an HPA that selects by namespace" takes Scrape says "ScalerFailing" =>
            names.natively(&wrong, None);
        "WVA125", "an HPA whose adapter lacks the metric" takes Scrape says "ScalerFailing" =>
            names.natively(&right, None);
        "WVA092", "zero replicas by hand" takes Scrape says "ScalerPaused" => names.natively(&right, Some(zero));
        "WVA125", "KEDA asks a server that is gone" takes Scrape says "ScalerFailing" =>
            names.trigger(&names.query(""), &silent);
    }
}

fn of_variants(names: &Names<'_>) -> Vec<Cause> {
    let patch = |patch: Value| Plant::Patch(names.variant(), patch);
    let target = |target: Value| patch(json!({ "spec": { "scaleTargetRef": target } }));
    let bounds = json!({ "minReplicas": 1, "maxReplicas": 8, "variantCost": "30" });
    let mut rival = variant("rival", VARIANTS[0].0, &bounds);
    rival["metadata"]["labels"] = json!({ INSTANCE_LABEL: names.own });
    let namespace = outside("v1", "Namespace", names.own);
    let excluded = json!({ "metadata": { "annotations": { "wva.llmd.ai/exclude": "true" } } });
    causes! {
        "WVA081", "foreign instance label" =>
            patch(json!({ "metadata": { "labels": { INSTANCE_LABEL: "green" } } }));
        "WVA083", "excluded namespace" => Plant::Patch(namespace, excluded);
        "WVA084", "target missing" says "TargetNotFound" => target(json!({ "name": "gone" }));
        "WVA085", "target of an unknown kind" says "UnsupportedTargetKind" =>
            target(json!({ "kind": "Widget", "apiVersion": null }));
        "WVA086", "two variants of one target" says "TargetContested" =>
            Plant::Create(rival, Some(names.own.to_owned()));
        "WVA087", "all costs equal" => patch(json!({ "spec": { "variantCost": VARIANTS[1].1 } }));
    }
}

fn of_targets(names: &Names<'_>) -> Vec<Cause> {
    let pod = |spec: Value| {
        let patch = json!({ "spec": { "template": { "spec": spec } } });
        Plant::Patch(names.target(), patch)
    };
    let other = json!([{
        "name": "vllm", "image": "vllm/vllm-openai:fake", "args": ["--model", "acme/other"],
    }]);
    let applied = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": VARIANTS[0].0 },
        "spec": { "replicas": 1 },
    });
    // No API server knows the kind, so that the garbage collector leaves the target alone.
    let parent = json!({ "metadata": { "ownerReferences": [{
        "apiVersion": "serving.kserve.io/v1alpha1", "kind": "LLMInferenceService", "name": "parent",
        "uid": "5f0c1b52-6c1e-4d1c-9a53-0d5f0f6b7a01", "controller": true,
    }]}});
    let generated = Plant::Each(vec![
        Plant::Patch(names.target(), parent),
        Plant::Apply(applied.clone(), "kserve".to_owned()),
    ]);
    causes! {
        "WVA089", "pods that no node takes" takes Minute => pod(json!({ "nodeSelector": { "disk": "tape" } }));
        "WVA090", "gated pods" => pod(json!({ "schedulingGates": [{ "name": "kueue.x-k8s.io/admission" }] }));
        "WVA088", "two models under one name" => pod(json!({ "containers": other }));
        "WVA093", "a parent that writes replicas" => generated;
        "WVA094", "replicas applied by a deployment tool" => Plant::Apply(applied, "gitops".to_owned());
    }
}

fn of_controllers(cx: &Cx, names: &Names<'_>) -> Vec<Cause> {
    let system = || Some(names.system.to_owned());
    let own = controller(cx, CONTROLLER, names.own);
    let set = |name: &str, value: &str| names.environment(&own, name, value);
    let thresholds = "kvCacheThreshold: 0.8\nkvSpareTrigger: 0.1\n";
    let alone = "analyzers:\n- {name: throughput, type: throughput, enabled: true}\n";
    causes! {
        "WVA041", "https to a plain Prometheus" at Pod =>
            set("PROMETHEUS_BASE_URL", &names.prometheus.replace("http:", "https:"));
        "WVA040", "no Prometheus at the address" at Pod => set("PROMETHEUS_BASE_URL", "http://127.0.0.1:9");
        "WVA020", "no controller" => Plant::Delete(names.controller());
        "WVA022", "controller scaled to 0" =>
            Plant::Patch(names.controller(), json!({ "spec": { "replicas": 0 } }));
        "WVA023", "a second controller" takes Scrape =>
            Plant::Create(controller(cx, "wva-second", names.own), system());
        "WVA024", "no address of Prometheus" => set("PROMETHEUS_BASE_URL", "");
        "WVA025", "a misspelt key of thresholds" =>
            names.config_map("wva-saturation-scaling-config", "kvCacheTreshold: 0.7\n");
        "WVA026", "thresholds under another name" => names.config_map("my-saturation-scaling-config", thresholds);
        "WVA096", "throughput alone" => names.config_map("wva-saturation-scaling-config", alone);
        "WVA068", "nothing to wake a model" => set("WVA_SCALE_TO_ZERO", "true");
        "WVA082", "another namespace watched" => set("WATCH_NAMESPACE", "elsewhere");
        "WVA043", "the controller hangs" => Plant::Frozen;
        "WVA027", "no rights" => Plant::NoRights;
    }
}

/// Settings of the controller together with objects.
fn of_settings(cx: &Cx, names: &Names<'_>) -> Vec<Cause> {
    let own = controller(cx, CONTROLLER, names.own);
    let set = |name: &str| names.environment(&own, name, "true");
    // A paused Deployment keeps its pods.
    let claims = json!({ "spec": { "paused": true, "template": { "spec": {
        "resourceClaims": [{ "name": "gpu", "resourceClaimName": "gpu" }],
    }}}});
    let claims = Plant::Patch(names.target(), claims);
    let pools = VARIANTS.map(|(name, _)| {
        let pool = json!({
            "apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
            "metadata": { "name": name },
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "targetPorts": [{ "number": 8000 }],
                "endpointPickerRef": { "name": "gone", "port": { "number": 9002 } },
            },
        });
        Plant::Create(pool, Some(names.own.to_owned()))
    });
    let hasty = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "epp" },
        "data": { "config.yaml": "flowControl:\n  defaultRequestTTL: 100ms\n" },
    });
    let hasty = [
        set("WVA_SCALE_TO_ZERO"),
        Plant::Create(hasty, Some(names.own.to_owned())),
        Plant::Shows("", STARTS),
    ];
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": lease_name("72dd1cf1.llm-d.ai", Some(names.own)) },
        "spec": {
            "holderIdentity": "gone", "leaseDurationSeconds": 60,
            "renewTime": "2020-01-01T00:00:00.000000Z",
        },
    });
    let lease = Plant::Create(lease, Some(names.system.to_owned()));
    causes! {
        "WVA028", "a lease that its holder left" => Plant::Each(vec![set("LEADER_ELECT"), lease]);
        "WVA069", "requests expire before a start" takes Scrape =>
            Plant::Each(pools.into_iter().chain(hasty).collect());
        "WVA091", "resource claims, and limits to GPUs" => Plant::Each(vec![set("WVA_LIMITED_MODE"), claims]);
    }
}

fn of_cluster() -> Result<Vec<Cause>> {
    let webhook = |policy: &str, bundle: Option<ByteString>| {
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": { "name": "unserved" },
            "webhooks": [{
                "name": "unserved.llmd.ai", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "failurePolicy": policy,
                "clientConfig": { "service": { "namespace": "default", "name": "nowhere" }, "caBundle": bundle },
                "rules": [{
                    "apiGroups": ["llmd.ai"], "apiVersions": ["v1alpha1"], "operations": ["CREATE"],
                    "resources": ["variantautoscalings"],
                }],
            }],
        });
        Plant::Create(object, None)
    };
    let (version, kind) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let definition = outside(version, kind, "variantautoscalings.llmd.ai");
    let (version, kind) = ("apiregistration.k8s.io/v1", "APIService");
    let service = outside(version, kind, "v1beta1.external.metrics.k8s.io");
    let gone = json!({ "spec": { "service": { "name": "gone" } } });
    Ok(causes! {
        "WVA004", "webhook without a server" => webhook("Fail", None);
        "WVA005", "certificate that ends" => webhook("Ignore", Some(ending()?));
        "WVA003", "external metrics down" says "ScalerFailing" => Plant::Patch(service, gone);
        "WVA001", "CRD missing" => Plant::Delete(definition);
    })
}

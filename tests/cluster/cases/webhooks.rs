//! Admission of `PodAutoscaler`, as a user of kubectl meets it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::ByteString;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::pki::{Authority, Subject};
use crate::harness::ports;
use crate::harness::shipping::{Ended, Shipping};
use crate::harness::suite::{Case, Cx};
use crate::harness::tools::repository;
use crate::harness::wait::eventually;

const SOON: Duration = Duration::from_secs(30);
const NAME: &str = "chat";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared(
            "webhooks::a_bad_object_is_refused_while_a_controller_answers",
            a_bad_object_is_refused_while_a_controller_answers,
        )
        .within(Duration::from_mins(2)),
    ]
}

/// An object of these fields in place of good ones. The schema accepts both.
fn object(fields: &Value) -> Value {
    let mut spec = json!({
        "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "llm" },
        "minReplicas": 1,
        "maxReplicas": 10,
        "scalingStrategy": "KPA",
        "metricsSources": [{
            "metricSourceType": "pod", "protocolType": "http", "port": "8000", "path": "/metrics",
            "targetMetric": "num_requests_waiting", "targetValue": "6",
        }],
    });
    for (key, value) in fields.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "autoscaling.aibrix.ai/v1alpha1",
        "kind": "PodAutoscaler",
        "metadata": {
            "name": NAME,
            "annotations": { "kpa.autoscaling.aibrix.ai/tolerance": "0.2" },
        },
        "spec": spec,
    })
}

fn bad() -> Value {
    object(&json!({
        "scaleTargetRef": { "kind": "Deployment" },
        "minReplicas": 12,
        "observeWindowSeconds": 30,
        "metricsSources": [{ "metricSourceType": "pod", "targetMetric": "m", "targetValue": "100m" }],
    }))
}

/// Fields of the bad object, each with a part of what is wrong.
const VIOLATIONS: [(&str, &str); 8] = [
    ("spec.scaleTargetRef.name", "must be set"),
    ("spec.minReplicas", "greater than"),
    ("spec.maxReplicas", "less than"),
    ("spec.panicWindowSeconds", "panicWindowSeconds"),
    (
        "spec.metricsSources[0].targetValue",
        "must be a valid number",
    ),
    ("spec.metricsSources[0].port", "must be set"),
    ("spec.metricsSources[0].path", "must be set"),
    ("spec.metricsSources[0].protocolType", "must be set"),
];

/// The kubectl of an administrator, and the manifests of the case.
struct Kubectl<'a> {
    cx: &'a Cx,
    shipping: Shipping,
    program: PathBuf,
}

impl<'a> Kubectl<'a> {
    fn of(cx: &'a Cx) -> Result<Self> {
        Ok(Self {
            cx,
            shipping: Shipping::to(&cx.world)?,
            program: cx.world.site.tools.program("kubectl")?,
        })
    }

    async fn run(&self, arguments: &[&str]) -> Result<Ended> {
        let namespace = &self.cx.namespace.name;
        let mut all = vec!["--namespace".to_owned(), namespace.clone()];
        all.extend(arguments.iter().map(ToString::to_string));
        self.shipping.try_run(&self.program, &all, &[]).await
    }

    async fn apply(&self, object: &Value) -> Result<Ended> {
        let file = format!("{}-{NAME}.json", self.cx.namespace.name);
        let file = self.cx.world.site.write(&file, &object.to_string())?;
        self.run(&["apply", "-f", &file.display().to_string()])
            .await
    }

    async fn accepts(&self, object: &Value) -> Result<String> {
        let ended = self.apply(object).await?;
        if ended.well {
            Ok(ended.text)
        } else {
            Err(Fault::new(ended.text))
        }
    }

    async fn refuses(&self, object: &Value) -> Result<String> {
        let ended = self.apply(object).await?;
        if ended.well {
            Err(Fault::new(format!("it is accepted: {}", ended.text)))
        } else {
            Ok(ended.text)
        }
    }

    async fn deletes(&self) -> Result {
        let ended = self.run(&["delete", "podautoscaler", NAME]).await?;
        if ended.well {
            Ok(())
        } else {
            Err(Fault::new(ended.text))
        }
    }
}

fn shipped(file: &str) -> Result<Vec<Value>> {
    manifest::read(&repository().join("config/webhook").join(file))
}

/// The folder with the certificate that the controller shows.
fn certificate(cx: &Cx, service: &str, system: &str) -> Result<PathBuf> {
    let folder = format!("webhooks-of-{}", cx.namespace.name);
    let folder = cx.world.site.conf(&folder);
    fs::create_dir_all(&folder)?;
    let host = format!("{service}.{system}.svc");
    let subject = Subject {
        hosts: &[&host],
        ..Subject::user("webhooks")
    };
    Authority::make(&folder, "ca")?.issue(&folder, "tls", &subject)?;
    Ok(folder)
}

/// Has the API server call a port of loopback by what is shipped, for the namespace of the case alone.
/// On loopback it reaches a server only by a name and a port of its own.
async fn register(cx: &Cx, ca: &Path, port: u16) -> Result<Vec<Value>> {
    let client = &cx.world.client;
    let system = &cx.system().await?.name;
    for mut service in shipped("service.yaml")? {
        service["metadata"]["namespace"] = json!(system);
        service["spec"] = json!({
            "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }],
        });
        manifest::apply(client, service, None).await?;
    }
    let ca = serde_json::to_value(ByteString(fs::read(ca)?))?;
    let mut registered = Vec::new();
    for mut configuration in shipped("manifests.yaml")? {
        let kind = configuration["kind"].as_str().unwrap_or_default();
        let name = format!("{}-{}", cx.namespace.name, kind.to_lowercase());
        configuration["metadata"] = json!({ "name": name });
        let webhook = &mut configuration["webhooks"][0];
        webhook["namespaceSelector"] =
            json!({ "matchLabels": { "kubernetes.io/metadata.name": cx.namespace.name } });
        webhook["clientConfig"]["caBundle"] = ca.clone();
        webhook["clientConfig"]["service"]["namespace"] = json!(system);
        webhook["clientConfig"]["service"]["port"] = json!(port);
        manifest::apply(client, configuration.clone(), None).await?;
        registered.push(configuration);
    }
    Ok(registered)
}

/// A controller that serves webhooks, the port of them, and the authority of its certificate.
async fn serving(cx: &Cx) -> Result<(Controller, u16, PathBuf)> {
    let system = cx.system().await?.name.clone();
    let services = shipped("service.yaml")?;
    let service = services.first().ok_or_else(|| Fault::new("no Service"))?;
    let service = service["metadata"]["name"].as_str().unwrap_or_default();
    let folder = certificate(cx, service, &system)?;
    let port = ports::free()?;
    let spec = ControllerSpec {
        arguments: vec![
            format!("--webhook-bind-address=127.0.0.1:{port}"),
            format!("--webhook-cert-path={}", folder.display()),
        ],
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start(cx, &spec).await?;
    controller.ready().await?;
    let text = controller.readiness().await?;
    assert!(text.contains("[+] certificate/webhooks"), "{text}");
    Ok((controller, port, folder.join("ca.crt")))
}

async fn a_bad_object_is_refused_while_a_controller_answers(cx: &Cx) -> Result {
    let (controller, port, authority) = serving(cx).await?;

    // The schema alone has nothing against it.
    let kubectl = Kubectl::of(cx)?;
    kubectl.accepts(&bad()).await?;
    kubectl.deletes().await?;

    let registered = register(cx, &authority, port).await?;
    let refusal = eventually("the webhook is called", SOON, async || {
        let refusal = kubectl.refuses(&bad()).await;
        if refusal.is_err() {
            kubectl.deletes().await?;
        }
        refusal
    })
    .await?;
    assert!(
        refusal.contains(&format!("The PodAutoscaler \"{NAME}\" is invalid")),
        "{refusal}"
    );
    for (field, part) in VIOLATIONS {
        let line = refusal
            .lines()
            .find(|line| line.contains(&format!("{field}: ")));
        assert!(
            line.is_some_and(|line| line.contains(part)),
            "{field}: {refusal}"
        );
    }
    let absent = kubectl.run(&["get", "podautoscaler", NAME]).await?;
    assert!(absent.text.contains("NotFound"), "{}", absent.text);

    // A good one comes in, with a warning, and a bad edit of it does not.
    let accepted = kubectl.accepts(&object(&json!({}))).await?;
    assert!(accepted.contains("created"), "{accepted}");
    let warning = "Warning: annotation kpa.autoscaling.aibrix.ai/tolerance";
    assert!(accepted.contains(warning), "{accepted}");
    kubectl
        .accepts(&object(&json!({ "maxReplicas": 11 })))
        .await?;
    let patch = json!({ "spec": { "maxReplicas": 0 } }).to_string();
    let edited = kubectl
        .run(&["patch", "podautoscaler", NAME, "--type=merge", "-p", &patch])
        .await?;
    assert!(
        !edited.well && edited.text.contains("spec.maxReplicas: 0 must be positive"),
        "{}",
        edited.text
    );
    kubectl.deletes().await?;

    // Without an answer it is stored.
    kubectl.refuses(&bad()).await?;
    controller.stop().await?;
    kubectl.accepts(&bad()).await?;
    kubectl.deletes().await?;
    for configuration in registered {
        let name = configuration["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        let api = manifest::api_of(&cx.world.client, &configuration, None).await?;
        api.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

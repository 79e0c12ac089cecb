//! The embedded API server under the kubectl that people use.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use wva_sim::apiserver::{ApiServer, kubeconfig};
use wva_sim::socket::serve;
use wva_supervise::{Clock, SeedTree};

use crate::harness::fault::{Fault, Result};
use crate::harness::suite::{Case, Cx};
use crate::harness::wait::eventually;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared("embedded::kubectl_reads", kubectl_reads),
        Case::shared("embedded::kubectl_writes", kubectl_writes),
        Case::shared("embedded::kubectl_watches", kubectl_watches),
    ]
}

/// A server on loopback, with our own kind, and the kubectl that talks to it.
struct Embedded {
    kubectl: std::path::PathBuf,
    kubeconfig: String,
    home: String,
    serving: JoinHandle<std::convert::Infallible>,
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Embedded {
    async fn start(cx: &Cx, name: &str) -> Result<Self> {
        let site = &cx.world.site;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let file = site.write(
            &format!("embedded-{name}.kubeconfig"),
            &kubeconfig(listener.local_addr()?),
        )?;
        let server = ApiServer::new(Clock::real(), &SeedTree::new(1));
        let embedded = Self {
            kubectl: site.tools.program("kubectl")?,
            kubeconfig: file.display().to_string(),
            home: site.data(&format!("embedded-{name}")),
            serving: tokio::spawn(serve(listener, server)),
        };
        let definition =
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("config/crd/bases");
        embedded.succeeds(&["apply", "-f", &definition.display().to_string()])?;
        Ok(embedded)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            .env("KUBE_EDITOR", "sed -i s/first/second/")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.command(arguments).output()?)
    }

    /// What a command prints that succeeds.
    fn succeeds(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(arguments)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        let error = String::from_utf8_lossy(&output.stderr);
        Err(Fault::new(format!("kubectl {arguments:?}: {text}{error}")))
    }

    /// What a command says that fails.
    fn fails(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(arguments)?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return Err(Fault::new(format!(
                "kubectl {arguments:?} succeeds: {text}"
            )));
        }
        Ok(text)
    }

    fn apply(&self, cx: &Cx, name: &str, object: &Value) -> Result<String> {
        let file = cx.world.site.write(name, &object.to_string())?;
        self.succeeds(&["apply", "-f", &file.display().to_string()])
    }
}

fn deployment(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
    })
}

fn variant() -> Value {
    json!({
        "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
        "metadata": {"name": "v"},
        "spec": {"modelID": "first", "scaleTargetRef": {"name": "d"}, "maxReplicas": 4},
    })
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

fn words(text: &str, line: usize) -> Vec<&str> {
    text.lines()
        .nth(line)
        .unwrap_or_default()
        .split_whitespace()
        .collect()
}

async fn kubectl_reads(cx: &Cx) -> Result {
    let embedded = Embedded::start(cx, "reads").await?;
    embedded.apply(cx, "reads-deployment.json", &deployment("first"))?;
    embedded.apply(cx, "reads-variant.json", &variant())?;

    let table = embedded.succeeds(&["get", "deploy"])?;
    assert_eq!(
        words(&table, 0),
        ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    );
    assert_eq!(words(&table, 1)[..4], ["d", "0/2", "0", "0"]);
    let table = embedded.succeeds(&["get", "va"])?;
    assert_eq!(words(&table, 0)[..3], ["NAME", "TARGET", "MODEL"]);
    assert_eq!(words(&table, 1)[..3], ["v", "d", "first"]);
    let yaml = embedded.succeeds(&["get", "va", "v", "-o", "yaml"])?;
    let object: Value = serde_yaml::from_str(&yaml)?;
    assert_eq!(object["spec"]["variantCost"], "10.0");
    has(&embedded.succeeds(&["get", "all"])?, &["deployment.apps/d"]);

    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "regarding": {
            "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling", "name": "v",
            "namespace": "default", "uid": object["metadata"]["uid"],
        },
        "reason": "Scaled", "note": "from 1 to 2", "type": "Normal", "action": "Scale",
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "example.com/wva",
        "reportingInstance": "i",
    });
    embedded.apply(cx, "reads-event.json", &event)?;
    has(
        &embedded.succeeds(&["describe", "va", "v"])?,
        &["Model ID:", "Scaled", "from 1 to 2"],
    );
    has(
        &embedded.succeeds(&["describe", "deploy", "d"])?,
        &["Replicas:", "2 desired"],
    );
    has(
        &embedded.succeeds(&["get", "events"])?,
        &["Scaled", "from 1 to 2"],
    );

    let kinds = embedded.succeeds(&["api-resources"])?;
    has(
        &kinds,
        &[
            "variantautoscalings",
            "deployments",
            "horizontalpodautoscalers",
            "leases",
        ],
    );
    Ok(())
}

async fn kubectl_writes(cx: &Cx) -> Result {
    let embedded = Embedded::start(cx, "writes").await?;
    let made = embedded.apply(cx, "writes-deployment.json", &deployment("one"))?;
    has(&made, &["deployment.apps/d created"]);
    let same = embedded.apply(cx, "writes-deployment.json", &deployment("one"))?;
    has(&same, &["deployment.apps/d unchanged"]);
    let changed = embedded.apply(cx, "writes-deployment.json", &deployment("first"))?;
    has(&changed, &["deployment.apps/d configured"]);
    embedded.apply(cx, "writes-variant.json", &variant())?;

    let image = "jsonpath={.spec.template.spec.containers[*].image}";
    assert_eq!(
        embedded.succeeds(&["get", "deploy", "d", "-o", image])?,
        "first"
    );
    has(
        &embedded.succeeds(&["edit", "deploy", "d"])?,
        &["deployment.apps/d edited"],
    );
    assert_eq!(
        embedded.succeeds(&["get", "deploy", "d", "-o", image])?,
        "second"
    );
    has(&embedded.succeeds(&["edit", "va", "v"])?, &["edited"]);
    let model = "jsonpath={.spec.modelID}";
    assert_eq!(
        embedded.succeeds(&["get", "va", "v", "-o", model])?,
        "second"
    );

    embedded.succeeds(&["scale", "deploy", "d", "--replicas=5"])?;
    let replicas = "jsonpath={.spec.replicas}";
    assert_eq!(
        embedded.succeeds(&["get", "deploy", "d", "-o", replicas])?,
        "5"
    );

    let mut misspelt = variant();
    misspelt["spec"]["modelid"] = json!("m");
    let file = cx
        .world
        .site
        .write("writes-misspelt.json", &misspelt.to_string())?;
    let refusal = embedded.fails(&["apply", "-f", &file.display().to_string()])?;
    has(&refusal, &["unknown field \"spec.modelid\""]);

    embedded.succeeds(&["run", "p", "--image=i"])?;
    has(&embedded.fails(&["logs", "p"])?, &["simulated"]);
    has(&embedded.fails(&["exec", "p", "--", "ls"])?, &["simulated"]);
    embedded.succeeds(&["delete", "pod", "p"])?;
    embedded.succeeds(&["delete", "va", "v"])?;
    has(&embedded.fails(&["get", "va", "v"])?, &["NotFound"]);
    embedded.succeeds(&["delete", "deploy", "d"])?;
    let protobuf = embedded.fails(&["create", "namespace", "n"])?;
    has(&protobuf, &["kubectl apply"]);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    embedded.apply(cx, "writes-namespace.json", &namespace)?;
    embedded.succeeds(&["delete", "namespace", "n"])?;
    Ok(())
}

/// A process that is ended with the value.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

async fn kubectl_watches(cx: &Cx) -> Result {
    let embedded = Embedded::start(cx, "watches").await?;
    embedded.apply(cx, "watches-variant.json", &variant())?;
    let output = cx.world.site.write("watches-output", "")?;
    let mut command = embedded.command(&["get", "va", "-w"]);
    let _watching = Ended(command.stdout(std::fs::File::create(&output)?).spawn()?);
    let shows = async |what: &str| {
        eventually(what, Duration::from_secs(20), async || {
            let text = std::fs::read_to_string(&output)?;
            text.contains(what)
                .then_some(())
                .ok_or_else(|| Fault::new(text))
        })
        .await
    };
    shows("first").await?;
    embedded.succeeds(&[
        "patch",
        "va",
        "v",
        "--type=merge",
        "-p",
        r#"{"spec":{"modelID":"third"}}"#,
    ])?;
    shows("third").await
}

//! A controller with its own `external.metrics.k8s.io`, and the way of an HPA to it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::ByteString;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::account::Account;
use super::controller::{ACCOUNT, Controller, ControllerSpec};
use super::fault::{Fault, Result};
use super::manifest;
use super::pki::{Authority, Subject};
use super::ports;
use super::reader::Reader;
use super::suite::Cx;
use super::tools::repository;

/// The group and version, as a path.
pub(crate) const GROUP: &str = "/apis/external.metrics.k8s.io/v1beta1";
/// Part of every cluster.
const AUTHENTICATION_READER: &str = "extension-apiserver-authentication-reader";

/// A running controller that serves external metrics.
pub(crate) struct Door {
    pub(crate) controller: Arc<Controller>,
    pub(crate) port: u16,
}

impl Door {
    /// Starts the controller with the rights that are shipped for this, and the certificate that
    /// all doors of a case share.
    pub(crate) async fn open(cx: &Cx, spec: ControllerSpec<'_>) -> Result<Self> {
        let system = cx.system().await?;
        let account = Account::create(system, ACCOUNT).await?;
        account.bind_role_in("kube-system", AUTHENTICATION_READER).await?;
        let folder = certificate(cx, &system.name)?;
        let port = ports::free()?;
        let mut arguments = spec.arguments.clone();
        arguments.push(format!("--external-metrics-bind-address=127.0.0.1:{port}"));
        arguments.push(format!("--external-metrics-cert-path={}", folder.display()));
        let controller = Controller::start_ready(cx, &ControllerSpec { arguments, ..spec }).await?;
        Ok(Self { controller: Arc::new(controller), port })
    }

    /// The address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// The address of the counts of one variant.
    pub(crate) fn desired(&self, namespace: &str, variant: &str) -> String {
        let metric = "wva_desired_replicas";
        let selector = format!("labelSelector=variant_name%3D{variant}");
        self.url(&format!("{GROUP}/namespaces/{namespace}/{metric}?{selector}"))
    }

    /// Makes the API server send requests for external metrics here, by the objects that
    /// are shipped.
    pub(crate) async fn register(&self, cx: &Cx) -> Result {
        Self::register_at(cx, self.port).await
    }

    /// The same for a way to several doors. On loopback the API server reaches a server only by a
    /// name and a port of its own.
    pub(crate) async fn register_at(cx: &Cx, port: u16) -> Result {
        let system = &cx.system().await?.name;
        let client = &cx.world.client;
        let mut service = shipped("service.yaml")?;
        service["metadata"]["namespace"] = json!(system);
        service["spec"] = json!({
            "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }],
        });
        manifest::apply(client, service, None).await?;
        let mut registration = shipped("apiservice.yaml")?;
        let ca = ByteString(fs::read(certificate(cx, system)?.join("ca.crt"))?);
        registration["spec"]["caBundle"] = serde_json::to_value(ca)?;
        registration["spec"]["insecureSkipTLSVerify"] = json!(false);
        registration["spec"]["service"]["namespace"] = json!(system);
        registration["spec"]["service"]["port"] = json!(port);
        manifest::apply(client, registration, None).await?;
        for object in manifest::read(&folder().join("reader_role.yaml"))? {
            manifest::apply(client, object, None).await?;
        }
        Ok(())
    }

    /// The one value that a reader gets.
    pub(crate) async fn value(reader: &Reader, url: &str) -> Result<String> {
        let (status, text) = reader.get(url).await?;
        if status != StatusCode::OK {
            return Err(Fault::new(format!("{status}: {text}")));
        }
        let list: Value = serde_json::from_str(&text)?;
        match list["items"].as_array().map(Vec::as_slice) {
            Some([item]) => Ok(item["value"].as_str().unwrap_or_default().to_owned()),
            _ => Err(Fault::new(text)),
        }
    }
}

/// The folder with the authority and the certificate of the doors of a case, made when first asked
/// for.
fn certificate(cx: &Cx, system: &str) -> Result<PathBuf> {
    let folder = cx.conf("door");
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(&folder)?;
    let service = shipped("service.yaml")?;
    let service = service["metadata"]["name"].as_str().unwrap_or_default();
    let host = format!("{service}.{system}.svc");
    let subject = Subject { hosts: &["127.0.0.1", &host], ..Subject::user("door") };
    Authority::make(&folder, "ca")?.issue(&folder, "tls", &subject)?;
    Ok(folder)
}

fn folder() -> PathBuf {
    repository().join("config/external-metrics")
}

/// The one object of a file of `config/external-metrics`.
pub(crate) fn shipped(file: &str) -> Result<Value> {
    let objects = manifest::read(&folder().join(file))?;
    let first = objects.into_iter().next();
    first.ok_or_else(|| Fault::new(format!("{file} is empty")))
}

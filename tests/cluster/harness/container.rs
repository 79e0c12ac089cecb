//! A container of a Deployment, run as a process: with its arguments, its environment, the token of
//! its service account, and its folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use serde_json::Value;

use super::account::issued;
use super::controller::Controller;
use super::fault::{Fault, Result};
use super::ports;
use super::process::Program;
use super::suite::Cx;
use super::tools;
use super::web;

/// What a Deployment runs, and where.
pub(crate) struct Container<'a> {
    /// The object as it is rendered.
    pub(crate) deployment: &'a Value,
    pub(crate) namespace: &'a str,
    /// The pod's name.
    pub(crate) pod: &'a str,
    /// Whether Prometheus can read it without a token.
    pub(crate) is_scraped: bool,
}

/// Where pods find the token of their account.
pub(crate) const ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The folder of this machine that stands for a mounted Secret, ConfigMap or account.
pub(crate) fn folder_of(cx: &Cx, namespace: &str, object: &str) -> PathBuf {
    cx.world.site.conf(&format!("{namespace}-{object}"))
}

fn fill(folder: &Path, files: BTreeMap<String, Vec<u8>>) -> Result {
    fs::create_dir_all(folder)?;
    for (name, content) in files {
        fs::write(folder.join(name), content)?;
    }
    Ok(())
}

/// A container that runs.
pub(crate) struct Running {
    pub(crate) controller: Controller,
    /// Where external metrics are served, if they are.
    pub(crate) external: Option<u16>,
}

impl Container<'_> {
    /// Starts the binary as the kubelet would the image, on loopback ports of its own.
    pub(crate) async fn start(&self, cx: &Cx) -> Result<Running> {
        let world = &cx.world;
        let pod = &self.deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let account = pod["serviceAccountName"].as_str().unwrap_or_default();
        let accounts = Api::namespaced(world.client.clone(), self.namespace);
        let token = issued(&accounts, account).await?;
        let files = BTreeMap::from([("token".to_owned(), token.clone().into_bytes())]);
        fill(&folder_of(cx, self.namespace, account), files)?;
        let kubeconfig = world.site.pki.kubeconfig_with_token(&world.api.url, &token);
        let user = format!("{}-{}", self.namespace, self.pod);
        let kubeconfig = world.site.write_kubeconfig(&user, &kubeconfig)?;
        let folders = self.folders(cx, pod, container).await?;
        let on_disk = |text: &str| {
            folders.iter().fold(text.to_owned(), |text, (mount, folder)| {
                text.replace(mount, &folder.display().to_string())
            })
        };
        let [mut metrics, mut probes] = [const { String::new() }; 2];
        let mut external = None;
        let mut program = Program::new(tools::wva()).arg("controller");
        for argument in texts(&container["args"]) {
            let Some((flag, address)) = argument.split_once("-bind-address=") else {
                program = program.arg(on_disk(argument));
                continue;
            };
            if !address.starts_with(':') {
                return Err(Fault::new(format!("{argument}: on all interfaces")));
            }
            let port = ports::free()?;
            let own = format!("127.0.0.1:{port}");
            program = program.arg(format!("{flag}-bind-address={own}"));
            match flag {
                "--metrics" => metrics = own,
                "--health-probe" => probes = own,
                _ => external = Some(port),
            }
        }
        program = program.env("KUBECONFIG", kubeconfig).env("RUST_BACKTRACE", "1");
        for (name, value) in self.environment(container)? {
            program = program.env(&name, on_disk(&value));
        }
        let log = format!("container-{user}");
        let server = world.site.server(&log, program);
        server.start()?;
        let target = if self.is_scraped {
            let page = metrics.parse()?;
            Some(world.prometheus.scrape(self.namespace, self.pod, page)?)
        } else {
            None
        };
        let controller = Controller { server, metrics, probes, http: web::client()?, target };
        Ok(Running { controller, external })
    }

    /// The environment of the container, with the fields of the pod in it.
    fn environment(&self, container: &Value) -> Result<Vec<(String, String)>> {
        let mut environment = Vec::new();
        for variable in container["env"].as_array().into_iter().flatten() {
            let name = variable["name"].as_str().unwrap_or_default();
            let field = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str();
            let value = match (variable["value"].as_str(), field) {
                (Some(value), None) => value,
                (None, Some("metadata.namespace")) => self.namespace,
                (None, Some("metadata.name")) => self.pod,
                other => return Err(Fault::new(format!("{name}: {other:?}"))),
            };
            environment.push((name.to_owned(), value.to_owned()));
        }
        Ok(environment)
    }

    /// Each mounted Secret and ConfigMap as a folder of its own: mount path and what stands for it.
    async fn folders(
        &self,
        cx: &Cx,
        pod: &Value,
        container: &Value,
    ) -> Result<Vec<(String, PathBuf)>> {
        let mut folders = Vec::new();
        for mount in container["volumeMounts"].as_array().into_iter().flatten() {
            let volumes = pod["volumes"].as_array().into_iter().flatten();
            let mut volumes = volumes.filter(|volume| volume["name"] == mount["name"]);
            let volume = volumes.next().unwrap_or(&Value::Null);
            let Some(path) = mount["mountPath"].as_str() else {
                continue;
            };
            let Some((name, mut files)) = self.mounted(cx, volume).await? else {
                continue;
            };
            let source = ["secret", "configMap"].map(|kind| &volume[kind]["items"]);
            for item in source.into_iter().filter_map(Value::as_array).flatten() {
                let [key, path] = ["key", "path"].map(|field| item[field].as_str());
                let content = files.remove(key.unwrap_or_default());
                let content = content.ok_or_else(|| Fault::new(format!("{name} lacks {item}")))?;
                files.insert(path.unwrap_or_default().to_owned(), content);
            }
            let folder = folder_of(cx, self.namespace, &name);
            fill(&folder, files)?;
            let one = mount["subPath"].as_str();
            let source = one.map_or_else(|| folder.clone(), |file| folder.join(file));
            folders.push((path.to_owned(), source));
        }
        Ok(folders)
    }

    /// Name and content of the Secret or ConfigMap that a volume is made of.
    async fn mounted(
        &self,
        cx: &Cx,
        volume: &Value,
    ) -> Result<Option<(String, BTreeMap<String, Vec<u8>>)>> {
        let client = &cx.world.client;
        if let Some(name) = volume["secret"]["secretName"].as_str() {
            let secrets: Api<Secret> = Api::namespaced(client.clone(), self.namespace);
            let data = secrets.get(name).await?.data.unwrap_or_default();
            let files = data.into_iter().map(|(name, content)| (name, content.0));
            return Ok(Some((name.to_owned(), files.collect())));
        }
        if let Some(name) = volume["configMap"]["name"].as_str() {
            let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), self.namespace);
            let data = config_maps.get(name).await?.data.unwrap_or_default();
            let files = data.into_iter().map(|(name, text)| (name, text.into_bytes()));
            return Ok(Some((name.to_owned(), files.collect())));
        }
        Ok(None)
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

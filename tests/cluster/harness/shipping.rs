//! What is shipped, rendered and installed by the tools that its users have: helm, kubectl and the
//! install script.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tokio::task::spawn_blocking;

use super::fault::{Fault, Result};
use super::manifest;
use super::tools::repository;
use super::world::World;

/// The tools, with the rights of an administrator of one world.
#[derive(Clone)]
pub(crate) struct Shipping {
    tools: PathBuf,
    home: PathBuf,
    kubeconfig: String,
}

/// The API of the Prometheus operator, which no cluster serves to `helm template`.
pub(crate) const MONITORS: &str = "monitoring.coreos.com/v1";

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) well: bool,
    /// Both streams.
    pub(crate) text: String,
}

/// The folder of the chart.
pub(crate) fn chart() -> PathBuf {
    repository().join("charts/workload-variant-autoscaler")
}

/// Arguments for one value: `--set key=value`.
pub(crate) fn set(values: &[(&str, &str)]) -> Vec<String> {
    let pairs = values.iter().flat_map(|(key, value)| {
        let value = value.replace(',', "\\,");
        ["--set".to_owned(), format!("{key}={value}")]
    });
    pairs.collect()
}

impl Shipping {
    pub(crate) fn to(world: &World) -> Result<Self> {
        let helm = world.site.tools.program("helm")?;
        Ok(Self {
            tools: helm.parent().map(Path::to_owned).unwrap_or_default(),
            home: world.site.conf("home"),
            kubeconfig: world.api.admin.clone(),
        })
    }

    /// Runs one command in the checkout, with further environment.
    #[expect(
        clippy::disallowed_methods,
        reason = "a command takes long, and these tests keep real time"
    )]
    pub(crate) async fn try_run(
        &self,
        program: &Path,
        arguments: &[String],
        environment: &[(&str, &str)],
    ) -> Result<Ended> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(repository())
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.tools.display()))
            .env("HOME", &self.home)
            .env("KUBECONFIG", &self.kubeconfig)
            .envs(environment.iter().copied());
        let output = spawn_blocking(move || command.output()).await??;
        let text = [output.stdout, output.stderr].concat();
        Ok(Ended {
            well: output.status.success(),
            text: String::from_utf8_lossy(&text).into_owned(),
        })
    }

    async fn run(&self, tool: &str, arguments: &[String]) -> Result<String> {
        let ended = self.try_run(&self.tools.join(tool), arguments, &[]).await?;
        if ended.well {
            return Ok(ended.text);
        }
        Err(Fault::new(format!("{tool} {}: {}", arguments.join(" "), ended.text)))
    }

    /// A helm command about the chart: `install`, `upgrade`, `template`.
    pub(crate) async fn helm(
        &self,
        command: &[&str],
        namespace: &str,
        values: &[String],
    ) -> Result<String> {
        let mut arguments: Vec<String> = command.iter().map(ToString::to_string).collect();
        arguments.push("--namespace".to_owned());
        arguments.push(namespace.to_owned());
        arguments.extend(values.iter().cloned());
        self.run("helm", &arguments).await
    }

    /// Installs the chart.
    pub(crate) async fn install(
        &self,
        release: &str,
        at: &str,
        values: &[String],
    ) -> Result<String> {
        let chart = chart().display().to_string();
        self.helm(&["install", release, &chart], at, values).await
    }

    pub(crate) async fn upgrade(
        &self,
        release: &str,
        at: &str,
        values: &[String],
    ) -> Result<String> {
        let chart = chart().display().to_string();
        self.helm(&["upgrade", release, &chart], at, values).await
    }

    pub(crate) async fn uninstall(&self, release: &str, namespace: &str) -> Result {
        self.helm(&["uninstall", release], namespace, &[]).await?;
        Ok(())
    }

    /// The objects that the chart renders for a cluster with the Prometheus operator.
    pub(crate) async fn template(
        &self,
        release: &str,
        namespace: &str,
        values: &[String],
    ) -> Result<Vec<Value>> {
        let chart = chart().display().to_string();
        let command = ["template", release, &chart, "--api-versions", MONITORS];
        let text = self.helm(&command, namespace, values).await?;
        manifest::parse(&text, "helm template")
    }

    /// The objects of an installed release.
    pub(crate) async fn manifest(&self, release: &str, namespace: &str) -> Result<Vec<Value>> {
        let text = self.helm(&["get", "manifest", release], namespace, &[]).await?;
        manifest::parse(&text, "helm get manifest")
    }

    /// The objects of a folder below `config`.
    pub(crate) async fn kustomize(&self, folder: &str) -> Result<Vec<Value>> {
        let path = repository().join("config").join(folder);
        let arguments = ["kustomize".to_owned(), path.display().to_string()];
        manifest::parse(&self.run("kubectl", &arguments).await?, folder)
    }
}

/// The one object of a kind whose name ends so.
pub(crate) fn find<'o>(objects: &'o [Value], kind: &str, ending: &str) -> Result<&'o Value> {
    let mut found = objects.iter().filter(|object| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        object["kind"] == kind && name.ends_with(ending)
    });
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(Fault::new(format!("no {kind} *{ending}"))),
        (Some(_), Some(_)) => Err(Fault::new(format!("several {kind} *{ending}"))),
    }
}

/// The name of an object.
pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

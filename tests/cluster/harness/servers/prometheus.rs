//! Prometheus 3: scrapes the fakes and the controllers once a second, as a cluster's would.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::fault::{Fault, Result};
use crate::harness::ports;
use crate::harness::process::Server;
use crate::harness::site::Site;
use crate::harness::wait::eventually;
use crate::harness::web;

const CONFIGURATION: &str = "
global: {scrape_interval: 1s, scrape_timeout: 900ms, evaluation_interval: 1s}
scrape_configs:
";
/// One target file per scraped pod, found within a second. `honor_labels` stays off, so a `namespace`
/// label of the page itself arrives as `exported_namespace`, as with the usual operators.
const JOB: &str = "
- job_name: NAME
  file_sd_configs:
  - {files: ['TARGETS/*.json'], refresh_interval: 1s}
";

/// A job that reads series of another Prometheus. A sample is as old as its read here.
const FEDERATION: &str = "
- job_name: NAME
  scrape_interval: INTERVAL
  honor_labels: true
  honor_timestamps: false
  metrics_path: /federate
  params: {'match[]': ['{SERIES}']}
  static_configs:
  - {targets: ['ADDRESS']}
";

pub(crate) struct Prometheus {
    pub(crate) server: Arc<Server>,
    pub(crate) url: String,
    configuration: PathBuf,
    targets: PathBuf,
    next_target: AtomicUsize,
    pub(crate) http: reqwest::Client,
}

/// One sample of an instant query: its labels and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    value: (f64, String),
}

impl Prometheus {
    /// One under a name of its own, with targets of its own.
    pub(crate) fn place(site: &Site, name: &str) -> Result<Self> {
        let targets = site.conf(&format!("{name}-targets"));
        fs::create_dir_all(&targets)?;
        let configuration = scraping(&targets, 1);
        Self::configured(site, name, targets, &configuration)
    }

    /// One that reads another one: engines at an interval, all else once a second.
    pub(crate) fn federating(
        site: &Site,
        name: &str,
        other: &Self,
        interval: &str,
    ) -> Result<Self> {
        let address = other.url.trim_start_matches("http://");
        let job = |name: &str, interval: &str, series: &str| {
            FEDERATION
                .replace("NAME", name)
                .replace("INTERVAL", interval)
                .replace("SERIES", series)
                .replace("ADDRESS", address)
        };
        let engines = job("engines", interval, r#"__name__=~"vllm:.+""#);
        let others = job("others", "1s", r#"__name__=~".+",__name__!~"vllm:.+""#);
        let configuration = format!("{CONFIGURATION}{engines}{others}");
        Self::configured(site, name, site.conf(name), &configuration)
    }

    /// One with a configuration of its own.
    pub(crate) fn configured(
        site: &Site,
        name: &str,
        targets: PathBuf,
        configuration: &str,
    ) -> Result<Self> {
        let configuration = site.write(&format!("{name}.yaml"), configuration)?;
        let address = format!("127.0.0.1:{}", ports::free()?);
        let program = site
            .program("prometheus")?
            .flag("config.file", configuration.display())
            .flag("storage.tsdb.path", site.data(name))
            .flag("web.listen-address", &address)
            .flag("log.level", "warn")
            .arg("--web.enable-lifecycle")
            .arg("--web.enable-remote-write-receiver");
        Ok(Self {
            server: site.server(name, program),
            url: format!("http://{address}"),
            configuration,
            targets,
            next_target: AtomicUsize::new(1),
            http: web::client()?,
        })
    }

    pub(crate) async fn ready(&self) -> Result {
        eventually("Prometheus is ready", Duration::from_secs(30), async || {
            self.server.check()?;
            let ready = format!("{}/-/ready", self.url);
            self.http.get(ready).send().await?.error_for_status()?;
            Ok(())
        })
        .await
    }

    /// The value of an expression now, one sample per series.
    pub(crate) async fn query(&self, expression: &str) -> Result<Vec<Sample>> {
        let url = format!("{}/api/v1/query", self.url);
        let response = self.http.post(url).form(&[("query", expression)]).send().await?;
        let status = response.status();
        let text = response.text().await?;
        if !status.is_success() {
            return Err(Fault::new(format!("{expression}: {status}: {text}")));
        }
        let answer: Answer = serde_json::from_str(&text)?;
        let samples = answer
            .data
            .result
            .into_iter()
            .map(|series| Ok(Sample { labels: series.metric, value: series.value.1.parse()? }));
        samples.collect()
    }

    /// Has a page scraped as that of a pod, until the answer is dropped.
    pub(crate) fn scrape(&self, namespace: &str, pod: &str, page: SocketAddr) -> Result<Target> {
        let labels = json!({ "namespace": namespace, "pod": pod });
        let groups = json!([{ "targets": [page.to_string()], "labels": labels }]);
        let number = self.next_target.fetch_add(1, Ordering::Relaxed);
        let file = self.targets.join(format!("{number}-{namespace}-{pod}.json"));
        replace(&file, &groups)?;
        Ok(Target { file })
    }

    /// From now on every target is scraped by so many jobs, as where monitors overlap.
    pub(crate) async fn scrape_times(&self, jobs: usize) -> Result {
        fs::write(&self.configuration, scraping(&self.targets, jobs))?;
        let reload = format!("{}/-/reload", self.url);
        self.http.post(reload).send().await?.error_for_status()?;
        Ok(())
    }

    /// The scrape targets of these namespaces that are not healthy, one line each.
    pub(crate) async fn unhealthy_targets(&self, namespaces: &[&str]) -> Result<Vec<String>> {
        let url = format!("{}/api/v1/targets?state=active", self.url);
        let answer: Value = serde_json::from_str(&self.http.get(url).send().await?.text().await?)?;
        let targets = answer["data"]["activeTargets"].as_array().cloned().unwrap_or_default();
        let bad = targets.iter().filter(|target| {
            let namespace = target["labels"]["namespace"].as_str();
            target["health"] != "up" && namespace.is_some_and(|name| namespaces.contains(&name))
        });
        Ok(bad.map(|target| format!("{} {}", target["labels"], target["lastError"])).collect())
    }
}

/// A configuration with so many jobs, each for all targets.
fn scraping(targets: &Path, jobs: usize) -> String {
    let job = JOB.replace("TARGETS", &targets.display().to_string());
    let jobs = (0..jobs).map(|number| job.replace("NAME", &format!("pods-{number}")));
    std::iter::once(CONFIGURATION.to_owned()).chain(jobs).collect()
}

/// Prometheus must never read half a file.
fn replace(file: &PathBuf, content: &Value) -> Result {
    let draft = file.with_extension("draft");
    fs::write(&draft, content.to_string())?;
    fs::rename(&draft, file)?;
    Ok(())
}

/// A registered scrape target. Dropping it ends the scrapes, and with them the series.
pub(crate) struct Target {
    file: PathBuf,
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.file) {
            eprintln!("{}: {error}", self.file.display());
        }
    }
}

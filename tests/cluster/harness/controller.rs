//! The controller itself: the binary under test as a child process, with a service account, ports
//! and a log of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::Value;
use wva::signals::exposition::{self, SampleLine};

use super::account::Account;
use super::fault::{Fault, Result};
use super::namespace::Namespace;
use super::ports;
use super::process::{Program, Server, Signal};
use super::servers::prometheus::Target;
use super::suite::Cx;
use super::tools;
use super::variants::DESIRED;
use super::wait::{eventually, seen};
use super::web;

/// The service account of every controller.
pub(crate) const ACCOUNT: &str = "wva";
/// The files of `config` with what every controller may do.
pub(crate) const SHIPPED_ROLES: [&str; 5] = [
    "rbac/role.yaml",
    "rbac/pod_autoscaler_role.yaml",
    "rbac/leader_election_role.yaml",
    "rbac/metrics_auth_role.yaml",
    "annotated-scalers/role.yaml",
];
/// Longer than the shutdown deadline of the tree.
const GRACE: Duration = Duration::from_secs(15);

/// What one controller is started with, besides what every controller of a test gets.
#[derive(Clone, Debug)]
pub(crate) struct ControllerSpec<'a> {
    /// Distinguishes several controllers of one test; also the `pod` of its scrape target.
    pub(crate) name: &'a str,
    /// Sees this namespace alone; `None` sees the whole cluster, which only an exclusive case may.
    pub(crate) watch_namespace: Option<&'a str>,
    pub(crate) pace: Pace,
    pub(crate) environment: Vec<(&'a str, String)>,
    pub(crate) arguments: Vec<String>,
    /// The port that it reaches the API server by; `None` is the server's own.
    pub(crate) api: Option<u16>,
    pub(crate) build: Build,
}

/// The build that a controller is started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// That of the suite, see [`tools::wva`].
    Usual,
    /// That of the simulated cluster, the only one with the route that kills a role.
    Killable,
}

/// Where a controller's interval comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The environment, which wants a cycle a second unless the case wants another one.
    Environment,
    /// The settings of the case.
    Settings,
}

impl<'a> ControllerSpec<'a> {
    /// A controller scoped to the namespace of the case.
    pub(crate) fn scoped(cx: &'a Cx) -> Self {
        Self {
            name: "wva-0",
            watch_namespace: Some(&cx.namespace.name),
            pace: Pace::Environment,
            environment: Vec::new(),
            arguments: Vec::new(),
            api: None,
            build: Build::Usual,
        }
    }

    /// The same with a variable of its environment.
    pub(crate) fn with(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }
}

/// One line of the metrics page.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

impl Series {
    fn of(line: &SampleLine<'_>) -> Result<Self> {
        let named = exposition::labels(line.series).map_err(Fault::new)?;
        let labels = named.labels.into_iter();
        Ok(Self {
            name: named.name.to_owned(),
            labels: labels.map(|(name, value)| (name.to_owned(), value.into_owned())).collect(),
            value: line.value,
        })
    }

    /// Whether it has this name and, among others, these labels.
    pub(crate) fn matches(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        let has = |(label, value): &(&str, &str)| {
            self.labels.get(*label).is_some_and(|found| found == value)
        };
        self.name == name && labels.iter().all(has)
    }
}

/// A running controller. Dropping it kills the process and ends its scrapes.
pub(crate) struct Controller {
    pub(crate) server: Arc<Server>,
    /// Where `/metrics` and `/debug` are served.
    pub(crate) metrics: String,
    pub(super) probes: String,
    pub(super) http: reqwest::Client,
    /// None where Prometheus is not let in.
    pub(super) target: Option<Target>,
}

impl Controller {
    /// Starts the binary and has its metrics scraped; does not wait until it is ready.
    pub(crate) async fn start(cx: &Cx, spec: &ControllerSpec<'_>) -> Result<Self> {
        let system = cx.system().await?;
        let world = &cx.world;
        let token = account(system).await?;
        let user = format!("{}-{}", system.name, spec.name);
        let api = match spec.api {
            Some(port) => format!("https://127.0.0.1:{port}"),
            None => world.api.url.clone(),
        };
        let kubeconfig = world.site.pki.kubeconfig_with_token(&api, &token);
        let kubeconfig = world.site.write_kubeconfig(&user, &kubeconfig)?;
        let (metrics, probes) = (address()?, address()?);
        let built = match spec.build {
            Build::Usual => tools::wva(),
            Build::Killable => tools::wva_sim(),
        };
        let mut program = Program::new(built)
            .arg("controller")
            .flag("metrics-bind-address", &metrics)
            .flag("metrics-secure", false)
            .flag("health-probe-bind-address", &probes)
            .env("KUBECONFIG", kubeconfig)
            .env("POD_NAMESPACE", &system.name)
            .env("POD_NAME", spec.name)
            .env("PROMETHEUS_BASE_URL", &world.prometheus.url)
            .env("PROMETHEUS_ALLOW_HTTP", "true")
            .env("RUST_BACKTRACE", "1");
        if spec.pace == Pace::Environment {
            program = program.env("GLOBAL_OPT_INTERVAL", "1s");
        }
        if let Some(namespace) = spec.watch_namespace {
            program = program.flag("watch-namespace", namespace);
        }
        for (name, value) in &spec.environment {
            program = program.env(name, value);
        }
        for argument in &spec.arguments {
            program = program.arg(argument);
        }
        let log = format!("controller-{}-of-{}", spec.name, cx.namespace.name);
        let server = world.site.server(&log, program);
        server.start()?;
        Ok(Self {
            server,
            target: Some(world.prometheus.scrape(&system.name, spec.name, metrics.parse()?)?),
            metrics,
            probes,
            http: web::client()?,
        })
    }

    /// Starts it, and waits until it is ready.
    pub(crate) async fn start_ready(cx: &Cx, spec: &ControllerSpec<'_>) -> Result<Self> {
        let controller = Self::start(cx, spec).await?;
        controller.ready().await?;
        Ok(controller)
    }

    /// The same controller, where Prometheus is not let in from now on.
    #[must_use]
    pub(crate) fn unscraped(mut self) -> Self {
        self.target = None;
        self
    }

    /// Prometheus reads its page no longer.
    pub(crate) fn hide(&mut self) {
        self.target = None;
    }

    /// Prometheus reads its page as that of a pod.
    pub(crate) fn show(&mut self, cx: &Cx, namespace: &str, pod: &str) -> Result {
        let page = self.metrics.parse()?;
        self.target = Some(cx.world.prometheus.scrape(namespace, pod, page)?);
        Ok(())
    }

    /// Waits until `/readyz` agrees.
    pub(crate) async fn ready(&self) -> Result {
        eventually("the controller is ready", Duration::from_secs(20), async || {
            self.server.check()?;
            let (status, text) = self.readyz().await?;
            seen(&(status, text), &(StatusCode::OK, String::from("ok")))
        })
        .await
    }

    /// Status and text of `/readyz`.
    pub(crate) async fn readyz(&self) -> Result<(StatusCode, String)> {
        let response = self.http.get(format!("http://{}/readyz", self.probes)).send().await?;
        let status = response.status();
        Ok((status, response.text().await?.trim().to_owned()))
    }

    /// The text of `/readyz?verbose`: one line per thing that may be missing.
    pub(crate) async fn readiness(&self) -> Result<String> {
        let url = format!("http://{}/readyz?verbose", self.probes);
        Ok(self.http.get(url).send().await?.text().await?)
    }

    /// Waits until a part of that text is there.
    pub(crate) async fn readiness_has(&self, part: &str, within: Duration) -> Result<String> {
        eventually(format!("readiness has {part}"), within, async || {
            let text = self.readiness().await?;
            if text.contains(part) { Ok(text) } else { Err(Fault::new(text)) }
        })
        .await
    }

    /// Every series of the metrics page.
    pub(crate) async fn series(&self) -> Result<Vec<Series>> {
        let response = self.http.get(format!("http://{}/metrics", self.metrics)).send().await?;
        let page = response.error_for_status()?.text().await?;
        exposition::read(&page)?.iter().map(Series::of).collect()
    }

    /// The value of the one series with this name and, among others, these labels; `None` without
    /// one, and a fault for several.
    pub(crate) async fn value(&self, name: &str, labels: &[(&str, &str)]) -> Result<Option<f64>> {
        let mut matching = self.series().await?;
        matching.retain(|series| series.matches(name, labels));
        match matching.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.value)),
            several => Err(Fault::new(format!("more than one series: {several:?}"))),
        }
    }

    /// The desired count of a variant; `None` without a series.
    pub(crate) async fn desired(&self, namespace: &str, variant: &str) -> Result<Option<f64>> {
        let labels = [("namespace", namespace), ("variant_name", variant)];
        self.value(DESIRED, &labels).await
    }

    /// Waits until the one series of this name has a value.
    pub(crate) async fn shows(&self, name: &str, wanted: f64, within: Duration) -> Result {
        eventually(format!("{name} is {wanted}"), within, async || {
            seen(&self.value(name, &[]).await?, &Some(wanted))
        })
        .await
    }

    /// A debug page: `tree`, `decisions`, `snapshot`.
    pub(crate) async fn debug(&self, page: &str) -> Result<Value> {
        let url = format!("http://{}/debug/{page}", self.metrics);
        let response = self.http.get(url).send().await?.error_for_status()?;
        Ok(serde_json::from_str(&response.text().await?)?)
    }

    /// Kills one actor of the tree, by its role as `/debug/tree` shows it.
    pub(crate) async fn kill_role(&self, role: &str) -> Result {
        let url = format!("http://{}/debug/kill?role={role}", self.metrics);
        self.http.post(url).send().await?.error_for_status()?;
        Ok(())
    }

    /// Ends the process as a kubelet does and answers its exit code; `None` when it had to be
    /// killed.
    pub(crate) async fn stop(self) -> Result<Option<i32>> {
        Ok(self.server.stop(GRACE).await?.code())
    }

    /// Stops the process in its tracks, as a frozen node does.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::Stop);
    }

    /// Lets a frozen process go on.
    pub(crate) fn thaw(&self) {
        self.signal(Signal::Continue);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.server.pid() {
            signal.send(pid);
        }
    }

    /// Ends the process as a node failure does.
    pub(crate) fn crash(self) {
        self.server.kill();
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.server.kill();
    }
}

fn address() -> Result<String> {
    Ok(format!("127.0.0.1:{}", ports::free()?))
}

/// Makes the controller's service account with the rights that it ships with, and a token for it.
async fn account(system: &Namespace) -> Result<String> {
    let account = Account::create(system, ACCOUNT).await?;
    for file in SHIPPED_ROLES {
        account.bind_shipped(file).await?;
    }
    account.token().await
}

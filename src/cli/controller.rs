//! `wva controller`: reads the settings, connects, runs the tree, and turns its end into an exit
//! code.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, Client};

use super::args::{self, ControllerArguments, PrintFormat, SettingsAction};
use super::{fail, misused, print, print_version, stop};
use crate::actors::config::log_notice;
use crate::app::{self, Env, Startup};
use crate::cluster::client::{KubeconfigSource, connect, within};
use crate::hooks::ControllerHooks;
use crate::settings::config_maps::{ConfigMapNames, ConfigMapView, gather};
use crate::settings::generation::Generation;
use crate::settings::layers::resolve;
use crate::settings::print::{SettingsReport, changed};
use crate::settings::problem::Layer;
use crate::settings::schema;
use crate::settings::statics::StaticSettings;
use crate::settings::{Diagnostics, FirstGeneration, MainConfigMap, Sources, locate_main, start};
use crate::signals::{
    HttpPods, HttpPrometheus, HttpRouters, PodPages, PromApi, RouterApi, prometheus_settings,
};
use crate::{telemetry, version};
use wva_supervise::{ActorRegistry, Clock, ExitReason, Kit, SeedTree};

/// How long the first look at the ConfigMaps may take.
const FIRST_LOOK: Duration = Duration::from_secs(30);

/// Runs the command; `hooks` change the controller.
pub fn run(
    arguments: impl Iterator<Item = String>,
    environment: BTreeMap<String, String>,
    hooks: Arc<dyn ControllerHooks>,
) -> ExitCode {
    let (arguments, unusable) = args::parse(arguments);
    match arguments.action {
        SettingsAction::Help | SettingsAction::Version if !unusable.is_empty() => {
            return misused(unusable);
        }
        SettingsAction::Help => return print(&args::help_text()),
        SettingsAction::Version => return print_version("wva"),
        SettingsAction::Run | SettingsAction::PrintConfig(_) => {}
    }
    let mut errors = texts(&unusable);
    let (sources, unreadable) = sources(&arguments, environment);
    errors.extend(unreadable);
    let resolution = resolve(&sources, None);
    let mut refused = resolution.fatal.iter();
    let is_misused = !unusable.is_empty() || refused.any(|error| error.origin.layer == Layer::Flag);
    let report = SettingsReport::new(&resolution, &sources);
    if let SettingsAction::PrintConfig(format) = arguments.action
        && !is_misused
    {
        return print_config(report, &sources, errors, format);
    }
    // Whatever stands in the cluster cannot mend these, and all of them are named at once.
    errors.extend(report.errors);
    let more = refused_by_file(&sources, &resolution.diagnostics, &errors);
    errors.extend(more);
    // Of the errors those of the command line decide on the exit code.
    if is_misused {
        return misused(errors);
    }
    if !errors.is_empty() {
        return fail(errors);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(serve(sources, hooks)),
        Err(error) => fail([format!("the runtime cannot start: {error}")]),
    }
}

/// The sources of the process, and why the file among them cannot be read.
fn sources(
    arguments: &ControllerArguments,
    environment: BTreeMap<String, String>,
) -> (Sources, Option<String>) {
    let file = arguments.config_file().map(|path| {
        std::fs::read_to_string(path).map_err(|error| {
            format!(
                "failed to load config: failed to read config file {path}: {error}; \
                 name a file that can be read"
            )
        })
    });
    let (config_file, error) = match file.transpose() {
        Ok(text) => (text, None),
        Err(error) => (None, Some(error)),
    };
    let sources =
        Sources { flags: arguments.flags.clone(), environment, config_file, ..Sources::default() };
    (sources, error)
}

fn print_config(
    mut report: SettingsReport,
    sources: &Sources,
    errors: Vec<String>,
    format: PrintFormat,
) -> ExitCode {
    let mut refused = refused_at_start(sources);
    refused.retain(|error| !report.errors.contains(error));
    report.errors.splice(0..0, errors);
    let mut ignored = ignored_at_start(sources);
    ignored.retain(|one| !report.remarks.contains(one));
    report.remarks.extend(ignored);
    let is_read = sources.main != MainConfigMap::NotRead || sources.config_file.is_some();
    if !is_read && !refused.is_empty() {
        report.remarks.push(
            "the main ConfigMap is not read here; what it sets may lift an error between settings, \
             and what is missing may be there"
                .to_owned(),
        );
    }
    report.errors.extend(refused);
    let printed = match format {
        PrintFormat::Text => print(&report.to_text()),
        PrintFormat::Json => match report.to_json() {
            Ok(text) => print(&text),
            Err(error) => fail([error]),
        },
    };
    if report.errors.is_empty() {
        printed
    } else {
        // The report names them.
        ExitCode::FAILURE
    }
}

/// What a start with these sources alone refuses: values that are wrong or missing, contradictions, and
/// what Prometheus cannot be reached with.
fn refused_at_start(sources: &Sources) -> Vec<String> {
    let FirstGeneration { generation, .. } = match started(sources) {
        Ok(started) => started,
        Err(errors) => return errors,
    };
    let statics = &generation.statics;
    match prometheus(statics) {
        Ok(_) => routers(statics).err().unwrap_or_default(),
        Err(errors) => texts(&errors),
    }
}

/// Values that are refused and forbid no start. Those that contradict each other are found by a start alone.
fn ignored_at_start(sources: &Sources) -> Vec<String> {
    start(sources).map_or_else(|_| Vec::new(), |first| texts(&first.diagnostics.problems))
}

/// What is wrong besides known errors where a file takes the place of the main ConfigMap: nothing in the cluster
/// could lift it. Values that forbid no start are named with those that do.
fn refused_by_file(sources: &Sources, diagnostics: &Diagnostics, known: &[String]) -> Vec<String> {
    if sources.config_file.is_none() {
        return Vec::new();
    }
    let mut refused = refused_at_start(sources);
    refused.retain(|error| !known.contains(error));
    if !(known.is_empty() && refused.is_empty()) {
        refused.extend(texts(&diagnostics.problems));
    }
    refused
}

/// The first generation; where it is refused, files that are missing are named as well.
fn started(sources: &Sources) -> Result<FirstGeneration, Vec<String>> {
    start(sources).map_err(|errors| {
        let mut errors = texts(&errors);
        errors.extend(missing_files(sources));
        errors
    })
}

async fn serve(fixed: Sources, hooks: Arc<dyn ControllerHooks>) -> ExitCode {
    match prepare(fixed, hooks).await {
        Ok((env, startup)) => conclude(app::run(env, startup, stop_signal()).await),
        Err(errors) => fail(errors),
    }
}

/// Everything that can go wrong before the tree stands, all errors of a step at once.
async fn prepare(
    fixed: Sources,
    hooks: Arc<dyn ControllerHooks>,
) -> Result<(Env, Startup), Vec<String>> {
    let kube = connect(&KubeconfigSource::Infer).await.map_err(|error| vec![error.to_string()])?;
    let mut sources = fixed.clone();
    read_config_maps(&kube, &mut sources).await?;
    let FirstGeneration { generation, diagnostics } = started(&sources)?;
    let statics = Arc::clone(&generation.statics);
    let prometheus = prometheus(&statics).map_err(|errors| texts(&errors))?;
    let levels = telemetry::install(statics.log_format, generation.log_level().as_str())
        .map_err(|error| vec![error.to_string()])?;
    let seed = SeedTree::from_entropy();
    let identity = identity(&fixed, &seed);
    announce(&generation, &identity);
    log_diagnostics(&diagnostics);
    let kit = Kit { clock: Clock::real(), seed, actors: ActorRegistry::new() };
    let env = Env {
        kit,
        kube,
        prometheus,
        routers: routers(&statics)?,
        pods: pods(&statics)?,
        identity,
        levels: Some(levels),
        hooks,
    };
    let startup = Startup { generation, fixed, diagnostics };
    Ok((env, startup))
}

/// The first line of the log: what runs, and how it differs from the defaults.
fn announce(generation: &Generation, identity: &str) {
    let statics = &generation.statics;
    let scope = &statics.scope;
    tracing::info!(
        version = version::shown(),
        identity,
        instance = scope.controller_instance.as_deref().unwrap_or_default(),
        namespaces = scope.watch_namespace.as_deref().unwrap_or("all"),
        prometheus = %statics.prometheus.base_url,
        settings = changed(&generation.values),
        generation = generation.number,
        "controller starts"
    );
}

/// Files that are named and not there: what contradicts itself is
/// no reason to name them at the next start only.
fn missing_files(sources: &Sources) -> Vec<String> {
    let values = resolve(sources, None).values;
    let specs = [
        &schema::PROMETHEUS_CA_CERT_PATH,
        &schema::PROMETHEUS_CLIENT_CERT_PATH,
        &schema::PROMETHEUS_CLIENT_KEY_PATH,
        &schema::PROMETHEUS_TOKEN_PATH,
        &schema::POD_AUTOSCALER_CA_CERT_PATH,
    ];
    let files = specs.into_iter().filter_map(|spec| {
        let path = values.text(spec)?;
        let error = std::fs::metadata(&path).err()?;
        Some(format!("{}={path:?}: {error}; mount the file, or unset the key", spec.name))
    });
    files.collect()
}

fn pods(statics: &StaticSettings) -> Result<Arc<dyn PodPages>, Vec<String>> {
    let settings = &statics.pod_pages;
    let authorities = settings.ca_path.as_ref().map(std::fs::read).transpose();
    let failed = |why: String| {
        let name = schema::POD_AUTOSCALER_CA_CERT_PATH.name;
        let path = settings.ca_path.as_deref().unwrap_or_else(|| "".as_ref());
        vec![format!("no client for pods, with {name}={path:?}: {why}")]
    };
    let authorities = authorities.map_err(|error| failed(error.to_string()))?;
    let pods = HttpPods::new(authorities.as_deref(), settings.endpoint_hosts.clone());
    let pods = pods.map_err(failed)?;
    Ok(Arc::new(pods))
}

fn routers(statics: &StaticSettings) -> Result<Arc<dyn RouterApi>, Vec<String>> {
    let routers = HttpRouters::new(statics.endpoint_picker_token.clone());
    let routers = routers.map_err(|why| vec![format!("no client for routers: {why}")])?;
    Ok(Arc::new(routers))
}

fn texts<E: std::fmt::Display>(errors: &[E]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn conclude(end: Result<ExitReason, prometheus::Error>) -> ExitCode {
    match end {
        Ok(ExitReason::Shutdown) => ExitCode::SUCCESS,
        Ok(ExitReason::Failed(why)) => {
            tracing::error!(why, "controller gives up");
            ExitCode::FAILURE
        }
        Err(error) => fail([format!("failed to initialize metrics: {error}")]),
    }
}

fn log_diagnostics(diagnostics: &Diagnostics) {
    for problem in &diagnostics.problems {
        tracing::error!(%problem, "setting refused");
    }
    for notice in &diagnostics.notices {
        log_notice(notice);
    }
}

/// The name of the pod, and a part that differs from the process before in it.
fn identity(sources: &Sources, seed: &SeedTree) -> Arc<str> {
    let host = ["POD_NAME", "HOSTNAME"].iter().find_map(|name| sources.environment.get(*name));
    let host = host.map_or("wva", String::as_str);
    Arc::from(format!("{host}_{:016x}", seed.child("identity").next_u64()))
}

/// Required keys may be in the main ConfigMap only, so it is read before anything else. It may also
/// name the other ConfigMaps, so those are chosen in a second pass.
async fn read_config_maps(client: &Client, sources: &mut Sources) -> Result<(), Vec<String>> {
    let place = locate_main(sources).map_err(|errors| texts(&errors))?;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &place.namespace);
    let deadline = FIRST_LOOK.min(place.request_timeout);
    let list = within(deadline, api.list(&ListParams::default())).await.map_err(|error| {
        let namespace = &place.namespace;
        vec![format!("unable to bootstrap initial ConfigMaps in namespace {namespace}: {error}")]
    })?;
    let objects: Vec<(String, BTreeMap<String, String>)> = list
        .items
        .into_iter()
        .filter_map(|object| Some((object.metadata.name?, object.data.unwrap_or_default())))
        .collect();
    for _pass in ["main", "the others"] {
        let names = ConfigMapNames::of(&resolve(sources, None).values);
        let views = objects.iter().map(|(name, data)| ConfigMapView {
            namespace: &place.namespace,
            name,
            data,
        });
        // Namespaces with settings of their own are seen by the watchers, moments later.
        gather(sources, &names, &place.namespace, |_| false, views);
    }
    Ok(())
}

fn prometheus(
    statics: &StaticSettings,
) -> Result<Arc<dyn PromApi>, Vec<crate::signals::InvalidPrometheusSettings>> {
    Ok(Arc::new(HttpPrometheus::new(prometheus_settings(statics))?))
}

async fn stop_signal() {
    stop::asked().await;
    tracing::info!("asked to stop");
}

#[cfg(test)]
mod tests;

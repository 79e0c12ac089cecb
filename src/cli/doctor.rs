//! `wva doctor`: looks at an installation or at manifests, and names what keeps it from working.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, ValueEnum};
use jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, sleep};

use super::usage::to_duration;
use super::{block_on, complain, misused, print};
use crate::cluster::client::{KubeconfigSource, connect};
use crate::doctor::look::{DoctorScope, files, look, reach};
use crate::doctor::report::Verdict;
use crate::doctor::{Diagnosis, examine};
use wva_base::text::{counted, printable};

/// Time between two looks.
const AGAIN: Duration = Duration::from_secs(5);

/// Names what keeps an installation from working
#[derive(Debug, Parser)]
#[command(
    name = "doctor",
    after_help = "Exit code: 0 where everything is fine, 1 with findings, 2 where something could not be looked at \
                  and nothing else is wrong."
)]
pub(in crate::cli) struct DoctorFlags {
    /// Look at variants of this namespace only. With --files it is the namespace of manifests that state none
    #[arg(short = 'n', long, value_name = "NAMESPACE", value_parser = NonEmptyStringValueParser::new())]
    namespace: Option<String>,
    /// Look at this variant only
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    variant: Option<String>,
    /// The namespace of the controller; without it all are searched, in a pod its own
    #[arg(long, value_name = "NAMESPACE", value_parser = NonEmptyStringValueParser::new())]
    controller_namespace: Option<String>,
    /// The address of Prometheus from here; without it the controller's is used, through the API server outside of the
    /// cluster. The environment PROMETHEUS_BEARER_TOKEN may hold its token
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    prometheus: Option<String>,
    /// The form of the report
    #[arg(short = 'o', long, value_name = "FORMAT", value_enum, default_value = "text")]
    output: DoctorOutput,
    /// Look again until everything is fine, for at most so long
    #[arg(long, value_name = "DURATION", value_parser = to_duration)]
    wait: Option<Duration>,
    /// Look at what is needed before the installation
    #[arg(long)]
    pre: bool,
    /// Look at the manifests below this folder, without a cluster
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::AnyPath, conflicts_with_all = ["pre", "wait", "prometheus"], value_parser = NonEmptyStringValueParser::new())]
    files: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum DoctorOutput {
    #[default]
    Text,
    Json,
}

pub(super) fn run(flags: &DoctorFlags, environment: BTreeMap<String, String>) -> ExitCode {
    let diagnosis = match &flags.files {
        Some(folder) => manifests(folder, flags),
        None => cluster(flags, environment),
    };
    match diagnosis {
        Ok(diagnosis) => report(&diagnosis, flags.output),
        Err(error) => misused([error]),
    }
}

fn report(diagnosis: &Diagnosis, output: DoctorOutput) -> ExitCode {
    let text = match output {
        DoctorOutput::Text => printable(&diagnosis.to_text()),
        DoctorOutput::Json => format!("{:#}\n", diagnosis.to_json()),
    };
    if print(&text) == ExitCode::SUCCESS {
        ExitCode::from(diagnosis.verdict().exit_code())
    } else {
        ExitCode::from(Verdict::Unseen.exit_code())
    }
}

fn manifests(folder: &str, flags: &DoctorFlags) -> Result<Diagnosis, String> {
    let mut facts = files::read(Path::new(folder), flags.variant.clone())
        .map_err(|error| format!("--files: {error}; name a folder or file that can be read"))?;
    if facts.objects_read == 0 && facts.unreadable.is_empty() {
        let none = || {
            format!(
                "{folder} holds no manifest, name a folder with files that end in .yaml, .yml or .json"
            )
        };
        let first = facts.not_read.first();
        let why = first.map_or_else(none, |(file, why)| format!("{file}: {why}"));
        return Err(format!("--files: 0 objects read; {why}"));
    }
    if let Some(namespace) = &flags.namespace {
        files::in_namespace(&mut facts, namespace);
    }
    let mut diagnosis = examine(&facts);
    diagnosis.objects_read = Some(facts.objects_read);
    Ok(diagnosis)
}

fn cluster(
    flags: &DoctorFlags,
    environment: BTreeMap<String, String>,
) -> Result<Diagnosis, String> {
    let own = environment.get("POD_NAMESPACE").cloned();
    let scope = DoctorScope {
        namespace: flags.namespace.clone(),
        variant: flags.variant.clone(),
        controller_namespace: flags.controller_namespace.clone().or(own),
        is_before: flags.pre,
        prometheus: flags.prometheus.clone(),
        environment,
    };
    block_on(async {
        let client = connect(&KubeconfigSource::Infer).await;
        let client = client.map_err(|error| error.to_string())?;
        let wait = flags.wait.unwrap_or_default();
        until_fine(wait, async || once(&client, &scope).await).await
    })
}

/// Looks until everything is fine or the time is over.
///
/// # Errors
/// The API server does not answer at the end.
async fn until_fine(
    wait: Duration,
    mut look: impl AsyncFnMut() -> Result<Diagnosis, String>,
) -> Result<Diagnosis, String> {
    let end = Instant::now() + wait;
    loop {
        let looked = look().await;
        let is_fine = looked.as_ref().map(Diagnosis::verdict) == Ok(Verdict::Fine);
        let left = end.saturating_duration_since(Instant::now());
        if is_fine || left.is_zero() {
            return looked;
        }
        let found = match &looked {
            Ok(diagnosis) => counted(diagnosis.findings().count(), "finding"),
            Err(error) => error.clone(),
        };
        complain(&format!("{found}, looking again\n"));
        sleep(left.min(AGAIN)).await;
    }
}

/// Looks once.
///
/// # Errors
/// The API server does not answer, so that nothing can be seen.
pub(super) async fn once(client: &Client, scope: &DoctorScope) -> Result<Diagnosis, String> {
    reach(client).await?;
    let now = Timestamp::now().as_duration().as_secs_f64();
    let (facts, took) = look(client, scope, now).await;
    let mut diagnosis = examine(&facts);
    diagnosis.took = took;
    Ok(diagnosis)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::{Diagnosis, DoctorFlags, Duration, Instant, manifests, until_fine};
    use crate::scratch::Folder;

    #[test]
    fn a_folder_without_objects_names_what_was_not_read() {
        let folder = Folder::new();
        let refused = || {
            let path = folder.display().to_string();
            manifests(&path, &DoctorFlags::parse_from(["doctor"])).unwrap_err()
        };
        let empty = refused();
        assert!(empty.contains("0 objects read; ") && empty.contains("holds no manifest"));
        let file = folder.write("a.yaml", "{{- if .Values.a }}\n");
        let why = "it is a template; render it first: helm template";
        let expected = format!("--files: 0 objects read; {}: {why}", file.display());
        assert_eq!(refused(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_look_is_at_the_end_of_the_wait() {
        for (wait, expected) in wva_base::cases! {
            (0, &[0][..]),
            (3, &[0, 3]),
            (5, &[0, 5]),
            (12, &[0, 5, 10, 12]),
        } {
            let began = Instant::now();
            let mut looks = Vec::new();
            let answer = until_fine(Duration::from_secs(wait), async || {
                looks.push(began.elapsed().as_secs());
                Err("no answer".to_owned())
            });
            assert_eq!(answer.await, Err("no answer".to_owned()));
            assert_eq!(looks, expected, "{wait}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_finds_nothing_ends_the_wait() {
        let mut answers = vec![Ok(Diagnosis::default()), Err("no answer".to_owned())];
        let answer = until_fine(Duration::from_secs(12), async || answers.pop().unwrap()).await;
        assert_eq!(answer, Ok(Diagnosis::default()));
    }
}

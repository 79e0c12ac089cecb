//! `wva doctor` on real servers: nothing on a healthy fleet, then one planted cause after another, each found as its
//! own code alone and gone after it is mended.

mod causes;
mod fleet;
mod helm;
mod said;

use std::process::Command;
use std::time::Duration;

use futures::future::join;
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use self::causes::{Cause, causes};
use self::fleet::{CONTROLLER, Fleet};
use self::said::Said;
use crate::harness::fault::{Fault, Result};
use crate::harness::suite::{Case, Cx};
use crate::harness::tools;
use crate::harness::wait::{eventually, seen};
use crate::harness::world::Setup;

/// A minute with the slack of the suite, within which a mended cause is named no longer.
const SOON: Duration = Duration::from_secs(12);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::with_own_servers("doctor::names_every_planted_cause", Setup::Whole, every)
            .within(Duration::from_mins(20)),
    ]
}

/// From where the doctor looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seat {
    /// A machine with a kubeconfig and a way to Prometheus.
    Laptop,
    /// A pod of the controller.
    Pod,
    /// A laptop, before the installation.
    Before,
    /// A laptop that asks another Prometheus, which scrapes nothing.
    Astray,
    /// A laptop that asks a Prometheus which reads engines too seldom.
    Slow,
    /// A laptop that asks a Prometheus whose clock is ahead.
    Late,
}

/// What a cause waits for before the doctor can name it.
#[derive(Clone, Copy, Debug)]
enum Delay {
    /// The next look alone.
    Look,
    /// Scrapes, or a scaler that notices.
    Scrape,
    /// The end of old series, or pods that are half a minute old.
    Minute,
}

impl Delay {
    /// Until when it has to be named, without the slack of the suite.
    const fn bound(self) -> Duration {
        match self {
            Self::Look => Duration::from_secs(5),
            Self::Scrape => Duration::from_secs(10),
            Self::Minute => SOON,
        }
    }
}

/// Exit code, and codes of findings and what could not be looked at.
#[derive(Debug, PartialEq)]
struct Verdict {
    exit: Option<i32>,
    codes: Vec<String>,
    unseen: Vec<String>,
}

impl Verdict {
    fn of(codes: &[&str]) -> Self {
        Self {
            exit: Some(i32::from(!codes.is_empty())),
            codes: codes.iter().map(|code| (*code).to_owned()).collect(),
            unseen: Vec::new(),
        }
    }
}

/// The program at a seat.
fn doctor(fleet: &Fleet<'_>, seat: Seat, system: &str) -> Command {
    let world = &fleet.cx.world;
    let mut command = Command::new(tools::wva());
    command.env_clear().env("KUBECONFIG", &world.api.admin).args(["doctor", "--output=json"]);
    match seat {
        Seat::Laptop => command.args(["--prometheus", &world.prometheus.url]),
        Seat::Astray => command.args(["--prometheus", &fleet.empty.url]),
        Seat::Slow => command.args(["--prometheus", &fleet.slow.url]),
        Seat::Late => command.args(["--prometheus", &fleet.ahead.url]),
        Seat::Before => command.args(["--pre", "--prometheus", &world.prometheus.url]),
        Seat::Pod => command
            .env("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            .env("HOSTNAME", format!("{CONTROLLER}-0"))
            .env("POD_NAMESPACE", system),
    };
    command
}

/// One run of the program; the report with it.
#[expect(
    clippy::disallowed_methods,
    reason = "other waits go on meanwhile, and these tests keep real time"
)]
async fn run(mut command: Command) -> Result<(Verdict, Value)> {
    let output = spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&said).map_err(|error| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        Fault::new(format!("wva doctor: {error}: {complaint}"))
    })?;
    let list = |name: &str| report[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut codes: Vec<String> = list("findings").iter().map(|one| text(&one["code"])).collect();
    codes.dedup();
    let verdict = Verdict {
        exit: output.status.code(),
        codes,
        unseen: list("unseen").iter().map(ToString::to_string).collect(),
    };
    Ok((verdict, report))
}

/// Waits until the doctor names exactly these codes.
async fn names(fleet: &Fleet<'_>, seat: Seat, codes: &[&str], within: Duration) -> Result {
    let system = fleet.cx.system().await?.name.clone();
    eventually(format!("{seat:?} finds {codes:?}"), within, async || {
        let (verdict, report) = run(doctor(fleet, seat, &system)).await?;
        seen(&verdict, &Verdict::of(codes))
            .map_err(|fault| Fault::new(format!("{}: {report:#}", fault.text())))
    })
    .await
}

async fn every(cx: &Cx) -> Result {
    let mut fleet = Fleet::start(cx).await?;
    for seat in [Seat::Laptop, Seat::Pod, Seat::Before] {
        names(&fleet, seat, &[], SOON).await?;
    }
    helm::test(&fleet).await?;
    let mut faults = Vec::new();
    for cause in causes(cx).await? {
        match planted(&mut fleet, &cause).await {
            Ok(times) => eprintln!("doctor: {} | {} | {}", cause.code, cause.what, times.text()),
            Err(fault) => {
                eprintln!("doctor: {} | {} | failed", cause.code, cause.what);
                faults.push(format!("{} ({}): {}", cause.code, cause.what, fault.text()));
            }
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(Fault::new(faults.join("\n")))
}

/// Seconds of one cause.
struct Times {
    /// Until the doctor named it.
    doctor: f64,
    /// Until the controller said it by a condition, and by a series.
    said: Option<(f64, f64)>,
    /// Until nothing was found after it was mended.
    mended: f64,
}

impl Times {
    fn text(&self) -> String {
        let Self { doctor, said, mended } = self;
        let said = said.map_or_else(String::new, |(condition, series)| {
            format!(" | condition {condition:.1} s, wva_findings {series:.1} s")
        });
        format!("named {doctor:.1} s{said} | mended {mended:.1} s")
    }
}

/// The seconds from an instant to the end of a wait.
async fn since(begun: Instant, wait: impl Future<Output = Result>) -> Result<f64> {
    wait.await?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Plants a cause, has it named and mends it.
async fn planted(fleet: &mut Fleet<'_>, cause: &Cause) -> Result<Times> {
    let said = Said::of(cause);
    if let Some(said) = said {
        said.becomes(fleet, false, Instant::now()).await?;
    }
    let begun = Instant::now();
    let undo = fleet.plant(&cause.plant).await?;
    let (codes, bound) = ([cause.code], cause.delay.bound());
    let doctor = since(begun, names(fleet, cause.seat, &codes, bound));
    let (doctor, said) = join(doctor, both(fleet, said, begun)).await;
    let begun = Instant::now();
    fleet.mend(undo).await?;
    let seat = match cause.seat {
        Seat::Astray | Seat::Slow | Seat::Late => Seat::Laptop,
        seat => seat,
    };
    let mended = since(begun, names(fleet, seat, &[], SOON)).await;
    Ok(Times { doctor: doctor?, said: said?, mended: mended? })
}

/// Waits for what the controller is to say.
async fn both(fleet: &Fleet<'_>, said: Option<Said>, begun: Instant) -> Result<Option<(f64, f64)>> {
    match said {
        Some(said) => said.becomes(fleet, true, begun).await.map(Some),
        None => Ok(None),
    }
}

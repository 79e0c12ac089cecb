//! `wva-sim demo`: the whole controller in a simulated cluster, in one command.

mod arguments;
mod comparison;
#[cfg(test)]
mod sample;
mod settings;
mod view;

use std::io::{IsTerminal, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::select;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::arguments::DemoArguments;
pub(super) use self::arguments::DemoFlags;
use self::comparison::{ComparedFrame, FixedSearch, Rivals};
use self::view::{Header, Lines};
use super::PROGRAM;
use crate::pace::{Show, Speed};
use crate::page::{self, Film};
use crate::real_clock::real;
use crate::threads::locked;
use crate::world::{Frame, Scenario, scenarios};
use crate::{apiserver, socket};
use wva::cli::{print, print_or_fail, stop};
use wva_base::moment::WallTime;
use wva_supervise::Clock;

const REFRESH: Duration = Duration::from_millis(200);
/// Virtual seconds between two frames that the page keeps at first.
const FRAME_DISTANCE: f64 = 2.0;
/// Leaves the lines of the terminal alone and draws on another page, without wrapping.
const ENTER: &str = "\x1b[?1049h\x1b[?7l\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?7h\x1b[?1049l";

/// Runs the command.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    PROGRAM.run_command(arguments, |flags: DemoFlags| {
        if flags.list { print(&list()) } else { perform(flags.arguments()) }
    })
}

fn perform(arguments: DemoArguments) -> ExitCode {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    print_or_fail(match runtime {
        Ok(runtime) => runtime.block_on(play(arguments)),
        Err(error) => Err(format!("the runtime cannot start: {error}")),
    })
}

/// The hour that it is. Prometheus scrapes on a grid of dates, so a play that begins at any other date
/// would differ a little from the same one before.
fn this_hour() -> WallTime {
    const HOUR: i64 = 3_600_000;
    let WallTime(now) = Clock::real().now().wall;
    WallTime(now - now.rem_euclid(HOUR))
}

fn list() -> String {
    let scenarios = scenarios();
    let lines = scenarios.iter().map(|one| format!("{:<10} {}\n", one.name, one.about));
    lines.collect()
}

struct Kubeconfig(PathBuf);

impl Kubeconfig {
    fn write(address: SocketAddr) -> Result<Self, String> {
        let name = format!("wva-demo-{}.kubeconfig", std::process::id());
        let path = std::env::temp_dir().join(name);
        let text = apiserver::kubeconfig(address);
        std::fs::write(&path, text)
            .map_err(|error| format!("kubeconfig {}: {error}; set TMPDIR", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // What cannot be removed is left for the next tidying of the directory.
        drop(std::fs::remove_file(&self.0));
    }
}

fn title(scenario: &Scenario, seed: u64, pace: Speed) -> String {
    let times = match pace {
        Speed::Times(times) => format!("×{times}"),
        Speed::Unbounded => "×max".to_owned(),
    };
    format!("wva-sim demo   {}   seed {seed}   {times}", scenario.name)
}

async fn play(arguments: DemoArguments) -> Result<String, String> {
    let began = real();
    let DemoArguments { play: own, against, port } = arguments;
    let (listener, address) = listen(0).await?;
    let stand = match port {
        Some(port) => Some(listen(port).await?),
        None => None,
    };
    let kubeconfig = Kubeconfig::write(address)?;
    let header = Header {
        title: title(&own.scenario, own.seed, own.speed),
        kubeconfig: kubeconfig.0.display().to_string(),
        namespace: own.scenario.namespace.to_owned(),
        page: stand.as_ref().map(|(_, address)| *address),
    };
    let fixed = FixedSearch::begin(own.scenario.clone(), own.seed, own.date);
    let is_finite = own.duration.is_some();
    let rival = match against {
        Some(policy) => Some((policy.name.clone(), Show::begin(own.under(policy)).await?)),
        None => None,
    };
    let show = Show::begin(own).await?;
    let frames = rival.as_ref();
    let frames = frames.map(|(name, show)| (name.clone(), show.frames.clone()));
    let rivals = Arc::new(Mutex::new(Rivals { fixed, policy: frames }));
    let mut doors = JoinSet::new();
    doors.spawn(socket::serve(listener, show.gateway.clone()));
    if let Some((listener, _)) = stand {
        let film = Film::new(&header.title, FRAME_DISTANCE);
        doors.spawn(page::serve(listener, film.clone(), show.gateway.to_pages()));
        tokio::spawn(record(show.frames.clone(), film, Arc::clone(&rivals)));
    }
    let mut first_scaling = None;
    {
        // Until its end, or until the viewer has seen enough.
        let asked = pin!(stop::asked());
        let over = pin!(show.over());
        let frames = show.frames.clone();
        let spectator = pin!(spectate(frames, &header, (began, &rivals), &mut first_scaling));
        select(asked, select(over, spectator)).await;
    }
    if std::io::stdout().is_terminal() {
        // A terminal that is gone needs nothing back.
        drop(write_out(LEAVE));
    }
    doors.shutdown().await;
    let frame = show.end().await;
    if let Some((_, show)) = rival {
        show.end().await;
    }
    let took = began.elapsed();
    if is_finite {
        locked(&rivals).fixed.finish();
    }
    let comparison = locked(&rivals).now();
    Ok(view::summary(&frame, &comparison, took, first_scaling))
}

async fn listen(port: u16) -> Result<(TcpListener, SocketAddr), String> {
    let no_port = |error| format!("port {port} on loopback: {error}; choose another --port");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    let listener = listener.map_err(no_port)?;
    let address = listener.local_addr().map_err(no_port)?;
    Ok((listener, address))
}

async fn record(mut frames: watch::Receiver<Arc<Frame>>, film: Film, rivals: Arc<Mutex<Rivals>>) {
    while frames.changed().await.is_ok() {
        let frame = Arc::clone(&frames.borrow_and_update());
        let comparison = locked(&rivals).now();
        let shown = ComparedFrame::new(&frame, comparison);
        if let Err(error) = film.record(frame.seconds, &shown) {
            tracing::warn!(%error, "a frame cannot be shown");
        }
    }
}

async fn spectate(
    mut frames: watch::Receiver<Arc<Frame>>,
    header: &Header,
    (began, rivals): (Instant, &Mutex<Rivals>),
    first_scaling: &mut Option<Duration>,
) {
    let in_place = std::io::stdout().is_terminal();
    let mut lines = Lines::default();
    let opening = if in_place {
        ENTER.to_owned()
    } else {
        format!("{}\n{}\n", header.first_line(), header.command())
    };
    let mut readable = write_out(&opening);
    while readable.is_ok() && frames.changed().await.is_ok() {
        let frame = Arc::clone(&frames.borrow_and_update());
        if frame.totals.first_scaling.is_some() && first_scaling.is_none() {
            *first_scaling = Some(began.elapsed());
        }
        let text = if in_place {
            drawn(&view::picture(header, &frame, &locked(rivals).now()))
        } else {
            let lines = lines.of(&frame).into_iter();
            lines.map(|line| line + "\n").collect()
        };
        readable = write_out(&text);
        tokio::time::sleep(REFRESH).await;
    }
}

fn drawn(lines: &[String]) -> String {
    // Without an end of the last line, a picture as high as the terminal does not scroll.
    let lines = lines.join("\x1b[K\r\n");
    format!("\x1b[H{lines}\x1b[K\x1b[J")
}

fn write_out(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

//! One server as a child process: started, watched, and ended by its process id.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::fault::{Fault, Result};
use super::run::Run;

const LOOK: Duration = Duration::from_millis(20);
/// Some servers log a stack trace in one line.
const LOG_WIDTH: usize = 300;

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
}

impl Program {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, arguments: Vec::new(), environment: BTreeMap::new() }
    }

    pub(crate) fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// `--name=value`, the one form that every Go and Rust flag parser takes.
    pub(crate) fn flag(self, name: &str, value: impl std::fmt::Display) -> Self {
        self.arg(format!("--{name}={value}"))
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    fn command_line(&self) -> Vec<String> {
        let mut line = vec![self.path.display().to_string()];
        line.extend(self.arguments.iter().cloned());
        line
    }
}

/// A signal that the harness sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Terminate,
    Kill,
    Stop,
    Continue,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Terminate => "TERM",
            Self::Kill => "KILL",
            Self::Stop => "STOP",
            Self::Continue => "CONT",
        }
    }

    /// Sends the signal to one process. The standard library can only kill, and `unsafe` is
    /// forbidden, so the shell's own `kill` does it.
    pub(crate) fn send(self, pid: u32) {
        let status = Command::new("sh")
            .args(["-c", &format!("kill -s {} {pid}", self.name())])
            .stderr(Stdio::null())
            .status();
        debug_assert!(status.is_ok(), "a POSIX shell is needed to end servers");
    }
}

/// The command line of a living process; `None` if there is none with this id.
pub(crate) fn command_line_of(pid: u32) -> Option<Vec<String>> {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&raw);
    let line: Vec<String> =
        text.trim_end_matches('\0').split('\0').map(ToOwned::to_owned).collect();
    (!text.is_empty()).then_some(line)
}

enum Life {
    Idle,
    Running(Child),
    Ended(ExitStatus),
}

/// A server of a world, or a controller of a test: one program, at most one process at a time.
pub(crate) struct Server {
    name: String,
    program: Program,
    log: PathBuf,
    run: Weak<Run>,
    life: Mutex<Life>,
}

impl Server {
    pub(crate) fn new(name: String, program: Program, log: PathBuf, run: Weak<Run>) -> Self {
        Self { name, program, log, run, life: Mutex::new(Life::Idle) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// Starts the program. It gets its own process group, so that Ctrl-C reaches the harness alone,
    /// and none of the caller's environment.
    pub(crate) fn start(&self) -> Result {
        // Looked at under the lock that the end of the run takes, too: nothing starts after it.
        let mut life = self.life.lock().unwrap();
        let run = self.run.upgrade().filter(|run| !run.is_closing());
        let Some(run) = run else {
            return Err(Fault::new(format!("{} not started: the run is ending", self.name)));
        };
        if matches!(*life, Life::Running(_)) {
            return Err(Fault::new(format!("{} is running already", self.name)));
        }
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let child = Command::new(&self.program.path)
            .args(&self.program.arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", run.dir())
            .envs(&self.program.environment)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .map_err(|error| {
                Fault::new(format!("{} cannot be run: {error}", self.program.path.display()))
            })?;
        let pid = child.id();
        *life = Life::Running(child);
        run.record(pid, self.program.command_line())
    }

    fn look(&self) -> std::sync::MutexGuard<'_, Life> {
        let mut life = self.life.lock().unwrap();
        if let Life::Running(child) = &mut *life
            && let Ok(Some(status)) = child.try_wait()
        {
            *life = Life::Ended(status);
        }
        life
    }

    /// The process id, while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        match &*self.look() {
            Life::Running(child) => Some(child.id()),
            Life::Idle | Life::Ended(_) => None,
        }
    }

    /// Fails for good, with the end of the log, if the process has ended.
    pub(crate) fn check(&self) -> Result {
        match &*self.look() {
            Life::Ended(status) => {
                Err(Fault::fatal(format!("{} ended with {status}\n{}", self.name, self.tail(40))))
            }
            Life::Idle | Life::Running(_) => Ok(()),
        }
    }

    /// Asks the process to end, and kills it when it has not ended after `grace`.
    pub(crate) async fn stop(&self, grace: Duration) -> Result<ExitStatus> {
        if let Some(pid) = self.pid() {
            Signal::Terminate.send(pid);
        }
        let deadline = Instant::now() + grace;
        loop {
            match &*self.look() {
                Life::Idle => return Err(Fault::new(format!("{} never ran", self.name))),
                Life::Running(_) => {}
                Life::Ended(status) => return Ok(*status),
            }
            if Instant::now() >= deadline {
                self.kill();
            }
            sleep(LOOK).await;
        }
    }

    /// Kills the process at once and waits until the kernel has taken it away.
    pub(crate) fn kill(&self) {
        let mut life = self.look();
        if let Life::Running(child) = &mut *life
            && child.kill().is_ok()
            && let Ok(status) = child.wait()
        {
            *life = Life::Ended(status);
        }
    }

    /// The last lines of the log.
    pub(crate) fn tail(&self, lines: usize) -> String {
        tail(&self.log, 0, lines)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last lines of a log file, of what follows its first `from` bytes, under a heading.
pub(crate) fn tail(log: &Path, from: u64, lines: usize) -> String {
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let raw = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(raw.get(from..).unwrap_or_default());
    let all: Vec<&str> = text.lines().collect();
    let last = all.get(all.len().saturating_sub(lines)..).unwrap_or_default();
    let mut shown = format!("--- {}: last {} of {} lines\n", log.display(), last.len(), all.len());
    for line in last {
        shown.extend(line.chars().take(LOG_WIDTH));
        shown.push('\n');
    }
    shown
}

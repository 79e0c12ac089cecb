//! One run of the suite: its folder, the processes it started, and what is left of earlier runs.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fault::Result;
use super::process::{Program, Server, Signal, command_line_of};
use super::wait::{eventually, seen};

/// How long a server may take to end before it is killed. Nothing of it is kept, so this is short.
const GRACE: Duration = Duration::from_secs(3);

/// The folder `target/cluster/run-<process id>` and every process started for it, oldest first.
pub(crate) struct Run {
    dir: PathBuf,
    servers: Mutex<Vec<Arc<Server>>>,
    closing: AtomicBool,
}

/// One line of the pid file: enough to know the process again, even where its id was reused.
#[derive(Serialize, Deserialize)]
struct Started {
    pid: u32,
    command_line: Vec<String>,
}

impl Run {
    /// Ends what dead runs left behind and makes a folder for this one.
    pub(crate) async fn begin(root: &Path) -> Result<Arc<Self>> {
        fs::create_dir_all(root)?;
        for entry in fs::read_dir(root)? {
            sweep(&entry?.path()).await?;
        }
        let dir = root.join(format!("run-{}", std::process::id()));
        fs::create_dir_all(&dir)?;
        let servers = Mutex::new(Vec::new());
        Ok(Arc::new(Self { dir, servers, closing: AtomicBool::new(false) }))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Makes a server known, so that it is ended with the run. It is not started yet.
    pub(crate) fn server(
        self: &Arc<Self>,
        name: &str,
        program: Program,
        log: PathBuf,
    ) -> Arc<Server> {
        let server = Server::new(name.to_owned(), program, log, Arc::downgrade(self));
        let server = Arc::new(server);
        self.servers.lock().unwrap().push(Arc::clone(&server));
        server
    }

    /// Notes a process in the pid file before anything else can go wrong with it.
    pub(crate) fn record(&self, pid: u32, command_line: Vec<String>) -> Result {
        let line = serde_json::to_string(&Started { pid, command_line })?;
        let mut file = OpenOptions::new().create(true).append(true).open(self.dir.join("pids"))?;
        writeln!(file, "{line}")?;
        Ok(())
    }

    /// Ends every process of this run, newest first: the API server goes before its etcd, because
    /// one whose etcd is gone waits a minute before it ends.
    pub(crate) async fn end(&self) {
        self.closing.store(true, Ordering::Relaxed);
        let servers = std::mem::take(&mut *self.servers.lock().unwrap());
        stop_all(&servers).await;
    }

    /// Ends some of the run's processes, newest first, and forgets them.
    pub(crate) async fn retire(&self, belongs: impl Fn(&Server) -> bool) {
        let (mine, others): (Vec<_>, Vec<_>) = std::mem::take(&mut *self.servers.lock().unwrap())
            .into_iter()
            .partition(|server| belongs(server));
        self.servers.lock().unwrap().extend(others);
        stop_all(&mine).await;
    }
}

async fn stop_all(servers: &[Arc<Server>]) {
    for server in servers.iter().rev() {
        if let (Some(_), Err(fault)) = (server.pid(), server.stop(GRACE).await) {
            eprintln!("{} may still run: {fault}", server.name());
        }
    }
}

/// Ends the processes that a dead run left and removes its folder. A run that is alive is left
/// alone: several checkouts or terminals may share a target folder.
async fn sweep(dir: &Path) -> Result {
    let owner = dir
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_prefix("run-"))
        .and_then(|pid| pid.parse::<u32>().ok());
    let Some(owner) = owner else { return Ok(()) };
    if owner != std::process::id() && is_suite(owner) {
        return Ok(());
    }
    let pids = fs::read_to_string(dir.join("pids")).unwrap_or_default();
    for line in pids.lines().rev() {
        let Ok(started) = serde_json::from_str::<Started>(line) else {
            continue;
        };
        if command_line_of(started.pid).as_ref() == Some(&started.command_line) {
            Signal::Kill.send(started.pid);
            let what = format!("{} of a dead run ends", started.command_line[0]);
            eventually(what, GRACE, async || seen(&command_line_of(started.pid).is_none(), &true))
                .await?;
        }
    }
    fs::remove_dir_all(dir)?;
    Ok(())
}

/// Whether a process id belongs to a test binary of this suite (`cluster-<hash>`).
fn is_suite(pid: u32) -> bool {
    command_line_of(pid)
        .and_then(|line| line.into_iter().next())
        .and_then(|path| PathBuf::from(path).file_name().map(ToOwned::to_owned))
        .is_some_and(|name| name.to_string_lossy().starts_with("cluster-"))
}

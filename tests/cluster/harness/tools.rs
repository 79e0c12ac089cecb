//! Where the programs of the real servers are.

use std::fs;
use std::path::{Path, PathBuf};

use super::fault::{Fault, Result};

/// All that a world needs; a missing one is a failure of the suite, never a reason to skip.
const NEEDED: [&str; 14] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-apiserver-oldest",
    "kube-controller-manager-oldest",
    "kube-scheduler-oldest",
    "kwok",
    "prometheus",
    "keda-operator",
    "keda-adapter",
    "kubectl",
    "helm",
    "promtool",
];

/// The servers of Kubernetes that `tests/tools/build` builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kubernetes {
    Newest,
    /// The oldest that the controller supports.
    Oldest,
}

/// The folder into which `tests/tools/build` builds, and the one that `KUBEBUILDER_ASSETS` names.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    built: PathBuf,
    assets: Option<PathBuf>,
}

/// The program under test: `WVA_BINARY` names an optimized build, which leaves the processors to the servers.
/// Without it that of `cargo build`.
pub(crate) fn wva() -> PathBuf {
    path("WVA_BINARY").unwrap_or_else(|| wva_sim().with_file_name("wva"))
}

/// The simulated cluster, whose command `controller` has the route that kills a role.
pub(crate) fn wva_sim() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_wva-sim"))
}

impl Tools {
    /// `WVA_TOOLS` names another folder than `target/tools`; `KUBEBUILDER_ASSETS`, the variable of
    /// the Kubernetes test kits, goes first for what it holds.
    pub(crate) fn locate() -> Self {
        let built = path("WVA_TOOLS").unwrap_or_else(|| target().join("tools"));
        Self { built, assets: path("KUBEBUILDER_ASSETS") }
    }

    /// Names every missing program at once.
    pub(crate) fn require_all(&self) -> Result {
        let missing: Vec<&str> =
            NEEDED.into_iter().filter(|name| self.program(name).is_err()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Fault::new(format!(
            "{} not found in {}: start the suite with tests/run, which builds the real servers",
            missing.join(", "),
            self.built.display()
        )))
    }

    pub(crate) fn program(&self, name: &str) -> Result<PathBuf> {
        self.assets
            .iter()
            .chain([&self.built])
            .map(|folder| folder.join(name))
            .find(|path| path.is_file())
            .ok_or_else(|| Fault::new(format!("{name} not found in {}", self.built.display())))
    }

    /// The source folder of a Go module whose manifests are applied from there.
    pub(crate) fn module(&self, name: &str) -> Result<PathBuf> {
        let note = self.built.join(format!("{name}.dir"));
        let folder = fs::read_to_string(&note).map_err(|error| {
            Fault::new(format!("{}: {error}; tests/run writes it", note.display()))
        })?;
        let folder = PathBuf::from(folder.trim());
        if folder.is_dir() {
            return Ok(folder);
        }
        Err(Fault::new(format!(
            "{} (named by {}) is gone: run tests/run again",
            folder.display(),
            note.display()
        )))
    }
}

pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Where built tools and the data of test servers go.
pub(crate) fn target() -> PathBuf {
    repository().join("target")
}

#[expect(clippy::disallowed_methods, reason = "the suite has no main of the controller to ask")]
fn path(variable: &str) -> Option<PathBuf> {
    std::env::var(variable).ok().filter(|value| !value.is_empty()).map(PathBuf::from)
}

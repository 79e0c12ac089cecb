//! The folder of one world: where its servers find their files and leave their data and logs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::fault::Result;
use super::pki::Pki;
use super::process::{Program, Server};
use super::run::Run;
use super::tools::{Kubernetes, Tools};

pub(crate) struct Site {
    dir: PathBuf,
    pub(crate) tools: Tools,
    kubernetes: Kubernetes,
    pub(crate) pki: Pki,
    run: Arc<Run>,
}

impl Site {
    /// A fresh folder `name` under the run's, for servers of one Kubernetes.
    pub(crate) fn make(run: &Arc<Run>, name: &str, kubernetes: Kubernetes) -> Result<Self> {
        let tools = Tools::locate();
        tools.require_all()?;
        let dir = run.dir().join(name);
        for part in ["conf", "data", "log"] {
            fs::create_dir_all(dir.join(part))?;
        }
        let pki = Pki::make(&dir.join("pki"))?;
        Ok(Self { dir, tools, kubernetes, pki, run: Arc::clone(run) })
    }

    /// A program of the tools folder, without arguments.
    pub(crate) fn program(&self, name: &str) -> Result<Program> {
        Ok(Program::new(self.tools.program(name)?))
    }

    /// A server of the world's Kubernetes, without arguments.
    pub(crate) fn kubernetes(&self, name: &str) -> Result<Program> {
        match self.kubernetes {
            Kubernetes::Newest => self.program(name),
            Kubernetes::Oldest => self.program(&format!("{name}-oldest")),
        }
    }

    /// Makes a server of this world known to the run; it is not started yet.
    pub(crate) fn server(&self, name: &str, program: Program) -> Arc<Server> {
        self.run.server(name, program, self.dir.join("log").join(format!("{name}.log")))
    }

    /// A folder for the data of a server.
    pub(crate) fn data(&self, name: &str) -> String {
        self.dir.join("data").join(name).display().to_string()
    }

    /// Writes a configuration file and answers its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.conf(name);
        fs::write(&path, content)?;
        Ok(path)
    }

    /// Writes a kubeconfig and answers its path.
    pub(crate) fn write_kubeconfig(&self, user: &str, content: &Value) -> Result<String> {
        let path = self.write(&format!("{user}.kubeconfig"), &content.to_string())?;
        Ok(path.display().to_string())
    }

    pub(crate) fn conf(&self, name: &str) -> PathBuf {
        self.dir.join("conf").join(name)
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Ends this world's servers, newest first, and drops their data. The logs stay until the next
    /// run begins.
    pub(crate) async fn clear(&self) {
        self.run.retire(|server| server.log().starts_with(&self.dir)).await;
        discard(&self.dir.join("data"));
    }
}

/// Removes what is no longer needed; what cannot be removed goes with the next sweep.
fn discard(dir: &Path) {
    if let Err(error) = fs::remove_dir_all(dir) {
        eprintln!("{} stays behind: {error}", dir.display());
    }
}

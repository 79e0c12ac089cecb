//! Scenarios as files, requests that are counted once, and runs that repeat.

mod accounts;
mod fluid;
mod runs;
mod schema;

use std::path::{Path, PathBuf};

use super::scenario::LoadedScenario;

/// A small scenario: two replicas that start within ten seconds, and a trace of known requests.
pub(super) const TINY: &str = "
name: tiny
about: Known requests.
duration: 60s
prelude: 30s
tail: 30s
nodes: [{name: h100, count: 1, gpus: 8, product: NVIDIA-H100-80GB-HBM3}]
models:
- name: m
  id: Qwen/Qwen3-8B
  slo: {ttft: 1s, itl: 20ms}
  variants:
  - name: v
    accelerator: H100
    product: NVIDIA-H100-80GB-HBM3
    gpus: 2
    cost: 3.6
    profile: Qwen3-8B FP8, 1×H100-80GB
    startUp: {kind: cached, median: 10s, sigma: 0}
    replicas: 1
    min: 1
    max: 3
  load:
  - trace: {file: known.csv, jitter: 0s}
";

fn tiny() -> LoadedScenario {
    LoadedScenario::read(TINY, "tiny.yaml").unwrap()
}

/// A folder for runs that goes with the test.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let name = format!("wva-lab-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(path.join("runs")).unwrap();
        Self(path)
    }

    /// With the trace of the small scenario: ten requests that fit, and one longer than the model takes.
    fn with_trace(name: &str) -> Self {
        let folder = Self::new(name);
        let mut text = "t_ms,input_tokens,output_tokens\n".to_owned();
        for second in 0..10 {
            text.extend([format!("{},100,50\n", second * 5_000 + 500)]);
        }
        text += "50000,50000,10\n";
        std::fs::write(folder.0.join("known.csv"), text).unwrap();
        folder
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

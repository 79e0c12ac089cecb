//! Laboratory folders that look like real ones.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::lab::tests::Folder;

impl Folder {
    /// With one scenario, which is called `step`.
    pub(crate) fn of_step(name: &str) -> Self {
        let folder = Self::new(name);
        folder.put_scenarios(&json!({"step": scenario(7200.0)}));
        folder
    }

    /// Writes one run under the name that the laboratory gives it.
    pub(crate) fn put_run(&self, run: &Value) -> PathBuf {
        let text = |field: &str| run[field].as_str().unwrap().replace(['/', '<'], "-");
        let name = format!("{}__{}__s{}.json", text("scenario"), text("policy"), run["seed"]);
        let path = self.path().join("runs").join(name);
        fs::write(&path, run.to_string()).unwrap();
        path
    }

    pub(crate) fn put_scenarios(&self, scenarios: &Value) {
        fs::write(self.path().join("scenarios.json"), scenarios.to_string()).unwrap();
    }
}

/// One scenario of `scenarios.json` that is feasible and has both bounds.
pub(crate) fn scenario(seconds: f64) -> Value {
    json!({
        "about": "one step from 6 to 40 requests a second",
        "loadToCapacity": 0.62, "isFeasible": true,
        "sloTtftSeconds": 1.0, "sloItlSeconds": 0.02,
        "seconds": seconds, "from": 600.0,
        "bestStatic": {"replicas": {"llama-h100": 8}, "gpuHours": 8.3, "attainment": 0.98},
        "clairvoyant": {"gpuHours": 5.5, "attainment": 0.99},
    })
}

/// A run whose score is as given and whose series are short.
pub(crate) fn run(scenario: &str, policy: &str, seed: u64, (share, hours): (f64, f64)) -> Value {
    json!({
        "version": 2, "scenario": scenario, "policy": policy, "family": policy, "knob": null,
        "seed": seed, "key": "abc", "virtualSeconds": 7200.0, "cpuSeconds": 3.1,
        "score": {
            "from": 600.0, "requests": 1000, "good": whole((share * 1000.0).floor()),
            "refused": 0, "failed": 3, "late": 40, "unfinished": 0,
            "attainment": share,
            "gpuSeconds": {"total": hours * 3600.0, "starting": 0.0, "serving": 0.0, "draining": 0.0},
            "cost": 94.5, "goodTokens": 1.2e7,
            "ttftSeconds": {"p50": 0.1, "p90": 0.4, "p99": 2.5},
            "itlSeconds": {"p50": 0.01, "p90": 0.015, "p99": 0.03},
            "e2eSeconds": {"p50": 1.0, "p90": 2.0, "p99": null},
            "overloadSeconds": 300.0, "scalings": 14, "reversals": 3,
            "classes": {}, "models": {},
        },
        "series": {"every": 10.0, "at": [0.0, 10.0, 20.0], "models": {"llama": {
            "arrivals": [5.0, 6.0, 7.0], "held": [0.0, 12.0, null], "queue": [0.0, 1.5, 0.0],
            "running": [3.0, 4.0, 5.0], "kv": [0.1, 0.25, 0.3], "ttftP95": [null, 0.5, 2.0],
            "good": [null, 1.0, 0.7],
            "variants": {"llama-h100": {"desired": [null, 2, 5], "scale": [2, 2, 5],
                "ready": [2, 2, 2], "starting": [0, 0, 3]}},
        }}},
        "decisions": [
            {"at": 5.0, "variant": "llama-h100", "from": 2, "to": 2, "why": "steady"},
            {"at": 12.0, "variant": "llama-h100", "from": 2, "to": 5, "why": "backlog of 12 requests"},
        ],
    })
}

/// Evenly spread numbers of 0 to 1, the same for a seed.
pub(crate) struct Spread(u64);

impl Spread {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66)
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = u32::try_from(self.0 >> 32).unwrap();
        f64::from(bits) / f64::from(u32::MAX)
    }
}

fn whole(value: f64) -> u64 {
    format!("{value:.0}").parse().unwrap()
}

/// A run of so many samples, ten seconds apart, all of which this gives.
pub(crate) fn long_run(policy: &str, samples: u32, mut value: impl FnMut() -> f64) -> Value {
    let mut line = || -> Value { (0..samples).map(|_| value()).collect() };
    let mut run = run("step", policy, 1, (0.9, 7.5));
    let model = &mut run["series"]["models"]["llama"];
    for field in ["arrivals", "held", "queue", "running", "kv", "ttftP95", "good"] {
        model[field] = line();
    }
    for field in ["desired", "scale", "ready", "starting"] {
        model["variants"]["llama-h100"][field] = line();
    }
    run["series"]["at"] = (0..samples).map(|sample| f64::from(sample) * 10.0).collect();
    run
}

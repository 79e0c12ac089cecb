//! Laboratory folders that look like real ones: a fluid fleet under a simple proportional policy.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Seconds between two samples.
const EVERY: f64 = 10.0;

/// Requests a second that one replica serves.
const RATE: f64 = 6.0;

/// A folder that goes when the test ends.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let own = format!("report-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(own);
        fs::create_dir_all(path.join("runs")).unwrap();
        Self(path)
    }

    /// With one scenario, which is called `step`.
    pub(crate) fn of_step(name: &str) -> Self {
        let folder = Self::new(name);
        folder.put_scenarios(&json!({"step": scenario(7200.0)}));
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes one run under the name that the laboratory gives it.
    pub(crate) fn put_run(&self, run: &Value) -> PathBuf {
        let text = |field: &str| run[field].as_str().unwrap().replace(['/', '<'], "-");
        let name = format!(
            "{}__{}__s{}.json",
            text("scenario"),
            text("policy"),
            run["seed"]
        );
        let path = self.0.join("runs").join(name);
        fs::write(&path, run.to_string()).unwrap();
        path
    }

    pub(crate) fn put_scenarios(&self, scenarios: &Value) {
        fs::write(self.0.join("scenarios.json"), scenarios.to_string()).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
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
        "version": 1, "scenario": scenario, "policy": policy, "family": policy, "knob": null,
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
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let bits = u32::try_from(self.0 >> 32).unwrap();
        f64::from(bits) / f64::from(u32::MAX)
    }
}

/// How a played policy decides.
#[derive(Clone, Copy)]
pub(crate) struct Habit {
    /// The load of a replica that it aims at, of 1.
    pub aim: f64,
    /// Seconds between two decisions.
    pub pause: f64,
    /// Extra replicas for each waiting request.
    pub backlog: f64,
    /// Seconds that a smaller need is remembered.
    pub memory: f64,
}

#[derive(Default)]
struct Lines(BTreeMap<&'static str, Vec<Value>>);

impl Lines {
    fn push(&mut self, name: &'static str, value: impl Into<Value>) {
        self.0.entry(name).or_default().push(value.into());
    }

    fn take(&mut self, name: &str) -> Value {
        Value::Array(self.0.remove(name).unwrap_or_default())
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn whole(value: f64) -> u64 {
    format!("{value:.0}").parse().unwrap()
}

fn count(starting: &[f64]) -> f64 {
    f64::from(u32::try_from(starting.len()).unwrap())
}

/// A fleet of one variant, second by second.
struct Fleet {
    chance: Spread,
    habit: Habit,
    at: f64,
    held: f64,
    desired: f64,
    decided: f64,
    ready: f64,
    /// When each starting replica will be ready.
    starting: Vec<f64>,
    needs: Vec<(f64, f64)>,
    decisions: Vec<Value>,
    lines: Lines,
    requests: f64,
    good: f64,
    gpu_seconds: f64,
}

impl Fleet {
    fn new(seed: u64, habit: Habit) -> Self {
        Self {
            chance: Spread::new(seed),
            habit,
            at: 0.0,
            held: 0.0,
            desired: 2.0,
            decided: 0.0,
            ready: 2.0,
            starting: Vec::new(),
            needs: Vec::new(),
            decisions: Vec::new(),
            lines: Lines::default(),
            requests: 0.0,
            good: 0.0,
            gpu_seconds: 0.0,
        }
    }

    fn step(&mut self, load: f64) {
        let rate = load * (0.8 + 0.4 * self.chance.next());
        let before = count(&self.starting);
        self.starting.retain(|end| *end > self.at);
        self.ready += before - count(&self.starting);
        let served = (self.held + rate * EVERY).min(self.ready * RATE * EVERY);
        self.held += rate * EVERY - served;
        let ttft = 0.08 + 0.1 * self.chance.next() + self.held / (self.ready * RATE).max(0.5);
        self.decide(rate);
        let is_good = ttft <= 1.0;
        if self.at >= 600.0 {
            self.gpu_seconds += (self.ready + count(&self.starting)) * EVERY;
            self.requests += rate * EVERY;
            self.good += if is_good { rate * EVERY } else { 0.0 };
        }
        self.record(rate, served / EVERY, (rate > 0.0).then_some(ttft));
        self.at += EVERY;
    }

    fn decide(&mut self, rate: f64) {
        let (aim, backlog) = (self.habit.aim, self.held * self.habit.backlog);
        let need = (rate / RATE / aim + backlog).ceil().clamp(1.0, 16.0);
        self.needs.push((self.at, need));
        let (at, memory) = (self.at, self.habit.memory);
        self.needs.retain(|(then, _)| at - then <= memory);
        if self.at - self.decided < self.habit.pause {
            return;
        }
        self.decided = self.at;
        let wanted = self.needs.iter().map(|need| need.1).fold(1.0, f64::max);
        if wanted.total_cmp(&self.desired).is_ne() {
            let why = format!(
                "demand {rate:.1}/s of {RATE}/s a replica at {:.0} %, backlog {:.0}",
                aim * 100.0,
                self.held
            );
            self.decisions
                .push(json!({"at": self.at, "variant": "llama-h100",
                "from": whole(self.desired), "to": whole(wanted), "why": why}));
        }
        self.desired = wanted;
        self.ready = self.ready.min(wanted);
        while self.ready + count(&self.starting) < wanted {
            self.starting
                .push(self.at + 120.0 + 60.0 * self.chance.next());
        }
    }

    fn record(&mut self, rate: f64, served: f64, ttft: Option<f64>) {
        let (ready, starting) = (self.ready, count(&self.starting));
        let desired = (self.at >= 30.0).then_some(self.desired);
        let lines = &mut self.lines;
        lines.push("at", self.at);
        lines.push("arrivals", rounded(rate));
        lines.push("held", rounded(self.held * 0.7));
        lines.push("queue", rounded(self.held * 0.3 / ready.max(1.0)));
        lines.push("running", rounded(served * 2.0));
        lines.push("kv", rounded((served / RATE / ready.max(1.0)).min(1.0)));
        lines.push("ttftP95", ttft.map(rounded));
        lines.push("good", ttft.map(|ttft| if ttft <= 1.0 { 1.0 } else { 0.3 }));
        lines.push("desired", desired);
        lines.push("scale", ready + starting);
        lines.push("ready", ready);
        lines.push("starting", starting);
    }
}

/// Plays a policy on a load for `seconds`.
pub(crate) fn played(
    (scenario, policy, family, knob): (&str, &str, &str, Option<f64>),
    seed: u64,
    seconds: f64,
    habit: Habit,
    load: impl Fn(f64) -> f64,
) -> Value {
    let mut fleet = Fleet::new(seed, habit);
    while fleet.at < seconds {
        fleet.step(load(fleet.at));
    }
    let share = (fleet.requests > 0.0).then(|| fleet.good / fleet.requests);
    let scored = (share.unwrap_or(0.0), fleet.gpu_seconds / 3600.0);
    let mut run = run(scenario, policy, seed, scored);
    run["family"] = json!(family);
    run["knob"] = json!(knob);
    run["virtualSeconds"] = json!(seconds);
    run["score"]["requests"] = json!(whole(fleet.requests.floor()));
    run["score"]["good"] = json!(whole(fleet.good.floor()));
    run["score"]["attainment"] = json!(scored.0);
    run["decisions"] = json!(fleet.decisions);
    let lines = &mut fleet.lines;
    let variant = ["desired", "scale", "ready", "starting"].map(|name| (name, lines.take(name)));
    let mut model = json!({"variants": {"llama-h100": BTreeMap::from(variant)}});
    for name in [
        "arrivals", "held", "queue", "running", "kv", "ttftP95", "good",
    ] {
        model[name] = lines.take(name);
    }
    let at = lines.take("at");
    run["series"] = json!({"every": EVERY, "at": at, "models": {"llama": model}});
    run
}

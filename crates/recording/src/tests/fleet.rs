//! A synthetic fleet, cycle by cycle, whose counts follow the decisions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::CycleInputs;
use wva_base::moment::Moment;
use wva_policy::document::SnapshotDocument;
use wva_policy::learned::Learned;
use wva_policy::params::{DynamicSettings, RequiredSignals, SaturationEntry, SaturationMethod};
use wva_policy::plan::Plan;
use wva_policy::snapshot::{ClusterSnapshot, Sample};
use wva_policy::{learn, plan};

/// Seconds of one cycle.
const INTERVAL: u64 = 30;

/// When the first cycle is, in seconds of its process.
const START: u64 = 90_000;

pub(super) struct Fleet {
    pub(super) settings: DynamicSettings,
    variants: u64,
    /// Most replicas of one variant.
    most: u32,
    /// The load of a replica by cycle; by default it swings with the hours.
    pub(super) load: Option<fn(u64) -> f64>,
    /// Whether pods report in a cycle.
    pub(super) reports: fn(u64) -> bool,
    /// Seconds until a pod is ready.
    pub(super) start: u64,
    /// GPUs of each type, where they are limited.
    pub(super) gpus: Option<u32>,
    /// Times at which the pods of each variant were created.
    pods: BTreeMap<u64, Vec<u64>>,
    learned: Learned,
    cycle: u64,
    noise: u64,
}

pub(super) struct Cycle {
    pub(super) now: Moment,
    pub(super) snapshot: ClusterSnapshot,
    pub(super) learned: Learned,
    pub(super) plan: Plan,
}

impl Cycle {
    pub(super) fn inputs<'a>(&'a self, settings: &'a DynamicSettings) -> CycleInputs<'a> {
        CycleInputs {
            now: self.now,
            generation: 3,
            snapshot: &self.snapshot,
            learned: &self.learned,
            settings,
        }
    }
}

pub(super) fn settings(analysis: SaturationMethod) -> DynamicSettings {
    let mut settings =
        DynamicSettings { interval: Duration::from_secs(INTERVAL), ..DynamicSettings::default() };
    let entry = SaturationEntry {
        analyzer_name: match analysis {
            SaturationMethod::Percentage => None,
            SaturationMethod::Tokens => Some("saturation".to_owned()),
            SaturationMethod::Slo => Some("slo".to_owned()),
        },
        ..SaturationEntry::default()
    };
    settings.saturation.entries.global.default = Some(entry);
    settings
}

impl Fleet {
    pub(super) fn new(variants: u64, most: u32, settings: DynamicSettings) -> Self {
        let pods = (0..variants).map(|number| (number, vec![0; if most > 1 { 2 } else { 1 }]));
        Self {
            settings,
            variants,
            most,
            load: None,
            reports: |_| true,
            start: 60,
            gpus: None,
            pods: pods.collect(),
            learned: Learned::default(),
            cycle: 0,
            noise: 7,
        }
    }

    /// From 0 to 1, with all 53 bits.
    fn random(&mut self) -> f64 {
        self.noise = self
            .noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.noise >> 32).unwrap()) / 4_294_967_296.0 / 1.000_000_01
    }

    fn signals(&mut self, load: f64) -> Value {
        let collected = |value: f64| Sample::collected(value, Duration::ZERO).value;
        let mut near = |value: f64| collected(value * (0.9 + 0.2 * self.random()));
        let kv = near(0.55 * load + 0.1).min(1.0);
        let queue = (load * 3.0).floor();
        if self.settings.required_signals() == RequiredSignals::Saturation {
            return json!({
                "kvUsage": {"value": kv, "age": "4.211s"},
                "queueLength": {"value": queue, "age": "4.211s"},
            });
        }
        let mut near = |value: f64| collected(value * (0.9 + 0.2 * self.random()));
        json!({
            "kvUsage": {"value": kv, "age": "4.211s"},
            "kvUsageNow": {"value": collected(kv * 0.97), "age": "4.211s"},
            "queueLength": {"value": queue, "age": "4.211s"},
            "running": {"value": (load * 40.0).floor(), "age": "4.211s"},
            "kvCapacity": {"value": 98304.0, "age": "4.211s"},
            "inputTokens": {"value": near(900.0), "age": "4.211s"},
            "outputTokens": {"value": near(200.0), "age": "4.211s"},
            "prefixHitRate": {"value": near(0.3), "age": "4.211s"},
            "timeToFirstToken": {"value": near(0.4), "age": "4.211s"},
            "interTokenLatency": {"value": near(0.03), "age": "4.211s"},
            "generationRate": {"value": near(900.0 * load), "age": "4.211s"},
            "completionRate": {"value": near(4.5 * load), "age": "4.211s"},
            "arrivalRate": {"value": near(4.5 * load), "age": "4.211s"},
        })
    }

    fn variant(&mut self, number: u64, uptime: u64) -> Value {
        // Two variants of one model, and a load that swings with the hours.
        let phase = f64::from(u32::try_from(self.cycle + 40 * (number / 2)).unwrap()) / 120.0;
        let swing = 1.0 + 0.6 * phase.sin();
        let load = self.load.map_or(swing, |load| load(self.cycle));
        let (start, reports) = (self.start, (self.reports)(self.cycle));
        let created = self.pods[&number].clone();
        let pods = created.iter().enumerate().map(|(index, created)| {
            json!({
                "name": format!("llama-{number}-6c9f8d7b5-{index:05}"),
                "age": format!("{}s", uptime - created),
                "readyFor": format!("{}s", (uptime - created).saturating_sub(start)),
                "ready": uptime - created >= start,
                "node": format!("node-{:03}", number + u64::try_from(index).unwrap()),
                "signals": if reports && uptime - created >= start { self.signals(load) } else { json!({}) },
            })
        });
        let pods: Vec<Value> = pods
            .map(|mut pod| {
                if pod["ready"] == false {
                    pod.as_object_mut().unwrap().remove("readyFor");
                }
                pod
            })
            .collect();
        let ready = pods.iter().filter(|pod| pod["ready"] == true).count();
        json!({
            "namespace": "serving", "name": format!("llama-{number}"),
            "model": format!("meta-llama/Llama-3.1-8B-{}", number / 2),
            "cost": 10 + 5 * (number % 2), "accelerator": if number.is_multiple_of(2) { "L4" } else { "H100" },
            "bounds": {"min": 1, "max": self.most}, "desired": pods.len(),
            "target": {"current": pods.len(), "ready": ready},
            "containers": [{"image": "vllm/vllm-openai:v0.9.0", "args": ["--max-num-seqs=256", "--max-model-len=8192"]}],
            "pods": pods,
        })
    }

    pub(super) fn next(&mut self) -> Cycle {
        self.cycle += 1;
        let uptime = START + self.cycle * INTERVAL;
        let variants: Vec<Value> =
            (0..self.variants).map(|number| self.variant(number, uptime)).collect();
        let millis = i64::try_from(uptime).unwrap() * 1000;
        let document = json!({
            "version": 1, "cycle": self.cycle,
            "time": {"now": format!("2026-03-02T{:02}:{:02}:{:02}Z",
                (uptime - START) / 3600 % 24, (uptime - START) / 60 % 60, uptime % 60),
                "uptime": format!("{uptime}s")},
            "collection": {"ago": "212ms"}, "variants": variants,
        });
        let mut document = document;
        if let Some(gpus) = self.gpus {
            let used = |parity: u64| {
                let pods = self.pods.iter().filter(|(number, _)| *number % 2 == parity);
                pods.map(|(_, pods)| pods.len()).sum::<usize>()
            };
            document["inventory"] = json!({"types": {
                "L4": {"total": gpus, "used": used(0)}, "H100": {"total": gpus, "used": used(1)},
            }});
        }
        let document: SnapshotDocument = serde_json::from_value(document).unwrap();
        let situation = document.situation(&self.settings.freshness).unwrap();
        assert!(situation.now.wall.0 > 0 && millis > 0);
        let (snapshot, now) = (situation.snapshot, situation.now);
        self.learned = learn(&snapshot, &self.learned, &self.settings, now);
        let plan = plan(&snapshot, &self.learned, &self.settings, 3, now);
        for (number, pods) in &mut self.pods {
            let key = wva_policy::key::VariantKey::new("serving", format!("llama-{number}"));
            let target = plan.decisions[&key].target.unwrap().0;
            pods.resize(usize::try_from(target).unwrap(), uptime);
        }
        Cycle { now, snapshot, learned: self.learned.clone(), plan }
    }
}

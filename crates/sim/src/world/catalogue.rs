//! The scenarios that come with the program.

use std::time::Duration;

use super::scenario::{
    ApiFault, ConfigMap, LoadSource, Replica, Scenario, ScenarioFault, ScenarioModel,
    ScenarioVariant, Slo,
};
use crate::engine::{Dialect, Limits, Profile, StartUp};
use crate::load::{Demand, Lengths, RateProfile, Sharing, Tokens};
use crate::router::{Binding, FlowControl};
use crate::workloads::{NodeGroup, StruckPods, WorkloadFault};
use wva::policy::capacity::ServingRole;
use wva::settings::config_maps::ConfigMapNames;

const H100: &str = "NVIDIA-H100-80GB-HBM3";
const A100: &str = "NVIDIA-A100-SXM4-80GB";
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

/// All of them; the first is the default.
pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![fleet(), faults(), quiet(), steady(), days()]
}

/// The one of this name.
pub fn scenario(name: &str) -> Option<Scenario> {
    scenarios().into_iter().find(|one| one.name == name)
}

fn fleet() -> Scenario {
    Scenario {
        name: "fleet",
        about: "Three models on H100 and A100: one under a wave, one with bursts, one mostly idle, which goes to zero.",
        namespace: "llm-d",
        nodes: vec![nodes("h100", 3, H100), nodes("a100", 3, A100)],
        models: vec![llama_70b(), qwen_8b(), llama_8b()],
        autoscaled: Vec::new(),
        config: vec![ConfigMap::of(
            ConfigMapNames::SCALE_TO_ZERO,
            "llama-8b",
            ConfigMap::zero_entry(llama_8b().id, true, MINUTE * 5),
        )],
        troubles: Vec::new(),
        interval: Duration::from_secs(30),
        scrape_interval: Duration::from_secs(15),
        missing: Vec::new(),
        without: None,
    }
}

fn faults() -> Scenario {
    let node = "h100-0".to_owned();
    let one_of = |deployment: &str| StruckPods {
        namespace: "llm-d".to_owned(),
        deployment: deployment.to_owned(),
        pods: 1,
    };
    let crash = WorkloadFault::Crash(one_of("qwen3-8b-fp8"));
    let evict = WorkloadFault::Evict(one_of("llama-70b-a100"));
    Scenario {
        name: "faults",
        about: "As fleet, with a crash, an eviction, a lost node, and a Prometheus and an API server that fail.",
        troubles: vec![
            (MINUTE * 6, ScenarioFault::Workload(crash)),
            (MINUTE * 10, ScenarioFault::Workload(evict)),
            (MINUTE * 15, ScenarioFault::Workload(WorkloadFault::NodeLost { node: node.clone() })),
            (MINUTE * 35, ScenarioFault::Workload(WorkloadFault::NodeBack { node })),
            (MINUTE * 50, ScenarioFault::NoPrometheus(MINUTE * 10)),
            (MINUTE * 70, api_server(ApiFault::Refusing(503), 3)),
            (MINUTE * 80, api_server(ApiFault::Slow(SECOND * 2), 5)),
            (MINUTE * 90, api_server(ApiFault::Silent, 2)),
            (MINUTE * 100, ScenarioFault::NoScrapes(MINUTE * 3)),
            (MINUTE * 110, ScenarioFault::LatePrometheus { lag: MINUTE, lasts: MINUTE * 10 }),
        ],
        ..fleet()
    }
}

fn api_server(fault: ApiFault, minutes: u32) -> ScenarioFault {
    ScenarioFault::ApiServer { fault, lasts: MINUTE * minutes }
}

pub(crate) fn days() -> Scenario {
    Scenario {
        name: "days",
        about: "As fleet, with streams instead of single requests; for --speed max over days.",
        ..fleet().coarse()
    }
}

pub(crate) fn quiet() -> Scenario {
    let mut model = qwen_8b();
    model.load =
        generated(RateProfile::Step { before: 9.0, after: 0.5, at: MINUTE * 12 }, (300.0, 300.0));
    Scenario {
        name: "quiet",
        about: "One model in two variants; its load comes at once and goes after 12 minutes.",
        nodes: vec![nodes("h100", 1, H100)],
        models: vec![model],
        config: Vec::new(),
        ..fleet()
    }
}

fn steady() -> Scenario {
    let mut models = fleet().models;
    for model in &mut models {
        if let LoadSource::Generated(demand) = &mut model.load {
            demand.shape = RateProfile::Constant { rate: 10.0 };
        }
    }
    Scenario {
        name: "steady",
        about: "The models of fleet, each under ten requests per second all the time.",
        models,
        ..fleet()
    }
}

fn nodes(name: &str, count: u32, product: &str) -> NodeGroup {
    NodeGroup { name: name.to_owned(), count, gpus: 8, product: product.to_owned() }
}

fn generated(shape: RateProfile, (prompt, output): (f64, f64)) -> LoadSource {
    let lengths = |median, most| Tokens::LogNormal { median, sigma: 0.6, most };
    LoadSource::Generated(Demand {
        shape,
        lengths: Lengths { prompt: lengths(prompt, 4_000), output: lengths(output, 2_000) },
        sharing: Some(Sharing { share: 0.4, texts: 20, tokens: 128 }),
    })
}

fn limits(max_num_seqs: u32) -> Limits {
    Limits { max_num_seqs, max_model_len: 8_192, ..Limits::default() }
}

fn slo(first_token: u64, per_token: u64) -> Slo {
    Slo {
        first_token: Duration::from_millis(first_token),
        per_token: Duration::from_millis(per_token),
    }
}

fn llama_70b() -> ScenarioModel {
    let variant = ScenarioVariant {
        name: "llama-70b-a100",
        role: ServingRole::Both,
        accelerator: "A100",
        product: A100,
        replica: Replica::Pod,
        gpus: 4,
        cost: 8.0,
        profile: Profile::LLAMA_70B_A100_TP4,
        limits: limits(48),
        start_up: StartUp::LARGE,
        replicas: 1,
        bounds: (1, 5),
    };
    ScenarioModel {
        name: "llama-70b",
        id: "meta-llama/Llama-2-70b-chat-hf",
        slo: slo(3_000, 120),
        load: generated(
            RateProfile::Wave { mean: 4.0, swing: 3.5, period: MINUTE * 60, phase: Duration::ZERO },
            (400.0, 180.0),
        ),
        dialect: Dialect::Vllm,
        binding: Binding::Late,
        handover: Duration::ZERO,
        flow_control: Some(FlowControl::default()),
        variants: vec![
            ScenarioVariant {
                name: "llama-70b-h100",
                accelerator: "H100",
                product: H100,
                cost: 14.0,
                profile: Profile::LLAMA_70B_H100_TP4,
                limits: limits(64),
                bounds: (1, 4),
                ..variant.clone()
            },
            variant,
        ],
    }
}

fn qwen_8b() -> ScenarioModel {
    let variant = ScenarioVariant {
        name: "qwen3-8b-fp8",
        role: ServingRole::Both,
        accelerator: "H100",
        product: H100,
        replica: Replica::Pod,
        gpus: 1,
        cost: 3.5,
        profile: Profile::QWEN3_8B_FP8_H100,
        limits: limits(16),
        start_up: StartUp::SMALL,
        replicas: 1,
        bounds: (1, 5),
    };
    ScenarioModel {
        name: "qwen3-8b",
        id: "Qwen/Qwen3-8B",
        slo: slo(1_000, 20),
        load: generated(
            RateProfile::Burst { base: 4.0, peak: 18.0, every: MINUTE * 40, length: MINUTE * 12 },
            (300.0, 300.0),
        ),
        variants: vec![
            variant.clone(),
            ScenarioVariant {
                name: "qwen3-8b-bf16",
                cost: 3.9,
                profile: Profile::QWEN3_8B_BF16_H100,
                bounds: (1, 4),
                ..variant
            },
        ],
        ..llama_70b()
    }
}

fn llama_8b() -> ScenarioModel {
    let variant = ScenarioVariant {
        name: "llama-8b-a100",
        role: ServingRole::Both,
        accelerator: "A100",
        product: A100,
        replica: Replica::Pod,
        gpus: 2,
        cost: 4.0,
        profile: Profile::LLAMA_8B_A100_TP2,
        limits: limits(32),
        start_up: StartUp::SMALL,
        replicas: 1,
        bounds: (0, 4),
    };
    ScenarioModel {
        name: "llama-8b",
        id: "meta-llama/Llama-3.1-8B-Instruct",
        slo: slo(1_000, 40),
        load: generated(
            RateProfile::Burst { base: 0.0, peak: 0.5, every: MINUTE * 45, length: MINUTE * 6 },
            (300.0, 100.0),
        ),
        variants: vec![
            variant.clone(),
            ScenarioVariant {
                name: "llama-8b-h100",
                accelerator: "H100",
                product: H100,
                gpus: 1,
                cost: 4.2,
                // That of a model of the same size and shape.
                profile: Profile::QWEN3_8B_BF16_H100,
                ..variant
            },
        ],
        ..llama_70b()
    }
}

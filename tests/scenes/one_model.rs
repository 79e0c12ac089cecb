//! One model in one variant, from which the scenes here and those of the goldens are made.

use std::time::Duration;

use wva::policy::capacity::ServingRole;
use wva_base::moment::WallTime;
use wva_sim::engine::{Dialect, Limits, Mix, Profile, StartUp};
use wva_sim::router::{Binding, FlowControl};
use wva_sim::workloads::NodeGroup;
use wva_sim::world::{
    LoadSource, Replica, Scenario, ScenarioModel, ScenarioVariant, Slo, scenario,
};

pub(crate) const DATE: WallTime = WallTime(1_767_225_600_000);
pub(crate) const H100: &str = "NVIDIA-H100-80GB-HBM3";
pub(crate) const A100: &str = "NVIDIA-A100-SXM4-80GB";
pub(crate) const MINUTE: Duration = Duration::from_mins(1);
/// How often the controller decides in these stories.
pub(crate) const CYCLE: Duration = Duration::from_secs(15);

/// Requests of 1 000 tokens that are answered with 200.
pub(crate) const MIX: Mix = Mix { prompt_tokens: 1_000, output_tokens: 200, cached: 0.0 };

/// One model on one node of eight GPUs, whose servers start within seconds.
pub(crate) fn small(load: LoadSource) -> Scenario {
    Scenario {
        name: "small",
        about: "One model in one variant.",
        nodes: vec![node("h100", 8, H100)],
        models: vec![model("m", load, vec![variant("v")])],
        interval: CYCLE,
        scrape_interval: Duration::from_secs(5),
        ..scenario("quiet").unwrap()
    }
}

pub(crate) fn node(name: &str, gpus: u32, product: &str) -> NodeGroup {
    NodeGroup { name: name.to_owned(), count: 1, gpus, product: product.to_owned() }
}

pub(crate) fn model(
    name: &'static str,
    load: LoadSource,
    variants: Vec<ScenarioVariant>,
) -> ScenarioModel {
    ScenarioModel {
        name,
        id: name,
        slo: Slo { first_token: Duration::from_secs(2), per_token: Duration::from_millis(60) },
        load,
        dialect: Dialect::Vllm,
        binding: Binding::Late,
        handover: Duration::ZERO,
        flow_control: Some(FlowControl::default()),
        variants,
    }
}

pub(crate) fn variant(name: &'static str) -> ScenarioVariant {
    ScenarioVariant {
        name,
        role: ServingRole::Both,
        accelerator: "H100",
        product: H100,
        replica: Replica::Pod,
        gpus: 1,
        cost: 10.0,
        profile: Profile::QWEN3_8B_BF16_H100,
        limits: Limits { max_model_len: 32_768, ..Limits::default() },
        start_up: StartUp::WAKING,
        replicas: 1,
        bounds: (1, 6),
    }
}

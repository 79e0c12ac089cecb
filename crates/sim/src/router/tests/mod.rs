mod binding;
mod handover;
mod holding;
mod pages;
mod whole;

use std::time::Duration;

use super::{Binding, FlowControl, PoolSpec, RouterPool};
use crate::engine::{Engine, Limits, Profile};
use crate::load::Arrival;
use wva::policy::capacity::ServingRole;
use wva_supervise::SeedTree;

const SECOND: Duration = Duration::from_secs(1);

fn pool(flow_control: Option<FlowControl>) -> RouterPool {
    pool_with(Binding::Late, flow_control)
}

fn pool_with(binding: Binding, flow_control: Option<FlowControl>) -> RouterPool {
    RouterPool::new(spec(binding, flow_control), &SeedTree::new(9))
}

fn spec(binding: Binding, flow_control: Option<FlowControl>) -> PoolSpec {
    PoolSpec {
        name: "pool".to_owned(),
        namespace: "ns".to_owned(),
        model: "chat".to_owned(),
        target_model: "Qwen/Qwen3-8B".to_owned(),
        binding,
        flow_control,
        handover: None,
    }
}

impl RouterPool {
    fn add(&mut self, endpoint: impl Into<String>, engine: Engine, at: Duration) {
        self.add_for(ServingRole::Both, endpoint, engine, at);
    }
}

fn engine(start: Duration) -> Engine {
    let profile = Profile::QWEN3_8B_BF16_H100;
    Engine::new(profile, Limits::default(), start)
}

fn arrival(prompt_tokens: u32, output_tokens: u32) -> Arrival {
    Arrival { at: Duration::ZERO, prompt_tokens, output_tokens, prefix: None, within: None }
}

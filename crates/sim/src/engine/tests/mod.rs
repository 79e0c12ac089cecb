//! What holds for every server, and what each feature does.

mod calibration;
mod coarse;
mod features;
mod invariants;
mod pages;
mod reference;

use std::time::Duration;

use super::{Completion, Engine, Limits, Profile, Request, RequestId};

/// A small model whose KV cache holds `kv_tokens`.
fn engine(kv_tokens: u32, limits: Limits) -> Engine {
    let profile = Profile { kv_tokens, ..Profile::QWEN3_8B_BF16_H100 };
    Engine::new(profile, limits, Duration::ZERO)
}

fn request(id: u64, prompt_tokens: u32, output_tokens: u32) -> Request {
    Request { id: RequestId(id), prompt_tokens, output_tokens, prefix: None, received_tokens: 0 }
}

/// Advances until nothing is left to do; what left, in order.
fn finish(engine: &mut Engine) -> Vec<Completion> {
    engine.advance(engine.now.duration() + Duration::from_hours(10));
    assert!(engine.is_idle());
    engine.take_completions()
}

//! Dynamo's load planner: one replica more or less by estimated latency. Source: ai-dynamo 1.6.1.

use std::time::Duration;

use super::signals::{ModelSignals, Peer, PeerDecision, PeerModel};

const POLL: Duration = Duration::from_secs(5);
/// Share of a target below which a replica may go.
const SENSITIVITY: f64 = 0.8;

/// Latency as the profile predicts it, and between tokens the 95th percentile of the last minute where that is more,
/// since prompts that are read in between are in no line. The original fits the lines to at most 64 samples; here they
/// are known.
pub(super) struct DynamoLoad {
    model: PeerModel,
    share: f64,
}

impl DynamoLoad {
    pub(super) fn new(model: &PeerModel, share: f64) -> Self {
        Self { model: *model, share }
    }

    /// Time between tokens of a replica with so many sequences that hold this share of its KV cache.
    fn between_tokens(&self, running: f64, kv_usage: f64) -> f64 {
        let timing = self.model.profile.timing;
        let tokens = kv_usage * f64::from(self.model.profile.kv_tokens);
        timing.step.seconds()
            + timing.sequence.seconds() * running
            + timing.context.seconds() * tokens
    }

    /// A mean prompt: half of what a running request holds.
    fn prompt_tokens(&self, signals: &ModelSignals) -> f64 {
        let held = signals.kv_usage * f64::from(self.model.profile.kv_tokens);
        if signals.running > 0.0 { (held / signals.running).max(1.0) } else { 1.0 }
    }
}

impl Peer for DynamoLoad {
    fn poll(&self) -> Duration {
        POLL
    }

    fn decide(&mut self, signals: &ModelSignals, _now: Duration) -> Option<PeerDecision> {
        // No step while one is in progress.
        if signals.ready != signals.wanted || signals.existing != signals.wanted {
            return None;
        }
        let slo = self.model.slo;
        let ttft_target = slo.first_token.as_secs_f64() * self.share;
        let itl_target = slo.per_token.as_secs_f64() * self.share;
        // Prefill answers for no tokens.
        let measured = signals.latencies.filter(|_| slo.per_token < Duration::MAX);
        let measured = measured.map_or(0.0, |(_, between_tokens)| between_tokens);
        let itl = self.between_tokens(signals.running, signals.kv_usage).max(measured);
        let count = f64::from(signals.ready.max(1));
        let on_servers = signals.queue * count + signals.running * count;
        let held = (signals.concurrency - on_servers).max(0.0);
        // Every waiting request costs its prefill, which a mean prompt stands for.
        let prompt = self.model.profile.timing.prompt_token.seconds();
        let prefill = prompt * self.prompt_tokens(signals);
        let waiting = signals.queue + held / count;
        let ttft = (waiting + 1.0) * prefill + itl;
        let own = prefill + itl;
        let mut replicas = signals.wanted;
        if ttft > ttft_target || itl > itl_target {
            replicas = replicas.saturating_add(1);
        } else if count > 1.0 {
            let fewer = (ttft - own) * count / (count - 1.0) + own;
            let is_low = fewer < own + SENSITIVITY * (ttft_target - own)
                && signals.kv_usage * count / (count - 1.0) < 1.0
                && itl < SENSITIVITY * itl_target;
            replicas = replicas.saturating_sub(u32::from(is_low));
        }
        Some(PeerDecision {
            replicas: replicas.clamp(self.model.min.max(1), self.model.max),
            why: format!("estimated TTFT {ttft:.3} s, ITL {itl:.4} s"),
        })
    }
}

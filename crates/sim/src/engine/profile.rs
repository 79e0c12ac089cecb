//! Which model on which hardware, and how the server is set up.

use std::time::Duration;

use serde::Deserialize;

use super::timing::{Picoseconds, Timing};
use crate::number;
use wva_supervise::Generator;

/// A model on an accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    pub(crate) name: &'static str,
    pub(crate) timing: Timing,
    /// KV cache, in tokens.
    pub kv_tokens: u32,
}

/// A timing in picoseconds as fitted; `context` per token.
const fn timing(
    ridge: u64,
    [step, sequence, context]: [u64; 3],
    [prompt, prompt_token]: [u64; 2],
) -> Timing {
    Timing {
        step: Picoseconds(step),
        sequence: Picoseconds(sequence),
        context: Picoseconds(context),
        ridge,
        prompt: Picoseconds(prompt),
        prompt_token: Picoseconds(prompt_token),
    }
}

/// Of an H100 SXM, by its data sheet: 989 TFLOP/s in BF16 to 3.35 TB/s. A weight of two bytes takes
/// two operations for each sequence, so this is a number of sequences; in FP8 both halves cancel out.
const H100_RIDGE: u64 = 295;
/// Of an A100-80GB SXM: 312 TFLOP/s to 2.04 TB/s.
const A100_RIDGE: u64 = 153;

/// Rows of profiles: name, KV cache in tokens, ridge, timing of decoding, timing of prompts.
macro_rules! profiles {
    ($(
        $(#[$doc:meta])*
        $vis:vis $profile:ident = $name:literal, $kv_tokens:literal, $ridge:ident, $decode:expr, $prompt:expr;
    )+) => {
        impl Profile {
            $($(#[$doc])* $vis const $profile: Self = Self {
                name: $name,
                timing: timing($ridge, $decode, $prompt),
                kv_tokens: $kv_tokens,
            };)+

            pub(crate) const ALL: [Self; [$($name),+].len()] = [$(Self::$profile),+];
        }
    };
}

profiles! {
    /// Qwen3-8B in BF16 on one H100-80GB: fitted to published medians of vLLM from September 2026
    /// (silybench-data), 1 to 384 sequences of 200 to 8 400 tokens.
    pub QWEN3_8B_BF16_H100 = "Qwen3-8B BF16, 1×H100-80GB", 376_000, H100_RIDGE,
        [6_800_000_000, 12_200_000, 50_200], [3_000_000_000, 30_500_000];
    /// Qwen3-8B in FP8 on one H100-80GB, from the same data.
    pub(crate) QWEN3_8B_FP8_H100 = "Qwen3-8B FP8, 1×H100-80GB", 430_000, H100_RIDGE,
        [4_540_000_000, 14_300_000, 50_600], [3_000_000_000, 24_600_000];
    /// Qwen3-32B in BF16 on two H100-80GB. Step and context are those of Qwen3-8B in the ratio of the bytes that are
    /// read (65.5 GB of weights and 262 144 bytes a token, from twice the bandwidth). Prompts: 15 400 to 15 900
    /// tokens a second, KV: 350 000 tokens (both llm-d's guide to token-aware scaling). Of 4 000 and 1 000 tokens
    /// that makes 1.5 requests a second, where NVIDIA's kernel tables give 1.4 to 1.5.
    pub(crate) QWEN3_32B_H100_TP2 = "Qwen3-32B BF16, 2×H100-80GB", 350_000, H100_RIDGE,
        [13_600_000_000, 24_400_000, 44_600], [3_000_000_000, 63_900_000];
    /// Llama-3.1-8B in BF16 on two A100-80GB. Fitted to an older engine (SageServe), 1 to 32
    /// sequences of one length, so its per-sequence cost includes that of context. KV: what 0.9 of
    /// the memory leaves after 16 GB of weights, at 131 072 bytes a token.
    pub(crate) LLAMA_8B_A100_TP2 = "Llama-3.1-8B BF16, 2×A100-80GB", 945_000, A100_RIDGE,
        [8_290_000_000, 244_000_000, 0], [0, 62_000_000];
    /// Llama-2-70B on four H100-80GB (SageServe). KV: what 0.9 of the memory leaves after 140 GB of
    /// weights and 12 GB of overhead, at 327 680 bytes a token.
    pub(crate) LLAMA_70B_H100_TP4 = "Llama-2-70B, 4×H100-80GB", 415_000, H100_RIDGE,
        [28_600_000_000, 329_000_000, 0], [2_000_000_000, 107_000_000];
    /// Llama-2-70B on eight H100-80GB (SageServe); KV as with four, from twice the memory.
    pub(crate) LLAMA_70B_H100_TP8 = "Llama-2-70B, 8×H100-80GB", 1_257_000, H100_RIDGE,
        [29_900_000_000, 302_000_000, 0], [6_000_000_000, 80_000_000];
    /// Llama-2-70B on four A100-80GB (SageServe).
    pub(crate) LLAMA_70B_A100_TP4 = "Llama-2-70B, 4×A100-80GB", 415_000, A100_RIDGE,
        [42_400_000_000, 419_000_000, 0], [3_000_000_000, 228_000_000];
    /// Llama-2-70B on eight A100-80GB (SageServe).
    pub(crate) LLAMA_70B_A100_TP8 = "Llama-2-70B, 8×A100-80GB", 1_257_000, A100_RIDGE,
        [43_600_000_000, 396_000_000, 0], [8_000_000_000, 153_000_000];
}

/// How a server is set up, by vLLM's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default = "Limits::of_api_server")]
pub struct Limits {
    /// Sequences in a batch.
    pub max_num_seqs: u32,
    /// Tokens computed in one step, decoded ones included.
    pub max_num_batched_tokens: u32,
    /// Prompt and answer of one request, in tokens.
    pub max_model_len: u32,
    /// Tokens of a KV block.
    pub block_size: u32,
}

/// vLLM's defaults for a server on an H100 with a model of 40 960 tokens.
impl Default for Limits {
    fn default() -> Self {
        Self {
            max_num_seqs: 1_024,
            max_num_batched_tokens: 8_192,
            max_model_len: 40_960,
            block_size: 16,
        }
    }
}

impl Limits {
    /// vLLM's defaults for an API server.
    pub(crate) fn of_api_server() -> Self {
        Self { max_num_seqs: 256, ..Self::default() }
    }
}

/// How long a pod takes from its start to the first request it can serve, spread log-normally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartUp {
    /// Getting the image; zero where it is cached on the node.
    pub image_pull: Duration,
    /// Loading and compiling, in half of all cases at most.
    pub median: Duration,
    /// Loading and compiling, in 95 % of all cases at most.
    pub p95: Duration,
    /// What stays of pods that end; nothing by default.
    pub asleep: Option<Sleepers>,
}

/// Engines that stay asleep when their pods end, with the weights in host memory: vLLM's sleep mode, level 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sleepers {
    /// How many of a variant at most.
    pub most: u32,
    /// Waking up, in half of all cases at most; spread like a start.
    pub wake: Duration,
}

impl StartUp {
    /// 32 billion parameters on an H100.
    pub(crate) const LARGE: Self = Self::loading(110, 150);
    /// Below a billion parameters.
    pub(crate) const SMALL: Self = Self::loading(65, 85);
    /// A server that slept with its weights in memory.
    pub const WAKING: Self = Self::loading(6, 7);

    const fn loading(median: u64, p95: u64) -> Self {
        Self {
            image_pull: Duration::ZERO,
            median: Duration::from_secs(median),
            p95: Duration::from_secs(p95),
            asleep: None,
        }
    }

    /// The same where an engine wakes up: it has its image and its weights.
    pub(crate) fn waking(&self, wake: Duration) -> Self {
        let spread = self.p95.as_secs_f64() / self.median.as_secs_f64();
        Self {
            image_pull: Duration::ZERO,
            median: wake,
            p95: number::duration(wake.as_secs_f64() * spread),
            asleep: self.asleep,
        }
    }

    pub(crate) fn draw(&self, generator: &mut Generator) -> Duration {
        const P95: f64 = 1.644_853_626_951;
        let median = self.median.as_secs_f64();
        let spread = (self.p95.as_secs_f64() / median).ln() / P95;
        let factor = (spread * number::normal(generator)).exp();
        let loading = number::duration(median * if factor.is_finite() { factor } else { 1.0 });
        self.image_pull.saturating_add(loading)
    }
}

//! What the command line of an inference server says about its capacity, for vLLM and SGLang.
//!
//! [`parse`](fn@parse) reads the containers of a pod template. What cannot be read is named and leaves the
//! value before it in force; nothing in a command line is an error that stops anything.

mod command;
mod containers;
mod essence;
mod expand;
mod fault;
mod field;
mod parse;
mod quantity;
mod value;
mod words;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use command::ContainerCommand;
pub use containers::Containers;
pub use essence::essence;
pub use expand::expand;
pub use parse::parse;
pub use words::shell_variables;

pub(crate) use containers::ReadEngine;
pub(crate) use parse::ParsedArgs;
pub(crate) use quantity::{KvTokens, StepTokens};

/// Requests that an engine works on at once where its arguments do not say; vLLM's default of
/// `--max-num-seqs`.
pub(crate) const DEFAULT_MAX_SEQS: u32 = 256;

/// Tokens of one step with chunked prefill, by vLLM's default for its current engine.
const CHUNKED_V1: StepTokens = StepTokens(8192);

/// Tokens of one step with chunked prefill, by the default of vLLM's first engine; also the least
/// without chunked prefill.
const CHUNKED_V0: StepTokens = StepTokens(2048);

/// A kind of inference server.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// vLLM, and every server that takes its arguments.
    #[default]
    Vllm,
    /// SGLang.
    Sglang,
}

/// The generation of vLLM's engine; SGLang counts as the current one.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum EngineGeneration {
    /// The first one, chosen by `VLLM_USE_V1=0`.
    V0,
    /// The current one.
    #[default]
    V1,
}

/// Whether an engine captures CUDA graphs.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Execution {
    /// It does.
    #[default]
    Graphs,
    /// It does not (`--enforce-eager`, `--disable-cuda-graph`).
    Eager,
}

/// How prompts are read.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Prefill {
    /// In parts, together with decoding.
    #[default]
    Chunked,
    /// In one piece.
    Whole,
}

/// The arguments of an engine that shape its capacity, with the engine's defaults where they are
/// absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineArgs {
    /// The server.
    pub engine: EngineKind,
    /// Its generation.
    pub generation: EngineGeneration,
    /// Share of GPU memory that it takes; in (0, 1].
    pub gpu_memory_utilization: f64,
    /// Tokens of one KV block.
    pub block_size: u32,
    /// Type of the KV cache's numbers.
    pub kv_cache_dtype: Arc<str>,
    /// Type of the weights' numbers, where it is stated.
    pub dtype: Option<Arc<str>>,
    /// How the weights are quantized, where it is stated.
    pub quantization: Option<Arc<str>>,
    /// GPUs that share each layer.
    pub tensor_parallel_size: u32,
    /// Groups of GPUs that share the layers.
    pub pipeline_parallel_size: u32,
    /// Engines behind one address.
    pub data_parallel_size: u32,
    /// Number of KV blocks, where it is not left to the engine.
    pub num_gpu_blocks_override: Option<u32>,
    /// Size of SGLang's KV cache, where it is not left to the engine.
    pub max_total_tokens: Option<KvTokens>,
    /// Tokens of one step, where they are stated.
    pub max_num_batched_tokens: Option<StepTokens>,
    /// Requests worked on at once.
    pub max_num_seqs: u32,
    /// Tokens of the longest request, where they are stated.
    pub max_model_len: Option<u32>,
    /// How steps are executed.
    pub execution: Execution,
    /// How prompts are read.
    pub prefill: Prefill,
}

impl EngineArgs {
    /// The defaults of an engine.
    pub fn defaults(engine: EngineKind) -> Self {
        Self {
            engine,
            generation: EngineGeneration::V1,
            gpu_memory_utilization: 0.9,
            block_size: match engine {
                EngineKind::Vllm => 16,
                EngineKind::Sglang => 1,
            },
            kv_cache_dtype: Arc::from("auto"),
            dtype: None,
            quantization: None,
            tensor_parallel_size: 1,
            pipeline_parallel_size: 1,
            data_parallel_size: 1,
            num_gpu_blocks_override: None,
            max_total_tokens: None,
            max_num_batched_tokens: None,
            max_num_seqs: DEFAULT_MAX_SEQS,
            max_model_len: None,
            execution: Execution::Graphs,
            prefill: Prefill::Chunked,
        }
    }

    /// Tokens that one step computes at most: as stated, else the default for chunked prefill, else
    /// a whole prompt of the longest request.
    pub fn step_budget(&self) -> StepTokens {
        if let Some(stated) = self.max_num_batched_tokens {
            return stated;
        }
        match (self.prefill, self.generation) {
            (Prefill::Chunked, EngineGeneration::V1) => CHUNKED_V1,
            (Prefill::Chunked, EngineGeneration::V0) => CHUNKED_V0,
            (Prefill::Whole, _) => {
                self.max_model_len.map_or(CHUNKED_V0, |length| StepTokens(length).max(CHUNKED_V0))
            }
        }
    }

    /// Size of the KV cache, where the arguments fix it.
    pub fn kv_capacity(&self) -> Option<KvTokens> {
        let blocks = |blocks| KvTokens(f64::from(blocks) * f64::from(self.block_size));
        self.max_total_tokens.or_else(|| self.num_gpu_blocks_override.map(blocks))
    }

    /// What distinguishes engines of different capacity: everything above.
    pub fn fingerprint(&self) -> EngineFingerprint {
        let text = format!(
            "{:?}/{:?} {} seqs={} length={} {:?} {:?}",
            self.engine,
            self.generation,
            self.memory(),
            self.max_num_seqs,
            self.max_model_len.unwrap_or(0),
            self.execution,
            self.prefill,
        );
        EngineFingerprint(Arc::from(text))
    }

    /// What distinguishes engines of different KV caches: a variant without replicas takes the capacity
    /// of one that is equal in this. How many requests run at once, and how long they may be, is left
    /// out.
    pub fn likeness(&self) -> EngineFingerprint {
        EngineFingerprint(Arc::from(format!("{:?} {}", self.engine, self.memory())))
    }

    /// The arguments that divide the memory of a replica.
    fn memory(&self) -> String {
        format!(
            "memory={} block={} kv={:?} dtype={:?} quantization={:?} tp={} pp={} dp={} cache={} step={}",
            self.gpu_memory_utilization,
            self.block_size,
            self.kv_cache_dtype,
            self.dtype.as_deref().unwrap_or("auto"),
            self.quantization.as_deref().unwrap_or("none"),
            self.tensor_parallel_size,
            self.pipeline_parallel_size,
            self.data_parallel_size,
            self.kv_capacity().unwrap_or(KvTokens::ZERO).0,
            self.step_budget().0,
        )
    }
}

/// Equal for engines that are started alike, so that what was measured on one holds for the other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EngineFingerprint(Arc<str>);

wva_base::display_of! { EngineFingerprint: Self(text) => "{text}"; }

//! Which argument says what, by engine.

use std::sync::Arc;

use super::fault::{ArgumentFault, shown};
use super::value::{count, name, names_variable, share, switch, whole};
use super::{EngineArgs, EngineKind, Execution, KvTokens, Prefill, StepTokens};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    MemoryShare,
    BlockSize,
    KvType,
    WeightType,
    Quantization,
    TensorParallel,
    PipelineParallel,
    DataParallel,
    Blocks,
    CacheTokens,
    StepTokens,
    ChunkTokens,
    PrefillTokens,
    Sequences,
    Length,
    Eager(Sense),
    Chunked(Sense),
}

/// What the presence of a switch means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    On,
    Off,
}

impl Sense {
    fn says(self, value: Option<&str>) -> bool {
        switch(value) == (self == Self::On)
    }
}

impl Field {
    /// The field of a flag, given without its dashes and with `-` between its words.
    pub(super) fn of(engine: EngineKind, flag: &str) -> Option<Self> {
        Some(match (engine, flag) {
            (_, "kv-cache-dtype") => Self::KvType,
            (_, "dtype") => Self::WeightType,
            (_, "quantization") | (EngineKind::Vllm, "q") => Self::Quantization,
            (_, "tensor-parallel-size" | "tp") | (EngineKind::Sglang, "tp-size") => {
                Self::TensorParallel
            }
            (_, "pipeline-parallel-size" | "pp") | (EngineKind::Sglang, "pp-size") => {
                Self::PipelineParallel
            }
            (_, "data-parallel-size" | "dp") | (EngineKind::Sglang, "dp-size") => {
                Self::DataParallel
            }
            (EngineKind::Vllm, "gpu-memory-utilization")
            | (EngineKind::Sglang, "mem-fraction-static") => Self::MemoryShare,
            (EngineKind::Vllm, "block-size") | (EngineKind::Sglang, "page-size") => Self::BlockSize,
            (EngineKind::Vllm, "num-gpu-blocks-override") => Self::Blocks,
            (EngineKind::Sglang, "max-total-tokens") => Self::CacheTokens,
            (EngineKind::Vllm, "max-num-batched-tokens") => Self::StepTokens,
            (EngineKind::Sglang, "chunked-prefill-size") => Self::ChunkTokens,
            (EngineKind::Sglang, "max-prefill-tokens") => Self::PrefillTokens,
            (EngineKind::Vllm, "max-num-seqs") | (EngineKind::Sglang, "max-running-requests") => {
                Self::Sequences
            }
            (EngineKind::Vllm, "max-model-len") | (EngineKind::Sglang, "context-length") => {
                Self::Length
            }
            (EngineKind::Vllm, "enforce-eager") | (EngineKind::Sglang, "disable-cuda-graph") => {
                Self::Eager(Sense::On)
            }
            (EngineKind::Vllm, "no-enforce-eager") => Self::Eager(Sense::Off),
            (EngineKind::Vllm, "enable-chunked-prefill") => Self::Chunked(Sense::On),
            (EngineKind::Vllm, "no-enable-chunked-prefill") => Self::Chunked(Sense::Off),
            _ => return None,
        })
    }

    pub(super) fn shown(self, args: &EngineArgs) -> String {
        let stated = |amount: Option<String>| amount.unwrap_or_else(|| "none".to_owned());
        let named = |name: &Option<Arc<str>>| stated(name.as_deref().map(str::to_owned));
        match self {
            Self::MemoryShare => args.gpu_memory_utilization.to_string(),
            Self::BlockSize => args.block_size.to_string(),
            Self::KvType => args.kv_cache_dtype.to_string(),
            Self::WeightType => named(&args.dtype),
            Self::Quantization => named(&args.quantization),
            Self::TensorParallel => args.tensor_parallel_size.to_string(),
            Self::PipelineParallel => args.pipeline_parallel_size.to_string(),
            Self::DataParallel => args.data_parallel_size.to_string(),
            Self::Blocks => stated(args.num_gpu_blocks_override.map(|blocks| blocks.to_string())),
            Self::CacheTokens => stated(args.max_total_tokens.map(|tokens| tokens.0.to_string())),
            Self::StepTokens | Self::ChunkTokens | Self::PrefillTokens => {
                args.step_budget().0.to_string()
            }
            Self::Sequences => args.max_num_seqs.to_string(),
            Self::Length => stated(args.max_model_len.map(|length| length.to_string())),
            Self::Eager(_) => match args.execution {
                Execution::Graphs => "execution by graphs".to_owned(),
                Execution::Eager => "eager execution".to_owned(),
            },
            Self::Chunked(_) => match args.prefill {
                Prefill::Chunked => "chunked prefill".to_owned(),
                Prefill::Whole => "prefill in one piece".to_owned(),
            },
        }
    }
}

/// Arguments as they are read, before what depends on several of them is known.
#[derive(Debug)]
pub(super) struct ArgumentsDraft {
    pub(super) args: EngineArgs,
    /// What the arguments say about chunked prefill; otherwise the generation decides.
    chunked: Option<Prefill>,
    /// Tokens of a prompt that SGLang reads in one step without chunks.
    prefill_tokens: Option<StepTokens>,
}

impl ArgumentsDraft {
    pub(super) fn new(engine: EngineKind) -> Self {
        Self { args: EngineArgs::defaults(engine), chunked: None, prefill_tokens: None }
    }

    /// Decides what depends on several arguments.
    pub(super) fn finish(self) -> EngineArgs {
        let mut args = self.args;
        let by_generation = match args.generation {
            super::EngineGeneration::V0 => Prefill::Whole,
            super::EngineGeneration::V1 => Prefill::Chunked,
        };
        args.prefill = self.chunked.unwrap_or(by_generation);
        args.max_num_batched_tokens = args.max_num_batched_tokens.or(self.prefill_tokens);
        args
    }

    /// Takes one argument in; a value that is none leaves what was there.
    pub(super) fn set(
        &mut self,
        field: Field,
        flag: String,
        value: Option<&str>,
    ) -> Result<(), ArgumentFault> {
        let assumed = String::new();
        if let Some(value) = value.filter(|value| names_variable(value)) {
            let value = shown(value);
            return Err(ArgumentFault::Variable { flag, value, assumed });
        }
        match field {
            Field::Eager(sense) => {
                self.args.execution =
                    if sense.says(value) { Execution::Eager } else { Execution::Graphs };
                return Ok(());
            }
            Field::Chunked(sense) => {
                self.chunked =
                    Some(if sense.says(value) { Prefill::Chunked } else { Prefill::Whole });
                return Ok(());
            }
            _ => {}
        }
        let Some(text) = value else {
            return Err(ArgumentFault::NoValue { flag, assumed });
        };
        self.assign(field, text).map_err(|expected| ArgumentFault::Value {
            flag,
            value: shown(text),
            expected: expected.to_owned(),
            assumed,
        })
    }

    /// Sets a field; the error says what it takes.
    fn assign(&mut self, field: Field, text: &str) -> Result<(), &'static str> {
        const POSITIVE: &str = "a whole number of at least 1";
        const AMOUNT: &str = "a whole number of at least 0";
        const NAME: &str = "a name of at most 64 characters";
        let positive = || count(text, 1).ok_or(POSITIVE);
        // 0 says that none is stated.
        let amount = || match count(text, 0) {
            Some(stated) => Ok((stated > 0).then_some(stated)),
            None => Err(AMOUNT),
        };
        let named = || name(text).ok_or(NAME);
        let args = &mut self.args;
        match field {
            Field::MemoryShare => {
                args.gpu_memory_utilization = share(text).ok_or("a share above 0 and at most 1")?;
            }
            Field::BlockSize => args.block_size = positive()?,
            Field::KvType => args.kv_cache_dtype = named()?,
            Field::WeightType => args.dtype = Some(named()?),
            Field::Quantization => args.quantization = Some(named()?),
            Field::TensorParallel => args.tensor_parallel_size = positive()?,
            Field::PipelineParallel => args.pipeline_parallel_size = positive()?,
            Field::DataParallel => args.data_parallel_size = positive()?,
            Field::Blocks => args.num_gpu_blocks_override = amount()?,
            Field::CacheTokens => {
                args.max_total_tokens = amount()?.map(|tokens| KvTokens(f64::from(tokens)));
            }
            Field::StepTokens => args.max_num_batched_tokens = amount()?.map(StepTokens),
            Field::PrefillTokens => self.prefill_tokens = amount()?.map(StepTokens),
            Field::ChunkTokens => {
                let size = whole(text).and_then(|size| u32::try_from(size.max(0)).ok());
                let size = size.ok_or("a whole number below 4294967296")?;
                self.chunked = Some(if size > 0 { Prefill::Chunked } else { Prefill::Whole });
                args.max_num_batched_tokens = (size > 0).then_some(StepTokens(size));
            }
            Field::Sequences => args.max_num_seqs = positive()?,
            // The engine reads the length from the model.
            Field::Length if matches!(text.trim(), "auto" | "-1") => args.max_model_len = None,
            Field::Length => args.max_model_len = amount()?,
            Field::Eager(_) | Field::Chunked(_) => {}
        }
        Ok(())
    }
}

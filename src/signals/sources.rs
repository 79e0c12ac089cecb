//! Which series say what: for each signal the series names it has had, the preferred one first, and
//! how its value follows from them. A new engine or a new name is one more line here.

use super::query::QueryName;
use crate::policy::signal::SignalName;

/// One series in all its spellings: some stores and relabelling rules rewrite the colon to an
/// underscore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spelled(pub(crate) &'static [&'static str]);

/// How a value follows from series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Formula {
    /// It is the value of one.
    Value(Spelled),
    /// It is one over another; nothing where the other is zero.
    Share { part: Spelled, whole: Spelled },
    /// It is the sum of several, all of which must be there.
    Total(&'static [Spelled]),
    /// It is the product of two labels: the number of KV blocks and the tokens of one.
    Blocks(Spelled),
}

/// One way to learn a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SignalSource {
    pub(crate) query: QueryName,
    pub(crate) formula: Formula,
}

/// How the data-parallel ranks of one pod add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranks {
    /// Amounts add.
    Sum,
    /// Shares average.
    Mean,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct EngineSignal {
    pub(crate) signal: SignalName,
    pub(crate) ranks: Ranks,
    /// Its sources, the preferred one first.
    pub(crate) sources: &'static [SignalSource],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouterSource {
    pub(crate) query: QueryName,
    pub(crate) name: &'static str,
    /// The series whose age stands for its own: it is written on the same occasions.
    pub(crate) age: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RouterSignal {
    pub(crate) signal: SignalName,
    /// Its sources, the preferred one first.
    pub(crate) sources: &'static [RouterSource],
}

macro_rules! engine {
    ($engine:literal, $($part:literal),+) => {
        Spelled(&[concat!($engine, ":", $($part),+), concat!($engine, "_", $($part),+)])
    };
}

macro_rules! value {
    ($query:ident, $engine:literal, $name:literal) => {
        SignalSource { query: QueryName::$query, formula: Formula::Value(engine!($engine, $name)) }
    };
}

macro_rules! share {
    ($query:ident, $engine:literal, $part:literal / $whole:literal) => {
        SignalSource {
            query: QueryName::$query,
            formula: Formula::Share {
                part: engine!($engine, $part),
                whole: engine!($engine, $whole),
            },
        }
    };
}

/// The mean of what a histogram observed.
macro_rules! mean {
    ($query:ident, $engine:literal, $name:literal) => {
        SignalSource {
            query: QueryName::$query,
            formula: Formula::Share {
                part: engine!($engine, $name, "_sum"),
                whole: engine!($engine, $name, "_count"),
            },
        }
    };
}

macro_rules! router {
    ($query:ident, $name:literal) => {
        router!($query, $name, $name)
    };
    ($query:ident, $name:literal, $age:literal) => {
        RouterSource { query: QueryName::$query, name: $name, age: $age }
    };
}

/// Rows of signals with their sources, the preferred one first.
macro_rules! signals {
    ($row:ident: $($signal:ident $($ranks:ident)? { $($source:expr;)* })*) => {
        &[$($row {
            signal: SignalName::$signal,
            $(ranks: Ranks::$ranks,)?
            sources: &[$($source),*],
        }),*]
    };
}

/// Signals of replicas.
pub(crate) const ENGINE: &[EngineSignal] = signals! { EngineSignal:
    KvUsage Mean {
        value!(KvUsage, "vllm", "kv_cache_usage_perc");
        value!(KvUsage, "vllm", "gpu_cache_usage_perc");
        value!(KvUsage, "sglang", "token_usage");
    }
    QueueLength Sum {
        value!(QueueLength, "vllm", "num_requests_waiting");
        value!(QueueLength, "sglang", "num_queue_reqs");
    }
    Running Sum {
        value!(EngineState, "vllm", "num_requests_running");
        value!(EngineState, "sglang", "num_running_reqs");
    }
    KvUsageNow Mean {
        value!(EngineState, "vllm", "kv_cache_usage_perc");
        value!(EngineState, "vllm", "gpu_cache_usage_perc");
        value!(EngineState, "sglang", "token_usage");
    }
    KvCapacity Sum {
        SignalSource {
            query: QueryName::KvCapacity,
            formula: Formula::Blocks(engine!("vllm", "cache_config_info")),
        };
        value!(KvCapacity, "sglang", "max_total_num_tokens");
        SignalSource {
            query: QueryName::KvCapacity,
            formula: Formula::Total(&[
                engine!("sglang", "kv_used_tokens"),
                engine!("sglang", "kv_available_tokens"),
                engine!("sglang", "kv_evictable_tokens"),
            ]),
        };
    }
    InputTokens Sum {
        mean!(RequestSizes, "vllm", "request_prompt_tokens");
        mean!(RequestSizes, "sglang", "prompt_tokens_histogram");
        share!(RequestSizes, "sglang", "prompt_tokens_total" / "e2e_request_latency_seconds_count");
    }
    OutputTokens Sum {
        mean!(RequestSizes, "vllm", "request_generation_tokens");
        mean!(RequestSizes, "sglang", "generation_tokens_histogram");
        share!(RequestSizes, "sglang", "generation_tokens_total" / "e2e_request_latency_seconds_count");
    }
    PrefixHitRate Mean {
        share!(RequestSizes, "vllm", "prefix_cache_hits_total" / "prefix_cache_queries_total");
        share!(RequestSizes, "vllm", "gpu_prefix_cache_hits_total" / "gpu_prefix_cache_queries_total");
        share!(RequestSizes, "sglang", "cached_tokens_total" / "prompt_tokens_total");
        value!(EngineState, "sglang", "cache_hit_rate");
    }
    TimeToFirstToken Sum {
        mean!(EngineRates, "vllm", "time_to_first_token_seconds");
        mean!(EngineRates, "sglang", "time_to_first_token_seconds");
    }
    InterTokenLatency Sum {
        mean!(EngineRates, "vllm", "inter_token_latency_seconds");
        mean!(EngineRates, "vllm", "time_per_output_token_seconds");
        mean!(EngineRates, "sglang", "inter_token_latency_seconds");
        mean!(EngineRates, "sglang", "time_per_output_token_seconds");
    }
    GenerationRate Sum {
        value!(EngineRates, "vllm", "generation_tokens_total");
        value!(EngineRates, "sglang", "generation_tokens_total");
    }
    CompletionRate Sum {
        value!(EngineRates, "vllm", "request_success_total");
        value!(EngineRates, "sglang", "e2e_request_latency_seconds_count");
    }
};

/// Requests that the router sends to a pod. The newest generation shows the oldest name a second
/// time.
pub(crate) const ARRIVALS: RouterSignal = RouterSignal {
    signal: SignalName::ArrivalRate,
    sources: &[
        router!(RouterRates, "llm_d_epp_scheduler_attempts_total"),
        router!(RouterRates, "llm_d_router_epp_scheduler_attempts_total"),
        router!(RouterRates, "inference_extension_scheduler_attempts_total"),
    ],
};

/// The series with the requests that a router holds, the preferred one first.
pub(crate) fn router_queue() -> &'static [RouterSource] {
    let mut rows = ROUTER.iter();
    rows.find(|row| row.signal == SignalName::RouterQueueRequests).map_or(&[], |row| row.sources)
}

/// Signals of routers.
pub(crate) const ROUTER: &[RouterSignal] = signals! { RouterSignal:
    RouterQueueRequests {
        router!(RouterQueue, "llm_d_epp_flow_control_queue_size");
        router!(RouterQueue, "llm_d_router_epp_flow_control_queue_size");
        router!(RouterQueue, "inference_extension_flow_control_queue_size");
    }
    RouterQueueBytes {
        router!(RouterQueue, "llm_d_epp_flow_control_queue_bytes", "llm_d_epp_flow_control_queue_size");
        router!(RouterQueue, "llm_d_router_epp_flow_control_queue_bytes",
            "llm_d_router_epp_flow_control_queue_size");
        router!(RouterQueue, "inference_extension_flow_control_queue_bytes",
            "inference_extension_flow_control_queue_size");
    }
    // Accepted, else received; placed is the last resort, as placements fall behind exactly when the
    // fleet does.
    RouterArrivalRate {
        router!(RouterRates, "llm_d_epp_flow_control_request_enqueue_duration_seconds_count");
        router!(RouterRates, "llm_d_router_epp_flow_control_request_enqueue_duration_seconds_count");
        router!(RouterRates, "inference_extension_flow_control_request_enqueue_duration_seconds_count");
        router!(RouterRates, "llm_d_epp_request_total");
        router!(RouterRates, "llm_d_router_epp_request_total");
        router!(RouterRates, "inference_objective_request_total");
        router!(RouterRates, "inference_model_request_total");
        router!(RouterRates, "llm_d_epp_scheduler_attempts_total");
        router!(RouterRates, "llm_d_router_epp_scheduler_attempts_total");
        router!(RouterRates, "inference_extension_scheduler_attempts_total");
    }
};

impl Formula {
    pub(super) fn operands(&self) -> Vec<Spelled> {
        match self {
            Self::Value(series) | Self::Blocks(series) => vec![*series],
            Self::Share { part, whole } => vec![*part, *whole],
            Self::Total(terms) => terms.to_vec(),
        }
    }
}

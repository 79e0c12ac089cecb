//! Where each signal stands among the samples of a pod, a rank or a router.

use std::sync::Arc;

use crate::policy::snapshot::{PodSamples, RankSamples, RouterSamples, Sample, SignalName};

/// The place of a signal among the samples of a pod; `None` where it is one of routers.
pub(super) fn sample_field(
    pod: &mut PodSamples,
    signal: SignalName,
) -> Option<&mut Option<Sample>> {
    Some(match signal {
        SignalName::KvUsage => &mut pod.kv_usage,
        SignalName::QueueLength => &mut pod.queue_length,
        SignalName::Running => &mut pod.running,
        SignalName::KvCapacity => &mut pod.kv_capacity,
        SignalName::InputTokens => &mut pod.input_tokens,
        SignalName::OutputTokens => &mut pod.output_tokens,
        SignalName::PrefixHitRate => &mut pod.prefix_hit_rate,
        SignalName::TimeToFirstToken => &mut pod.time_to_first_token,
        SignalName::InterTokenLatency => &mut pod.inter_token_latency,
        SignalName::GenerationRate => &mut pod.generation_rate,
        SignalName::CompletionRate => &mut pod.completion_rate,
        SignalName::ArrivalRate => &mut pod.arrival_rate,
        SignalName::KvUsageNow => &mut pod.kv_usage_now,
        SignalName::RouterQueueRequests
        | SignalName::RouterQueueBytes
        | SignalName::RouterArrivalRate => return None,
    })
}

/// The place of a signal among the samples of a rank; `None` where it is not read by rank.
pub(super) fn rank_field(
    pod: &mut PodSamples,
    rank: Arc<str>,
    signal: SignalName,
) -> Option<&mut Option<Sample>> {
    let by_rank = matches!(
        signal,
        SignalName::KvUsage
            | SignalName::QueueLength
            | SignalName::KvCapacity
            | SignalName::InputTokens
            | SignalName::OutputTokens
            | SignalName::PrefixHitRate
    );
    let rank = by_rank.then(|| pod.ranks.entry(rank).or_default())?;
    Some(match signal {
        SignalName::KvUsage => &mut rank.kv_usage,
        SignalName::QueueLength => &mut rank.queue_length,
        SignalName::KvCapacity => &mut rank.kv_capacity,
        SignalName::InputTokens => &mut rank.input_tokens,
        SignalName::OutputTokens => &mut rank.output_tokens,
        _ => &mut rank.prefix_hit_rate,
    })
}

/// Ranks that do not count requests by themselves take their pod's mean request.
pub(super) fn share_with_ranks(pod: &mut PodSamples) {
    for rank in pod.ranks.values_mut() {
        *rank = RankSamples {
            input_tokens: rank.input_tokens.or(pod.input_tokens),
            output_tokens: rank.output_tokens.or(pod.output_tokens),
            prefix_hit_rate: rank.prefix_hit_rate.or(pod.prefix_hit_rate),
            ..*rank
        };
    }
}

/// The place of a signal among the samples of a router; `None` where it is one of replicas.
pub(super) fn router_field(
    router: &mut RouterSamples,
    signal: SignalName,
) -> Option<&mut Option<Sample>> {
    match signal {
        SignalName::RouterQueueRequests => Some(&mut router.queue_requests),
        SignalName::RouterQueueBytes => Some(&mut router.queue_bytes),
        SignalName::RouterArrivalRate => Some(&mut router.arrival_rate),
        _ => None,
    }
}

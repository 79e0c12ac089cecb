//! The input of the throughput and the SLO analyzer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::inputs::InputBuilder;
use crate::by_name::ByName;
use crate::capacity::ServingRole;
use crate::engine_args::ReadEngine;
use crate::key::{ModelKey, VariantKey};
use crate::params::SaturationPolicy;
use crate::sample_reader::SampleReader;
use crate::samples::{PodSamples, RankSamples, Sample};
use crate::signal::SignalName;
use crate::snapshot::{Readiness, VariantView};
use crate::startup::{StartProspect, VariantOutlook};
use crate::throughput::{
    Params, ThroughputModelInput, ThroughputReplicaInput, ThroughputVariantInput,
};
use crate::units::Replicas;
use crate::zero::ModelActivity;

pub(super) fn model(
    builder: &mut InputBuilder<'_>,
    key: &ModelKey,
    policy: &SaturationPolicy,
    activity: ModelActivity,
    variants: BTreeMap<VariantKey, ThroughputVariantInput>,
) -> ThroughputModelInput {
    let (subject, reader) = (builder.subject, builder.subject.reader);
    let (router, queue) = (reader.router(key), reader.queued(key));
    let is_possible = (subject.members.iter()).any(|(view, _)| view.router.is_possible());
    let hides_requests = if queue.is_none() && may_hide_queue(reader, key, is_possible) {
        Some(SignalName::RouterQueueRequests)
    } else {
        let hides_arrivals = may_hide_arrivals(reader, key, is_possible);
        hides_arrivals.then_some(SignalName::RouterArrivalRate)
    };
    ThroughputModelInput {
        params: Params::from(policy),
        arrivals: builder.amount(router.and_then(|router| router.arrival_rate)),
        router_queue: builder.queued(key),
        hides_requests,
        router_queue_age: queue.map_or(Duration::ZERO, |queue| queue.age),
        activity,
        needs_any_variant: false,
        derived: Vec::new(),
        variants,
    }
}

/// Whether requests may wait in a router that says nothing of them. One whose arrivals are known and that exposes no
/// queue holds none, and where no pool is in front there is no router.
fn may_hide_queue(reader: SampleReader<'_>, key: &ModelKey, is_possible: bool) -> bool {
    reader.failed(SignalName::RouterQueueRequests)
        || match reader.router(key) {
            Some(router) => {
                let arrivals = reader.value(router.arrival_rate, f64::MAX);
                router.queue_requests.is_some() || arrivals.is_none_or(|(_, is_stale)| is_stale)
            }
            None => is_possible,
        }
}

/// Whether the arrivals at a router are unknown that counted them, or may count them. One that never shows any has
/// none: what replicas receive stands for it.
fn may_hide_arrivals(reader: SampleReader<'_>, key: &ModelKey, is_possible: bool) -> bool {
    let has_failed = reader.failed(SignalName::RouterArrivalRate);
    match reader.router(key) {
        Some(router) => {
            let is_shown = router.arrival_rate.is_some();
            has_failed || is_shown && reader.value(router.arrival_rate, f64::MAX).is_none()
        }
        None => has_failed && is_possible,
    }
}

pub(super) fn variant(
    outlook: VariantOutlook<'_>,
    view: &VariantView,
    (ready, pending): (Replicas, Replicas),
    engine: Option<&ReadEngine>,
    replicas: ByName<ThroughputReplicaInput>,
) -> ThroughputVariantInput {
    let start = outlook.estimate;
    let starting = (view.pods.iter()).filter(|pod| pod.readiness == Readiness::NotReady);
    let mut remaining: Vec<_> =
        starting.filter_map(|pod| start.remaining(outlook.age(pod))).collect();
    remaining.sort_unstable();
    let max = match outlook.prospect {
        StartProspect::Open => view.bounds.max,
        StartProspect::Stalled => Some(ready.plus(pending)),
    };
    ThroughputVariantInput {
        role: view.template.role,
        engine: engine.map_or_else(|| Arc::from(""), |engine| name(view, engine)),
        ready,
        pending,
        current: (view.target.resolved()).map_or(Replicas::ZERO, |target| target.current),
        remaining,
        start: start.typical,
        max_sequences: engine.map(|engine| {
            let args = &engine.parsed.args;
            f64::from(args.max_num_seqs) * f64::from(args.data_parallel_size)
        }),
        min: view.bounds.min.unwrap_or(Replicas::ONE),
        max,
        cost: Some(view.cost),
        replicas,
    }
}

fn name(view: &VariantView, engine: &ReadEngine) -> Arc<str> {
    let accelerator = view.accelerator.label();
    let gpus = view.template.gpus_per_replica();
    Arc::from(format!("{accelerator}*{gpus} {}", engine.fingerprint))
}

/// One ready replica. The latency line is read at the usage of the moment; where only the peak is
/// known, that stands for it.
pub(super) fn replica(
    builder: &mut InputBuilder<'_>,
    samples: Option<&PodSamples>,
) -> ThroughputReplicaInput {
    let Some(samples) = samples else {
        return ThroughputReplicaInput::default();
    };
    let ranks = Ranks::of(builder, samples);
    ThroughputReplicaInput {
        kv_capacity: builder.amount(samples.kv_capacity).or(ranks.kv_capacity),
        usage: builder.value(samples.kv_usage_now.or(samples.kv_usage), 1.0).or(ranks.usage),
        running: builder.amount(samples.running),
        waiting: builder.amount(samples.queue_length).or(ranks.waiting),
        inter_token_latency: builder.latency(samples.inter_token_latency),
        time_to_first_token: builder.latency(samples.time_to_first_token),
        input_tokens: builder.amount(samples.input_tokens),
        output_tokens: builder.amount(samples.output_tokens),
        hit_rate: builder.value(samples.prefix_hit_rate, 1.0),
        arrivals: builder.amount(samples.arrival_rate),
        completions: builder.amount(samples.completion_rate),
        decode_rate: builder.amount(samples.generation_rate),
    }
}

/// What the ranks of a replica say together; a part of them says nothing.
#[derive(Debug, Default)]
struct Ranks {
    kv_capacity: Option<f64>,
    usage: Option<f64>,
    waiting: Option<f64>,
}

impl Ranks {
    fn of(builder: &mut InputBuilder<'_>, samples: &PodSamples) -> Self {
        if samples.ranks.is_empty() {
            return Self::default();
        }
        let mut sum = |read: fn(&RankSamples) -> Option<Sample>, most: f64| -> Option<f64> {
            (samples.ranks.values())
                .try_fold(0.0, |sum, rank| Some(sum + builder.value(read(rank), most)?))
        };
        let count = f64::from(u32::try_from(samples.ranks.len()).unwrap_or(u32::MAX));
        Self {
            kv_capacity: sum(|rank| rank.kv_capacity, f64::MAX),
            usage: sum(|rank| rank.kv_usage, 1.0).map(|sum| sum / count),
            waiting: sum(|rank| rank.queue_length, f64::MAX),
        }
    }
}

/// Whether a part of the backlog, or a busy replica, is not seen.
pub(super) fn has_partial_metrics(model: &ThroughputModelInput) -> bool {
    let mut variants = model.variants.values();
    model.hides_requests.is_some()
        || variants.any(|variant| {
            let seen = Replicas::from_len(variant.replicas.len());
            let mut replicas = variant.replicas.values();
            let is_hidden =
                |replica: &ThroughputReplicaInput| hidden_signal(variant.role, replica).is_some();
            seen < variant.ready || replicas.any(is_hidden)
        })
}

/// The first signal of each instance, and of the router of the model, without which a part of the backlog or a busy
/// replica is not seen.
pub(super) fn hidden<'a>(
    input: &'a ThroughputModelInput,
    model: &'a Arc<str>,
) -> impl Iterator<Item = (&'a Arc<str>, SignalName)> {
    let hides_running = input.hides_requests == Some(SignalName::Running);
    let of_router = (input.hides_requests.filter(|_| !hides_running)).map(|signal| (model, signal));
    let running = move |replica: &ThroughputReplicaInput| {
        (hides_running && replica.running.is_none()).then_some(SignalName::Running)
    };
    let of_replicas = input.variants.values().flat_map(move |variant| {
        let replicas = variant.replicas.iter();
        replicas.filter_map(move |(pod, replica)| {
            let signal = hidden_signal(variant.role, replica).or_else(|| running(replica))?;
            Some((pod, signal))
        })
    });
    of_router.into_iter().chain(of_replicas)
}

/// The first signal without which the backlog of a replica, or a busy one, is not seen.
fn hidden_signal(role: ServingRole, replica: &ThroughputReplicaInput) -> Option<SignalName> {
    if replica.waiting.is_none() {
        return Some(SignalName::QueueLength);
    }
    let rates = [replica.arrivals, replica.completions, replica.decode_rate];
    let is_busy = rates
        .into_iter()
        .chain([replica.usage, replica.running, replica.waiting])
        .flatten()
        .any(|amount| amount > 0.0);
    // What only reads prompts answers with one token or none: there is nothing between tokens.
    let latency = match role {
        ServingRole::Prefill => (replica.time_to_first_token, SignalName::TimeToFirstToken),
        ServingRole::Decode | ServingRole::Both => {
            (replica.inter_token_latency, SignalName::InterTokenLatency)
        }
    };
    let needed = [
        (replica.kv_capacity, SignalName::KvCapacity),
        (replica.usage, SignalName::KvUsage),
        latency,
        (replica.input_tokens, SignalName::InputTokens),
        (replica.output_tokens, SignalName::OutputTokens),
    ];
    let missing = needed.into_iter().find(|(value, _)| value.is_none());
    missing.filter(|_| is_busy).map(|(_, signal)| signal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reuse::Reuse;
    use crate::signal::FreshnessBands;
    use crate::snapshot::{MetricsSnapshot, RouterSamples};
    use wva_base::moment::{Moment, WallTime};

    /// What hides a part of the demand, by instance.
    fn hidden_by(
        role: ServingRole,
        replica: ThroughputReplicaInput,
        router: Option<SignalName>,
    ) -> Vec<String> {
        let variant = ThroughputVariantInput {
            role,
            ready: Replicas::ONE,
            replicas: [(Arc::from("a"), replica)].into_iter().collect(),
            ..ThroughputVariantInput::default()
        };
        let input = ThroughputModelInput {
            router_queue: Some(0.0),
            hides_requests: router,
            variants: BTreeMap::from([(VariantKey::new("ns", "v"), variant)]),
            ..ThroughputModelInput::default()
        };
        let model = Arc::from("m");
        let hidden: Vec<String> = hidden(&input, &model)
            .map(|(instance, signal)| format!("{} of {instance}", signal.as_str()))
            .collect();
        assert_eq!(has_partial_metrics(&input), !hidden.is_empty(), "{hidden:?}");
        hidden
    }

    #[test]
    fn a_busy_replica_is_seen_by_the_latency_of_its_role() {
        let [read, write] = [Some(0.4), Some(0.02)];
        for (role, first, between, expected) in wva_base::cases! {
            (ServingRole::Prefill, read, None, ""),
            (ServingRole::Prefill, None, write, "time_to_first_token of a"),
            (ServingRole::Decode, None, write, ""),
            (ServingRole::Decode, read, None, "inter_token_latency of a"),
            (ServingRole::Both, read, None, "inter_token_latency of a"),
        } {
            let busy = ThroughputReplicaInput {
                kv_capacity: Some(16_000.0),
                usage: Some(0.5),
                waiting: Some(0.0),
                input_tokens: Some(1_000.0),
                output_tokens: Some(1.0),
                time_to_first_token: first,
                inter_token_latency: between,
                ..ThroughputReplicaInput::default()
            };
            let found = hidden_by(role, busy, None).concat();
            assert_eq!(found, expected, "{role} {first:?} {between:?}");
            let unqueued = ThroughputReplicaInput { waiting: None, ..busy };
            let found = hidden_by(role, unqueued, None);
            assert_eq!(found, ["queue_length of a"], "{role} without a queue");
        }
        let idle =
            ThroughputReplicaInput { waiting: Some(0.0), ..ThroughputReplicaInput::default() };
        assert!(hidden_by(ServingRole::Prefill, idle, None).is_empty());
        for (router, expected) in [
            (SignalName::RouterQueueRequests, "router_queue_requests of m"),
            (SignalName::RouterArrivalRate, "router_arrival_rate of m"),
            (SignalName::Running, "running of a"),
        ] {
            let found = hidden_by(ServingRole::Prefill, idle, Some(router));
            assert_eq!(found, [expected]);
        }
    }

    #[test]
    fn arrivals_that_a_router_may_count_are_hidden() {
        let key = ModelKey::new("ns", "m");
        let now = Moment { monotonic: Duration::from_hours(1), wall: WallTime(0) };
        let hidden = |shown: Option<Option<u64>>, has_failed, is_possible| {
            let mut metrics = MetricsSnapshot::empty(Some(now));
            if let Some(age) = shown {
                let arrival_rate =
                    age.map(|age| Sample { value: 3.0, age: Duration::from_secs(age) });
                let router = RouterSamples { arrival_rate, ..RouterSamples::default() };
                metrics.routers.insert(key.clone(), router);
            }
            if has_failed {
                let why = "timeout".into();
                metrics.failures.insert(SignalName::RouterArrivalRate, why);
            }
            let bands = FreshnessBands::default();
            let reader = SampleReader::new(&metrics, &bands, Reuse::within(Duration::ZERO), now);
            may_hide_arrivals(reader, &key, is_possible)
        };
        for (shown, has_failed, is_possible, expected) in [
            (Some(Some(10)), false, true, false),
            (Some(Some(10_000)), false, true, true),
            (Some(None), false, true, false),
            (Some(None), true, true, true),
            (None, false, true, false),
            (None, true, true, true),
            (None, true, false, false),
        ] {
            let found = hidden(shown, has_failed, is_possible);
            assert_eq!(found, expected, "{shown:?} {has_failed} {is_possible}");
        }
    }
}

//! The input of the throughput and the SLO analyzer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::AnalyzedModel;
use super::inputs::InputBuilder;
use crate::capacity::ServingRole;
use crate::engine_args::ReadEngine;
use crate::key::{ModelKey, VariantKey};
use crate::params::SaturationPolicy;
use crate::sample_reader::SampleReader;
use crate::samples::{PodSamples, RankSamples, Sample};
use crate::snapshot::{Readiness, SignalName, VariantView};
use crate::startup::StartProspect;
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
    let router = builder.subject.reader.router(key);
    let queue = builder.subject.reader.queued(key);
    let (subject, reader) = (builder.subject, builder.subject.reader);
    let is_possible = (subject.members.iter()).any(|(view, _)| view.router.is_possible());
    ThroughputModelInput {
        params: Params::from(policy),
        arrivals: builder.amount(router.and_then(|router| router.arrival_rate)),
        router_queue: builder.queued(key),
        hides_requests: queue.is_none() && may_hide_queue(reader, key, is_possible)
            || may_hide_arrivals(reader, key, is_possible),
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
    subject: AnalyzedModel<'_>,
    view: &VariantView,
    (ready, pending): (Replicas, Replicas),
    engine: Option<&ReadEngine>,
    replicas: BTreeMap<Arc<str>, ThroughputReplicaInput>,
) -> ThroughputVariantInput {
    let outlook = subject.outlook;
    let start = outlook.of(&view.key);
    let starting = (view.pods.iter()).filter(|pod| pod.readiness == Readiness::NotReady);
    let mut remaining: Vec<_> = starting
        .filter_map(|pod| start.remaining(outlook.age(&view.key, pod)))
        .collect();
    remaining.sort_unstable();
    // Of a variant whose starts are stalled those that are late do not come.
    let (pending, max) = match outlook.prospect(&view.key) {
        StartProspect::Open => (pending, view.bounds.max),
        StartProspect::Stalled => {
            let pending = pending.saturating_sub(outlook.late(view));
            (pending, Some(Replicas(ready.0.saturating_add(pending.0))))
        }
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
        usage: builder
            .value(samples.kv_usage_now.or(samples.kv_usage), 1.0)
            .or(ranks.usage),
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
            (samples.ranks.values()).try_fold(0.0, |sum, rank| {
                Some(sum + builder.value(read(rank), most)?)
            })
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
    let is_hidden = |role: ServingRole, replica: &ThroughputReplicaInput| {
        let rates = [replica.arrivals, replica.completions, replica.decode_rate];
        let is_busy = rates
            .into_iter()
            .chain([replica.usage, replica.running, replica.waiting])
            .flatten()
            .any(|amount| amount > 0.0);
        // What only reads prompts answers with one token or none: there is nothing between tokens.
        let latency = match role {
            ServingRole::Prefill => replica.time_to_first_token,
            ServingRole::Decode | ServingRole::Both => replica.inter_token_latency,
        };
        let is_whole = replica.kv_capacity.is_some()
            && replica.usage.is_some()
            && latency.is_some()
            && replica.input_tokens.is_some()
            && replica.output_tokens.is_some();
        replica.waiting.is_none() || (is_busy && !is_whole)
    };
    let mut variants = model.variants.values();
    model.hides_requests
        || variants.any(|variant| {
            let seen = u32::try_from(variant.replicas.len()).unwrap_or(u32::MAX);
            let mut replicas = variant.replicas.values();
            seen < variant.ready.0 || replicas.any(|replica| is_hidden(variant.role, replica))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reuse::Reuse;
    use crate::signal::FreshnessBands;
    use crate::snapshot::{MetricsSnapshot, RouterSamples};
    use wva_base::moment::{Moment, WallTime};

    fn is_partial(role: ServingRole, replica: ThroughputReplicaInput) -> bool {
        let variant = ThroughputVariantInput {
            role,
            ready: Replicas::ONE,
            replicas: BTreeMap::from([(Arc::from("a"), replica)]),
            ..ThroughputVariantInput::default()
        };
        has_partial_metrics(&ThroughputModelInput {
            router_queue: Some(0.0),
            variants: BTreeMap::from([(VariantKey::new("ns", "v"), variant)]),
            ..ThroughputModelInput::default()
        })
    }

    #[test]
    fn a_busy_replica_is_seen_by_the_latency_of_its_role() {
        let [read, write] = [Some(0.4), Some(0.02)];
        for (role, first, between, expected) in [
            (ServingRole::Prefill, read, None, false),
            (ServingRole::Prefill, None, write, true),
            (ServingRole::Decode, None, write, false),
            (ServingRole::Decode, read, None, true),
            (ServingRole::Both, read, None, true),
        ] {
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
            let found = is_partial(role, busy);
            assert_eq!(found, expected, "{role} {first:?} {between:?}");
            let unqueued = ThroughputReplicaInput {
                waiting: None,
                ..busy
            };
            assert!(is_partial(role, unqueued), "{role} without a queue");
        }
        let idle = ThroughputReplicaInput {
            waiting: Some(0.0),
            ..ThroughputReplicaInput::default()
        };
        assert!(!is_partial(ServingRole::Prefill, idle));
    }

    #[test]
    fn arrivals_that_a_router_may_count_are_hidden() {
        let key = ModelKey::new("ns", "m");
        let now = Moment {
            monotonic: Duration::from_hours(1),
            wall: WallTime(0),
        };
        let hidden = |shown: Option<Option<u64>>, has_failed, is_possible| {
            let mut metrics = MetricsSnapshot {
                collected: Some(now),
                failures: BTreeMap::new(),
                ..MetricsSnapshot::never()
            };
            if let Some(age) = shown {
                let arrival_rate = age.map(|age| Sample {
                    value: 3.0,
                    age: Duration::from_secs(age),
                });
                let router = RouterSamples {
                    arrival_rate,
                    ..RouterSamples::default()
                };
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

//! The inputs of the analyzers for a model: samples that may be acted on, by engine instance.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::AnalyzedModel;
use super::derived;
use super::load::activity_of;
use super::selection::AnalyzerConfig;
use super::throughput_input;
use crate::capacity::AnalyzerName;
use crate::engine_args::{KvTokens, ParsedArgs, ReadEngine};
use crate::key::{ModelKey, VariantKey};
use crate::params::{DynamicSettings, SaturationPolicy};
use crate::queueing::assess as queueing;
use crate::queueing::quantity::{Millis, RequestRate};
use crate::samples::{PodSamples, RankSamples, Sample};
use crate::scale_down_memory::Occupancy;
use crate::signal::SignalName;
use crate::slo::{SloGoal, hidden_sequences};
use crate::snapshot::{ResolvedTarget, VariantView};
use crate::startup::{StartProspect, VariantOutlook};
use crate::units::Replicas;
use crate::zero::ModelActivity;
use crate::{throughput, tokens};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnalyzerInputs {
    pub(crate) tokens: tokens::TokenModelInput,
    /// Has no replicas where no analyzer reads them.
    pub(crate) queueing: queueing::QueueingModelInput,
    /// Only where the throughput analyzer looks at the model.
    pub(crate) throughput: Option<throughput::ThroughputModelInput>,
    /// Only where the SLO analyzer looks at the model.
    pub(crate) slo: Option<(throughput::ThroughputModelInput, SloGoal)>,
    /// Replicas with a sample that is too old to shrink on.
    pub(crate) stale: u32,
    pub(crate) is_router_stale: bool,
    /// What could not be read of the arguments of engines, in words.
    pub(crate) arguments: BTreeMap<VariantKey, Vec<String>>,
}

impl AnalyzerInputs {
    /// Whether the inputs of an analyzer are incomplete. The missing part might show that replicas can
    /// take less, or that more is asked of them.
    pub(crate) fn has_partial_metrics(&self, analyzer: AnalyzerName) -> bool {
        match analyzer {
            // It says itself what it cannot judge.
            AnalyzerName::Saturation => false,
            AnalyzerName::QueueingModel => self.hides_latency(),
            AnalyzerName::Throughput => {
                (self.throughput.as_ref()).is_some_and(throughput_input::has_partial_metrics)
            }
            AnalyzerName::Slo => {
                let input = self.slo.as_ref().map(|(input, _)| input);
                input.is_some_and(|input| {
                    throughput_input::has_partial_metrics(input)
                        || hidden_sequences(input).next().is_some()
                })
            }
        }
    }

    /// The missing signals that hide a part of the demand from an analyzer of rates, each with its instance. Those of
    /// the other analyzers are gaps of their roles.
    pub(crate) fn hidden_from<'a>(
        &'a self,
        analyzer: AnalyzerName,
        model: &'a Arc<str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, SignalName)> {
        let is_slo = analyzer == AnalyzerName::Slo;
        let input = match analyzer {
            AnalyzerName::Throughput => self.throughput.as_ref(),
            AnalyzerName::Slo => self.slo.as_ref().map(|(input, _)| input),
            AnalyzerName::Saturation | AnalyzerName::QueueingModel => None,
        };
        let hidden =
            (input.into_iter()).flat_map(move |input| throughput_input::hidden(input, model));
        let sequences = input.filter(|_| is_slo).into_iter().flat_map(hidden_sequences);
        hidden.chain(sequences)
    }

    /// Whether a busy replica says nothing of its requests or its latencies.
    fn hides_latency(&self) -> bool {
        let mut replicas =
            self.queueing.variants.values().flat_map(|variant| variant.replicas.values());
        replicas.any(|replica| {
            replica.rate.is_some_and(|rate| rate.0 > 0.0) && replica.lacking().is_some()
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputsFor {
    Analyzers,
    /// What is remembered, also of rates that no analyzer looks at.
    Memory,
}

pub(crate) fn analyzer_inputs(
    key: &ModelKey,
    subject: AnalyzedModel<'_>,
    (configs, reader): (&[AnalyzerConfig], InputsFor),
    settings: &DynamicSettings,
    policy: &SaturationPolicy,
) -> AnalyzerInputs {
    let looks = |analyzer| configs.iter().any(|config| config.analyzer == analyzer);
    let needs = PodsNeeded {
        throughput: looks(AnalyzerName::Throughput) || looks(AnalyzerName::Slo),
        queueing: looks(AnalyzerName::QueueingModel) || reader == InputsFor::Memory,
    };
    let mut by_throughput = needs.throughput.then(BTreeMap::new);
    let (mut builder, mut stale) = (InputBuilder::of(subject), 0);
    let (mut by_tokens, mut by_rate) = (BTreeMap::new(), BTreeMap::new());
    let mut arguments = BTreeMap::new();
    for (view, target) in subject.members {
        let engine = engine(view, &mut arguments);
        let pods = builder.pods(view, needs);
        stale += pods.stale;
        let outlook = subject.outlook.of(&view.key);
        let gated = subject.outlook.gated_too_long(view);
        let (ready, pending) = counts(outlook, gated, view, target);
        if let Some(variants) = &mut by_throughput {
            let rates = pods.rates.into_iter().collect();
            let variant = throughput_input::variant(outlook, view, (ready, pending), engine, rates);
            variants.insert(view.key.clone(), variant);
        }
        by_rate.insert(
            view.key.clone(),
            queueing::QueueingVariantInput {
                role: view.template.role,
                ready,
                pending,
                batch: engine.map(|engine| engine.parsed.args.max_num_seqs),
                replicas: pods.replicas.into_iter().collect(),
            },
        );
        by_tokens.insert(
            view.key.clone(),
            tokens::TokenVariantInput {
                role: view.template.role,
                accelerator: view.accelerator.clone(),
                gpus: view.template.gpus_per_replica(),
                engine: engine.map(|engine| engine.parsed.args.clone()),
                fingerprint: engine.map(|engine| engine.fingerprint.clone()),
                ready,
                pending,
                instances: pods.instances.into_iter().collect(),
            },
        );
    }
    let activity = activity_of(key, subject);
    builder.stale = false;
    let tokens = tokens::TokenModelInput {
        thresholds: policy.thresholds,
        band: policy.band,
        router: builder.router(key),
        default_output: default_output(subject),
        variants: by_tokens,
    };
    let rated = by_throughput
        .map(|variants| throughput_input::model(&mut builder, key, policy, activity, variants));
    let (rated, throughput) = match (looks(AnalyzerName::Slo), looks(AnalyzerName::Throughput)) {
        (true, true) => (rated.clone(), rated),
        (true, false) => (rated, None),
        (false, _) => (None, rated),
    };
    AnalyzerInputs {
        tokens,
        queueing: queueing_input(key, subject, settings, activity, by_rate),
        slo: slo_input(key, subject, configs, settings, rated),
        throughput,
        stale,
        is_router_stale: builder.stale,
        arguments,
    }
}

/// The longest answer that a variant of a model states.
fn default_output(subject: AnalyzedModel<'_>) -> Option<f64> {
    let members = subject.members.iter();
    let stated = members.filter_map(|(view, _)| view.policy.default_output_tokens);
    stated.max().map(f64::from)
}

/// The input of the SLO analyzer, if it looks at the model: that of the throughput analyzer, with its own
/// band and the objectives.
fn slo_input(
    key: &ModelKey,
    subject: AnalyzedModel<'_>,
    configs: &[AnalyzerConfig],
    settings: &DynamicSettings,
    rated: Option<throughput::ThroughputModelInput>,
) -> Option<(throughput::ThroughputModelInput, SloGoal)> {
    let mut looking = configs.iter();
    let config = looking.find(|config| config.analyzer == AnalyzerName::Slo)?;
    let mut input = rated?;
    input.params.band = config.band;
    let mut others = configs.iter().filter(|config| config.analyzer != AnalyzerName::Slo);
    input.needs_any_variant = settings.limits_growth() || others.any(AnalyzerConfig::votes);
    derived::fill(subject, key, &mut input);
    let goal = settings.latency_goal(key, class_labels(subject));
    Some((input, goal.into()))
}

fn class_labels(subject: AnalyzedModel<'_>) -> impl Iterator<Item = &str> {
    let members = subject.members.iter();
    members.filter_map(|(view, _)| view.template.service_class.as_deref())
}

fn queueing_input(
    key: &ModelKey,
    subject: AnalyzedModel<'_>,
    settings: &DynamicSettings,
    activity: ModelActivity,
    variants: BTreeMap<VariantKey, queueing::QueueingVariantInput>,
) -> queueing::QueueingModelInput {
    queueing::QueueingModelInput {
        policy: settings.queueing_model.policy(key),
        class_targets: settings
            .service_classes
            .targets(&key.model, class_labels(subject))
            .map(|found| found.targets),
        activity,
        variants,
    }
}

/// What the ready replicas of a variant hold; `None` where one of them does not say.
pub(crate) fn occupancy_of(subject: AnalyzedModel<'_>, view: &VariantView) -> Option<Occupancy> {
    let mut builder = InputBuilder::of(subject);
    let mut sum = 0.0;
    for (_, samples) in subject.reader.ready(view) {
        sum += builder.value(samples?.kv_usage, 1.0)?;
    }
    Some(Occupancy(sum))
}

/// Requests that wait for a model in the router. They may only start something, so a sample that is
/// too old to shrink on will do, and what became of the queries about replicas does not matter.
pub(crate) fn queued_at(key: &ModelKey, subject: AnalyzedModel<'_>) -> Option<f64> {
    Some(subject.reader.queued(key)?.requests)
}

/// The replicas that are ready, and those that are to become so: of a variant whose starts are stalled not those that are
/// late.
fn counts(
    outlook: VariantOutlook<'_>,
    gated: Replicas,
    view: &VariantView,
    target: &ResolvedTarget,
) -> (Replicas, Replicas) {
    let late = match outlook.prospect {
        StartProspect::Open => Replicas::ZERO,
        StartProspect::Stalled => outlook.late(view),
    };
    let pending = target.pending().saturating_sub(gated).saturating_sub(late);
    (target.ready.min(target.current), pending)
}

/// A variant's engine; `None` while its containers are not known.
/// What could not be read of them is noted.
fn engine<'a>(
    view: &'a VariantView,
    unread: &mut BTreeMap<VariantKey, Vec<String>>,
) -> Option<&'a ReadEngine> {
    let engine = view.template.containers.engine()?;
    if !engine.parsed.faults.is_empty() {
        unread.insert(view.key.clone(), faults(&engine.parsed));
    }
    Some(engine)
}

/// Most faults of the arguments of one variant that are shown.
const MAX_FAULTS: usize = 8;

fn faults(parsed: &ParsedArgs) -> Vec<String> {
    let inputs = parsed.faults.iter().take(MAX_FAULTS).map(ToString::to_string);
    let more = parsed.faults.len().saturating_sub(MAX_FAULTS);
    let more = (more > 0).then(|| format!("and {more} more"));
    inputs.chain(more).collect()
}

/// Which analyzers that read pods one by one look at a model, besides the one of tokens.
#[derive(Debug, Clone, Copy)]
struct PodsNeeded {
    throughput: bool,
    queueing: bool,
}

struct PodInputs {
    instances: Vec<(Arc<str>, tokens::InstanceInput)>,
    rates: Vec<(Arc<str>, throughput::ThroughputReplicaInput)>,
    replicas: Vec<(Arc<str>, queueing::QueueingReplicaInput)>,
    /// Those with a sample that is too old to shrink on.
    stale: u32,
}

pub(super) struct InputBuilder<'a> {
    pub(super) subject: AnalyzedModel<'a>,
    stale: bool,
}

impl<'a> InputBuilder<'a> {
    fn of(subject: AnalyzedModel<'a>) -> Self {
        Self { subject, stale: false }
    }

    pub(super) fn value(&mut self, sample: Option<Sample>, most: f64) -> Option<f64> {
        let (value, stale) = self.subject.reader.value(sample, most)?;
        self.stale |= stale;
        Some(value)
    }

    pub(super) fn amount(&mut self, sample: Option<Sample>) -> Option<f64> {
        self.value(sample, f64::MAX)
    }

    /// A mean latency; 0 is none, since every token takes time.
    pub(super) fn latency(&mut self, sample: Option<Sample>) -> Option<f64> {
        self.amount(sample).filter(|seconds| *seconds > 0.0)
    }

    fn pods(&mut self, view: &VariantView, needs: PodsNeeded) -> PodInputs {
        let room = |is_needed: bool| if is_needed { view.pods.len() } else { 0 };
        let mut read = PodInputs {
            instances: Vec::with_capacity(room(true)),
            rates: Vec::with_capacity(room(needs.throughput)),
            replicas: Vec::with_capacity(room(needs.queueing)),
            stale: 0,
        };
        for (pod, samples) in self.subject.reader.ready(view) {
            self.stale = false;
            self.instances(&pod.name, samples, &mut read.instances);
            if needs.throughput {
                let replica = throughput_input::replica(self, samples);
                read.rates.push((Arc::clone(&pod.name), replica));
            }
            // Its samples count as too old to shrink on, even where no analyzer reads them; rates are of the same ones.
            if needs.queueing || !needs.throughput {
                let replica = self.replica(samples);
                if needs.queueing {
                    read.replicas.push((Arc::clone(&pod.name), replica));
                }
            }
            read.stale += u32::from(self.stale);
        }
        read
    }

    /// The engine instances of a pod: its ranks, else itself.
    fn instances(
        &mut self,
        pod: &Arc<str>,
        samples: Option<&PodSamples>,
        instances: &mut Vec<(Arc<str>, tokens::InstanceInput)>,
    ) {
        let Some(samples) = samples else { return };
        if samples.ranks.is_empty() {
            let own = RankSamples {
                kv_usage: samples.kv_usage,
                queue_length: samples.queue_length,
                kv_capacity: samples.kv_capacity,
                input_tokens: samples.input_tokens,
                output_tokens: samples.output_tokens,
                prefix_hit_rate: samples.prefix_hit_rate,
            };
            instances.push((Arc::clone(pod), self.instance(&own)));
        }
        for (rank, samples) in &samples.ranks {
            instances.push((Arc::from(format!("{pod}:{rank}")), self.instance(samples)));
        }
    }

    fn instance(&mut self, samples: &RankSamples) -> tokens::InstanceInput {
        tokens::InstanceInput {
            kv_usage: self.value(samples.kv_usage, 1.0),
            kv_capacity: self.amount(samples.kv_capacity).map(KvTokens),
            waiting: self.amount(samples.queue_length),
            input_tokens: self.amount(samples.input_tokens),
            output_tokens: self.amount(samples.output_tokens),
            hit_rate: self.value(samples.prefix_hit_rate, 1.0),
        }
    }

    fn replica(&mut self, samples: Option<&PodSamples>) -> queueing::QueueingReplicaInput {
        let Some(samples) = samples else {
            return queueing::QueueingReplicaInput::default();
        };
        let millis = |seconds: f64| Millis(seconds * 1000.0);
        queueing::QueueingReplicaInput {
            rate: self.amount(samples.arrival_rate).map(RequestRate),
            input_tokens: self.amount(samples.input_tokens),
            output_tokens: self.amount(samples.output_tokens),
            time_to_first_token: self.latency(samples.time_to_first_token).map(millis),
            inter_token_latency: self.latency(samples.inter_token_latency).map(millis),
        }
    }

    pub(super) fn queued(&mut self, key: &ModelKey) -> Option<f64> {
        let queue = self.subject.reader.queued(key)?;
        self.stale |= queue.is_stale;
        Some(queue.requests)
    }

    /// The router's queue. A model that no router says anything about has none.
    fn router(&mut self, key: &ModelKey) -> Option<tokens::RouterQueue> {
        let requests = self.queued(key);
        let router = self.subject.reader.router(key);
        let is_routed =
            router.is_some() || requests.is_some() || self.subject.reader.lost_routers();
        is_routed.then(|| tokens::RouterQueue {
            requests,
            bytes: self.amount(router.and_then(|router| router.queue_bytes)),
        })
    }
}

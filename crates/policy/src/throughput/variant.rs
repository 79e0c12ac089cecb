//! Figures of one variant: what one replica can do, and what that rests on.

use serde::{Deserialize, Serialize};

use super::average::mean;
use super::decode::{DecodeEngine, LatencyModel, SATURATED_USAGE};
use super::input::{DecodeReading, Params, ThroughputReplicaInput, ThroughputVariantInput};
use super::line::{Fit, LatencyLine};
use super::prefill::PrefillEngine;
use super::readings::MeasuredRate;
use super::shape::RequestShape;
use super::supply::{LineCapacity, full_sequences, rate_at};
use super::tracker::{TrackedEngine, Tracker};
use crate::capacity::ServingRole;
use crate::total::total;
use crate::units::Replicas;

/// Least length of answers, exclusive, from which a demand is estimated by occupancy.
const MIN_OUTPUT: f64 = 20.0;

/// Figures of one variant. What is absent is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThroughputVariantFigures {
    pub role: ServingRole,
    /// Replicas whose KV capacity is known.
    pub counted: Replicas,
    /// Mean request, as last seen.
    pub shape: Option<RequestShape>,
    /// KV tokens that a request holds (`KVreq`).
    pub kv_tokens: Option<f64>,
    /// Latency of a token over KV usage, this cycle (A, B and their source).
    pub model: Option<LatencyModel>,
    /// Intercept that is remembered of the last fit, in seconds.
    pub intercept: Option<f64>,
    /// Time to first token over prompt tokens.
    pub prompt_line: Option<Fit>,
    pub observations: usize,
    /// Cycles in a row whose rates contradict the line.
    pub mismatches: u8,
    /// Latency of a token on a full replica in seconds, smoothed.
    pub full_latency: Option<f64>,
    /// Tokens per second of a full replica as this cycle's line alone has it.
    pub rate_now: Option<f64>,
    /// Tokens per second of a full replica: what supply is computed from.
    pub per_replica: Option<f64>,
    pub sizing: CapacityBasis,
    /// Whether it rests on more than a first impression.
    pub is_settled: bool,
    /// What the last fitted line says at the usage where the fleet would grow.
    pub line_capacity: Option<LineCapacity>,
    /// Rate of a replica while full and queued.
    pub measured: Option<MeasuredRate>,
    pub service: Option<Service>,
    /// Tokens per second asked of it, for information.
    pub demand: Option<LocalDemand>,
}

/// Where a capacity comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityBasis {
    /// Replicas were observed in this cycle.
    Observed,
    Remembered,
    /// Remembered of a variant that has no replica now.
    #[serde(rename = "T-sfz")]
    Asleep,
    /// Taken over from a variant of the same model with the same engine.
    Borrowed,
    #[default]
    Unsized,
}

/// What a full replica completes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Service {
    pub tokens_per_second: f64,
    pub requests_per_second: f64,
    pub source: RateSource,
}

/// What a service rate rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateSource {
    /// At least two readings from distinct rate windows.
    Measured,
    /// A fitted line, through observations from distinct rate windows.
    Line,
    /// A fitted line through observations of one rate window.
    FirstLine,
    SingleReading,
    /// Readings with answers of another length.
    OtherClass,
    /// Another variant with the same engine.
    Borrowed,
    /// Requests whose shape was not seen in this cycle.
    StaleShape,
}

impl RateSource {
    fn of_line(is_proven: bool) -> Self {
        if is_proven { Self::Line } else { Self::FirstLine }
    }

    /// Whether a floor from it may order replicas, and not only hold them.
    pub fn is_proven(self) -> bool {
        matches!(self, Self::Measured | Self::Line)
    }
}

/// Tokens per second asked of one variant, and how they were counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LocalDemand {
    pub rate: f64,
    pub source: LocalSource,
}

/// How the demand of one variant was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalSource {
    /// Requests that the router sends.
    Arrivals,
    /// Requests that are completed.
    Completions,
    /// KV occupancy.
    Occupancy,
}

impl ThroughputVariantFigures {
    /// `own` is what was learned of the variant, `donor` of one with the same engine.
    pub(super) fn of(
        input: &ThroughputVariantInput,
        own: Option<&Tracker>,
        donor: Option<&Tracker>,
        params: &Params,
    ) -> Self {
        let own = own.filter(|tracker| tracker.is_of(input));
        let Some(tracker) = own.or(donor) else {
            return Self { role: input.role, ..Self::default() };
        };
        let shape = tracker.shape;
        let mut figures = Self {
            role: input.role,
            counted: Replicas::from_len(input.capacities().count()),
            shape: Some(shape),
            measured: tracker.measured(),
            ..Self::default()
        };
        let is_seen = match &tracker.work {
            TrackedEngine::Decode(engine) => figures.add_decode(input, engine, shape, params),
            TrackedEngine::Prefill(engine) => figures.add_prefill(input, engine, shape),
        };
        figures.sizing = match (figures.per_replica, own, is_seen) {
            (None, ..) => CapacityBasis::Unsized,
            (Some(_), None, _) => CapacityBasis::Borrowed,
            (Some(_), Some(_), true) => CapacityBasis::Observed,
            (Some(_), Some(_), false) if input.ready == Replicas::ZERO => CapacityBasis::Asleep,
            (Some(_), Some(_), false) => CapacityBasis::Remembered,
        };
        if let Some(service) = &mut figures.service {
            if own.is_none() {
                service.source = RateSource::Borrowed;
            } else if input.ready > Replicas::ZERO && !is_seen {
                service.source = RateSource::StaleShape;
            }
        }
        figures
    }

    /// Whether anything was seen of it in this cycle.
    fn add_decode(
        &mut self,
        input: &ThroughputVariantInput,
        engine: &DecodeEngine,
        shape: RequestShape,
        params: &Params,
    ) -> bool {
        let readings = input.decode();
        let model = engine.model(&readings);
        self.kv_tokens = Some(shape.kv_tokens());
        self.model = Some(model);
        self.intercept = engine.intercept;
        self.observations = engine.window.len();
        self.mismatches = engine.mismatches;
        self.full_latency = engine.full_latency();
        let full = input.full_sequences(shape).zip(model.line);
        self.rate_now = full.and_then(|(full, line)| rate_at(SATURATED_USAGE, full, line));
        // An engine whose latency was never seen between idle and full has no line, and may yet have shown
        // what it does at its best.
        let measured = (self.measured).filter(|measured| measured.is_proven());
        let measured = measured.filter(|_| engine.per_replica.is_none());
        self.per_replica = (engine.per_replica).or_else(|| Some(measured?.rate));
        self.is_settled = engine.is_settled() || measured.is_some();
        let growth_usage = params.kv_threshold * params.band.scale_up;
        self.line_capacity = engine.fitted.and_then(|line| {
            let capacity = mean(input.capacities())?;
            let sequences = input.max_sequences.map(|most| most * growth_usage);
            LineCapacity::of(line, capacity, shape, sequences, growth_usage)
        });
        let source = RateSource::of_line(engine.is_proven());
        let of_line = (self.line_capacity).map(|line| (line.tokens_per_second, source));
        self.service = Service::of(self.measured, of_line, shape.output);
        self.demand = local_demand(input, &readings, shape, model.line);
        !readings.is_empty()
    }

    fn add_prefill(
        &mut self,
        input: &ThroughputVariantInput,
        engine: &PrefillEngine,
        shape: RequestShape,
    ) -> bool {
        self.prompt_line = engine.fitted;
        self.observations = engine.window.len();
        let source = RateSource::of_line(engine.is_proven());
        let of_line = (engine.fitted).and_then(|fit| Some((fit.line.asymptotic_rate()?, source)));
        self.service = Service::of(self.measured, of_line, shape.effective_input());
        self.per_replica = self.service.map(|service| service.tokens_per_second);
        self.is_settled = self.service.is_some_and(|service| service.source.is_proven());
        !input.prefill().is_empty()
    }
}

impl Service {
    /// What was measured with present requests comes first, then the fitted line, then what was
    /// measured too rarely or with others. `length` is that of a request, in tokens.
    fn of(
        measured: Option<MeasuredRate>,
        line: Option<(f64, RateSource)>,
        length: f64,
    ) -> Option<Self> {
        let measured = measured.map(|measured| {
            let source = if measured.is_proven() {
                RateSource::Measured
            } else if measured.is_of_other_class {
                RateSource::OtherClass
            } else {
                RateSource::SingleReading
            };
            (measured.rate, source)
        });
        let (rate, source) =
            measured.filter(|(_, source)| source.is_proven()).or(line).or(measured)?;
        (length > 0.0 && rate > 0.0 && rate.is_finite()).then(|| Self {
            tokens_per_second: rate,
            requests_per_second: rate / length,
            source,
        })
    }
}

fn local_demand(
    input: &ThroughputVariantInput,
    readings: &[DecodeReading],
    shape: RequestShape,
    line: Option<LatencyLine>,
) -> Option<LocalDemand> {
    let sum_of = |read: fn(&ThroughputReplicaInput) -> Option<f64>| {
        let rates = input.replicas.values().filter_map(read);
        let sum: f64 = rates.filter(|rate| rate.is_finite()).sum();
        (sum > 0.0).then_some(sum)
    };
    let counted = |source| move |rate: f64| LocalDemand { rate, source };
    let by_requests = |requests: f64| requests * shape.output;
    sum_of(|replica| replica.arrivals)
        .map(by_requests)
        .map(counted(LocalSource::Arrivals))
        .or_else(|| {
            sum_of(|replica| replica.completions)
                .map(by_requests)
                .map(counted(LocalSource::Completions))
        })
        .or_else(|| {
            let line = line.filter(|_| shape.output > MIN_OUTPUT)?;
            let rates = readings.iter().filter_map(|one| {
                let full = full_sequences(one.kv_capacity, shape, input.max_sequences)?;
                rate_at(one.fullness, full, line)
            });
            Some(total(rates)).map(counted(LocalSource::Occupancy))
        })
}

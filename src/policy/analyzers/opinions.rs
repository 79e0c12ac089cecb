//! What the analyzers say of one model.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::inputs::Told;
use super::selection::Chair;
use crate::policy::capacity::{AnalyzerName, Assessment, ServingRole};
use crate::policy::combine::{Awaited, Consensus, Liveness, Seat, combine};
use crate::policy::key::{ModelKey, VariantKey};
use crate::policy::learned::Learned;
use crate::policy::moment::Moment;
use crate::policy::plan::{MissingInput, MissingSignal};
use crate::policy::queueing::assess as queueing;
use crate::policy::snapshot::SignalName;
use crate::policy::throughput::role::Damping;
use crate::policy::throughput::{self, ThroughputReport};
use crate::policy::tokens::instance::Missing;
use crate::policy::tokens::{self, TokensReport};
use crate::policy::units::Cost;
use crate::settings::DynamicSettings;

/// What the analyzers say of one model, with every figure behind it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::policy) struct Opinions {
    pub(in crate::policy) assessments: BTreeMap<AnalyzerName, Assessment>,
    pub(in crate::policy) tokens: Option<TokensReport>,
    pub(in crate::policy) queueing: Option<queueing::ModelFigures>,
    pub(in crate::policy) throughput: Option<ThroughputReport>,
}

/// Asks the analyzers that have a chair.
pub(in crate::policy) fn opinions(
    key: &ModelKey,
    chairs: &[Chair],
    told: &Told,
    learned: &Learned,
    now: Moment,
) -> Opinions {
    let mut opinions = Opinions::default();
    for chair in chairs {
        let assessment = match chair.analyzer {
            AnalyzerName::Saturation => {
                let (said, report) = tokens::assess(key, &told.tokens, &learned.tokens, now);
                opinions.tokens = Some(report);
                said
            }
            AnalyzerName::QueueingModel => {
                let (said, figures) = queueing::assess(key, &told.queueing, &learned.queueing);
                opinions.queueing = Some(figures);
                said
            }
            AnalyzerName::Throughput => {
                let Some(input) = &told.throughput else {
                    continue;
                };
                let (said, report) = throughput::assess(key, input, &learned.throughput, now);
                opinions.throughput = Some(report);
                said
            }
        };
        opinions.assessments.insert(chair.analyzer, assessment);
    }
    opinions
}

impl Opinions {
    /// Analyzers that were informative: they sized at least one variant by data.
    pub(in crate::policy) fn informative(&self) -> impl Iterator<Item = AnalyzerName> {
        self.assessments
            .iter()
            .filter(|(_, said)| !said.variants.is_empty())
            .map(|(analyzer, _)| *analyzer)
    }

    /// What the analyzers that vote do not know about each role, one input of each instance.
    pub(in crate::policy) fn missing(
        &self,
        told: &Told,
        has_vote: impl Fn(AnalyzerName) -> bool,
    ) -> BTreeMap<ServingRole, Vec<MissingSignal>> {
        let mut missing: BTreeMap<ServingRole, Vec<MissingSignal>> = BTreeMap::new();
        let mut add = |role: ServingRole, instance: &Arc<str>, signal: MissingInput| {
            let instance = Arc::clone(instance);
            let signal = MissingSignal { instance, signal };
            let of_role = missing.entry(role).or_default();
            if !of_role.contains(&signal) {
                of_role.push(signal);
            }
        };
        let tokens = (self.tokens.iter()).filter(|_| has_vote(AnalyzerName::Saturation));
        for (key, figures) in tokens.flat_map(|report| &report.variants) {
            let told = told.tokens.variants.get(key);
            for (instance, signal) in told.into_iter().flat_map(|told| figures.lacking(told)) {
                add(figures.role, instance, signal_of(signal));
            }
        }
        let throughput = (told.throughput.iter()).filter(|_| has_vote(AnalyzerName::Throughput));
        for told in throughput {
            for variant in told.variants.values() {
                for (instance, signal) in variant.lacking(told.arrivals.is_some()) {
                    add(variant.role, instance, signal);
                }
            }
        }
        if has_vote(AnalyzerName::QueueingModel) {
            for variant in told.queueing.variants.values() {
                for (instance, signal) in variant.lacking() {
                    add(variant.role, instance, MissingInput::Signal(signal));
                }
            }
        }
        missing
    }

    /// Combines the opinions of the chairs.
    pub(in crate::policy) fn combine(
        &self,
        key: &ModelKey,
        chairs: &[Chair],
        costs: &BTreeMap<VariantKey, Cost>,
        liveness: impl Fn(&ModelKey, AnalyzerName) -> Liveness,
    ) -> Consensus {
        let seats: Vec<Seat> = chairs
            .iter()
            .map(|chair| Seat {
                analyzer: chair.analyzer,
                score: chair.score,
                band: chair.band,
                participation: chair.participation,
                liveness: liveness(key, chair.analyzer),
                assessment: self
                    .assessments
                    .get(&chair.analyzer)
                    .filter(|said| !said.variants.is_empty())
                    .cloned(),
            })
            .collect();
        let mut consensus = combine(&seats, costs);
        for (role, figures) in self.throughput.iter().flat_map(|report| &report.roles) {
            let awaits = match figures.damping {
                Damping::Unconfirmed => Awaited::SecondCycle,
                Damping::WarmUp => Awaited::WarmUp,
                Damping::Free | Damping::DecodeBacklog => continue,
            };
            consensus.name_wait(*role, AnalyzerName::Throughput, awaits, &figures.balance);
        }
        consensus
    }
}

fn signal_of(missing: Missing) -> MissingInput {
    MissingInput::Signal(match missing {
        Missing::KvUsage => SignalName::KvUsage,
        Missing::KvCapacity => SignalName::KvCapacity,
        Missing::Waiting => SignalName::QueueLength,
        Missing::InputTokens => SignalName::InputTokens,
        Missing::OutputTokens => SignalName::OutputTokens,
    })
}

/// How an analyzer's silence is judged: by the logs of `learned`. One that was never informative is
/// taken for silent only once it had as much time to speak as keeps another one live.
pub(in crate::policy) fn liveness<'a>(
    learned: &'a Learned,
    settings: &'a DynamicSettings,
    now: Moment,
) -> impl Fn(&ModelKey, AnalyzerName) -> Liveness + 'a {
    move |key, analyzer| {
        let (heard, interval) = (&learned.analyzers, settings.interval);
        match heard.last(key, analyzer) {
            Some(_) => heard.liveness(key, analyzer, interval, now),
            None => learned.asked.silence(key, analyzer, interval, now),
        }
    }
}

//! What the analyzers say of one model.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::inputs::AnalyzerInputs;
use super::selection::AnalyzerConfig;
use crate::capacity::{AnalyzerName, Assessment, ServingRole};
use crate::combine::{AnalyzerResult, Awaited, Consensus, Liveness, combine};
use crate::key::{ModelKey, VariantKey};
use crate::learned::Learned;
use crate::params::DynamicSettings;
use crate::plan::{MissingInput, MissingSignal};
use crate::queueing::assess as queueing;
use crate::snapshot::SignalName;
use crate::throughput::role::Damping;
use crate::throughput::{self, ThroughputReport};
use crate::tokens::instance::Missing;
use crate::tokens::{self, TokensReport};
use crate::units::Cost;
use wva_base::moment::Moment;

/// What the analyzers say of one model, with every figure behind it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Opinions {
    pub(crate) assessments: BTreeMap<AnalyzerName, Assessment>,
    pub(crate) tokens: Option<TokensReport>,
    pub(crate) queueing: Option<queueing::QueueingModelFigures>,
    pub(crate) throughput: Option<ThroughputReport>,
}

/// Asks the analyzers that have a chair.
pub(crate) fn opinions(
    key: &ModelKey,
    configs: &[AnalyzerConfig],
    inputs: &AnalyzerInputs,
    learned: &Learned,
    now: Moment,
) -> Opinions {
    let mut opinions = Opinions::default();
    for config in configs {
        let assessment = match config.analyzer {
            AnalyzerName::Saturation => {
                let (said, report) = tokens::assess(key, &inputs.tokens, &learned.tokens, now);
                opinions.tokens = Some(report);
                said
            }
            AnalyzerName::QueueingModel => {
                let (said, figures) = queueing::assess(key, &inputs.queueing, &learned.queueing);
                opinions.queueing = Some(figures);
                said
            }
            AnalyzerName::Throughput => {
                let Some(input) = &inputs.throughput else {
                    continue;
                };
                let (said, report) = throughput::assess(key, input, &learned.throughput, now);
                opinions.throughput = Some(report);
                said
            }
        };
        opinions.assessments.insert(config.analyzer, assessment);
    }
    opinions
}

impl Opinions {
    /// Analyzers that were informative: they sized at least one variant by data.
    pub(crate) fn informative(&self) -> impl Iterator<Item = AnalyzerName> {
        self.assessments
            .iter()
            .filter(|(_, said)| !said.variants.is_empty())
            .map(|(analyzer, _)| *analyzer)
    }

    /// What the analyzers that vote do not know about each role, one input of each instance.
    pub(crate) fn missing(
        &self,
        inputs: &AnalyzerInputs,
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
            let inputs = inputs.tokens.variants.get(key);
            for (instance, signal) in inputs
                .into_iter()
                .flat_map(|inputs| figures.lacking(inputs))
            {
                add(figures.role, instance, signal_of(signal));
            }
        }
        let throughput = (inputs.throughput.iter()).filter(|_| has_vote(AnalyzerName::Throughput));
        for inputs in throughput {
            for variant in inputs.variants.values() {
                for (instance, signal) in variant.lacking(inputs.arrivals.is_some()) {
                    add(variant.role, instance, signal);
                }
            }
        }
        if has_vote(AnalyzerName::QueueingModel) {
            for variant in inputs.queueing.variants.values() {
                for (instance, signal) in variant.lacking() {
                    add(variant.role, instance, MissingInput::Signal(signal));
                }
            }
        }
        missing
    }

    /// Combines the opinions of the chairs.
    pub(crate) fn combine(
        &self,
        key: &ModelKey,
        configs: &[AnalyzerConfig],
        costs: &BTreeMap<VariantKey, Cost>,
        liveness: impl Fn(&ModelKey, AnalyzerName) -> Liveness,
    ) -> Consensus {
        let results: Vec<AnalyzerResult> = configs
            .iter()
            .map(|config| AnalyzerResult {
                analyzer: config.analyzer,
                score: config.score,
                band: config.band,
                participation: config.participation,
                liveness: liveness(key, config.analyzer),
                assessment: self
                    .assessments
                    .get(&config.analyzer)
                    .filter(|said| !said.variants.is_empty())
                    .cloned(),
            })
            .collect();
        let mut consensus = combine(&results, costs);
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
pub(crate) fn liveness<'a>(
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

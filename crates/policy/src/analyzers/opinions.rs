//! What the analyzers report about one model.

use std::collections::BTreeMap;

use super::inputs::AnalyzerInputs;
use super::selection::AnalyzerConfig;
use crate::capacity::{AnalyzerName, Assessment, ServingRole};
use crate::combine::{AnalyzerResult, Consensus, Liveness, Participation, combine};
use crate::key::{ModelKey, VariantKey};
use crate::learned::Learned;
use crate::params::DynamicSettings;
use crate::queueing::assess as queueing;
use crate::reason::Awaited;
use crate::slo::{self, SloReport};
use crate::throughput::role::Damping;
use crate::throughput::{self, ThroughputReport};
use crate::tokens::{self, TokensReport};
use crate::units::Cost;
use wva_base::moment::Moment;

/// Replicas after an order of an analyzer that stands in, to those before it. Source: what HPA adds at once by default.
const MOST_GROWTH: f64 = 2.0;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Opinions {
    pub(crate) assessments: BTreeMap<AnalyzerName, Assessment>,
    pub(crate) tokens: Option<TokensReport>,
    pub(crate) queueing: Option<queueing::QueueingModelFigures>,
    pub(crate) throughput: Option<ThroughputReport>,
    pub(crate) slo: Option<SloReport>,
    /// Demands of an analyzer that stands in, as they were before they were limited.
    pub(crate) limited: BTreeMap<ServingRole, f64>,
}

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
            AnalyzerName::Slo => {
                let Some((input, goal)) = &inputs.slo else {
                    continue;
                };
                let (said, report) = slo::assess(key, input, *goal, &learned.slo, now);
                opinions.slo = Some(report);
                said
            }
        };
        opinions.assessments.insert(config.analyzer, assessment);
    }
    opinions.limit_stand_in(configs);
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

    /// An analyzer that stands in orders no more at once than there is, or is on its way: it knows replicas that have
    /// just begun by guesses, and the next look is near.
    fn limit_stand_in(&mut self, configs: &[AnalyzerConfig]) {
        if self.is_sized(configs) {
            return;
        }
        let stands_in = |config: &&AnalyzerConfig| config.participation == Participation::StandsIn;
        for config in configs.iter().filter(stands_in) {
            if let Some(said) = self.assessments.get_mut(&config.analyzer) {
                self.limited = said.limit_growth(MOST_GROWTH, config.band);
            }
        }
    }

    /// Whether a voter sizes a variant.
    fn is_sized(&self, configs: &[AnalyzerConfig]) -> bool {
        let mut informative = self.informative();
        informative.any(|analyzer| {
            configs.iter().any(|config| config.votes() && config.analyzer == analyzer)
        })
    }

    /// The analyzers that take part: one that stands in votes where no voter sizes a variant, as before anything
    /// is learned and with engines that do not report enough, and is left out otherwise.
    pub(crate) fn seated(&self, configs: &[AnalyzerConfig]) -> Vec<AnalyzerConfig> {
        let is_sized = self.is_sized(configs);
        let seat = |config: &AnalyzerConfig| match config.participation {
            Participation::StandsIn if is_sized => None,
            Participation::StandsIn => {
                Some(AnalyzerConfig { participation: Participation::Votes, ..*config })
            }
            _ => Some(*config),
        };
        configs.iter().filter_map(seat).collect()
    }

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
            let measured = Some(&figures.balance);
            consensus.name_wait(*role, AnalyzerName::Throughput, awaits, measured);
        }
        for (role, figures) in self.slo.iter().flat_map(|report| &report.roles) {
            if let Some(hold) = figures.hold {
                consensus.name_wait(*role, AnalyzerName::Slo, hold.into(), None);
            }
        }
        consensus
    }
}

/// How an analyzer's silence is judged: by the logs of `learned`. One that was never informative is
/// taken for silent only once it had as much time to speak as keeps another one live.
pub(crate) fn liveness<'a>(
    learned: &'a Learned,
    settings: &'a DynamicSettings,
    now: Moment,
) -> impl Fn(&ModelKey, AnalyzerName) -> Liveness + 'a {
    move |key, analyzer| {
        let (results, interval) = (&learned.analyzers, settings.interval);
        (results.liveness(key, analyzer, interval, now))
            .unwrap_or_else(|| learned.asked.silence(key, analyzer, interval, now))
    }
}

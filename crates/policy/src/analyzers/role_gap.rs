//! Why no analyzer has a view on a role, and why one has no result.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::inputs::AnalyzerInputs;
use super::opinions::Opinions;
use super::selection::ANALYZERS;
use crate::capacity::{AnalyzerName, ServingRole};
use crate::key::{ModelKey, VariantKey};
use crate::queueing::assess::Unsized;
use crate::reason::{Abstention, MissingInput, MissingSignal, ViewGap};
use crate::signal::SignalName;
use crate::throughput::ThroughputVariantInput;
use crate::tokens::Missing;
use crate::units::Replicas;

impl Opinions {
    /// What the analyzers that vote do not know, by role; a role without an entry lacks nothing.
    pub(crate) fn role_gaps(
        &self,
        key: &ModelKey,
        inputs: &AnalyzerInputs,
        has_vote: impl Fn(AnalyzerName) -> bool,
    ) -> BTreeMap<ServingRole, ViewGap> {
        let mut gaps = GapBuilder { inputs, gaps: BTreeMap::new() };
        let asked: Vec<AnalyzerName> =
            (ANALYZERS.into_iter()).filter(|one| has_vote(*one)).collect();
        for analyzer in &asked {
            match analyzer {
                AnalyzerName::Saturation => gaps.add_saturation(self),
                AnalyzerName::Throughput => gaps.add_throughput(key, self),
                AnalyzerName::Slo => gaps.add_slo(self),
                AnalyzerName::QueueingModel => gaps.add_queueing(self),
            }
        }
        if asked.is_empty() {
            for given in inputs.tokens.variants.values() {
                gaps.abstain(given.role, Abstention::NoneEnabled);
            }
        }
        gaps.gaps
    }

    /// What keeps one analyzer from a result, in all roles, or hides a part of the demand from it.
    pub(crate) fn gap_of(
        &self,
        analyzer: AnalyzerName,
        key: &ModelKey,
        inputs: &AnalyzerInputs,
    ) -> ViewGap {
        let mut whole = ViewGap::default();
        let gaps = self.role_gaps(key, inputs, |one| one == analyzer);
        for gap in gaps.into_values() {
            for signal in gap.missing {
                whole.add(signal);
            }
            for why in gap.abstaining {
                whole.abstain(why);
            }
        }
        for (instance, signal) in inputs.hidden_from(analyzer, &key.model) {
            whole.add(MissingSignal {
                instance: Arc::clone(instance),
                signal: MissingInput::Signal(signal),
            });
        }
        whole
    }
}

struct GapBuilder<'a> {
    inputs: &'a AnalyzerInputs,
    gaps: BTreeMap<ServingRole, ViewGap>,
}

impl GapBuilder<'_> {
    fn add_saturation(&mut self, opinions: &Opinions) {
        for (key, figures) in opinions.tokens.iter().flat_map(|report| &report.variants) {
            let given = self.inputs.tokens.variants.get(key);
            for (instance, signal) in given.into_iter().flat_map(|given| figures.lacking(given)) {
                self.add(figures.role, instance, signal_of(signal));
            }
            // Those with a sample are named by what it lacks.
            let named = given.map_or(0, |given| given.instances.len());
            let named = named.saturating_sub(figures.instances.len());
            let unnamed = (figures.silent).saturating_sub(u32::try_from(named).unwrap_or(u32::MAX));
            let silent = Replicas(unnamed.div_ceil(figures.ranks.max(1)));
            let ready = figures.ready;
            self.add_silent(AnalyzerName::Saturation, (figures.role, key), silent, ready);
        }
        let unpriced = (opinions.tokens.iter()).filter(|report| !report.router.is_complete);
        for figures in unpriced.flat_map(|report| report.variants.values()) {
            self.abstain(figures.role, Abstention::QueueWithoutPrice);
        }
    }

    /// Without the arrivals at the router there is no demand of any role.
    fn add_throughput(&mut self, key: &ModelKey, opinions: &Opinions) {
        let Some((input, report)) =
            (self.inputs.throughput.as_ref()).zip(opinions.throughput.as_ref())
        else {
            return;
        };
        let mut explained: BTreeMap<ServingRole, bool> = BTreeMap::new();
        for (variant, given) in &input.variants {
            if report.arrivals.is_none() {
                let arrivals = MissingInput::Signal(SignalName::RouterArrivalRate);
                self.add(given.role, &key.model, arrivals);
            }
            self.add_unread(given.role, variant);
            self.add_unseen(AnalyzerName::Throughput, variant, given);
            let figures = report.variants.get(variant);
            let is_known = figures.is_some_and(|figures| figures.per_replica.is_some());
            let mut is_explained = is_known || report.arrivals.is_none();
            for (instance, signal) in given.lacking() {
                is_explained = true;
                self.add(given.role, instance, signal);
            }
            *explained.entry(given.role).or_default() |= is_explained;
        }
        self.add_unlearned(AnalyzerName::Throughput, explained);
    }

    /// Roles that the SLO analyzer has no view of, and why.
    fn add_slo(&mut self, opinions: &Opinions) {
        let Some(((input, _), report)) = self.inputs.slo.as_ref().zip(opinions.slo.as_ref()) else {
            return;
        };
        let mut explained: BTreeMap<ServingRole, bool> = BTreeMap::new();
        for (variant, given) in &input.variants {
            self.add_unseen(AnalyzerName::Slo, variant, given);
            let mut is_explained = report.variants.contains_key(variant);
            let lacking = (!is_explained).then(|| given.lacking());
            for (instance, signal) in lacking.into_iter().flatten() {
                is_explained = true;
                self.add(given.role, instance, signal);
            }
            *explained.entry(given.role).or_default() |= is_explained;
        }
        self.add_unlearned(AnalyzerName::Slo, explained);
    }

    fn add_queueing(&mut self, opinions: &Opinions) {
        let mut explained: BTreeMap<ServingRole, bool> = BTreeMap::new();
        for (variant, given) in &self.inputs.queueing.variants {
            if given.role != ServingRole::Both {
                self.abstain(given.role, Abstention::PartOfRequests);
                continue;
            }
            self.add_unread(given.role, variant);
            let figures = (opinions.queueing.as_ref()).and_then(|said| said.variants.get(variant));
            let cause = figures.and_then(|figures| figures.unsized_because.as_ref());
            let mut is_explained = cause != Some(&Unsized::NothingLearned);
            if let Some(cause @ (Unsized::NoTargets | Unsized::Impossible(_))) = cause {
                let why = Arc::from(cause.to_string());
                self.abstain(given.role, Abstention::Unsized { why });
            }
            for (instance, signal) in given.lacking() {
                is_explained = true;
                self.add(given.role, instance, MissingInput::Signal(signal));
            }
            *explained.entry(given.role).or_default() |= is_explained;
        }
        self.add_unlearned(AnalyzerName::QueueingModel, explained);
    }

    fn add_unlearned(&mut self, analyzer: AnalyzerName, is_explained: BTreeMap<ServingRole, bool>) {
        for (role, _) in is_explained.into_iter().filter(|(_, is_explained)| !is_explained) {
            self.abstain(role, Abstention::NothingLearned { analyzer });
        }
    }

    /// Ready replicas without a pod that is seen.
    fn add_unseen(
        &mut self,
        analyzer: AnalyzerName,
        variant: &VariantKey,
        given: &ThroughputVariantInput,
    ) {
        let unseen = given.ready.saturating_sub(Replicas::from_len(given.replicas.len()));
        self.add_silent(analyzer, (given.role, variant), unseen, given.ready);
    }

    fn add_silent(
        &mut self,
        analyzer: AnalyzerName,
        (role, variant): (ServingRole, &VariantKey),
        silent: Replicas,
        ready: Replicas,
    ) {
        if silent > Replicas::ZERO {
            let variant = Arc::clone(&variant.name);
            let why = Abstention::Silent { analyzer, variant, silent, ready };
            self.abstain(role, why);
        }
    }

    /// An engine is sized by its defaults where its arguments cannot be read.
    fn add_unread(&mut self, role: ServingRole, variant: &VariantKey) {
        if self.inputs.arguments.contains_key(variant) {
            self.add(role, &variant.name, MissingInput::Arguments);
        }
    }

    fn add(&mut self, role: ServingRole, instance: &Arc<str>, signal: MissingInput) {
        let instance = Arc::clone(instance);
        let signal = MissingSignal { instance, signal };
        self.gaps.entry(role).or_default().add(signal);
    }

    fn abstain(&mut self, role: ServingRole, why: Abstention) {
        self.gaps.entry(role).or_default().abstain(why);
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

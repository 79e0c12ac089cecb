//! What has been learned of every model.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::assess::report;
use super::input::ThroughputModelInput;
use super::role::{Streak, wanted};
use super::tracker::Tracker;
use crate::capacity::ServingRole;
use crate::coupling::Coupling;
use crate::key::{MAX_VARIANTS, ModelKey, VariantKey};
use wva_base::moment::Moment;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LearnedThroughput {
    models: BTreeMap<ModelKey, LearnedModel>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LearnedModel {
    /// When decode was last full.
    pub coupling: Coupling,
    /// How long each role has wanted the same.
    pub streaks: BTreeMap<ServingRole, Streak>,
    /// Since when it has replicas whose capacity is known, and no demand.
    #[serde(default)]
    pub undemanded: Option<Moment>,
    pub variants: BTreeMap<VariantKey, Tracker>,
}

impl LearnedThroughput {
    pub fn get(&self, model: &ModelKey) -> Option<&LearnedModel> {
        self.models.get(model)
    }

    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// What is known of variants, without the present state of their models.
    #[must_use]
    pub fn lines(self) -> Self {
        let models = self.models.into_iter().map(|(key, model)| {
            let lines = LearnedModel { variants: model.variants, ..LearnedModel::default() };
            (key, lines)
        });
        Self { models: models.collect() }
    }

    /// Learns from one collection. `models` names every model and variant that there is, whether or
    /// not it has samples; what it does not name is forgotten. Beyond [`MAX_VARIANTS`], the first
    /// in order of their keys are kept.
    #[must_use]
    pub fn learn<M: Borrow<ThroughputModelInput>>(
        &self,
        models: &BTreeMap<ModelKey, M>,
        now: Moment,
    ) -> Self {
        let mut left = MAX_VARIANTS;
        let mut learned = BTreeMap::new();
        for (key, input) in models {
            let model = LearnedModel::learn(self.get(key), input.borrow(), left, now);
            left = left.saturating_sub(model.variants.len());
            if model != LearnedModel::default() {
                learned.insert(key.clone(), model);
            }
        }
        Self { models: learned }
    }
}

impl LearnedModel {
    fn learn(
        before: Option<&Self>,
        input: &ThroughputModelInput,
        room: usize,
        now: Moment,
    ) -> Self {
        let nothing = Self::default();
        let before = before.unwrap_or(&nothing);
        let coupling = before.coupling.observe(now, input.is_decode_full());
        let variants = input
            .variants
            .iter()
            .filter_map(|(key, variant)| {
                let known = before.variants.get(key);
                let masked = coupling.masks_prefill(now);
                let tracker = Tracker::learn(known, variant, &input.params, masked, now)?;
                Some((key.clone(), tracker))
            })
            .take(room)
            .collect();
        let mut next = Self { coupling, streaks: BTreeMap::new(), undemanded: None, variants };
        let report = report(input, Some(&next), now);
        let is_undemanded = report.has_supply(input) && report.demand.unwrap_or(0.0) <= 0.0;
        next.undemanded = is_undemanded.then(|| before.undemanded.unwrap_or(now));
        next.streaks = report
            .roles
            .iter()
            .filter_map(|(role, figures)| {
                let streak = before.streaks.get(role).copied();
                Some((*role, Streak::next(streak, wanted(&figures.balance))?))
            })
            .collect();
        next
    }
}

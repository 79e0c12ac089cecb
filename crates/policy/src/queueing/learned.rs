//! Parameters learned of every variant, by model.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::assess::QueueingModelInput;
use super::tuner::{Tuned, TunerSettings, tune};
use crate::key::{MAX_VARIANTS, ModelKey, VariantKey};

/// What has been learned of every variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LearnedParameters {
    models: BTreeMap<ModelKey, BTreeMap<VariantKey, Tuned>>,
}

impl LearnedParameters {
    /// What has been learned of a variant.
    pub fn get(&self, model: &ModelKey, variant: &VariantKey) -> Option<&Tuned> {
        self.models.get(model)?.get(variant)
    }

    /// Learns from one collection. `models` names every model and variant that there is, whether or
    /// not it has samples; what it does not name is forgotten. Beyond [`MAX_VARIANTS`], the first
    /// in order of their keys are kept.
    #[must_use]
    pub fn learn<M: Borrow<QueueingModelInput>>(&self, models: &BTreeMap<ModelKey, M>) -> Self {
        let settings = TunerSettings::default();
        let mut left = MAX_VARIANTS;
        let mut learned = BTreeMap::new();
        for (key, model) in models {
            let model = model.borrow();
            let variants: BTreeMap<VariantKey, Tuned> = model
                .variants
                .iter()
                .filter_map(|(variant, input)| {
                    let known = self.get(key, variant);
                    // Without any parameters the variant would never grow.
                    let next = match known {
                        Some(known) if !model.policy.tuning => Some(*known),
                        _ => tune(known, &input.observations(), &settings),
                    };
                    Some((variant.clone(), next?))
                })
                .take(left)
                .collect();
            left -= variants.len();
            if !variants.is_empty() {
                learned.insert(key.clone(), variants);
            }
        }
        Self { models: learned }
    }
}

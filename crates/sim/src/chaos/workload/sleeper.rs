//! The model that may go to zero, and the policy by which it may.

use std::time::Duration;

use crate::chaos::scale_to_zero::ScaleToZeroModel;
use crate::load::RateProfile;
use crate::world::{ConfigMap, Scenario, ScenarioModel};
use wva::policy::key::{ModelKey, VariantKey};
use wva::settings::config_maps::ConfigMapNames;

const MINUTE: Duration = Duration::from_mins(1);

/// The model that may go to zero in half of the seeds, and in most others has no minimum and may not.
pub(super) const SLEEPER: &str = "llama-8b";

fn retention(name: &str) -> Duration {
    match name {
        "brief" | "crowd" => MINUTE * 2,
        _ => MINUTE * 3,
    }
}

/// Requests that come for a few minutes, and stay away for long enough that the last replica has gone: after
/// retention its autoscaler waits for two minutes more.
pub(super) fn visits(name: &str) -> RateProfile {
    let (every, length) = match name {
        "brief" | "crowd" => (MINUTE * 7, MINUTE * 2),
        _ => (MINUTE * 13, MINUTE * 4),
    };
    RateProfile::Burst { base: 0.0, peak: 0.5, every, length }
}

pub(crate) fn to_zero(name: &str, model: &ScenarioModel, may_sleep: bool) -> ConfigMap {
    let entry = ConfigMap::zero_entry(model.id, may_sleep, retention(name));
    ConfigMap::of(ConfigMapNames::SCALE_TO_ZERO, model.name, entry)
}

/// Whether the policy of a model allows it to go to zero; where bounds alone do, it keeps a replica.
pub(crate) fn may_go_to_zero(scenario: &Scenario, model: &ScenarioModel) -> bool {
    let mut entries = scenario.config.iter().flat_map(|map| &map.data);
    entries.any(|(key, text)| *key == model.name && text.contains("enable_scale_to_zero: true"))
}

pub(crate) fn sleeper(scenario: &Scenario) -> Option<ScaleToZeroModel> {
    let may_sleep = |model: &ScenarioModel| may_go_to_zero(scenario, model);
    let number = scenario.models.iter().position(may_sleep)?;
    let model = scenario.models.get(number)?;
    let variants = model.variants.iter();
    Some(ScaleToZeroModel {
        number,
        model: ModelKey::new(scenario.namespace, model.id),
        variants: variants
            .map(|variant| VariantKey::new(scenario.namespace, variant.name))
            .collect(),
    })
}

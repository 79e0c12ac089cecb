//! The settings of the controller that stand for its policies.

use std::time::Duration;

use super::{BAND, PolicyChoice};
use crate::lab::scenario::slo;
use crate::lab::schema::{ActuationSpec, HpaActuation, LabScenario, TimeSpan};
use crate::world::{ConfigMap, SATURATION, Slo};

const DIRECT: &str = "actuation: direct\n";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::lab) struct ControllerSetup {
    pub(in crate::lab) config: Vec<ConfigMap>,
    /// The interval, where it is not the scenario's.
    pub(in crate::lab) interval: Option<Duration>,
    /// The HPA, where it is not the scenario's.
    pub(in crate::lab) hpa: Option<HpaActuation>,
}

pub(in crate::lab) fn controller(choice: &PolicyChoice, scenario: &LabScenario) -> ControllerSetup {
    let mut setup = ControllerSetup::default();
    // The analyzers refuse a lower threshold that is not below the upper one.
    let band = choice.knob.map_or_else(String::new, |up| {
        format!("scaleUpThreshold: {up}\nscaleDownBoundary: {}\n", up - BAND)
    });
    match choice.family.name {
        "wva-default" | "wva-chart" => {
            let entry =
                |trigger: f64| ConfigMap::saturation(format!("queueSpareTrigger: {trigger}"));
            setup.config.extend(choice.knob.map(entry));
        }
        "wva-tokens" => {
            let text = format!("analyzerName: saturation\n{band}");
            setup.config.push(ConfigMap::saturation(text));
        }
        "wva-throughput" => {
            let threshold = choice.knob;
            let threshold = threshold.map_or_else(String::new, |up| {
                format!(", scaleUpThreshold: {up}, scaleDownBoundary: {}", up - BAND)
            });
            let text = format!("analyzers: [{{name: throughput{threshold}}}]");
            setup.config.push(ConfigMap::saturation(text));
        }
        "wva-slo" | "wva-slo-none" | "wva-slo-strict" => {
            let reserve = (choice.family.name).strip_prefix("wva-slo-");
            let reserve =
                reserve.map_or_else(String::new, |reserve| format!("burstReserve: {reserve}\n"));
            let text = format!("analyzerName: slo\n{band}{reserve}");
            setup.config.push(ConfigMap::saturation(text));
            let models = scenario.models.iter();
            let objectives = models.map(|model| (&*model.id, slo(model.slo)));
            setup.config.push(ConfigMap::service_class(objectives));
            setup.interval = Some(Duration::from_secs(15));
            // As its page says, where the scenario states no way of its own.
            let is_unstated = scenario.actuation == ActuationSpec::default();
            setup.hpa = is_unstated.then(|| HpaActuation {
                up: TimeSpan::default(),
                down: TimeSpan::default(),
                pods: Some(100),
                ..HpaActuation::default()
            });
        }
        "wva-queueing" => {
            // Targets of the ConfigMap itself act in entries for one model alone.
            let share = choice.knob.unwrap_or(1.0);
            let models = scenario.models.iter();
            let objectives = models.map(|model| {
                let Slo { first_token, per_token } = slo(model.slo);
                let [first_token, per_token] =
                    [first_token, per_token].map(|time| time.mul_f64(share));
                (&*model.id, Slo { first_token, per_token })
            });
            setup.config.push(ConfigMap::service_class(objectives));
            let entry = ConfigMap::of("wva-queueing-model-config", "default", "{}".to_owned());
            setup.config.push(entry);
        }
        _ => {}
    }
    if choice.family.name == "wva-chart" {
        let window = TimeSpan(Duration::from_mins(4));
        setup.interval = Some(Duration::from_mins(1));
        setup.hpa = Some(HpaActuation { up: window, down: window, ..HpaActuation::default() });
    }
    if scenario.actuation.direct.is_some() && setup.hpa.is_none() {
        setup.config = scaled_directly(setup.config);
    }
    setup
}

/// The same settings, with which the controller writes the counts itself.
fn scaled_directly(mut config: Vec<ConfigMap>) -> Vec<ConfigMap> {
    let mut entries = config.iter_mut().filter(|map| map.name == SATURATION);
    match entries.next().and_then(|map| map.data.first_mut()) {
        Some((_, text)) => text.insert_str(0, DIRECT),
        None => config.push(ConfigMap::saturation(DIRECT)),
    }
    config
}

//! The samples that AIBrix ships, by their fields and values: what of each is in force, what has no effect, and what is
//! refused. This is the check that the webhook and the controller share; `tests/cluster/cases/webhooks.rs` sends the
//! same ones to an API server.

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::object::{PodAutoscalerObject, read_known};
use super::super::source::MetricSource;
use super::super::tuning::{StormServiceMode, Tuning, WithoutEffect};
use super::*;

const SAMPLES: &str = include_str!("../../../../../tests/vectors/aibrix-samples.yaml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    file: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    spec: Value,
    in_force: Option<String>,
    #[serde(default)]
    refused: Vec<String>,
    #[serde(default)]
    without_effect: Vec<String>,
}

impl Sample {
    fn object(&self) -> PodAutoscalerObject {
        let object = json!({
            "apiVersion": "autoscaling.aibrix.ai/v1alpha1", "kind": "PodAutoscaler",
            "metadata": {"name": "a", "namespace": "default", "annotations": self.annotations},
            "spec": self.spec,
        });
        let (object, skipped) = read_known::<PodAutoscalerObject>(object).unwrap();
        PodAutoscalerObject { skipped, ..object }
    }
}

/// What is in force, in one line.
fn in_force(policy: &AutoscalerPolicy) -> String {
    let (target, tuning) = (&policy.target, &policy.tuning);
    let names = [Some(&target.kind), Some(&target.name), target.role.as_ref()];
    let names: Vec<&str> = names.into_iter().flatten().map(|name| &**name).collect();
    let mut parts: Vec<String> = policy.sources.iter().map(MetricSource::identity).collect();
    if tuning.scale_down_window != Tuning::default().scale_down_window {
        parts.push(format!("release after {}s", tuning.scale_down_window.as_secs()));
    }
    if policy.forecast.is_some() {
        parts.push("forecast".to_owned());
    }
    if tuning.storm_service == StormServiceMode::Replica {
        parts.push("whole service".to_owned());
    }
    let (min, max) = (policy.base.min, policy.base.max);
    let strategy = policy.strategy.as_str();
    format!("{strategy} {min}-{max} {}: {}", names.join(" "), parts.join(", "))
}

fn named(faults: &[WithoutEffect]) -> Vec<&str> {
    let mut named: Vec<&str> = (faults.iter())
        .map(|fault| match fault {
            WithoutEffect::Annotation { key, .. } => key.as_str(),
            WithoutEffect::Field { path, .. } | WithoutEffect::Rounded { path, .. } => {
                path.as_str()
            }
        })
        .collect();
    named.sort_unstable();
    named
}

#[test]
fn each_sample_of_aibrix_is_in_force_or_refused_with_its_paths() {
    let samples: Vec<Sample> = serde_yaml::from_str(SAMPLES).unwrap();
    let (mut accepted, mut refused) = (0, 0);
    for sample in &samples {
        let file = &sample.file;
        match sample.object().check() {
            Ok(policy) => {
                assert_eq!(Some(in_force(&policy)), sample.in_force, "{file}");
                assert_eq!(named(&policy.faults), sample.without_effect, "{file}");
                accepted += 1;
            }
            Err(violations) => {
                let mut found: Vec<&str> = violations.iter().map(|one| &*one.path).collect();
                found.sort_unstable();
                assert_eq!(found, sample.refused, "{file}");
                assert_eq!(named(violations.faults()), sample.without_effect, "{file}");
                refused += 1;
            }
        }
    }
    assert_eq!((accepted, refused), (14, 5));
}

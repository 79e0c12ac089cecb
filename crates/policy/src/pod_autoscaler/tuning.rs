//! What annotations tune. Each is judged alone: a bad one is named and keeps its default.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::amounts::{PanicThreshold, StepRate, ToleratedShare};
use crate::bounds::ZeroPolicy;
use wva_base::duration::{format_duration, parse_duration};
use wva_base::text::shortened;

pub(super) const DOMAIN: &str = "autoscaling.aibrix.ai/";

/// The annotation of [`StormServiceMode`].
pub(super) const MODE_KEY: &str = "storm-service-mode";

/// Longest window of any kind; a HorizontalPodAutoscaler has no longer one either.
pub(super) const LONGEST_WINDOW: Duration = Duration::from_hours(1);

/// The units of AIBrix's controller, which reads durations as Go does.
const GO_UNITS: [&str; 8] = ["h", "m", "s", "ms", "us", "µs", "μs", "ns"];

/// Keys of older releases, in whatever domain, and what took their place.
const SUCCESSORS: [(&str, &str); 9] = [
    ("scale-down-delay", "autoscaling.aibrix.ai/scale-down-cooldown-window"),
    ("scale-up-cooldown", "autoscaling.aibrix.ai/scale-up-cooldown-window"),
    ("up-fluctuation-tolerance", "autoscaling.aibrix.ai/scale-up-tolerance"),
    ("down-fluctuation-tolerance", "autoscaling.aibrix.ai/scale-down-tolerance"),
    ("tolerance", "autoscaling.aibrix.ai/scale-up-tolerance and scale-down-tolerance"),
    ("panic-threshold", "autoscaling.aibrix.ai/panic-threshold"),
    ("stable-window", "spec.observeWindowSeconds"),
    ("window", "spec.observeWindowSeconds"),
    ("panic-window", "spec.panicWindowSeconds"),
];

/// How the pods of a StormService are scaled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StormServiceMode {
    /// By the replicas of a role.
    #[default]
    Pooled,
    /// By the replicas of the whole service.
    Replica,
}

/// The tuning of the strategies.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// Most that one step multiplies by.
    pub scale_up_rate: StepRate,
    /// Most that one step divides by.
    pub scale_down_rate: StepRate,
    /// Dead band above the target.
    pub scale_up_tolerance: ToleratedShare,
    /// Dead band below the target.
    pub scale_down_tolerance: ToleratedShare,
    /// Mean of the short window over that of the long one from which on a burst is assumed.
    pub panic_threshold: PanicThreshold,
    /// Stabilisation of a scale-up.
    pub scale_up_window: Duration,
    /// Stabilisation of a scale-down.
    pub scale_down_window: Duration,
    /// Whether load alone may lead to zero replicas.
    pub zero: ZeroPolicy,
    /// How a StormService is scaled.
    pub storm_service: StormServiceMode,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            scale_up_rate: StepRate::DEFAULT,
            scale_down_rate: StepRate::DEFAULT,
            scale_up_tolerance: ToleratedShare::DEFAULT,
            scale_down_tolerance: ToleratedShare::DEFAULT,
            panic_threshold: PanicThreshold::DEFAULT,
            scale_up_window: Duration::ZERO,
            scale_down_window: Duration::from_mins(5),
            zero: ZeroPolicy::Disabled,
            storm_service: StormServiceMode::Pooled,
        }
    }
}

/// A part of an object that does nothing, or other than it states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WithoutEffect {
    /// An annotation.
    Annotation {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
        /// What is wrong, and what to write instead.
        why: String,
    },
    /// A field.
    Field {
        /// Its path.
        path: String,
        /// Why it does nothing.
        why: &'static str,
    },
    /// A target value that the generated object rounds.
    Rounded {
        /// Its path.
        path: String,
        /// What is written, what is in force, and why.
        why: String,
    },
}

wva_base::display_of! { WithoutEffect:
    Self::Annotation { key, value, why } => "annotation {key}: {value:?} {why}";
    Self::Field { path, why } => "field {path} has no effect: {why}";
    Self::Rounded { path, why } => "field {path}: {why}";
}

impl WithoutEffect {
    /// Adds it. That nothing reads an annotation comes before a value that is wrong.
    pub fn add_to(self, faults: &mut Vec<Self>) {
        if let Self::Annotation { key, .. } = &self {
            faults.retain(
                |fault| !matches!(fault, Self::Annotation { key: other, .. } if other == key),
            );
        }
        faults.push(self);
    }
}

impl Tuning {
    /// Reads annotations, with what is wrong in them.
    pub fn read(annotations: &BTreeMap<Arc<str>, Arc<str>>) -> (Self, Vec<WithoutEffect>) {
        let mut tuning = Self::default();
        let mut faults = Vec::new();
        // Keys like kpa.autoscaling.aibrix.ai/tolerance stand in old samples.
        for (key, value) in annotations.iter().filter(|(key, _)| key.contains(DOMAIN)) {
            if let Err(why) = tuning.set(key, value) {
                faults.push(WithoutEffect::Annotation {
                    key: shortened(key),
                    value: shortened(value),
                    why,
                });
            }
        }
        (tuning, faults)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key.strip_prefix(DOMAIN).unwrap_or_default() {
            "max-scale-up-rate" => set(&mut self.scale_up_rate, StepRate::parse(value)),
            "max-scale-down-rate" => set(&mut self.scale_down_rate, StepRate::parse(value)),
            "scale-up-tolerance" => set(&mut self.scale_up_tolerance, ToleratedShare::parse(value)),
            "scale-down-tolerance" => {
                set(&mut self.scale_down_tolerance, ToleratedShare::parse(value))
            }
            "panic-threshold" => set(&mut self.panic_threshold, PanicThreshold::parse(value)),
            "scale-up-cooldown-window" => window(&mut self.scale_up_window, value),
            "scale-down-cooldown-window" => window(&mut self.scale_down_window, value),
            "scale-to-zero" => flag(&mut self.zero, value),
            MODE_KEY => {
                self.storm_service = match value {
                    "replica" => StormServiceMode::Replica,
                    // As samples of AIBrix write it, and as the service does.
                    "pool" | "pooled" => StormServiceMode::Pooled,
                    _ => return Err("is neither replica nor pooled; pooled is kept".to_owned()),
                };
                Ok(())
            }
            _ => Err(format!("has no effect; remove it, or write {}", successor(key))),
        }
    }
}

/// What took the place of a key of an older release.
fn successor(key: &str) -> &'static str {
    let name = key.rsplit('/').next().unwrap_or_default();
    let mut known = SUCCESSORS.iter();
    let known = known.find(|(old, _)| *old == name);
    known.map_or("one of the documented keys", |(_, new)| *new)
}

fn set<T: fmt::Display>(place: &mut T, read: Result<T, String>) -> Result<(), String> {
    *place = read.map_err(|why| format!("{why}; {place} is kept"))?;
    Ok(())
}

fn window(place: &mut Duration, text: &str) -> Result<(), String> {
    let is_number = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '+' | '-');
    let mut units = text.split(is_number).filter(|unit| !unit.is_empty());
    let is_of_go = units.all(|unit| GO_UNITS.contains(&unit));
    let within = match parse_duration(text) {
        _ if !is_of_go => {
            Err("a unit is h, m, s, ms, us or ns, right behind its number".to_owned())
        }
        Ok(length) if length <= LONGEST_WINDOW => Ok(length),
        Ok(_) => Err("it is longer than an hour".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    *place = within.map_err(|why| {
        let kept = format_duration(*place);
        format!("is no window: {why}; write 0s to 1h, like 90s; {kept} is kept")
    })?;
    Ok(())
}

fn flag(place: &mut ZeroPolicy, text: &str) -> Result<(), String> {
    let why = "is neither true nor false; write one of them; false is kept";
    *place = zero_policy(text).ok_or(why)?;
    Ok(())
}

pub(super) fn zero_policy(text: &str) -> Option<ZeroPolicy> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(ZeroPolicy::Enabled),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(ZeroPolicy::Disabled),
        _ => None,
    }
}

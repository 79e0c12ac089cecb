//! Spare capacity of a model, and the comparison with its triggers: the one place where measured
//! shares meet thresholds of growth.

use serde::{Deserialize, Serialize};

/// Mean spare capacity per non-saturated replica, and the triggers that it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spare {
    /// KV share below the saturation threshold.
    pub kv: f64,
    /// KV share below which the model grows.
    pub kv_trigger: f64,
    /// Requests below the saturation threshold.
    pub queue: f64,
    /// Requests below which the model grows.
    pub queue_trigger: f64,
}

/// Which spare capacity triggered growth, with the figures compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SpareTrigger {
    /// Mean spare KV share and its trigger, where it is below.
    pub kv: Option<(f64, f64)>,
    /// Mean spare queue and its trigger, where it is below.
    pub queue: Option<(f64, f64)>,
}

/// Sums and quotients of shares are not exact: a difference below this is none. Without it, a load
/// that meets a trigger exactly could make a model grow and shrink in turns.
const ROUNDING: f64 = 1e-9;

impl Spare {
    /// The parts that are below their trigger.
    pub fn trigger(self) -> SpareTrigger {
        let below =
            |spare: f64, trigger: f64| (spare < trigger - ROUNDING).then_some((spare, trigger));
        SpareTrigger {
            kv: below(self.kv, self.kv_trigger),
            queue: below(self.queue, self.queue_trigger),
        }
    }

    pub(crate) fn is_sufficient(self) -> bool {
        let trigger = self.trigger();
        trigger.kv.is_none() && trigger.queue.is_none()
    }
}

wva_base::display_of! { Spare:
    Self { kv, kv_trigger, queue, queue_trigger } =>
        "KV spare {kv:.3} (trigger {kv_trigger:.3}), queue spare {queue:.1} (trigger {queue_trigger:.1})";
}

// The reason texts of the original's analysis.
wva_base::display_of! { SpareTrigger:
    Self { kv: Some((kv, kv_trigger)), queue: Some((queue, queue_trigger)) } =>
        "both KV spare ({kv:.3} < {kv_trigger:.3}) and queue spare ({queue:.1} < {queue_trigger:.1})";
    Self { kv: Some((kv, trigger)), queue: None } => "KV spare Saturation low ({kv:.3} < {trigger:.3})";
    Self { kv: None, queue: Some((queue, trigger)) } => "queue spare Saturation low ({queue:.1} < {trigger:.1})";
    Self { kv: None, queue: None } => "spare capacity is sufficient";
}

//! The horizontal pod autoscaler for external metrics: its arithmetic, and the controller around it.
//!
//! Source of the rules: the controller of Kubernetes 1.37, `pkg/controller/podautoscaler`. Unlike there a target at
//! zero is scaled without the condition `ScaledToZero`, as by the feature gate of earlier versions.

#![expect(
    clippy::indexing_slicing,
    reason = "documents are read by name, which yields null for what is absent; written by name \
              only below what was found to be an object"
)]

mod decide;
mod driver;
#[cfg(test)]
mod driver_tests;
mod rules;
mod spec;
#[cfg(test)]
mod tests;

pub use decide::{History, HpaCondition, HpaDecision, Observed, decide};
pub(crate) use driver::{Autoscalers, ExternalMetrics, SYNC};
pub(crate) use rules::{Policy, ScalingDirection, ScalingRules, Size};
pub use spec::HpaSpec;
pub(crate) use spec::{Behavior, ExternalMetricSpec, ExternalMetricTarget};

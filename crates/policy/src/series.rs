//! What a decision shows on the metrics page, where an HPA or KEDA reads it.

use super::key::VariantKey;
use super::plan::Decision;
use super::snapshot::VariantView;
use super::units::Replicas;

/// Gauge with the count that the scaler should follow.
pub const DESIRED: &str = "wva_desired_replicas";
/// Gauge with the replicas that the target has.
pub const CURRENT: &str = "wva_current_replicas";
/// Gauge with the quotient of both.
pub const RATIO: &str = "wva_desired_ratio";

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct VariantGauges<'a> {
    pub labels: GaugeLabels<'a>,
    pub desired: Replicas,
    /// Value of [`CURRENT`]; absent where the target has not been seen.
    pub current: Option<Replicas>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GaugeLabels<'a> {
    pub variant_name: &'a str,
    pub namespace: &'a str,
    /// `accelerator_type`; `unresolved` where no accelerator is stated.
    pub accelerator_type: &'a str,
}

impl<'a> VariantGauges<'a> {
    pub(crate) fn of(decision: &'a Decision) -> Option<Self> {
        decision.target.map(|desired| Self {
            labels: GaugeLabels::new(&decision.key, decision.accelerator.label()),
            desired,
            current: decision.current,
        })
    }

    /// What a resolved variant shows before any cycle has looked at it: the count published last,
    /// else the replicas that exist and stay.
    pub(crate) fn before_first_plan(view: &'a VariantView) -> Option<Self> {
        let target = view.target.resolved()?;
        Some(Self {
            labels: GaugeLabels::new(&view.key, view.accelerator.label()),
            desired: view.base()?,
            current: Some(target.current),
        })
    }

    /// Value of [`RATIO`]: desired by current, or desired where there is nothing to divide by.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.current.map(|current| match current {
            Replicas::ZERO => self.desired.to_f64(),
            current => self.desired.to_f64() / current.to_f64(),
        })
    }
}

impl<'a> GaugeLabels<'a> {
    fn new(key: &'a VariantKey, accelerator_type: &'a str) -> Self {
        Self { variant_name: &key.name, namespace: &key.namespace, accelerator_type }
    }
}

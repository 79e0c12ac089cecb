//! What the controller writes to a target itself.

use std::time::Duration;

use crate::params::ActuationMode;
use crate::plan::DecisionOutcome;
use crate::record::PublishedRecord;
use crate::scaler::Scalers;
use crate::snapshot::VariantView;
use crate::units::Replicas;
use wva_base::moment::WallTime;

/// How long a raise waits for its status to be stored. A successor begins with what is stored, and must not lower what
/// was written.
const STORAGE_PATIENCE: Duration = Duration::from_secs(2);
/// How long a reduction waits, so that the pods that are to go first are marked before.
const MARKING: Duration = Duration::from_secs(5);

/// A count that the controller writes to a target itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectStep {
    /// The count that the target states.
    pub from: Replicas,
    /// The published one.
    pub to: Replicas,
}

impl DirectStep {
    /// The step that is due for a variant: one that is scaled directly, that a cycle has decided, and whose target has
    /// no scaler. A reduction needs a measurement behind it: a term may begin with a status that could not be stored
    /// for long. `stated` is the count that the target states, `stored` that of the status of the variant.
    pub fn due(
        record: &PublishedRecord,
        view: &VariantView,
        stated: Replicas,
        stored: Option<Replicas>,
        now: WallTime,
    ) -> Option<Self> {
        let is_ours = record.actuation == ActuationMode::Direct
            && record.uid == view.uid
            && !record.awaits_decision()
            && matches!(&view.scalers, Scalers::Known(scalers) if scalers.is_empty());
        view.target.resolved().filter(|_| is_ours)?;
        let step = Self { from: stated, to: record.values?.desired };
        let age = now.since(record.decided.at);
        let is_due = if step.to > step.from {
            stored == Some(step.to) || age >= STORAGE_PATIENCE
        } else {
            let is_measured = record.outcome == Some(DecisionOutcome::Analyzed);
            step.to < step.from && is_measured && age >= MARKING
        };
        is_due.then_some(step)
    }
}

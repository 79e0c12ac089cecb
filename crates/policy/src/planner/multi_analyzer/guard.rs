//! What keeps a model from shrinking, whatever its analyzers vote.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Work;
use crate::analyzers::{AnalyzerInputs, Opinions};
use crate::capacity::{AnalyzerName, ServingRole};
use crate::combine::Liveness;
use crate::key::VariantKey;
use crate::reason::{BlockReason, DemandGap, Reason, ViewGap};
use crate::router_queue::HeldQueue;

#[derive(Debug, Clone)]
pub(in crate::planner) struct Guard {
    pub(super) unseen: Arc<[VariantKey]>,
    pub(super) stale: u32,
    pub(super) is_router_stale: bool,
    /// A live voter that can size a role and cannot judge it this cycle: it might want the role, and
    /// then nothing of the model would shrink.
    pub(super) unjudged: Option<BlockReason>,
    /// A voter without a result so far, which may yet have one.
    pub(super) undetermined: Option<BlockReason>,
    pub(super) gaps: BTreeMap<ServingRole, ViewGap>,
    /// Requests in the router, which raise no variant without a report.
    pub(super) queue: Option<HeldQueue>,
}

impl Guard {
    pub(super) fn of(
        work: &Work<'_>,
        inputs: &AnalyzerInputs,
        opinions: &Opinions,
        voters: &[(AnalyzerName, Liveness)],
    ) -> Self {
        let is_unjudged = |analyzer: &AnalyzerName| {
            let is_partial = inputs.has_partial_metrics(*analyzer);
            opinions.assessments.get(analyzer).is_some_and(|said| {
                let mut sized = said.variants.values();
                sized.any(|variant| is_partial || !said.demand.contains_key(&variant.role))
            })
        };
        let is_live = |(analyzer, liveness): &(AnalyzerName, Liveness)| {
            (*liveness == Liveness::Live).then_some(*analyzer)
        };
        let has_vote = |analyzer| voters.iter().any(|(voter, _)| *voter == analyzer);
        let unjudged = voters.iter().filter_map(is_live).find(is_unjudged);
        let awaited = |analyzer| BlockReason::Awaited {
            analyzer,
            gap: opinions.gap_of(analyzer, work.key, inputs),
        };
        let undetermined = |(analyzer, liveness): &(AnalyzerName, Liveness)| {
            BlockReason::undetermined(*analyzer, *liveness)
        };
        Self {
            unseen: work.group.unseen().into_iter().cloned().collect(),
            stale: inputs.stale,
            is_router_stale: inputs.is_router_stale,
            unjudged: unjudged.map(awaited),
            undetermined: voters.iter().find_map(undetermined),
            gaps: opinions.role_gaps(work.key, inputs, has_vote),
            queue: None,
        }
    }

    pub(super) fn gap(&self) -> Option<DemandGap> {
        if !self.unseen.is_empty() {
            let variants = Arc::clone(&self.unseen);
            return Some(DemandGap::Unseen { variants });
        }
        if self.stale > 0 {
            let replicas = self.stale;
            return Some(DemandGap::Stale { replicas });
        }
        if self.is_router_stale {
            return Some(DemandGap::StaleRouter);
        }
        let hold = self.undetermined.clone().or_else(|| self.unjudged.clone());
        hold.map(|hold| DemandGap::Held { hold })
    }

    pub(super) fn obstacle(&self) -> Option<Reason> {
        Some(match self.gap()? {
            DemandGap::Unseen { variants } => Reason::ShrinkWaits { transitions: variants },
            DemandGap::Stale { replicas } => Reason::ShrinkOnStale { replicas },
            DemandGap::StaleRouter => Reason::ShrinkOnStaleRouter,
            DemandGap::Held { hold } => Reason::Held { hold },
            DemandGap::NoUsableMetrics { .. }
            | DemandGap::Silent { .. }
            | DemandGap::Partial { .. } => return None,
        })
    }
}

//! What a process keeps and shows of PodAutoscalers.

use super::{KEPT, ProcessChecker};
use crate::chaos::check::InvariantViolation;
use crate::chaos::check::autoscalers::of_gone;
use crate::chaos::check::series::Shown;
use crate::chaos::surroundings::Surroundings;
use wva::roles::Role;
use wva_base::moment::Moment;

const WATCHED: &str = "podautoscalers";

impl ProcessChecker {
    /// A5: a process that knows of their end keeps nothing of PodAutoscalers that are gone.
    pub(super) fn keeps_autoscalers(
        &mut self,
        now: Moment,
        page: &Shown,
        around: &Surroundings,
    ) -> Vec<InvariantViolation> {
        let gone = if self.watches.hear(&[WATCHED]) {
            let roles = self.report.iter().filter_map(|one| match &one.role {
                Role::PodAutoscaler(key) => Some(key.clone()),
                _ => None,
            });
            let records = self.door.shared.autoscalers.snapshot().into_keys();
            let kept = [
                ("its role", roles.collect()),
                ("its record", records.collect()),
                ("its series", page.autoscalers.clone()),
            ];
            of_gone(&kept, &around.autoscalers)
        } else {
            Vec::new()
        };
        let calm = (now.monotonic, self.calm);
        let lasting = self.patience.lasting("autoscalers", gone, calm, KEPT);
        InvariantViolation::of_each("A5", lasting, |text| text).collect()
    }
}

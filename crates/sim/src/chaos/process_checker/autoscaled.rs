//! What a process keeps and shows of PodAutoscalers.

use super::{KEPT, ProcessChecker};
use crate::chaos::check::InvariantViolation;
use crate::chaos::check::kept::{of_gone, texts};
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
        let gone = if self.watches.live(&[WATCHED]) {
            let roles = self.report.iter().filter_map(|one| match &one.role {
                Role::PodAutoscaler(key) => Some(key),
                _ => None,
            });
            let kept = vec![
                ("its role", texts(roles)),
                (
                    "its record",
                    texts(self.door.shared.autoscalers.snapshot().keys()),
                ),
                ("its series", texts(&page.autoscalers)),
            ];
            let exist = texts(&around.autoscalers);
            of_gone(kept, |name| exist.contains(name))
        } else {
            Vec::new()
        };
        let times = (now.monotonic, self.calm);
        self.patience
            .judge(("A5", "autoscalers"), gone, times, KEPT)
    }
}

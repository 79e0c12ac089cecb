//! Releases that are published, not applied, and no longer wanted.

use std::collections::BTreeSet;

use super::Work;
use crate::policy::capacity::ServingRole;
use crate::policy::draft::Draft;

/// Cancels the unapplied releases of every role that grows: their replicas still serve, so keeping them
/// costs nothing and acts at once. Percentages have done so already, instead of growing.
pub(super) fn apply(works: &mut [Work<'_>]) {
    for work in works {
        let role = |draft: &Draft<'_>| draft.view.template.role;
        let growing: BTreeSet<ServingRole> = (work.drafts.iter().filter(|draft| draft.grows()))
            .map(role)
            .collect();
        for draft in &mut work.drafts {
            // A budget that is shared by priority took its replicas; they are not its own to keep.
            if growing.contains(&role(draft)) && !draft.is_cut() {
                draft.cancel_release();
            }
        }
    }
}

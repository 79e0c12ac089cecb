//! Since when a variant has been pending, and since when its published count waits to be applied.

use crate::snapshot::{PodView, Readiness, ResolvedTarget, VariantView, gated};
use crate::units::Replicas;
use wva_base::moment::{Moment, Since, WallTime};

/// Both clocks of one variant. They stand still while the target is out of sight, so that a short
/// gap does not begin a limit anew.
#[derive(Debug, Clone, Default)]
pub(super) struct Clocks {
    sight: Sight,
    pending: Option<Pending>,
    unapplied: Option<Unapplied>,
}

/// Whether this process has watched the variant long enough to know when something began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Sight {
    /// It has not: what is found may have begun earlier.
    #[default]
    First,
    /// It has: what is new begins now.
    Followed,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    since: Since,
    current: Replicas,
}

#[derive(Debug, Clone, Copy)]
struct Unapplied {
    since: Since,
    desired: Replicas,
    current: Replicas,
}

impl Clocks {
    /// Takes the clocks over from the view that an earlier life published.
    pub(super) fn resume(view: &VariantView) -> Self {
        let Some(target) = view.target.resolved() else {
            return Self::default();
        };
        let current = target.current;
        Self {
            sight: Sight::Followed,
            pending: view.pending_since.map(|since| Pending { since, current }),
            unapplied: view.unapplied_since.zip(view.desired).map(|(since, desired)| Unapplied {
                since,
                desired,
                current,
            }),
        }
    }

    /// Moves both clocks to the present. `pods` is absent while pods cannot be seen: then what is
    /// found at first sight has no beginning yet.
    pub(super) fn advance(
        &mut self,
        target: &ResolvedTarget,
        desired: Option<Replicas>,
        pods: Option<&[PodView]>,
        now: Moment,
    ) {
        let began = match (self.sight, pods) {
            (Sight::Followed, _) => Some(Since::at(now)),
            (Sight::First, Some(pods)) => Some(oldest_unready(pods, now)),
            (Sight::First, None) => None,
        };
        self.advance_pending(target, gated(pods.unwrap_or_default()), began, now);
        self.advance_unapplied(target, desired, began, now);
        if pods.is_some() {
            self.sight = Sight::Followed;
        }
    }

    pub(super) fn pending_since(&self) -> Option<Since> {
        self.pending.map(|pending| pending.since)
    }

    /// Since when its published count is not applied.
    pub(super) fn unapplied_since(&self) -> Option<Since> {
        self.unapplied.map(|unapplied| unapplied.since)
    }

    fn advance_pending(
        &mut self,
        target: &ResolvedTarget,
        gated: Option<(Replicas, WallTime)>,
        began: Option<Since>,
        now: Moment,
    ) {
        let current = target.current;
        self.pending = if target.is_starting(gated) {
            let since = match self.pending {
                Some(pending) if current <= pending.current => Some(pending.since),
                Some(_) => Some(Since::at(now)),
                None => began,
            };
            since.map(|since| Pending { since, current })
        } else {
            None
        };
    }

    fn advance_unapplied(
        &mut self,
        target: &ResolvedTarget,
        desired: Option<Replicas>,
        began: Option<Since>,
        now: Moment,
    ) {
        let current = target.current;
        self.unapplied =
            desired.filter(|desired| !target.is_applied(*desired)).and_then(|desired| {
                let since = match self.unapplied {
                    Some(known) if known.desired == desired && known.current == current => {
                        Some(known.since)
                    }
                    Some(_) => Some(Since::at(now)),
                    None => began,
                };
                since.map(|since| Unapplied { since, desired, current })
            });
    }
}

/// What is found at first sight has lasted at least as long as its oldest pod has not been ready,
/// and nothing older than that is known.
pub(crate) fn oldest_unready(pods: &[PodView], now: Moment) -> Since {
    pods.iter()
        .filter(|pod| pod.readiness == Readiness::NotReady)
        .map(|pod| pod.created)
        .min()
        .map_or_else(|| Since::at(now), |created| Since::written(created, now))
}

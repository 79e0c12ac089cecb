//! T6: since when a variant waits outlives the role that has seen it begin.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::InvariantViolation;
use wva::policy::key::VariantKey;
use wva::policy::snapshot::VariantView;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoleIncarnation {
    pub(crate) uid: Option<Arc<str>>,
    pub(crate) number: u64,
    /// How often the role was started again until then, since it was made.
    pub(crate) restarts: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Clocks(BTreeMap<VariantKey, (RoleIncarnation, Arc<VariantView>)>);

impl Clocks {
    /// Judges what is known of all variants, with the life of each one's role. Where objects may be missing in
    /// answers for a moment, roles that were made anew are those of other objects.
    pub(crate) fn judge(
        &mut self,
        views: BTreeMap<VariantKey, Arc<VariantView>>,
        life: impl Fn(&VariantKey) -> Option<RoleIncarnation>,
        may_be_another: bool,
    ) -> Option<InvariantViolation> {
        let before = std::mem::take(&mut self.0);
        for (key, view) in views {
            let Some(life) = life(&key) else {
                continue;
            };
            self.0.insert(key, (life, view));
        }
        self.0.iter().find_map(|(key, (life, view))| {
            let (earlier, known) = before.get(key)?;
            let is_of_it = earlier.uid == life.uid;
            let is_made_anew = may_be_another && life.restarts <= earlier.restarts;
            let is_next = is_of_it && earlier.number != life.number && !is_made_anew;
            let what = forgotten(known, view).filter(|_| is_next)?;
            let text =
                format!("{key} was started again, and has forgotten since when it is {what}");
            Some(InvariantViolation::new("T6", text))
        })
    }
}

fn forgotten(known: &VariantView, view: &VariantView) -> Option<&'static str> {
    let is_same = known.target.resolved().is_some()
        && known.target == view.target
        && known.desired == view.desired;
    let clocks = [
        ("pending", known.pending_since, view.pending_since),
        ("unapplied", known.unapplied_since, view.unapplied_since),
    ];
    let mut clocks = clocks.into_iter().filter(|_| is_same);
    let (what, ..) = clocks.find(|(_, was, is)| was.is_some() && was != is)?;
    Some(what)
}

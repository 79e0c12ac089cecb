//! The board: what every variant's actor knows, one entry per variant. It outlives the actors.

use std::collections::BTreeMap;
use std::sync::Arc;

use dashmap::DashMap;

use crate::policy::key::VariantKey;
use crate::policy::snapshot::VariantView;
use wva_supervise::{Epoch, Fenced, Guard};

/// Views by variant, to be read.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<DashMap<VariantKey, Entry>>);

/// The half that writes. The registry of variants has it: each entry is written by the actor of its variant, and
/// removed by the registry when the variant is gone.
#[derive(Debug, Default)]
pub struct BoardWriter(Board);

#[derive(Debug)]
struct Entry {
    guard: Guard,
    view: Arc<VariantView>,
}

impl Board {
    /// The view of one variant.
    pub fn get(&self, key: &VariantKey) -> Option<Arc<VariantView>> {
        self.0.get(key).map(|entry| Arc::clone(&entry.view))
    }

    /// All views, sorted.
    pub fn snapshot(&self) -> BTreeMap<VariantKey, Arc<VariantView>> {
        self.0
            .iter()
            .map(|entry| (entry.key().clone(), Arc::clone(&entry.value().view)))
            .collect()
    }
}

impl BoardWriter {
    /// The half for everybody else.
    pub fn reader(&self) -> Board {
        self.0.clone()
    }

    /// Puts a view up and hands back the one it replaces.
    ///
    /// # Errors
    /// When a younger incarnation of the variant has written already.
    pub fn put(
        &self,
        epoch: &Epoch,
        view: Arc<VariantView>,
    ) -> Result<Option<Arc<VariantView>>, Fenced> {
        // A view that has not changed is put up as the same one again, so that the one that is there says
        // nothing about whether any was.
        let mut is_first = false;
        let mut entry = self.0.0.entry(view.key.clone()).or_insert_with(|| {
            is_first = true;
            Entry {
                guard: Guard::new(),
                view: Arc::clone(&view),
            }
        });
        let Entry { guard, view: shown } = entry.value_mut();
        guard.admit(epoch, || {
            let replaced = std::mem::replace(shown, view);
            (!is_first).then_some(replaced)
        })
    }

    /// Takes a variant down.
    pub fn remove(&self, key: &VariantKey) {
        self.0.0.remove(key);
    }
}

//! What happened in a world, as one number: equal for equal runs.

use serde::Serialize;

use crate::apiserver::Insider;
use crate::number::{HASH_OF_NOTHING, hash};
use wva::policy::plan::Plan;

/// Folds every write to the API server and every plan into a hash, FNV-1a.
#[derive(Debug)]
pub(super) struct Recorder {
    server: Insider,
    version: u64,
    hash: u64,
    writes: u64,
    decisions: u64,
}

/// The record of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RunRecord {
    /// Of all that was written and decided, in its order.
    pub hash: u64,
    /// Writes to the API server.
    pub writes: u64,
    /// Plans.
    pub plans: u64,
}

impl Recorder {
    pub(super) fn new(server: Insider) -> Self {
        Self {
            server,
            version: 1,
            hash: HASH_OF_NOTHING,
            writes: 0,
            decisions: 0,
        }
    }

    /// Takes down what was written since.
    pub(super) fn catch_up(&mut self) {
        // More than the server remembers never happens between two looks a second apart.
        for change in self.server.changes_after(self.version).unwrap_or_default() {
            self.version = change.version;
            self.writes += 1;
            self.fold(&change.resource);
            self.fold(&change.object.to_string());
            self.fold(if change.removed { "removed" } else { "" });
        }
    }

    pub(super) fn plan(&mut self, plan: &Plan) {
        self.decisions += 1;
        match serde_json::to_string(plan) {
            Ok(text) => self.fold(&text),
            Err(error) => self.fold(&error.to_string()),
        }
    }

    fn fold(&mut self, text: &str) {
        self.hash = hash(self.hash, text.bytes().chain([0xff]));
    }

    pub(super) fn record(&self) -> RunRecord {
        RunRecord {
            hash: self.hash,
            writes: self.writes,
            plans: self.decisions,
        }
    }
}

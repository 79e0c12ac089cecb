//! What config has reported about settings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster::mirror::ObjectKey;
use crate::settings::problem::{Diagnostics, Problem};
use crate::settings::rejection::Rejected;

/// The last findings. They outlive config, so that each is reported once.
#[derive(Debug, Clone, Default)]
pub struct ReportedFindings {
    /// Version of the main ConfigMap and the edits of it that were refused.
    pub refused: Option<(Arc<str>, Vec<Rejected>)>,
    pub(crate) diagnostics: Diagnostics,
    /// Lines that the log has, of what is found now.
    pub(crate) logged: BTreeSet<String>,
    /// What the last event on each ConfigMap said.
    pub(crate) noted: BTreeMap<ObjectKey, String>,
}

impl ReportedFindings {
    /// What the start has logged.
    pub fn at_start(diagnostics: &Diagnostics) -> Self {
        Self { logged: lines(diagnostics).collect(), ..Self::default() }
    }

    /// What is refused now, in words for the readiness page.
    pub fn refusals(&self) -> Option<String> {
        let (first, rest) = self.diagnostics.problems.split_first()?;
        let more = match rest.len() {
            0 => String::new(),
            more => format!("; and {more} more, see the log"),
        };
        Some(format!("{first}{more}"))
    }

    /// The settings that wait for a restart, by their documented names.
    pub fn waiting_for_restart(&self) -> Vec<&'static str> {
        let refused = self.refused.iter().flat_map(|(_, rejected)| rejected);
        refused.map(|rejected| rejected.display).collect()
    }
}

/// Everything that a start or a review says in the log.
pub(crate) fn lines(diagnostics: &Diagnostics) -> impl Iterator<Item = String> {
    let problems = diagnostics.problems.iter().map(Problem::subject);
    problems.chain(diagnostics.notices.iter().map(ToString::to_string))
}

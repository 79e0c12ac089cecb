//! D8: which models may go to zero, and how long after their last use, by the ConfigMaps that are stored.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::settings::stored;
use crate::apiserver::Insider;
use wva::policy::key::ModelKey;
use wva::policy::params::DynamicSettings;
use wva::settings::config_maps::Purpose;
use wva::settings::generation::transition;
use wva::settings::problem::Diagnostics;
use wva::settings::{Generation, Sources};

const CONFIG_MAPS: &str = "configmaps.";
/// How soon in calm no process acts on what was in force before.
const SETTLED: Duration = Duration::from_secs(30);
/// How long after a permission to go to zero has ended a process may still act on it that may not know:
/// mirrors are listed afresh every ten minutes.
pub(crate) const AFTERGLOW: Duration = Duration::from_mins(12);

/// The policy that follows from what is stored, and those before it that a process may still act on. Content
/// that is refused ends nothing: what was valid before it stays in force.
#[derive(Debug, Default)]
pub(crate) struct ZeroPolicies {
    version: u64,
    now: Option<Generation>,
    /// Whether some of what is stored is refused, so that a process may keep anything that it had.
    is_refused: bool,
    past: VecDeque<(Duration, Arc<DynamicSettings>)>,
}

impl ZeroPolicies {
    /// Takes in what is stored. `of` is what some process has in force, whose names of ConfigMaps count, and
    /// its flags and environment.
    pub(crate) fn note(
        &mut self,
        (of, fixed): (&Generation, &Sources),
        insider: &Insider,
        now: Duration,
    ) {
        if self.now.is_none() || insider.changed_since(self.version, &[CONFIG_MAPS]) {
            let before = self.now.get_or_insert_with(|| of.clone());
            let transition = transition(before, &stored(before, fixed, insider));
            self.is_refused = is_refused(&transition.diagnostics);
            if let Some(next) = transition.next {
                let before = std::mem::replace(before, next);
                self.past.push_back((now, before.dynamic));
            }
        }
        self.version = insider.version();
        self.past.retain(|(at, _)| now.saturating_sub(*at) < AFTERGLOW);
        if self.is_refused {
            self.past.iter_mut().for_each(|(at, _)| *at = now);
        }
    }

    fn in_force(
        &self,
        calm: Option<Duration>,
        now: Duration,
    ) -> impl Iterator<Item = &DynamicSettings> {
        let may_last = move |at: Duration| match calm {
            Some(since) => now < at.max(since) + SETTLED,
            None => true,
        };
        let past = self.past.iter().filter(move |(at, _)| may_last(*at));
        let present = self.now.iter().map(|generation| &*generation.dynamic);
        past.map(|(_, dynamic)| &**dynamic).chain(present)
    }

    /// Whether the process may send a model to zero; also before anything is known.
    pub(crate) fn allow(&self, model: &ModelKey, calm: Option<Duration>, now: Duration) -> bool {
        let mut all = self.in_force(calm, now);
        self.now.is_none() || all.any(|dynamic| dynamic.may_go_to_zero(model))
    }

    /// How long a model must have been idle before the process sends it to zero.
    pub(crate) fn retention(
        &self,
        model: &ModelKey,
        calm: Option<Duration>,
        now: Duration,
    ) -> Option<Duration> {
        let all = self.in_force(calm, now);
        all.map(|dynamic| dynamic.scale_to_zero.retention(model)).min()
    }
}

fn is_refused(diagnostics: &Diagnostics) -> bool {
    let mut problems = diagnostics.problems.iter();
    problems.any(|problem| matches!(problem.purpose(), Purpose::ScaleToZero | Purpose::Saturation))
}

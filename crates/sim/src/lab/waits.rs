//! Requests that wait in the router although their model could grow.

use std::time::Duration;

use super::record::LongWait;
use crate::world::{Frame, ModelFrame, Scenario};

/// How long requests wait before a policy has to act or to state a reason.
const LONG: Duration = Duration::from_mins(2);

#[derive(Debug, Clone, Copy, Default)]
struct Waiting {
    since: Option<Duration>,
    grew: bool,
}

#[derive(Debug)]
pub(super) struct WaitRecorder {
    /// The time to judge at: a long wait, and the time that a controller needs to see it.
    limit: Duration,
    bounds: Vec<Vec<u32>>,
    waiting: Vec<Waiting>,
    pub(super) found: Vec<LongWait>,
}

impl WaitRecorder {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let models = scenario.models.iter();
        let bounds = models.map(|model| model.variants.iter().map(|one| one.bounds.1).collect());
        let bounds: Vec<Vec<u32>> = bounds.collect();
        Self {
            limit: LONG + scenario.scrape_interval + 2 * scenario.interval,
            waiting: vec![Waiting::default(); bounds.len()],
            bounds,
            found: Vec::new(),
        }
    }

    pub(super) fn observe(&mut self, frame: &Frame, now: Duration) {
        let models = frame.models.iter().zip(&self.bounds);
        for ((model, bounds), waiting) in models.zip(&mut self.waiting) {
            let mut variants = model.variants.iter().zip(bounds);
            let has_room = variants.any(|(variant, max)| variant.scaled_to < *max);
            if model.held == 0 || !has_room {
                *waiting = Waiting::default();
                continue;
            }
            let since = *waiting.since.get_or_insert(now);
            waiting.grew |= grows(model);
            let lasts = now.saturating_sub(since);
            if lasts >= self.limit {
                let mut variants = model.variants.iter();
                self.found.push(LongWait {
                    at: now.as_secs_f64(),
                    model: model.name.clone(),
                    seconds: lasts.as_secs_f64(),
                    grew: waiting.grew,
                    reason: variants.find_map(|variant| variant.unserved.clone()),
                });
                *waiting = Waiting::default();
            }
        }
    }
}

fn grows(model: &ModelFrame) -> bool {
    let mut variants = model.variants.iter();
    variants.any(|variant| {
        let is_ordered = variant.desired.is_some_and(|desired| desired > variant.scaled_to);
        is_ordered || variant.pending > 0
    })
}

#[cfg(test)]
#[path = "tests/waits.rs"]
mod tests;

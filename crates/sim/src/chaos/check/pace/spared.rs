//! T7: a server that asks to be left alone is, for as long as it says.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{InvariantViolation, Sent, collection};

/// The longest time for which a controller does so: `cluster::client` says why.
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct Spared(BTreeMap<String, Wait>);

#[derive(Debug)]
struct Wait {
    until: Duration,
    asked: Duration,
    /// How many roles had begun by then: a later one knows nothing of it.
    lives: u64,
}

impl Spared {
    pub(crate) fn note(&mut self, request: &Sent<'_>, asked: Duration, lives: u64, now: Duration) {
        self.0.retain(|_, wait| now < wait.until);
        let Some(name) = name(request) else {
            return;
        };
        let until = now + asked.min(LONGEST);
        let wait = Wait { until, asked, lives };
        self.0.insert(name, wait);
    }

    /// Whether a request comes too early. Where a role has begun since the answer it is unknown here whether it
    /// is the one that had it.
    pub(crate) fn judge(
        &mut self,
        request: &Sent<'_>,
        lives: u64,
        now: Duration,
    ) -> Option<InvariantViolation> {
        if self.0.is_empty() {
            return None;
        }
        let name = name(request)?;
        let wait = self.0.remove(&name)?;
        if now >= wait.until || lives != wait.lives {
            return None;
        }
        let (early, asked) = (wait.until.saturating_sub(now), wait.asked.as_secs());
        let early = early.as_secs_f64();
        let text =
            format!("{name} is sent {early:.3} s too early: the server has asked for {asked} s");
        Some(InvariantViolation::new("T7", text))
    }
}

/// What is one request, made again. Nothing where it may be repeated: who leads renews its lease in time or loses it,
/// and each reader of a page of the process causes a review.
fn name(request: &Sent<'_>) -> Option<String> {
    let Sent { method, path, query, .. } = *request;
    if path.contains("/leases") || path.contains("reviews") {
        return None;
    }
    let verb = if query.contains("watch=") { "WATCH" } else { method.as_str() };
    Some(format!("{verb} {}", collection(path, query)))
}

//! T7: a server that asks to be left alone is, for as long as it asks for.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{InvariantViolation, Sent, collection};

/// The longest time for which a controller does so: `cluster::client` says why.
const LONGEST: Duration = Duration::from_secs(30);

/// Requests of one process that are not to be made again yet.
#[derive(Debug, Default)]
pub(super) struct Spared(BTreeMap<String, Wait>);

#[derive(Debug)]
struct Wait {
    until: Duration,
    asked: Duration,
    /// How many roles had begun by then: whoever begins later knows nothing of it.
    lives: u64,
}

impl Spared {
    /// Takes in an answer that asks for so much time.
    pub(super) fn note(&mut self, request: &Sent<'_>, asked: Duration, lives: u64, now: Duration) {
        self.0.retain(|_, wait| now < wait.until);
        let Some(name) = name(request) else {
            return;
        };
        let until = now + asked.min(LONGEST);
        let wait = Wait {
            until,
            asked,
            lives,
        };
        self.0.insert(name, wait);
    }

    /// Whether a request comes too early. Where a role has begun since the answer nobody can say, from here, whether it
    /// is the one that had it.
    pub(super) fn judge(
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
/// and a review is asked for by whoever reads a page of the process.
fn name(request: &Sent<'_>) -> Option<String> {
    let Sent {
        method,
        path,
        query,
        ..
    } = *request;
    if path.contains("/leases") || path.contains("reviews") {
        return None;
    }
    let verb = if query.contains("watch=") {
        "WATCH"
    } else {
        method.as_str()
    };
    Some(format!("{verb} {}", collection(path, query)))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    const PODS: &str = "/api/v1/pods";
    const STATUS: &str = "/apis/llmd.ai/v1alpha1/namespaces/n/variantautoscalings/v/status";
    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l";

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn list(query: &str) -> Sent<'_> {
        Sent {
            method: &Method::GET,
            path: PODS,
            query,
            body: b"",
        }
    }

    fn write(path: &str) -> Sent<'_> {
        Sent {
            method: &Method::PATCH,
            path,
            query: "fieldManager=me",
            body: b"",
        }
    }

    /// Whether a request is too early that is made so much later than it was answered.
    fn is_early(request: Sent<'_>, asked: u64, again: Sent<'_>, later: u64) -> bool {
        let mut spared = Spared::default();
        assert_eq!(spared.judge(&request, 7, seconds(100)), None);
        spared.note(&request, seconds(asked), 7, seconds(100));
        spared.judge(&again, 7, seconds(100 + later)).is_some()
    }

    #[test]
    fn a_request_that_was_warded_off_is_not_made_again_before_its_time() {
        for request in [list("limit=500"), list("watch=true"), write(STATUS)] {
            assert!(is_early(request, 20, request, 0), "{request:?}");
            assert!(is_early(request, 20, request, 19), "{request:?}");
            assert!(!is_early(request, 20, request, 20), "{request:?}");
            // Nobody has to wait for longer than this.
            assert!(is_early(request, 300, request, 29), "{request:?}");
            assert!(!is_early(request, 300, request, 30), "{request:?}");
        }
        assert!(!is_early(write(LEASE), 20, write(LEASE), 0));
        let mut spared = Spared::default();
        spared.note(&write(STATUS), seconds(20), 7, seconds(100));
        let early = spared.judge(&write(STATUS), 7, seconds(105)).unwrap();
        let text =
            format!("T7: PATCH {STATUS} is sent 15.000 s too early: the server has asked for 20 s");
        assert_eq!(early.to_string(), text);
    }

    #[test]
    fn another_request_is_none_of_it() {
        let first = list("limit=500");
        assert!(is_early(first, 20, list("limit=500&continue=x"), 1));
        for other in [
            list("watch=true"),
            list("limit=500&fieldSelector=a"),
            write(PODS),
            write(STATUS),
        ] {
            assert!(!is_early(first, 20, other, 1), "{other:?}");
        }
    }

    #[test]
    fn who_begins_after_the_answer_knows_nothing_of_it() {
        let mut spared = Spared::default();
        spared.note(&write(STATUS), seconds(20), 7, seconds(100));
        assert_eq!(spared.judge(&write(STATUS), 8, seconds(101)), None);
        assert_eq!(spared.judge(&write(STATUS), 8, seconds(102)), None);
        spared.note(&write(STATUS), seconds(20), 8, seconds(103));
        assert!(spared.judge(&write(STATUS), 8, seconds(104)).is_some());
    }

    #[test]
    fn what_is_over_is_not_kept() {
        let mut spared = Spared::default();
        spared.note(&write(STATUS), seconds(20), 7, seconds(100));
        spared.note(&list("limit=500"), seconds(5), 7, seconds(110));
        assert_eq!(spared.0.len(), 2);
        spared.note(&list("limit=500"), seconds(5), 7, seconds(120));
        assert_eq!(spared.0.len(), 1, "{spared:?}");
    }
}

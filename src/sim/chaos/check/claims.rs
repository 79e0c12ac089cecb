//! W: who may write.

use http::Method;

use super::Violation;
use crate::sim::chaos::line::is_write;
use crate::sim::world::objects::SYSTEM;

/// W1: no two processes hold a valid claim at one time.
pub(in crate::sim::chaos) fn overlap(holders: &[usize]) -> Option<Violation> {
    match holders {
        [first, second, ..] => {
            let text = format!("c{first} and c{second} both hold a valid claim");
            Some(Violation::new("W1", text))
        }
        _ => None,
    }
}

/// W2, W3: no write starts without a claim. The lease itself is how one comes by it, a review only asks,
/// and of its own pod, which is in its own namespace, every process may tell events.
pub(in crate::sim::chaos) fn write(
    place: usize,
    method: &Method,
    path: &str,
    leads: bool,
    ever_led: bool,
) -> Option<Violation> {
    let own = format!("/namespaces/{SYSTEM}/events");
    let exempt = path.contains("/leases") || path.contains("reviews") || path.ends_with(&own);
    if leads || exempt || !is_write(method) {
        return None;
    }
    let text = format!("c{place} sends {method} {path} without a claim");
    let invariant = if ever_led { "W3" } else { "W2" };
    Some(Violation::new(invariant, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_is_fine_and_two_are_not() {
        assert_eq!(overlap(&[]), None);
        assert_eq!(overlap(&[1]), None);
        let found = overlap(&[0, 2]).unwrap();
        assert_eq!(found.to_string(), "W1: c0 and c2 both hold a valid claim");
    }

    #[test]
    fn a_write_needs_a_claim() {
        let path = "/apis/llmd.ai/v1alpha1/namespaces/a/variantautoscalings/b/status";
        let lease = "/apis/coordination.k8s.io/v1/namespaces/a/leases/b";
        let judged = |method, path, leads, led| {
            write(1, &method, path, leads, led).map(|found| found.invariant)
        };
        assert_eq!(judged(Method::PATCH, path, true, true), None);
        assert_eq!(judged(Method::GET, path, false, false), None);
        assert_eq!(judged(Method::PUT, lease, false, false), None);
        for (namespace, expected) in [(SYSTEM, None), ("a", Some("W3"))] {
            let events = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
            let found = write(1, &Method::POST, &events, false, true);
            assert_eq!(found.map(|found| found.invariant), expected, "{namespace}");
        }
        assert_eq!(judged(Method::PATCH, path, false, false), Some("W2"));
        assert_eq!(judged(Method::PATCH, path, false, true), Some("W3"));
    }
}

//! When and how the API server fails the controller.

use std::time::Duration;

use super::scenario::{ApiFault, ScenarioFault};
use crate::apiserver::RequestFault;

/// What a request of the controller meets at this time, by what goes wrong in the scenario and when.
pub(super) fn api_fault(troubles: &[(Duration, ScenarioFault)], now: Duration) -> RequestFault {
    let mut met = RequestFault::default();
    for (begins, trouble) in troubles {
        let ScenarioFault::ApiServer { fault, lasts } = trouble else {
            continue;
        };
        if *begins <= now && now < begins.saturating_add(*lasts) {
            match fault {
                ApiFault::Refusing(status) => met.refuse = Some(*status),
                ApiFault::Slow(latency) => met.latency += *latency,
                ApiFault::Silent => met.hang = true,
            }
        } else if now < *begins && !matches!(fault, ApiFault::Slow(_)) {
            // A watch that is opened now ends when the server does.
            let left = begins.saturating_sub(now);
            met.cut_after = Some(met.cut_after.map_or(left, |other| other.min(left)));
        }
    }
    met
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_time() {
        let second = Duration::from_secs(1);
        let trouble = |fault| ScenarioFault::ApiServer { fault, lasts: 10 * second };
        let troubles = [
            (10 * second, trouble(ApiFault::Slow(second))),
            (15 * second, trouble(ApiFault::Refusing(503))),
            (40 * second, trouble(ApiFault::Silent)),
        ];
        let cut = |after: u32| RequestFault {
            cut_after: Some(after * second),
            ..RequestFault::default()
        };
        let slow = |fault| RequestFault { latency: second, ..fault };
        let refused = |fault| RequestFault { refuse: Some(503), ..fault };
        let silent = RequestFault { hang: true, ..RequestFault::default() };
        for (at, wanted) in [
            (0, cut(15)),
            (10, slow(cut(5))),
            (15, slow(refused(cut(25)))),
            (20, refused(cut(20))),
            (25, cut(15)),
            (40, silent),
            (50, RequestFault::default()),
        ] {
            assert_eq!(api_fault(&troubles, at * second), wanted, "second {at}");
        }
    }
}

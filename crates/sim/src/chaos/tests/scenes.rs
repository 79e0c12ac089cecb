//! Kill once, everywhere, in the scenes besides the first.

use super::super::exhaustive::{scenes, wrong};
use super::*;

/// Without a disturbance each scene rests in its own way, and after one in the same.
/// `wva-sim chaos --everywhere` ends every role in each of them.
#[test]
fn each_scene_comes_to_rest_where_it_does_undisturbed() {
    let rests = scenes().map(|scene| {
        let outcome = scene.play(None, Keep::Tail);
        assert_eq!(outcome.violation, None, "{scene:?}");
        assert!(!outcome.struck);
        outcome.rest
    });
    let rests: Vec<Quiescence> = rests.collect();
    for (place, rest) in rests.iter().enumerate() {
        for other in &rests[place + 1..] {
            assert!(rest.unlike(other).is_some());
        }
    }
    let [_, tokens, pair, zero, limited, autoscaled] = rests.as_slice() else {
        panic!("{} scenes", rests.len());
    };
    for (scene, usual, probe) in [
        (ExhaustiveScenario::Tokens, tokens, Probe::Role(Role::Collector, KillAt::After(4))),
        // Rest begins some seconds later by it, which decided on series that hang on requests of the last minutes.
        (ExhaustiveScenario::Tokens, tokens, Probe::Role(Role::Leadership, KillAt::Before(118))),
        (ExhaustiveScenario::Pair, pair, Probe::Write(8, ProcessFault::DuringWrite)),
        (ExhaustiveScenario::Zero, zero, Probe::Role(Role::RouterScraper, KillAt::Before(2))),
        (
            ExhaustiveScenario::Limited,
            limited,
            Probe::Role(Role::Watcher(WatchedKind::HoldingPod), KillAt::After(2)),
        ),
        (ExhaustiveScenario::Limited, limited, Probe::Role(Role::Root, KillAt::Before(40))),
        (
            ExhaustiveScenario::Autoscaled,
            autoscaled,
            Probe::Role(Role::AutoscalerWriter, KillAt::Before(8)),
        ),
        (
            ExhaustiveScenario::Autoscaled,
            autoscaled,
            Probe::Role(Role::PodAutoscalers, KillAt::After(2)),
        ),
    ] {
        let outcome = scene.play(Some(probe.clone()), Keep::Tail);
        assert_eq!(wrong(&outcome, usual), None, "{scene:?} {probe:?}");
        assert!(outcome.struck, "{scene:?} has no {probe:?}");
    }
}

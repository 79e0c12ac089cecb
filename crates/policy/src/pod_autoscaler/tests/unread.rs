//! Annotations that nothing reads.

use super::object;

#[test]
fn annotations_that_a_strategy_or_a_target_does_not_read_are_named() {
    let service = "the target is no StormService";
    for (key, value, unread) in wva_base::cases! {
        ("max-scale-up-rate", "3", [None; 3]),
        ("scale-down-cooldown-window", "1m", [None; 3]),
        ("scale-up-tolerance", "0.3", [None, None, Some("the HPA controller has a tolerance of its own")]),
        ("panic-threshold", "3", [None, Some("only KPA panics"), Some("only KPA panics")]),
        ("scale-to-zero", "true", [None, None, Some("only KPA and APA go to zero by load")]),
        ("storm-service-mode", "replica", [Some(service); 3]),
    } {
        for (strategy, why) in ["KPA", "APA", "HPA"].into_iter().zip(unread) {
            let full = format!("autoscaling.aibrix.ai/{key}");
            let spec = format!("scalingStrategy: {strategy}");
            let faults = object("pa", &spec, &[(full.as_str(), value)])
                .check()
                .unwrap()
                .faults;
            let found: Vec<String> = faults.iter().map(ToString::to_string).collect();
            let expected = why
                .map(|why| format!("annotation {full}: {value:?} has no effect: {why}; remove it"));
            assert_eq!(found, Vec::from_iter(expected), "{key} {strategy}");
        }
    }
}

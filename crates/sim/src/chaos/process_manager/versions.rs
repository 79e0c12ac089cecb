//! Settings of another version of the controller, as they are during a rollout.

use std::collections::BTreeMap;

use crate::chaos::dice::Dice;
use wva_supervise::Generator;

type Settings = &'static [(&'static str, &'static str)];

const BEATS: [Settings; 2] = [&[("GLOBAL_OPT_INTERVAL", "7s")], &[("GLOBAL_OPT_INTERVAL", "50s")]];

/// What else may differ between two versions.
const OTHERS: [Settings; 7] = [
    // Samples are soon too old, or for long not.
    &[
        ("PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", "25s"),
        ("PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD", "50s"),
        ("PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD", "75s"),
    ],
    &[
        ("PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", "90s"),
        ("PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD", "3m"),
        ("PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD", "8m"),
    ],
    &[("PROMETHEUS_METRICS_CACHE_TTL", "0s"), ("PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL", "9s")],
    &[
        ("WVA_PENDING_TIME_LIMIT", "2m"),
        ("WVA_UNAPPLIED_TIME_LIMIT", "2m"),
        ("WVA_SILENT_TIME_LIMIT", "2m"),
    ],
    // What the analyzers look ahead by, and what limits them.
    &[("WVA_REPLICA_START_TIME", "5m")],
    &[("WVA_LIMITED_MODE", "true")],
    &[("SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY", "2")],
];

pub(super) fn version(generator: Generator) -> BTreeMap<String, String> {
    let mut dice = Dice::new(generator);
    let (of_beats, of_others) = match dice.below(3) {
        0 => (true, false),
        1 => (false, true),
        _ => (true, true),
    };
    let beat = dice.pick(&BEATS).filter(|_| of_beats);
    let other = dice.pick(&OTHERS).filter(|_| of_others);
    let all = beat.into_iter().chain(other).copied().flatten();
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::world::controller::environment;
    use wva::settings::{Sources, start};
    use wva_supervise::SeedTree;

    #[test]
    fn every_version_is_drawn_and_its_settings_are_in_force() {
        let started = |extra: &BTreeMap<String, String>| {
            let mut environment = environment("pod", Duration::from_secs(10));
            environment.extend(extra.clone());
            let sources = Sources { environment, ..Sources::default() };
            start(&sources).unwrap()
        };
        let usual = started(&BTreeMap::new()).generation;
        let mut drawn = BTreeSet::new();
        for seed in 0..300 {
            let draw = || version(SeedTree::new(seed).child("rollout"));
            let extra = draw();
            assert_eq!(extra, draw());
            let started = started(&extra);
            assert_eq!(started.diagnostics.problems, [], "{extra:?}");
            assert_ne!(started.generation.dynamic, usual.dynamic, "{extra:?}");
            drawn.insert(extra);
        }
        let (beats, others) = (BEATS.len(), OTHERS.len());
        assert_eq!(drawn.len(), beats + others + beats * others, "{drawn:?}");
    }
}

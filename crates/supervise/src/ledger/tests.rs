use proptest::prelude::*;

use super::*;

const POLICY: RestartPolicy = RestartPolicy {
    max_restarts: 5,
    window: Duration::from_mins(5),
    delay_base: Duration::from_millis(500),
    delay_cap: Duration::from_secs(3),
};

const QUARANTINE: QuarantinePolicy = QuarantinePolicy {
    delay_base: Duration::from_secs(1),
    delay_cap: Duration::from_mins(5),
    quarantine_from: 3,
    systemic_window: Duration::from_mins(1),
    systemic_floor: 10,
};

const AT_ONCE: Duration = Duration::ZERO;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn delay_doubles_is_capped_then_escalates() {
    let mut ledger = RestartLedger::default();
    for (exit, millis) in [500, 1_000, 2_000, 3_000, 3_000].into_iter().enumerate() {
        assert_eq!(
            ledger.record_exit(secs(10), &POLICY),
            ExitVerdict::RestartAfter(Duration::from_millis(millis)),
            "exit {exit}"
        );
    }
    assert_eq!(ledger.record_exit(secs(310), &POLICY), ExitVerdict::Escalate);
}

#[test]
fn exits_outside_the_window_do_not_count() {
    let mut ledger = RestartLedger::default();
    for _ in 0..5 {
        ledger.record_exit(secs(10), &POLICY);
    }
    assert_eq!(
        ledger.clone().record_exit(secs(310), &POLICY),
        ExitVerdict::Escalate,
        "exactly as old as the window still counts"
    );
    assert_eq!(
        ledger.record_exit(secs(311), &POLICY),
        ExitVerdict::RestartAfter(POLICY.delay_base)
    );
}

#[test]
fn a_key_is_quarantined_from_its_third_failure_and_never_escalates() {
    let mut ledger = KeyLedger::new();
    let mut exit = |now| ledger.record_exit(&"a", secs(now), AT_ONCE, 1, &QUARANTINE);
    assert_eq!(exit(0), KeyVerdict::RestartAfter(secs(1)));
    assert_eq!(exit(1), KeyVerdict::RestartAfter(secs(2)));
    let mut now = 3;
    for (failures, seconds) in
        [(3, 4), (4, 8), (5, 16), (6, 32), (7, 64), (8, 128), (9, 256), (10, 300), (11, 300)]
    {
        let retry_in = secs(seconds);
        assert_eq!(exit(now), KeyVerdict::Quarantine { failures, retry_in });
        now += seconds;
    }
}

#[test]
fn a_long_life_ends_the_row() {
    let mut ledger = KeyLedger::new();
    for _ in 0..3 {
        ledger.record_exit(&"a", secs(0), AT_ONCE, 1, &QUARANTINE);
    }
    assert_eq!(
        ledger.clone().record_exit(&"a", secs(299), secs(299), 1, &QUARANTINE),
        KeyVerdict::Quarantine { failures: 4, retry_in: secs(8) }
    );
    assert_eq!(
        ledger.record_exit(&"a", secs(300), secs(300), 1, &QUARANTINE),
        KeyVerdict::RestartAfter(secs(1))
    );
}

#[test]
fn more_than_half_of_at_least_ten_keys_within_a_minute_is_systemic() {
    // (keys that fail, seconds between two failures, keys there are, systemic at the last one)
    let vectors = [
        (5, 0, 10, false),
        (6, 0, 10, true),
        (6, 12, 10, true),
        (6, 13, 10, false),
        (9, 0, 9, false),
        (11, 0, 20, true),
        (10, 0, 20, false),
    ];
    for (failing, gap, keys, systemic) in vectors {
        let mut ledger = KeyLedger::new();
        let mut last = None;
        for key in 0..failing {
            let now = secs(key * gap);
            last = Some(ledger.record_exit(&key, now, AT_ONCE, keys, &QUARANTINE));
        }
        assert_eq!(
            matches!(last, Some(KeyVerdict::SystemicFailure { .. })),
            systemic,
            "{failing} of {keys}, {gap} s apart: {last:?}"
        );
    }
}

#[test]
fn one_key_that_fails_often_is_one_failed_key() {
    let mut ledger = KeyLedger::new();
    for _ in 0..20 {
        let verdict = ledger.record_exit(&"a", secs(1), AT_ONCE, 10, &QUARANTINE);
        assert!(!matches!(verdict, KeyVerdict::SystemicFailure { .. }));
    }
}

#[test]
fn a_forgotten_key_leaves_nothing() {
    let mut ledger = KeyLedger::new();
    for key in 0..6 {
        ledger.record_exit(&key, secs(1), AT_ONCE, 100, &QUARANTINE);
    }
    assert_eq!((ledger.records.len(), ledger.recent.len()), (6, 6));
    for key in 0..6 {
        ledger.forget(&key);
    }
    assert_eq!((ledger.records.len(), ledger.recent.len()), (0, 0));
    assert_eq!(
        ledger.record_exit(&0, secs(2), AT_ONCE, 10, &QUARANTINE),
        KeyVerdict::RestartAfter(secs(1))
    );
}

proptest! {
    #[test]
    fn never_more_restarts_within_a_window_than_allowed(gaps in prop::collection::vec(0_u64..200, 1..60)) {
        let mut ledger = RestartLedger::default();
        let mut now = Duration::ZERO;
        let mut restarts: Vec<Duration> = Vec::new();
        for gap in gaps {
            now += secs(gap);
            match ledger.record_exit(now, &POLICY) {
                ExitVerdict::RestartAfter(delay) => {
                    prop_assert!(delay >= POLICY.delay_base && delay <= POLICY.delay_cap);
                    restarts.push(now);
                }
                ExitVerdict::Escalate => {
                    ledger = RestartLedger::default();
                    restarts.clear();
                }
            }
            let within = restarts
                .iter()
                .filter(|restart| now.saturating_sub(**restart) <= POLICY.window)
                .count();
            prop_assert!(within <= POLICY.max_restarts);
            prop_assert!(ledger.exits.len() <= POLICY.max_restarts);
        }
    }

    #[test]
    fn the_key_ledger_is_bounded_by_its_keys(
        steps in prop::collection::vec((0_u8..8, 0_u64..30, any::<bool>()), 1..200)
    ) {
        let mut ledger = KeyLedger::new();
        let mut known = BTreeSet::new();
        let mut now = Duration::ZERO;
        for (key, gap, forget) in steps {
            now += secs(gap);
            if forget {
                ledger.forget(&key);
                known.remove(&key);
            } else {
                ledger.record_exit(&key, now, AT_ONCE, 8, &QUARANTINE);
                known.insert(key);
            }
            prop_assert_eq!(ledger.records.len(), known.len());
            prop_assert!(ledger.recent.len() <= known.len());
        }
    }
}

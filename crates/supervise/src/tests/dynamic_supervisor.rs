//! Children by key: one that fails costs the others nothing.

use std::time::Duration;

use super::nursery::{Notice, Nursery, key, session};
use super::role::Role;
use super::stage::{Act, Curse, Journal, Noted, Stage, rest, secs, until};
use crate::{ExitReason, Order, RoleState, TreeRole as _};

async fn raise(sessions: usize) -> (Stage, Nursery) {
    let journal = Journal::new();
    let nursery = Nursery::new(&journal).with(0..sessions);
    let stage = Stage::raise(journal, vec![nursery.spec()]).await;
    (stage, nursery)
}

fn quarantines(nursery: &Nursery, number: usize) -> Vec<(usize, Duration)> {
    let notices = nursery.notices(number).into_iter();
    notices
        .filter_map(|notice| match notice {
            Notice::Quarantined { failures, retry_in } => Some((failures, retry_in)),
            Notice::Started | Notice::Ended | Notice::Released => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_key_that_keeps_failing_is_quarantined_with_growing_delays_and_alone() {
    for curse in [Curse::PanicWhenMade, Curse::FailOnWake] {
        let (stage, nursery) = raise(3).await;
        let others = [0, 2].map(|number| stage.report(&session(number)));
        nursery.put(1, curse);
        nursery.post(1).send(Act::Hang);
        rest().await;
        let hit = stage.report(&session(1));
        assert!(matches!(hit.state, RoleState::Restarting { .. }), "{hit:?}");
        until(secs(10), "quarantine", || {
            (stage.report(&session(1)).state == RoleState::Quarantined).then_some(())
        })
        .await;
        tokio::time::sleep(Duration::from_hours(1)).await;
        let quarantines = quarantines(&nursery, 1);
        let mut expected = secs(4);
        for (index, (failures, retry_in)) in quarantines.iter().enumerate() {
            assert_eq!(*failures, index + 3, "{curse:?}");
            let ratio = retry_in.as_secs_f64() / expected.as_secs_f64();
            assert!((0.79..=1.21).contains(&ratio), "{retry_in:?} for {expected:?}");
            expected = (expected * 2).min(secs(300));
        }
        assert!(quarantines.len() > 12, "{quarantines:?}");
        assert_eq!(stage.report(&session(1)).state, RoleState::Quarantined);
        for other in others {
            let now = stage.report(&other.role);
            assert_eq!(now.incarnation, other.incarnation, "{}", other.role);
            assert_eq!(now.state, RoleState::Running, "{}", other.role);
        }
        assert_eq!(stage.report(&Role::Sessions).restarts, 0);
        assert_eq!(stage.fall().await, ExitReason::Shutdown);
    }
}

#[tokio::test(start_paused = true)]
async fn a_quarantined_key_is_released_when_its_object_changes_for_the_better() {
    let (stage, nursery) = raise(2).await;
    nursery.put(0, Curse::FailOnWake);
    stage.kill(&session(0));
    tokio::time::sleep(secs(200)).await;
    assert_eq!(stage.report(&session(0)).state, RoleState::Quarantined);
    let attempts = stage.journal.attempts(&session(0)).len();

    // A change that does not help costs one more attempt, at once.
    nursery.put(0, Curse::FailOnWake);
    rest().await;
    assert_eq!(stage.journal.attempts(&session(0)).len(), attempts + 1);
    assert!(!nursery.notices(0).contains(&Notice::Released));
    // Further ones within a second have to wait for that second, together.
    for _ in 0..100 {
        nursery.put(0, Curse::FailOnWake);
        rest().await;
    }
    assert_eq!(stage.journal.attempts(&session(0)).len(), attempts + 1);
    tokio::time::sleep(secs(1)).await;
    assert_eq!(stage.journal.attempts(&session(0)).len(), attempts + 2);

    tokio::time::sleep(secs(2)).await;
    nursery.put(0, Curse::None);
    rest().await;
    assert_eq!(stage.report(&session(0)).state, RoleState::Running);
    assert_ne!(nursery.notices(0).last(), Some(&Notice::Released), "too early");
    tokio::time::sleep(secs(2)).await;
    let notices = nursery.notices(0);
    assert_eq!(notices.last(), Some(&Notice::Released), "{notices:?}");
    assert_eq!(notices[notices.len() - 2], Notice::Started);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(nursery.notices(0).len(), notices.len(), "and stays so");
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn a_change_in_the_instant_of_an_exit_is_not_lost() {
    let (stage, nursery) = raise(2).await;
    nursery.put(0, Curse::FailOnWake);
    stage.kill(&session(0));
    tokio::time::sleep(secs(200)).await;
    nursery.put(0, Curse::None);
    tokio::time::sleep(secs(10)).await;
    assert_eq!(stage.report(&session(0)).state, RoleState::Running);

    stage.kill(&session(0));
    nursery.put(0, Curse::None);
    rest().await;
    assert_eq!(stage.report(&session(0)).state, RoleState::Quarantined);
    tokio::time::sleep(secs(1)).await;
    assert_eq!(stage.report(&session(0)).state, RoleState::Running);
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn totals_do_not_fall_when_a_key_ends() {
    let (stage, nursery) = raise(2).await;
    nursery.put(0, Curse::FailOnWake);
    stage.kill(&session(0));
    tokio::time::sleep(secs(2)).await;
    let label = session(0).label();
    let totals = || stage.kit.actors.totals()[label];
    let (before, report) = (totals(), stage.report(&session(0)));
    assert!(report.sent > 0 && report.restarts > 0, "{report:?}");
    nursery.delete(0);
    rest().await;
    let known = stage.kit.actors.report();
    assert!(known.iter().all(|report| report.role != session(0)));
    let after = totals();
    assert!(after.sent >= before.sent, "{before:?} {after:?}");
    assert!(after.handled >= before.handled, "{before:?} {after:?}");
    assert!(after.restarts >= before.restarts, "{before:?} {after:?}");
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_ends_is_cleaned_up_and_comes_back_above_its_former_numbers() {
    let (stage, nursery) = raise(2).await;
    let first = stage.report(&session(0));
    nursery.delete(0);
    rest().await;
    assert_eq!(nursery.notices(0), [Notice::Started, Notice::Ended]);
    let known = stage.kit.actors.report();
    assert!(known.iter().all(|report| report.role != session(0)), "forgotten");
    nursery.delete(0);
    rest().await;
    assert_eq!(nursery.notices(0).len(), 2, "ended once");
    nursery.put(0, Curse::None);
    rest().await;
    let second = stage.report(&session(0));
    assert!(second.incarnation > first.incarnation);
    assert_eq!((second.restarts, second.state), (0, RoleState::Running));

    // The same for one that is away, and in quarantine.
    nursery.post(0).send(Act::Hang);
    rest().await;
    assert!(matches!(stage.report(&session(0)).state, RoleState::Restarting { .. }));
    nursery.delete(0);
    tokio::time::sleep(secs(600)).await;
    assert_eq!(nursery.notices(0).last(), Some(&Notice::Ended));
    assert_eq!(stage.journal.attempts(&session(0)).len(), 2, "no restart");
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn orders_for_one_key_are_carried_out_in_order_and_may_be_repeated() {
    let (stage, nursery) = raise(1).await;
    let first = stage.report(&session(0));
    let send = |orders: &[Order<_>]| {
        nursery.orders.lock().unwrap().extend_from_slice(orders);
        assert_eq!(nursery.address.send(()), crate::Delivery::Taken);
    };
    let (run, end) = (Order::Run(key(0)), Order::End(key(0)));
    send(&[run.clone(), run.clone()]);
    rest().await;
    assert_eq!(nursery.notices(0), [Notice::Started]);
    send(&[end.clone(), run.clone()]);
    rest().await;
    assert_eq!(
        nursery.notices(0),
        [Notice::Started, Notice::Ended, Notice::Started],
        "a new life begins when the old one has ended"
    );
    assert!(stage.report(&session(0)).incarnation > first.incarnation);
    send(&[end.clone(), run, end]);
    rest().await;
    assert_eq!(nursery.notices(0).last(), Some(&Notice::Ended));
    assert!(super::stage::report(&stage.kit.actors, &session(0)).is_none());
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn more_than_half_of_at_least_ten_failing_at_once_is_the_supervisors_failure() {
    for (failing, systemic) in [(5, false), (6, true)] {
        let (stage, nursery) = raise(10).await;
        let before = stage.report(&Role::Sessions);
        let untouched = stage.report(&session(9));
        // One that is deleted while its supervisor is away must not be remembered.
        for number in 0..failing {
            nursery.post(number).send(Act::Panic);
        }
        rest().await;
        nursery.delete(8);
        tokio::time::sleep(secs(10)).await;
        let after = stage.report(&Role::Sessions);
        assert_eq!(after.incarnation > before.incarnation, systemic, "{failing}");
        if let Some(why) = &after.last_failure {
            assert!(why.contains("6 of 10 children failed within 60 s"), "{why}");
        }
        assert_eq!(stage.report(&session(9)).incarnation > untouched.incarnation, systemic);
        for number in [0, 1, 2, 3, 4, 5, 6, 7, 9] {
            let report = stage.report(&session(number));
            assert_eq!(report.state, RoleState::Running, "{number}");
        }
        assert!(super::stage::report(&stage.kit.actors, &session(8)).is_none());
        assert_eq!(stage.fall().await, ExitReason::Shutdown);
    }
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_panics_is_restarted_and_runs_its_keys_anew() {
    let (stage, nursery) = raise(3).await;
    let before = stage.report(&Role::Sessions);
    let child = stage.report(&session(1));
    *nursery.poisoned.lock().unwrap() = true;
    nursery.put(7, Curse::None);
    rest().await;
    let away = stage.report(&Role::Sessions);
    assert!(matches!(away.state, RoleState::Restarting { .. }), "{away:?}");
    assert_eq!(away.last_failure.as_deref(), Some("panicked: poisoned"));
    let after = stage.reborn(&Role::Sessions, before.incarnation).await;
    assert_eq!(after.restarts, 1);
    rest().await;
    for number in [0, 1, 2, 7] {
        assert_eq!(stage.report(&session(number)).state, RoleState::Running);
    }
    assert!(stage.report(&session(1)).incarnation > child.incarnation);
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_keys_come_work_and_go() {
    const KEYS: usize = 10_000;
    let (stage, nursery) = raise(KEYS).await;
    for number in 0..KEYS {
        nursery.post(number).send(Act::Work(1, Duration::ZERO));
    }
    rest().await;
    assert_eq!(stage.journal.roles(&Noted::Finished(1)).len(), KEYS);
    let reports = stage.kit.actors.report();
    assert_eq!(reports.len(), KEYS + 2);
    for report in &reports {
        assert_eq!(report.sent, report.handled, "{}", report.role);
    }
    for number in 0..KEYS {
        nursery.delete(number);
    }
    rest().await;
    assert_eq!(stage.kit.actors.report().len(), 2);
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

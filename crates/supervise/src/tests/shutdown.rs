//! The orderly end, also with an actor that hangs.

use std::time::Duration;

use super::nursery::{Ensemble, session};
use super::role::Role;
use super::stage::{Act, Curse, Journal, Noted, Stage, rest, secs};
use crate::TreeRole as _;
use crate::child::children_stop_by;
use crate::{ActorKind, ExitReason, RoleState, StopHow};

#[tokio::test(start_paused = true)]
async fn children_start_top_down_and_stop_bottom_up() {
    let ensemble = Ensemble::new(&Journal::new());
    let journal = ensemble.posts[0].journal();
    let stage = Stage::raise(journal.clone(), ensemble.specs()).await;
    let actors = stage.kit.actors.clone();
    let mut woken: Vec<Role> = journal.roles(&Noted::Made);
    // Variants are started by the full pass of their registry, which is not awaited.
    woken.retain(|role| role.parent() != Some(Role::Sessions));
    assert!(woken.is_sorted(), "{woken:?}");
    assert_eq!(woken.len(), ensemble.posts.len());

    let start = tokio::time::Instant::now();
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
    assert!(start.elapsed() < secs(1), "no grace period has to pass");
    assert_eq!(
        journal.roles(&Noted::Retired),
        [Role::Recorder, Role::Flusher, Role::Leadership,],
        "pumps that flush"
    );
    for report in actors.report() {
        assert_eq!(report.state, RoleState::Stopped, "{}", report.role);
        assert_eq!(report.sent, report.handled, "{}", report.role);
    }
    assert_eq!((actors.overdue(), actors.survivors()), (0, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_hung_leaf_does_not_keep_the_others_from_flushing() {
    // Who hangs while retiring, and who in a handler; how many of them have a flush to miss.
    let vectors: [(&[Role], &[Role], u64); 4] = [
        (&[Role::Flusher], &[], 1),
        (&[], &[Role::Recorder, Role::Collector, Role::Http], 1),
        (&[Role::Flusher], &[Role::Recorder], 2),
        (&[Role::Flusher, Role::Leadership], &[Role::Recorder], 3),
    ];
    for (retiring, handling, overdue) in vectors {
        let ensemble = Ensemble::new(&Journal::new());
        let journal = ensemble.posts[0].journal();
        let stage = Stage::raise(journal.clone(), ensemble.specs()).await;
        for role in retiring {
            *ensemble.post(role).curse.lock().unwrap() = Curse::HangOnRetire;
        }
        for role in handling {
            ensemble.post(role).send(Act::Hang);
        }
        rest().await;
        let actors = stage.kit.actors.clone();
        let start = tokio::time::Instant::now();
        assert_eq!(stage.fall().await, ExitReason::Shutdown);
        assert!(start.elapsed() < Role::Root.policy().grace);
        let retired = journal.roles(&Noted::Retired);
        for post in ensemble.posts {
            let policy = post.role.policy();
            let hung = retiring.contains(&post.role) || handling.contains(&post.role);
            let flushes = policy.stop == StopHow::Stop && policy.kind == ActorKind::Pump;
            assert_eq!(
                retired.contains(&post.role),
                flushes && !hung,
                "{} of {retired:?}",
                post.role
            );
        }
        for report in actors.report() {
            assert_eq!(report.state, RoleState::Stopped, "{}", report.role);
        }
        assert_eq!((actors.overdue(), actors.survivors()), (overdue, vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_between_two_lives_starts_no_role() {
    let ensemble = Ensemble::new(&Journal::new());
    let journal = ensemble.posts[0].journal();
    let stage = Stage::raise(journal.clone(), ensemble.specs()).await;
    let actors = stage.kit.actors.clone();
    for role in [&Role::Emitter, &Role::Config, &session(0), &Role::Engine] {
        stage.kill(role);
    }
    rest().await;
    assert!(matches!(stage.report(&Role::Emitter).state, RoleState::Restarting { .. }));
    let made = journal.roles(&Noted::Made).len();
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
    tokio::time::sleep(secs(60)).await;
    assert_eq!(journal.roles(&Noted::Made).len(), made);
    for report in actors.report() {
        assert_eq!(report.state, RoleState::Stopped, "{}", report.role);
    }
}

#[tokio::test(start_paused = true)]
async fn no_task_is_left_and_no_timer() {
    let ensemble = Ensemble::new(&Journal::new());
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks(), 0);
    let stage = Stage::raise(ensemble.posts[0].journal(), ensemble.specs()).await;
    ensemble.post(&Role::Collector).send(Act::Later(1, Duration::from_hours(1)));
    rest().await;
    assert!(tasks() > ensemble.posts.len());
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
    rest().await;
    assert_eq!(tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_kills_the_tree() {
    let ensemble = Ensemble::new(&Journal::new());
    let stage = Stage::raise(ensemble.posts[0].journal(), ensemble.specs()).await;
    let actors = stage.kit.actors.clone();
    assert_eq!(actors.survivors().len(), ensemble.leaves().len() + 5);
    stage.abort();
    rest().await;
    assert_eq!(actors.survivors(), []);
    assert_eq!(ensemble.posts[0].journal().roles(&Noted::Retired), []);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_plans_with_the_time_it_was_given() {
    let kit = super::stage::kit();
    // (given by its own supervisor, left for its children)
    let vectors = [
        (None, secs(4) * 7 / 8),
        (Some(secs(2)), secs(2) * 7 / 8),
        (Some(Duration::ZERO), Duration::ZERO),
    ];
    for (given, left) in vectors {
        tokio::time::sleep(secs(100)).await;
        let now = kit.clock.now().monotonic;
        let guard = kit.actors.begin(&Role::Egress, kit.clock.now());
        if let Some(given) = given {
            guard.incarnation().stop_by.get_or_init(|| now + given);
        }
        assert_eq!(children_stop_by(&kit, &guard), now + left, "given {given:?}");
    }
}

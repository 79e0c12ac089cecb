//! Hung lives are recognised and killed; busy and idle ones are not.

use std::time::Duration;

use super::stage::{Act, Journal, Post, Stage, secs};
use crate::kit::{Aliveness, Census, ExitReason, Role, RoleState, WatchedKind, supervisor};

async fn one(role: Role) -> (Stage, Post) {
    let journal = Journal::new();
    let post = Post::new(role, &journal);
    let spec = match post.role.parent() {
        Some(Role::Root) => post.spec(),
        Some(parent) => supervisor(parent, vec![post.spec()]),
        None => panic!("the root is no child"),
    };
    (Stage::raise(journal, vec![spec]).await, post)
}

#[tokio::test(start_paused = true)]
async fn a_pump_that_never_answers_is_killed_within_two_seconds_of_its_limit() {
    for role in [
        Role::Leadership,
        Role::StatusWriter,
        Role::EventRecorder,
        Role::Collector,
    ] {
        let (stage, post) = one(role).await;
        let role = &post.role;
        let limit = role.policy().stall_after.unwrap();
        // Idle for longer than the limit: that alone is no reason.
        tokio::time::sleep(limit * 2).await;
        let before = stage.report(role);
        assert_eq!(
            (before.state, before.restarts),
            (RoleState::Running, 0),
            "{role}"
        );
        let start = tokio::time::Instant::now();
        post.tell(Act::Hang);
        tokio::time::sleep(limit - secs(1)).await;
        assert_eq!(stage.report(role).state, RoleState::Running, "{role}");
        let killed = super::stage::until(secs(10), "killed", || {
            let now = stage.report(role);
            (now.state != RoleState::Running).then_some(start.elapsed())
        })
        .await;
        assert!(
            killed > limit - secs(1) && killed <= limit + secs(2),
            "{role} after {killed:?}"
        );
        let after = stage.reborn(role, before.incarnation).await;
        let why = after.last_failure.unwrap();
        assert!(why.starts_with("hung: 1 messages waited"), "{role}: {why}");
        assert_eq!(stage.kit.census.alive(), Aliveness::Alive);
        assert_eq!(stage.fall().await, ExitReason::Shutdown);
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_whose_handler_may_take_for_ever_is_left_alone() {
    for role in [Role::Http, Role::Watcher(WatchedKind::Pod)] {
        let (stage, post) = one(role).await;
        post.tell(Act::Hang);
        tokio::time::sleep(Duration::from_hours(24)).await;
        let report = stage.report(&post.role);
        assert_eq!((report.state, report.restarts), (RoleState::Running, 0));
        assert_eq!(report.told, report.handled + 1, "{}", post.role);
        assert_eq!(stage.fall().await, ExitReason::Shutdown);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pump_with_a_long_queue_that_makes_progress_is_left_alone() {
    let (stage, post) = one(Role::Collector).await;
    let limit = post.role.policy().stall_after.unwrap();
    for task in 0..10 {
        post.tell(Act::Work(task, limit - secs(5)));
    }
    tokio::time::sleep(limit * 10).await;
    let report = stage.report(&post.role);
    assert_eq!((report.state, report.restarts), (RoleState::Running, 0));
    assert_eq!(report.told, report.handled);
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[test]
fn a_killed_life_that_does_not_end_makes_the_process_suspect() {
    let census = Census::new();
    let _root = census.begin(&Role::Root);
    let optimizer = census.begin(&Role::Optimizer);
    assert_eq!(census.alive(), Aliveness::Alive);
    census.stalled(&Role::Optimizer);
    assert_eq!(census.alive(), Aliveness::Stalled(vec![Role::Optimizer]));
    drop(optimizer);
    assert_eq!(census.alive(), Aliveness::Alive);
}

//! Hung lives are recognised and killed; busy and idle ones are not.

use std::time::Duration;

use super::role::Role;
use super::stage::{Act, Journal, Post, Stage, secs};
use crate::{Aliveness, ExitReason, RoleState, TreeRole as _, supervisor};

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
    for role in [Role::Leadership, Role::Flusher, Role::Recorder, Role::Collector, Role::Feed(1)] {
        let (stage, post) = one(role).await;
        let role = &post.role;
        let limit = role.policy().stall_after.unwrap();
        // Idle for longer than the limit: that alone is no reason.
        tokio::time::sleep(limit * 2).await;
        let before = stage.report(role);
        assert_eq!((before.state, before.restarts), (RoleState::Running, 0), "{role}");
        let start = tokio::time::Instant::now();
        post.send(Act::Hang);
        let almost = limit.saturating_sub(secs(1));
        tokio::time::sleep(almost).await;
        assert_eq!(stage.report(role).state, RoleState::Running, "{role}");
        let killed = super::stage::until(secs(10), "killed", || {
            let now = stage.report(role);
            (now.state != RoleState::Running).then_some(start.elapsed())
        })
        .await;
        assert!(killed > almost && killed <= limit + secs(2), "{role} after {killed:?}");
        let after = stage.reborn(role, before.incarnation).await;
        let why = after.last_failure.unwrap();
        assert!(why.starts_with("hung: 1 messages waited"), "{role}: {why}");
        let now = stage.kit.clock.now();
        assert_eq!(stage.kit.actors.alive(now), Aliveness::Alive);
        assert_eq!(stage.fall().await, ExitReason::Shutdown);
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_whose_handler_may_take_for_ever_is_left_alone() {
    let (stage, post) = one(Role::Http).await;
    post.send(Act::Hang);
    tokio::time::sleep(Duration::from_hours(24)).await;
    let report = stage.report(&post.role);
    assert_eq!((report.state, report.restarts), (RoleState::Running, 0));
    assert_eq!(report.sent, report.handled + 1);
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn a_pump_with_a_long_queue_that_makes_progress_is_left_alone() {
    let (stage, post) = one(Role::Collector).await;
    let limit = post.role.policy().stall_after.unwrap();
    for task in 0..10 {
        post.send(Act::Work(task, limit.mul_f64(0.9)));
    }
    tokio::time::sleep(limit * 10).await;
    let report = stage.report(&post.role);
    assert_eq!((report.state, report.restarts), (RoleState::Running, 0));
    assert_eq!(report.sent, report.handled);
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_killed_makes_the_process_suspect() {
    let kit = super::stage::kit();
    let (actors, clock) = (&kit.actors, &kit.clock);
    let _root = actors.begin(&Role::Root, clock.now());
    tokio::time::sleep(secs(20)).await;
    let planner = actors.begin(&Role::Planner, clock.now());
    let registry = actors.begin(&Role::Sessions, clock.now());
    assert_eq!(actors.alive(clock.now()), Aliveness::Alive);
    actors.set_state(&Role::Planner, RoleState::Stalled);
    let stuck = |roles: &[Role]| Aliveness::Stuck(roles.to_vec());
    assert_eq!(actors.alive(clock.now()), stuck(&[Role::Planner]));
    drop(planner);
    assert_eq!(actors.alive(clock.now()), Aliveness::Alive);
    // Supervisors that do not sweep: thirty seconds each, from the beginning of their lives.
    tokio::time::sleep(secs(11)).await;
    assert_eq!(actors.alive(clock.now()), stuck(&[Role::Root]));
    tokio::time::sleep(secs(20)).await;
    assert_eq!(actors.alive(clock.now()), stuck(&[Role::Root, Role::Sessions]));
    drop(registry);
    assert_eq!(actors.alive(clock.now()), stuck(&[Role::Root]));
}

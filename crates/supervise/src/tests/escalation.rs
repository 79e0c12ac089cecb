//! Delays, budgets, and what happens when a budget is spent.

use std::time::Duration;

use super::role::Role;
use super::stage::{Curse, Journal, Post, Stage, secs};
use crate::{ChildrenPolicy, ExitReason, RestartPolicy, RoleState, TreeRole as _, supervisor};

fn policy(role: &Role) -> RestartPolicy {
    match role.policy().children {
        Some(ChildrenPolicy::Restart(policy)) => policy,
        other => panic!("{role}: {other:?}"),
    }
}

/// Delays between attempts, and the expected ones before jitter.
#[track_caller]
fn check_delays(attempts: &[Duration], policy: &RestartPolicy) {
    let mut expected = policy.delay_base;
    for (index, pair) in attempts.windows(2).enumerate() {
        let delay = pair[1].abs_diff(pair[0]).as_secs_f64();
        let ratio = delay / expected.as_secs_f64();
        assert!((0.79..=1.21).contains(&ratio), "delay {index}: {delay} s instead of {expected:?}");
        expected = (expected * 2).min(policy.delay_cap);
    }
}

#[tokio::test(start_paused = true)]
async fn delays_double_up_to_the_cap_and_then_the_supervisor_starts_all_children_anew() {
    for (parent, cursed, other) in [
        (Role::Ingress, Role::Feed(1), Role::Feed(0)),
        (Role::Egress, Role::Recorder, Role::Emitter),
        (Role::Engine, Role::Collector, Role::Planner),
    ] {
        let journal = Journal::new();
        let cursed = Post::new(cursed, &journal).cursed(Curse::PanicWhenMade);
        let other = Post::new(other, &journal);
        let bystander = Post::new(Role::Config, &journal);
        let group = supervisor(parent.clone(), vec![other.spec(), cursed.spec()]);
        let stage = Stage::raise(journal, vec![bystander.spec(), group]).await;
        let before = stage.report(&other.role);
        assert_eq!(before.state, RoleState::Running, "{parent}");
        let first_parent = stage.report(&parent).incarnation;

        let after = stage.reborn_within(secs(300), &other.role, before.incarnation).await;
        let policy = policy(&parent);
        let attempts = stage.journal.attempts(&cursed.role);
        let of_first_life = &attempts[..=policy.max_restarts];
        check_delays(of_first_life, &policy);
        assert!(
            attempts[policy.max_restarts + 1] >= of_first_life[policy.max_restarts] + secs(1) / 2,
            "the parent's own delay: {attempts:?}"
        );
        assert!(after.incarnation > stage.report(&parent).incarnation);
        assert!(stage.report(&parent).incarnation > first_parent);
        let why = stage.report(&parent).last_failure.unwrap();
        assert!(why.contains(&cursed.role.to_string()) && why.contains("cannot be made"), "{why}");
        assert_eq!(stage.report(&bystander.role).restarts, 0, "{parent}");
        assert_eq!(stage.fall().await, ExitReason::Shutdown);
    }
}

#[tokio::test(start_paused = true)]
async fn exits_far_apart_never_escalate() {
    let journal = Journal::new();
    let post = Post::new(Role::Config, &journal);
    let stage = Stage::raise(journal, vec![post.spec()]).await;
    let window = policy(&Role::Root).window;
    for restarts in 1..=8 {
        let number = stage.report(&post.role).incarnation;
        stage.kill(&post.role);
        let after = stage.reborn(&post.role, number).await;
        assert_eq!(after.restarts, restarts);
        tokio::time::sleep(window / 3 + secs(1)).await;
    }
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn a_spent_root_budget_ends_the_process() {
    let journal = Journal::new();
    let post = Post::new(Role::Config, &journal).cursed(Curse::FailOnWake);
    let other = Post::new(Role::Leadership, &journal);
    let stage = Stage::raise(journal.clone(), vec![other.spec(), post.spec()]).await;
    let actors = stage.kit.actors.clone();
    let ExitReason::Failed(why) = stage.collapse(secs(60)).await else {
        panic!("was not asked to end");
    };
    assert!(why.contains("config ended more than 3 times within 600 s"), "{why}");
    assert!(why.contains("cannot wake"), "{why}");
    let attempts = journal.attempts(&post.role);
    assert_eq!(attempts.len(), 4);
    check_delays(&attempts, &policy(&Role::Root));
    for report in actors.report() {
        assert_eq!(report.state, RoleState::Stopped, "{}", report.role);
    }
}

#[tokio::test(start_paused = true)]
async fn a_leaf_that_cannot_be_helped_brings_down_its_parent_then_the_root() {
    let journal = Journal::new();
    let post = Post::new(Role::Collector, &journal).cursed(Curse::PanicWhenMade);
    let engine = supervisor(Role::Engine, vec![post.spec()]);
    let stage = Stage::raise(journal.clone(), vec![engine]).await;
    let ExitReason::Failed(why) = stage.collapse(secs(600)).await else {
        panic!("was not asked to end");
    };
    assert!(why.contains("engine") && why.contains("collector"), "{why}");
    // Four lives of the engine, each with six attempts.
    assert_eq!(journal.attempts(&post.role).len(), 4 * 6);
}

#[tokio::test(start_paused = true)]
async fn a_killed_root_ends_the_process() {
    let journal = Journal::new();
    let post = Post::new(Role::Config, &journal);
    let stage = Stage::raise(journal, vec![post.spec()]).await;
    stage.kill(&Role::Root);
    assert_eq!(stage.collapse(secs(1)).await, ExitReason::Failed("the root was killed".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_is_put_together_wrongly_does_not_start() {
    let journal = Journal::new();
    let collector = Post::new(Role::Collector, &journal).spec();
    let config = || Post::new(Role::Config, &journal).spec();
    let misfit =
        crate::machine(Role::Leadership, &crate::Address::vacant(), |_| -> super::stage::Player {
            unreachable!("never made")
        });
    let vectors = [
        (vec![collector], "put under root but belongs under engine"),
        (vec![config(), config()], "config is specified twice"),
        (vec![misfit], "specified as a Machine but its role is that of a Pump"),
    ];
    for (children, complaint) in vectors {
        let stage = Stage::raise(Journal::new(), children).await;
        let ExitReason::Failed(why) = stage.collapse(secs(1)).await else {
            panic!("was not asked to end");
        };
        assert!(why.contains(complaint), "{why}");
    }
}

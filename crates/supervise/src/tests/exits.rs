//! Every way in which a life can end is answered with another one.

use std::time::Duration;

use super::role::Role;
use super::stage::{Act, Curse, Journal, Noted, Post, Stage, rest};
use crate::{Aliveness, ExitReason, RoleState, supervisor};

/// Two siblings; the first is the one that suffers.
async fn pair(curse: Curse) -> (Stage, Post, Post) {
    let journal = Journal::new();
    let victim = Post::new(Role::Flusher, &journal).cursed(curse);
    let other = Post::new(Role::Emitter, &journal);
    let egress = supervisor(Role::Egress, vec![other.spec(), victim.spec()]);
    let stage = Stage::raise(journal, vec![egress]).await;
    (stage, victim, other)
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_or_panics_costs_one_life() {
    for (act, why) in [(Act::Fail, "ordered to fail"), (Act::Panic, "ordered to panic")] {
        let (stage, victim, other) = pair(Curse::None).await;
        let before = stage.report(&victim.role);
        assert_eq!((before.state, before.restarts), (RoleState::Running, 0));
        assert_eq!(before.last_failure, None);
        let bystander = stage.report(&other.role);
        victim.send(act);
        let after = stage.reborn(&victim.role, before.incarnation).await;
        assert_eq!((after.restarts, after.last_failure.as_deref()), (1, Some(why)));
        assert_eq!(stage.report(&other.role).incarnation, bystander.incarnation, "{act:?}");
        assert_eq!(stage.fall().await, ExitReason::Shutdown);
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_that_cannot_be_made_or_wake_is_tried_again_and_costs_no_other_role_a_life() {
    for (curse, why) in
        [(Curse::PanicWhenMade, "cannot be made"), (Curse::FailOnWake, "cannot wake")]
    {
        let (stage, victim, other) = pair(curse).await;
        let bystander = stage.report(&other.role);
        assert_eq!(bystander.state, RoleState::Running);
        let first = stage.report(&victim.role);
        assert!(matches!(first.state, RoleState::Restarting { .. }), "{first:?}");
        assert!(first.last_failure.unwrap().contains(why), "{curse:?}");
        tokio::time::sleep(Duration::from_secs(2)).await;
        let later = stage.report(&victim.role);
        assert!(later.restarts >= 2, "{curse:?}: {later:?}");
        *victim.curse.lock().unwrap() = Curse::None;
        let after = stage.reborn(&victim.role, later.incarnation).await;
        assert_eq!(after.incarnation, stage.report(&victim.role).incarnation);
        assert_eq!(stage.report(&other.role).incarnation, bystander.incarnation, "{curse:?}");
        assert_eq!(stage.fall().await, ExitReason::Shutdown);
    }
}

#[tokio::test(start_paused = true)]
async fn exits_of_one_instant_are_answered_in_the_order_of_the_children() {
    let mut returns = Vec::new();
    for swapped in [false, true] {
        let (stage, victim, other) = pair(Curse::None).await;
        let mut killed = [&other, &victim];
        if swapped {
            killed.reverse();
        }
        for post in killed {
            stage.kill(&post.role);
        }
        rest().await;
        for post in [&victim, &other] {
            let after = stage.reborn(&post.role, 0).await;
            assert_eq!(after.restarts, 1, "{}", post.role);
        }
        // The delays are drawn from one generator, so they show the order of the decisions.
        returns.push([&victim, &other].map(|post| stage.journal.attempts(&post.role)));
        assert_eq!(stage.fall().await, ExitReason::Shutdown);
    }
    assert_eq!(returns[0], returns[1]);
}

#[tokio::test(start_paused = true)]
async fn what_an_actor_sends_itself_arrives_and_is_counted() {
    let (stage, victim, _other) = pair(Curse::None).await;
    let before = stage.report(&victim.role);
    victim.send(Act::Next(3));
    rest().await;
    assert_eq!(stage.journal.roles(&Noted::Finished(3)).len(), 1);
    let after = stage.report(&victim.role);
    assert_eq!((after.sent, after.handled), (before.sent + 2, before.sent + 2));
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn a_report_can_be_read_as_json() {
    let (stage, victim, _other) = pair(Curse::None).await;
    stage.kill(&victim.role);
    rest().await;
    let json = serde_json::to_value(stage.report(&victim.role)).unwrap();
    assert_eq!(json["role"], "flusher");
    assert_eq!(json["parent"], "egress");
    assert_eq!(json["last_failure"], "killed");
    assert!(json["state"]["restarting"]["after"].is_object(), "{json}");
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn timers_end_with_the_life_that_armed_them() {
    let (stage, victim, _other) = pair(Curse::None).await;
    let hour = Duration::from_hours(1);
    victim.send(Act::Later(7, hour));
    rest().await;
    stage.kill(&victim.role);
    let number = stage.report(&victim.role).incarnation;
    stage.reborn(&victim.role, number).await;
    victim.send(Act::Later(8, hour));
    tokio::time::sleep(hour * 2).await;
    let begun: Vec<_> = [7, 8].map(|task| stage.journal.roles(&Noted::Began(task)).len()).into();
    assert_eq!(begun, [0, 1]);
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn the_census_knows_whether_the_root_is_alive() {
    let (stage, _victim, _other) = pair(Curse::None).await;
    let kit = stage.kit.clone();
    let alive = || kit.actors.alive(kit.clock.now());
    assert_eq!(alive(), Aliveness::Alive);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(alive(), Aliveness::Alive);
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
    assert_eq!(alive(), Aliveness::NoRoot);
}

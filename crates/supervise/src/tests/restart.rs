//! Killed roles come back, and nothing is lost.

use std::collections::BTreeSet;

use super::nursery::Ensemble;
use super::role::Role;
use super::stage::{Act, Journal, Noted, Stage, rest, secs};
use crate::SeedTree;
use crate::{ActorKind, Delivery, ExitReason, RoleState, TreeRole as _};

fn events(journal: &Journal, role: &Role, number: u64) -> Vec<Noted> {
    journal
        .of(role)
        .into_iter()
        .filter(|line| line.number == number)
        .map(|line| line.event)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn every_leaf_that_is_killed_idle_wakes_again_and_answers_what_rang_meanwhile() {
    let ensemble = Ensemble::new(&Journal::new());
    let journal = ensemble.posts[0].journal();
    let stage = Stage::raise(journal.clone(), ensemble.specs()).await;
    for post in ensemble.leaves() {
        let role = &post.role;
        let before = stage.report(role);
        assert_eq!(before.state, RoleState::Running, "{role}");
        assert_eq!(before.sent, before.handled, "{role} is idle");
        stage.kill(role);
        rest().await;
        let away = stage.report(role);
        assert!(matches!(away.state, RoleState::Restarting { .. }), "{role}: {away:?}");
        post.bell.insert(41);
        assert_eq!(post.address.send(Act::Answer), Delivery::Vacant, "{role} is away");
        let after = stage.reborn(role, before.incarnation).await;
        assert_eq!(after.restarts, before.restarts + 1, "{role}");
        assert_eq!(after.last_failure.as_deref(), Some("killed"), "{role}");
        let answered = Noted::Answered(BTreeSet::from([41]));
        let incarnation = events(&journal, role, after.incarnation);
        assert_eq!(incarnation, [Noted::Made, Noted::Woke, answered], "{role}");
    }
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn every_leaf_that_is_killed_at_work_loses_only_what_it_held() {
    let ensemble = Ensemble::new(&Journal::new());
    let journal = ensemble.posts[0].journal();
    let stage = Stage::raise(journal.clone(), ensemble.specs()).await;
    for post in ensemble.leaves() {
        let role = &post.role;
        let before = stage.report(role);
        post.send(Act::Work(1, secs(10)));
        if role.policy().kind == ActorKind::Pump {
            tokio::time::sleep(secs(5)).await;
            let begun = events(&journal, role, before.incarnation);
            assert_eq!(begun.last(), Some(&Noted::Began(1)), "{role} is at work");
        }
        // One hint waits in the mailbox, behind the work, when the life ends.
        post.bell.insert(42);
        let busy = stage.report(role);
        assert_eq!(busy.sent, busy.handled + 2, "{role}");
        stage.kill(role);
        let after = stage.reborn(role, before.incarnation).await;
        let old = events(&journal, role, before.incarnation);
        assert!(!old.contains(&Noted::Finished(1)), "{role}: {old:?}");
        let answered = Noted::Answered(BTreeSet::from([42]));
        let incarnation = events(&journal, role, after.incarnation);
        assert_eq!(incarnation, [Noted::Made, Noted::Woke, answered], "{role}");
        assert_eq!(after.lost, before.lost + 2, "{role}");
    }
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_is_killed_comes_back_with_all_below_it_and_no_other_role() {
    let ensemble = Ensemble::new(&Journal::new());
    let stage = Stage::raise(ensemble.posts[0].journal(), ensemble.specs()).await;
    for supervisor in [Role::Egress, Role::Engine, Role::Sessions, Role::Ingress] {
        let before: Vec<_> = stage.kit.actors.report();
        stage.kill(&supervisor);
        let number = stage.report(&supervisor).incarnation;
        stage.reborn(&supervisor, number).await;
        rest().await;
        for old in before {
            let now = stage.report(&old.role);
            let below = old.role == supervisor || old.parent.as_ref() == Some(&supervisor);
            assert_eq!(now.incarnation > old.incarnation, below, "{} after {supervisor}", old.role);
            assert_eq!(now.state, RoleState::Running, "{}", old.role);
            assert_eq!(now.sent, now.handled, "{}", old.role);
        }
    }
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn under_random_kills_every_ring_is_answered() {
    const RINGS: u32 = 60;
    for seed in 0..20 {
        let ensemble = Ensemble::new(&Journal::new());
        let journal = ensemble.posts[0].journal();
        let stage = Stage::raise(journal.clone(), ensemble.specs()).await;
        let leaves = ensemble.leaves();
        let mut dice = SeedTree::new(seed).child("kills");
        for ring in 0..RINGS {
            for post in &leaves {
                post.bell.insert(ring);
            }
            // At most four victims: more at once would spend a budget, which is another test.
            if ring % 15 == 0 {
                let drawn = usize::try_from(dice.next_u64() >> 33).unwrap();
                stage.kit.actors.kill(&leaves[drawn % leaves.len()].role);
            }
            tokio::time::sleep(dice.jitter(secs(1) / 5, 1.0)).await;
        }
        tokio::time::sleep(secs(60)).await;
        for post in &leaves {
            let mut answered = BTreeSet::new();
            for line in journal.of(&post.role) {
                if let Noted::Answered(keys) = line.event {
                    answered.extend(keys);
                }
            }
            assert_eq!(answered, (0..RINGS).collect(), "{} with seed {seed}", post.role);
            let report = stage.report(&post.role);
            assert_eq!(report.sent, report.handled, "{} seed {seed}", post.role);
        }
        assert_eq!(stage.fall().await, ExitReason::Shutdown);
    }
}

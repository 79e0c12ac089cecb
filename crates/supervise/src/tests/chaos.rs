//! Kills at every point, and the same play from the same seed.

use std::collections::BTreeSet;
use std::time::Duration;

use super::nursery::Ensemble;
use super::role::Role;
use super::stage::{Act, Journal, Line, Noted, Post, Stage, rest, secs};
use crate::SeedTree;
use crate::{ExitReason, KillAt, Mishap, RoleState, TreeRole as _, supervisor};

const TASKS: u32 = 5;

/// Rings five times, a second apart, and returns what was answered and by how many lives.
async fn five_rings(role: Role, kill: Option<KillAt>) -> (BTreeSet<u32>, Vec<Line>, u64) {
    let journal = Journal::new();
    let post = Post::new(role, &journal);
    let spec = match post.role.parent() {
        Some(Role::Root) => post.spec(),
        Some(parent) => supervisor(parent, vec![post.spec()]),
        None => panic!("the root is no child"),
    };
    let kit = journal.kit();
    if let Some(kill) = kill {
        kit.actors.kill_at(&post.role, kill);
    }
    let stage = Stage::raise(journal, vec![spec]).await;
    for task in 0..TASKS {
        tokio::time::sleep(secs(2)).await;
        post.bell.insert(task);
    }
    tokio::time::sleep(secs(10)).await;
    let report = stage.report(&post.role);
    assert_eq!(report.state, RoleState::Running);
    assert_eq!(report.sent, report.handled);
    assert_eq!(report.lost, u64::from(matches!(kill, Some(KillAt::Before(_)))));
    let lines = stage.journal.of(&post.role);
    let mut answered = BTreeSet::new();
    for line in &lines {
        if let Noted::Answered(keys) = &line.event {
            answered.extend(keys.iter().copied());
        }
    }
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
    (answered, lines, report.restarts)
}

#[tokio::test(start_paused = true)]
async fn killed_before_or_after_every_occasion_the_end_is_the_same() {
    for role in [Role::Config, Role::Planner, Role::Flusher, Role::Http] {
        let undisturbed = five_rings(role.clone(), None).await;
        assert_eq!(undisturbed.0, (0..TASKS).collect());
        assert_eq!(undisturbed.2, 0, "no restart");
        for n in 1..=u64::from(TASKS) + 1 {
            for kill in [KillAt::Before(n), KillAt::After(n)] {
                let (answered, lines, restarts) = five_rings(role.clone(), Some(kill)).await;
                assert_eq!(answered, undisturbed.0, "{role} {kill:?}");
                assert_eq!(restarts, 1, "{role} {kill:?}");
                let handled = lines
                    .iter()
                    .filter(|line| line.number == lines[0].number)
                    .filter(|line| matches!(line.event, Noted::Answered(_)))
                    .count();
                let expected = match kill {
                    KillAt::Before(n) => n - 1,
                    KillAt::After(n) => n,
                };
                assert_eq!(u64::try_from(handled), Ok(expected), "{role} {kill:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn supervisors_can_be_killed_at_every_chore() {
    for role in [Role::Egress, Role::Sessions] {
        for n in 1..=8 {
            for kill in [KillAt::Before(n), KillAt::After(n)] {
                let ensemble = Ensemble::new(&Journal::new());
                let journal = ensemble.posts[0].journal();
                journal.kit().actors.kill_at(&role, kill);
                let stage = Stage::raise(journal, ensemble.specs()).await;
                tokio::time::sleep(secs(3)).await;
                stage.kit.actors.kill(&Role::Emitter);
                tokio::time::sleep(secs(20)).await;
                let restarted = stage.report(&role).restarts;
                assert_eq!(restarted, 1, "{role} {kill:?}");
                for report in stage.kit.actors.report() {
                    assert_eq!(report.state, RoleState::Running, "{} {kill:?}", report.role);
                    assert_eq!(report.sent, report.handled, "{} {kill:?}", report.role);
                }
                assert_eq!(stage.fall().await, ExitReason::Shutdown);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_torn_between_two_of_its_effects() {
    let journal = Journal::new();
    let post = Post::new(Role::Emitter, &journal);
    let egress = supervisor(Role::Egress, vec![post.spec()]);
    let stage = Stage::raise(journal, vec![egress]).await;
    let actors = &stage.kit.actors;
    let first = stage.report(&post.role).incarnation;
    let seen = |number| {
        let lines = stage.journal.of(&post.role);
        let lines = lines.into_iter().filter(|line| line.number == number);
        lines.map(|line| line.event).collect::<Vec<_>>()
    };
    post.send(Act::Work(1, Duration::ZERO));
    rest().await;
    let whole = seen(first);
    assert_eq!(whole[3..], [Noted::Began(1), Noted::Finished(1)]);

    actors.befall(&post.role, Mishap::Torn(1));
    post.send(Act::Answer);
    rest().await;
    assert!(actors.is_armed(&post.role), "one effect alone is not torn");
    assert_eq!(seen(first)[5..], [Noted::Answered([].into())]);

    post.send(Act::Work(2, Duration::ZERO));
    let after = stage.reborn(&post.role, first).await;
    assert!(!actors.is_armed(&post.role));
    assert_eq!(after.last_failure.as_deref(), Some("a planted panic between two effects"));
    assert_eq!(seen(first)[6..], [Noted::Began(2), Noted::Gone]);
    assert_eq!(stage.fall().await, ExitReason::Shutdown);
}

/// Two minutes of kills, failures and work, as one text.
async fn play(seed: u64) -> String {
    let ensemble = Ensemble::new(&Journal::new());
    let journal = ensemble.posts[0].journal();
    let stage = Stage::raise(journal.clone(), ensemble.specs()).await;
    let leaves = ensemble.leaves();
    let mut dice = SeedTree::new(seed).child("play");
    let mut roll = |sides: usize| usize::try_from(dice.next_u64() >> 33).unwrap() % sides;
    let mut task = 0;
    let supervisors = [Role::Egress, Role::Engine, Role::Sessions, Role::Ingress];
    for _ in 0..60 {
        for _ in 0..roll(4) {
            task += 1;
            let post = &leaves[roll(leaves.len())];
            let took = post.address.send(Act::Work(task, secs(1) / 3));
            assert!(matches!(format!("{took:?}").as_str(), "Taken" | "Vacant"));
            post.bell.insert(task);
        }
        if roll(10) == 0 {
            stage.kit.actors.kill(&leaves[roll(leaves.len())].role);
        }
        if roll(30) == 0 {
            stage.kit.actors.kill(&supervisors[roll(supervisors.len())]);
        }
        tokio::time::sleep(secs(2)).await;
    }
    rest().await;
    let mut text: Vec<String> = journal.lines().iter().map(|l| format!("{l:?}")).collect();
    text.extend(stage.kit.actors.report().iter().map(|r| format!("{r:?}")));
    drop(stage.fall().await);
    text.join("\n")
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let on_its_own = |seed| {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(play(seed))
    };
    for seed in 0..15 {
        let first = on_its_own(seed);
        assert!(first.lines().count() > 100);
        assert_eq!(first, on_its_own(seed), "seed {seed}");
        assert_ne!(first, on_its_own(seed + 100), "seed {seed}");
    }
}

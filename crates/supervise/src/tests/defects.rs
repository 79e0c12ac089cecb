//! Planted defects of supervision, each compared with a tree without it.

use std::sync::Arc;
use std::time::Duration;

use super::role::Role;
use super::stage::{Act, Journal, Post, Stage, secs};
use crate::{RoleState, SupervisionHooks};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    Budget,
    Restart,
    Sweep,
}

impl SupervisionHooks for Defect {
    fn ignores_budget(&self) -> bool {
        *self == Self::Budget
    }

    fn forgets_restart(&self) -> bool {
        *self == Self::Restart
    }

    fn forgets_sweep(&self) -> bool {
        *self == Self::Sweep
    }
}

/// A tree of one pump under the root.
async fn tree(defect: Option<Defect>) -> (Stage, Post) {
    let journal = Journal::new();
    if let Some(defect) = defect {
        journal.kit().actors.plant(Arc::new(defect));
    }
    let post = Post::new(Role::Leadership, &journal);
    let stage = Stage::raise(journal, vec![post.spec()]).await;
    (stage, post)
}

#[tokio::test(start_paused = true)]
async fn without_restarts_a_child_stays_ended() {
    for (defect, restarts) in [(None, 1), (Some(Defect::Restart), 0)] {
        let (stage, post) = tree(defect).await;
        stage.kill(&post.role);
        tokio::time::sleep(secs(60)).await;
        assert_eq!(stage.report(&post.role).restarts, restarts, "{defect:?}");
        stage.fall().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_budget_the_supervisor_never_fails() {
    for (defect, expected) in
        [(None, RoleState::Stopped), (Some(Defect::Budget), RoleState::Running)]
    {
        let (stage, post) = tree(defect).await;
        for _ in 0..6 {
            stage.kit.actors.kill(&post.role);
            tokio::time::sleep(secs(40)).await;
        }
        assert_eq!(stage.report(&Role::Root).state, expected, "{defect:?}");
        stage.fall().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_sweeps_a_child_that_hangs_is_left_alone() {
    for (defect, restarts) in [(None, 1), (Some(Defect::Sweep), 0)] {
        let (stage, post) = tree(defect).await;
        post.send(Act::Hang);
        post.send(Act::Work(1, Duration::ZERO));
        tokio::time::sleep(secs(120)).await;
        assert_eq!(stage.report(&post.role).restarts, restarts, "{defect:?}");
        stage.fall().await;
    }
}

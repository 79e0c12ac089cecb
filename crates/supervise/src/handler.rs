//! Runs the handlers of a life.

use std::future::Future;

use tracing::Instrument;

use super::hooks::{after_handler, before_handler, poll_handler};
use super::incarnation::Incarnation;
use super::kit::Kit;
use super::role::TreeRole;

/// Runs one handler: in the span of its life, counted, and struck by the kills that tests plan.
pub(super) async fn run_handler<R: TreeRole, T>(
    kit: &Kit<R>,
    role: &R,
    incarnation: &Incarnation,
    work: impl Future<Output = T>,
) -> T {
    let (registry, hooks) = (kit.actors.hooks(), incarnation.hooks());
    let kill = || kit.actors.kill_tree(role);
    let turn = before_handler(registry, hooks, kill).await;
    let outcome = poll_handler(registry, work).instrument(incarnation.span()).await;
    incarnation.note_handled(kit.clock.now());
    after_handler(hooks, turn, kill);
    outcome
}

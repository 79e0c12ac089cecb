//! The outermost supervisor, from start to orderly end.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};

use super::child::ChildSpec;
use super::kit::Kit;
use super::registry::ActorRegistry;
use super::role::TreeRole;
use super::supervisor::supervisor;

/// Why the tree has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitReason {
    /// It was asked to.
    Shutdown,
    /// The root failed. The process should end with an error, so that it is started again.
    Failed(String),
}

/// How long the ends of killed lives are awaited before they are counted as left over.
const EXTINCTION_WAIT: Duration = Duration::from_secs(1);

/// Runs the tree: starts `children` in order under [`TreeRole::root`] until `shutdown` is ready or the
/// root has failed, and then ends them. Dropping the future kills the whole tree.
pub async fn run<R: TreeRole>(
    kit: Kit<R>,
    children: Vec<ChildSpec<R>>,
    shutdown: impl Future<Output = ()> + Send,
) -> ExitReason {
    let tree = KillOnDrop(&kit.actors);
    let reason = match supervisor(R::root(), children).start(&kit, None).await {
        Ok(root) => {
            let ended = root.cell.wait(None);
            match select(pin!(shutdown), pin!(ended)).await {
                Either::Left(_) => {
                    let end_by = kit.clock.now().monotonic.saturating_add(R::root().policy().grace);
                    root.ask_to_end(&kit, end_by);
                    root.join(&kit, end_by).await;
                    ExitReason::Shutdown
                }
                Either::Right(_) => ExitReason::Failed(
                    kit.actors
                        .last_failure(&R::root())
                        .unwrap_or_else(|| "the root was killed".to_owned()),
                ),
            }
        }
        Err(why) => ExitReason::Failed(why),
    };
    drop(tree);
    let extinct = tokio::time::timeout(EXTINCTION_WAIT, kit.actors.extinct()).await;
    if extinct.is_err() {
        let survivors = kit.actors.survivors();
        tracing::error!(?survivors, "killed and still running");
    }
    reason
}

struct KillOnDrop<'a, R: TreeRole>(&'a ActorRegistry<R>);

impl<R: TreeRole> Drop for KillOnDrop<'_, R> {
    fn drop(&mut self) {
        self.0.kill_tree(&R::root());
    }
}

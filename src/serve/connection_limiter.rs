//! Who may stay connected, where there are more clients than places.
//!
//! A scraper sends its request at once and reads its answer as it comes. A client that does neither gives
//! way to the next client, the longest-standing first, so that idle, slow and hostile clients cost
//! a scraper a short wait and never its scrape.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

/// Connections at once; further ones wait in the kernel's queue.
pub(super) const CONNECTIONS: usize = 64;
/// How long a connection without a complete request may stay when its place is wanted.
const UNASKED: Duration = Duration::from_millis(250);
/// How long a connection may take its answer when its place is wanted.
const ANSWERED: Duration = Duration::from_secs(10);

/// How far a connection has come, as its own task says.
#[derive(Debug, Clone)]
pub struct ConnectionProgress(Arc<Mutex<(ConnectionPhase, Instant)>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionPhase {
    /// The handshake and the head of the request are not complete.
    Unasked,
    /// The head is complete, its body is not. The body has a deadline of its own.
    Reading,
    Asked,
}

impl ConnectionProgress {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new((ConnectionPhase::Unasked, Instant::now()))))
    }

    /// The head of a request has come, and its body is read. On a connection that had a request before,
    /// this is no step back.
    pub(super) fn reading(&self) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.0 == ConnectionPhase::Unasked {
            *now = (ConnectionPhase::Reading, Instant::now());
        }
    }

    pub(super) fn asked(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            (ConnectionPhase::Asked, Instant::now());
    }

    /// Whether no request has come yet.
    pub(super) fn is_unasked(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 == ConnectionPhase::Unasked
    }

    /// When the place may be given to another client.
    fn yields_at(&self) -> Instant {
        let (stage, since) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since
            + match stage {
                ConnectionPhase::Unasked | ConnectionPhase::Reading => UNASKED,
                ConnectionPhase::Asked => ANSWERED,
            }
    }
}

/// The connections of one server. Dropping it ends them.
#[derive(Debug, Default)]
pub(super) struct ConnectionLimiter {
    tasks: JoinSet<()>,
    taken: Vec<(AbortHandle, ConnectionProgress)>,
}

impl ConnectionLimiter {
    /// Runs a connection in a free place, or in that of the connection that yields first.
    pub(super) async fn seat<F>(&mut self, connection: impl FnOnce(ConnectionProgress) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.sweep();
        while self.taken.len() >= CONNECTIONS {
            self.make_room().await;
        }
        let progress = ConnectionProgress::new();
        let task = self.tasks.spawn(connection(progress.clone()));
        self.taken.push((task, progress));
    }

    async fn make_room(&mut self) {
        let first = self.taken.iter().min_by_key(|(_, progress)| progress.yields_at());
        let Some((task, progress)) = first.cloned() else {
            return;
        };
        let at = progress.yields_at();
        let none_ended = timeout_at(at, self.tasks.join_next()).await.is_err();
        // It may have come a step further meanwhile.
        if none_ended && progress.yields_at() == at {
            task.abort();
            drop(self.tasks.join_next().await);
        }
        self.sweep();
    }

    fn sweep(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.taken.retain(|(task, _)| !task.is_finished());
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use tokio::sync::oneshot;
    use tokio::time::Instant;

    use super::{ANSWERED, CONNECTIONS, ConnectionLimiter, UNASKED};

    type Ended = oneshot::Receiver<()>;

    async fn idle(connections: &mut ConnectionLimiter) -> Ended {
        let (held, ended) = oneshot::channel::<()>();
        let connection = |_progress| async move {
            let _held = held;
            pending::<()>().await;
        };
        connections.seat(connection).await;
        ended
    }

    async fn reading(connections: &mut ConnectionLimiter) -> Ended {
        at(connections, super::ConnectionProgress::asked).await
    }

    async fn at(
        connections: &mut ConnectionLimiter,
        step: fn(&super::ConnectionProgress),
    ) -> Ended {
        let (held, ended) = oneshot::channel::<()>();
        let connection = |progress: super::ConnectionProgress| {
            step(&progress);
            async move {
                let _held = held;
                pending::<()>().await;
            }
        };
        connections.seat(connection).await;
        ended
    }

    fn is_over(ended: &mut Ended) -> bool {
        matches!(ended.try_recv(), Err(oneshot::error::TryRecvError::Closed))
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_gives_way_after_a_moment() {
        let mut connections = ConnectionLimiter::default();
        let mut kept = vec![reading(&mut connections).await];
        for _ in 1..CONNECTIONS {
            kept.push(idle(&mut connections).await);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(kept.iter_mut().all(|ended| !is_over(ended)));
        let first_idle = Instant::now() - Duration::from_millis(63);

        let newcomer = idle(&mut connections).await;
        assert_eq!(Instant::now(), first_idle + UNASKED);
        let over: Vec<_> = kept.iter_mut().map(is_over).collect();
        assert_eq!(over.iter().filter(|over| **over).count(), 1);
        assert_eq!(over[..2], [false, true]);
        drop(newcomer);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_progress_has_longer() {
        let mut connections = ConnectionLimiter::default();
        let began = Instant::now();
        let mut kept = Vec::new();
        for _ in 0..CONNECTIONS {
            kept.push(reading(&mut connections).await);
        }
        let _newcomer = idle(&mut connections).await;
        assert_eq!(began.elapsed(), ANSWERED);
        assert_eq!(kept.iter_mut().filter_map(|ended| is_over(ended).then_some(())).count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_no_claim_to_a_place() {
        let mut connections = ConnectionLimiter::default();
        let mut slow = at(&mut connections, super::ConnectionProgress::reading).await;
        let mut again = at(&mut connections, |progress| {
            progress.asked();
            progress.reading();
        })
        .await;
        let mut kept = Vec::new();
        for _ in 2..CONNECTIONS {
            kept.push(reading(&mut connections).await);
        }
        let began = Instant::now();
        let _newcomer = idle(&mut connections).await;
        assert_eq!(began.elapsed(), UNASKED);
        assert!(is_over(&mut slow) && !is_over(&mut again));
        assert!(kept.iter_mut().all(|ended| !is_over(ended)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_ends_leaves_its_place_at_once() {
        let mut connections = ConnectionLimiter::default();
        let (end, ended) = oneshot::channel::<()>();
        connections.seat(|_| async move { drop(ended.await) }).await;
        let mut kept = Vec::new();
        for _ in 1..CONNECTIONS {
            kept.push(reading(&mut connections).await);
        }
        let began = Instant::now();
        end.send(()).unwrap();
        let _newcomer = idle(&mut connections).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(kept.iter_mut().all(|ended| !is_over(ended)));
    }
}

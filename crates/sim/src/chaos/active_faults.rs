//! What is wrong at present with the ways of one controller, over all its lives.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, select};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::fault::{Api, AutoscalerFault, Prom};

/// How long a question is on its way during which something was done: the process may hear of that.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

/// What is wrong. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct ActiveFaults(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    cut: Notify,
    healed: Notify,
}

#[derive(Debug, Default)]
struct State {
    api: BTreeMap<usize, (Api, u64)>,
    prometheus: BTreeMap<usize, Prom>,
    pages: BTreeMap<usize, AutoscalerFault>,
    /// When the API server last stopped going back in time.
    younger: Option<Duration>,
    /// When Prometheus last stopped hiding use.
    misled: Option<Duration>,
    /// The fault that ends the process at its next write.
    at_write: Option<usize>,
    /// The fault that ends it and those that come after it at a write each.
    at_every_write: Option<usize>,
    /// What a fault does while the next question to Prometheus is on its way.
    at_question: Option<(usize, Act)>,
    /// The fault by which history is forgotten.
    forgets: Option<usize>,
    /// The fault that has cut all watches.
    cuts: Option<usize>,
    /// The fault that holds a write back until somebody else has the lease, once it does.
    holds: Option<usize>,
    /// How often each fault hit something.
    hits: BTreeMap<usize, u64>,
}

struct Act(BoxFuture<'static, bool>);

impl std::fmt::Debug for Act {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Act")
    }
}

impl State {
    fn has_hit(&self, id: usize) -> bool {
        self.hits.get(&id).is_some_and(|hits| *hits > 0)
    }
}

/// Whether a server goes back in time by it.
pub(super) fn is_younger(fault: Api) -> bool {
    matches!(fault, Api::StaleList(_) | Api::Older(_))
}

impl ActiveFaults {
    /// A fault of the way to the API server begins. `version` is that of the server now.
    pub(super) fn inject_api(&self, id: usize, fault: Api, version: u64) {
        match fault {
            Api::Cut => {
                self.state().cuts = Some(id);
                self.cut_watches();
            }
            Api::Compact => self.state().forgets = Some(id),
            _ => drop(self.state().api.insert(id, (fault, version))),
        }
    }

    pub(super) fn cut_watches(&self) {
        self.0.cut.notify_waiters();
    }

    pub(super) fn inject_prometheus(&self, id: usize, fault: Prom) {
        self.state().prometheus.insert(id, fault);
    }

    pub(super) fn inject_pages(&self, id: usize, fault: AutoscalerFault) {
        self.state().pages.insert(id, fault);
    }

    pub(super) fn pages(&self) -> Vec<(usize, AutoscalerFault)> {
        let state = self.state();
        state
            .pages
            .iter()
            .map(|(id, fault)| (*id, *fault))
            .collect()
    }

    pub(super) fn clear(&self, id: usize, now: Duration) {
        let mut state = self.state();
        let healed = state.api.remove(&id);
        if healed.is_some_and(|(fault, _)| is_younger(fault)) && state.has_hit(id) {
            state.younger = Some(now);
        }
        state.pages.remove(&id);
        let healed = state.prometheus.remove(&id);
        if healed.is_some_and(Prom::hides_use) {
            state.misled = Some(now);
        }
        state.at_question.take_if(|(of, _)| *of == id);
        let State {
            forgets,
            cuts,
            holds,
            at_every_write,
            ..
        } = &mut *state;
        for of in [forgets, cuts, holds, at_every_write] {
            of.take_if(|of| *of == id);
        }
        drop(state);
        self.0.healed.notify_waiters();
    }

    /// So much time passes, or the rest of a fault of the way to the API server.
    pub(super) async fn within(&self, id: usize, time: Duration) {
        let over = async {
            loop {
                let healed = self.0.healed.notified();
                if !self.state().api.contains_key(&id) {
                    return;
                }
                healed.await;
            }
        };
        select(pin!(sleep(time)), pin!(over)).await;
    }

    /// A watch or a list ends with 410.
    pub(super) fn expired(&self) {
        let forgets = self.state().forgets;
        if let Some(id) = forgets {
            self.hit(id);
        }
    }

    pub(super) fn was_cut(&self) {
        let cuts = self.state().cuts;
        if let Some(id) = cuts {
            self.hit(id);
        }
    }

    /// A write is held back from now on by this fault.
    pub(super) fn hold(&self, id: usize) {
        self.state().holds = Some(id);
    }

    pub(super) fn holds(&self, id: usize) -> bool {
        self.state().holds == Some(id)
    }

    /// Does this while the next question to Prometheus is on its way.
    pub(super) fn at_question(&self, id: usize, act: BoxFuture<'static, bool>) {
        self.state().at_question = Some((id, Act(act)));
    }

    pub(super) async fn asked(&self) {
        let act = self.state().at_question.take();
        if let Some((id, Act(act))) = act
            && act.await
        {
            self.hit(id);
            sleep(ON_ITS_WAY).await;
        }
    }

    /// The faults of the way to the API server, each with the version of its beginning.
    pub(super) fn api(&self) -> Vec<(usize, Api, u64)> {
        let state = self.state();
        let all = state.api.iter();
        all.map(|(id, (fault, version))| (*id, *fault, *version))
            .collect()
    }

    pub(super) fn younger(&self, now: Duration) -> Option<Duration> {
        let state = self.state();
        let mut api = state.api.iter();
        let is_now = api.any(|(id, (fault, _))| is_younger(*fault) && state.has_hit(*id));
        if is_now { Some(now) } else { state.younger }
    }

    pub(super) fn misled(&self, now: Duration) -> Option<Duration> {
        let state = self.state();
        let is_now = state.prometheus.values().any(|fault| fault.hides_use());
        if is_now { Some(now) } else { state.misled }
    }

    pub(super) fn prometheus(&self) -> Vec<(usize, Prom)> {
        let state = self.state();
        let all = state.prometheus.iter();
        all.map(|(id, fault)| (*id, *fault)).collect()
    }

    pub(super) fn are_writes_late(&self) -> bool {
        let state = self.state();
        let mut api = state.api.values();
        api.any(|(fault, _)| matches!(fault, Api::Late(_)))
    }

    /// A fault ends the process at its next write.
    pub(super) fn await_write(&self, id: usize) {
        self.state().at_write = Some(id);
    }

    /// Whether it is to end at its next write, not every one.
    pub(super) fn awaits_write(&self) -> bool {
        self.state().at_write.is_some()
    }

    /// No fault ends it at a write any more.
    pub(super) fn forgive(&self) {
        let mut state = self.state();
        (state.at_write, state.at_every_write) = (None, None);
    }

    /// A fault ends it and those that come after it at a write each.
    pub(super) fn await_writes(&self, id: usize) {
        self.state().at_every_write = Some(id);
    }

    pub(super) fn awaits_writes(&self) -> bool {
        self.state().at_every_write.is_some()
    }

    pub(super) fn struck(&self) {
        let awaited = {
            let mut state = self.state();
            state.at_write.take().or(state.at_every_write)
        };
        if let Some(id) = awaited {
            self.hit(id);
        }
    }

    pub(super) fn hit(&self, id: usize) {
        *self.state().hits.entry(id).or_default() += 1;
    }

    pub(super) fn hits(&self, id: usize) -> u64 {
        self.state().hits.get(&id).copied().unwrap_or(0)
    }

    pub(super) async fn cut(&self) {
        self.0.cut.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_late_by_a_fault_is_not_later_than_its_end() {
        let ills = ActiveFaults::default();
        let late = Duration::from_secs(20);
        let began = Instant::now();
        let took = async |id| {
            ills.within(id, late).await;
            began.elapsed().as_secs()
        };
        assert_eq!(took(1).await, 0, "no such fault");
        for id in [1, 2] {
            ills.inject_api(id, Api::Delayed(late), 0);
        }
        assert_eq!(took(1).await, 20, "it lasts");
        let heals = async {
            for id in [2, 1] {
                advance(Duration::from_secs(5)).await;
                ills.clear(id, Duration::ZERO);
                tokio::task::yield_now().await;
            }
        };
        let (took, ()) = tokio::join!(took(1), heals);
        assert_eq!(took, 30, "the end of another one does not count");
    }
}

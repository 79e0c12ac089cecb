//! What is wrong at present with the ways of one controller, over all its lives.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, select};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::fault::{Api, AutoscalerFault, ChaosFault, ProcessFault, Prom};
use crate::threads::locked;

/// How long a question is on its way during which something was done: the process may learn of that.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

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
    /// By its number each fault in force, and the version of the API server when it began.
    faults: BTreeMap<usize, (ChaosFault, u64)>,
    /// When the API server last stopped going back in time.
    younger: Option<Duration>,
    /// When Prometheus last stopped hiding use.
    misled: Option<Duration>,
    /// The fault that ends the process at its next write, which outlasts it.
    at_write: Option<usize>,
    at_question: Option<(usize, Act)>,
    /// The fault that holds a write back until another process has the lease.
    holds: Option<usize>,
    hits: BTreeMap<usize, u64>,
}

struct Act(BoxFuture<'static, bool>);

wva_base::debug_of!(Act:);

impl State {
    fn has_hit(&self, id: usize) -> bool {
        self.hits.get(&id).is_some_and(|hits| *hits > 0)
    }

    fn newest(&self, is_meant: impl Fn(&ChaosFault) -> bool) -> Option<usize> {
        let mut newest = self.faults.iter().rev();
        let (id, _) = newest.find(|(_, (fault, _))| is_meant(fault))?;
        Some(*id)
    }
}

pub(super) fn is_younger(fault: Api) -> bool {
    matches!(fault, Api::StaleList(_) | Api::Older(_))
}

fn ends_at_every_write(fault: &ChaosFault) -> bool {
    matches!(fault, ChaosFault::Controller(_, ProcessFault::EveryWrite))
}

impl ActiveFaults {
    pub(super) fn inject(&self, id: usize, fault: ChaosFault, version: u64) {
        let is_cut = matches!(fault, ChaosFault::Api(_, Api::Cut));
        locked(&self.0.state).faults.insert(id, (fault, version));
        if is_cut {
            self.cut_watches();
        }
    }

    pub(super) fn cut_watches(&self) {
        self.0.cut.notify_waiters();
    }

    pub(super) fn clear(&self, id: usize, now: Duration) {
        let mut state = locked(&self.0.state);
        let ended = state.faults.remove(&id);
        let is_here = ended.is_some();
        match ended {
            Some((ChaosFault::Api(_, fault), _)) if is_younger(fault) && state.has_hit(id) => {
                state.younger = Some(now);
            }
            Some((ChaosFault::Prometheus(_, fault), _)) if fault.hides_use() => {
                state.misled = Some(now);
            }
            _ => {}
        }
        state.at_question.take_if(|(of, _)| *of == id);
        state.holds.take_if(|of| *of == id);
        drop(state);
        if is_here {
            self.0.healed.notify_waiters();
        }
    }

    pub(super) async fn within(&self, id: usize, time: Duration) {
        let over = async {
            loop {
                let healed = self.0.healed.notified();
                if !locked(&self.0.state).faults.contains_key(&id) {
                    return;
                }
                healed.await;
            }
        };
        select(pin!(sleep(time)), pin!(over)).await;
    }

    pub(super) fn hit_newest(&self, fault: Api) {
        let is_meant = |known: &ChaosFault| matches!(known, ChaosFault::Api(_, of) if *of == fault);
        let newest = locked(&self.0.state).newest(is_meant);
        if let Some(id) = newest {
            self.hit(id);
        }
    }

    pub(super) fn hold(&self, id: usize) {
        locked(&self.0.state).holds = Some(id);
    }

    pub(super) fn holds(&self, id: usize) -> bool {
        locked(&self.0.state).holds == Some(id)
    }

    pub(super) fn at_question(&self, id: usize, act: BoxFuture<'static, bool>) {
        locked(&self.0.state).at_question = Some((id, Act(act)));
    }

    pub(super) async fn asked(&self) {
        let act = locked(&self.0.state).at_question.take();
        if let Some((id, Act(act))) = act
            && act.await
        {
            self.hit(id);
            sleep(ON_ITS_WAY).await;
        }
    }

    /// What lasts on the way to the API server: a cut and a forgotten history are over at once.
    pub(super) fn api(&self) -> Vec<(usize, Api, u64)> {
        self.each(|fault| match fault {
            ChaosFault::Api(_, Api::Cut | Api::Compact) => None,
            ChaosFault::Api(_, fault) => Some(*fault),
            _ => None,
        })
    }

    pub(super) fn prometheus(&self) -> Vec<(usize, Prom, u64)> {
        self.each(|fault| match fault {
            ChaosFault::Prometheus(_, fault) => Some(*fault),
            _ => None,
        })
    }

    pub(super) fn pages(&self) -> Vec<(usize, AutoscalerFault, u64)> {
        self.each(|fault| match fault {
            ChaosFault::Autoscaler(_, fault) => Some(*fault),
            _ => None,
        })
    }

    fn each<T>(&self, of: impl Fn(&ChaosFault) -> Option<T>) -> Vec<(usize, T, u64)> {
        let state = locked(&self.0.state);
        let all = state.faults.iter();
        all.filter_map(|(id, (fault, version))| Some((*id, of(fault)?, *version))).collect()
    }

    pub(super) fn younger(&self, now: Duration) -> Option<Duration> {
        let mut api = self.api().into_iter();
        let state = locked(&self.0.state);
        let is_now = api.any(|(id, fault, _)| is_younger(fault) && state.has_hit(id));
        if is_now { Some(now) } else { state.younger }
    }

    pub(super) fn misled(&self, now: Duration) -> Option<Duration> {
        let mut prometheus = self.prometheus().into_iter();
        let is_now = prometheus.any(|(_, fault, _)| fault.hides_use());
        if is_now { Some(now) } else { locked(&self.0.state).misled }
    }

    pub(super) fn await_write(&self, id: usize) {
        locked(&self.0.state).at_write = Some(id);
    }

    pub(super) fn awaits_write(&self) -> bool {
        locked(&self.0.state).at_write.is_some()
    }

    pub(super) fn forgive(&self) {
        locked(&self.0.state).at_write = None;
    }

    pub(super) fn awaits_writes(&self) -> bool {
        locked(&self.0.state).newest(ends_at_every_write).is_some()
    }

    pub(super) fn struck(&self) {
        let awaited = {
            let mut state = locked(&self.0.state);
            let next = state.at_write.take();
            next.or_else(|| state.newest(ends_at_every_write))
        };
        if let Some(id) = awaited {
            self.hit(id);
        }
    }

    pub(super) fn hit(&self, id: usize) {
        *locked(&self.0.state).hits.entry(id).or_default() += 1;
    }

    pub(super) fn hits(&self, id: usize) -> u64 {
        locked(&self.0.state).hits.get(&id).copied().unwrap_or(0)
    }

    pub(super) async fn cut(&self) {
        self.0.cut.notified().await;
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
        assert_eq!(took(1).await, 0, "an unknown fault");
        for id in [1, 2] {
            ills.inject(id, ChaosFault::Api(0, Api::Delayed(late)), 0);
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

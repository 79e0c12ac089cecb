//! Faults begin, hit, and end.

use std::collections::BTreeSet;
use std::mem::discriminant;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use super::{DATE, Run};
use crate::chaos::active_faults::{ActiveFaults, is_younger};
use crate::chaos::fault::{
    Api, AutoscalerFault, ChaosFault, ObjectFault, ProcessFault, Prom, RoleFault, WorkloadFaultKind,
};
use crate::chaos::schedule::Strike;
use crate::prometheus::Prometheus;
use crate::threads::locked;
use crate::world::controller::ControllerView;
use wva::roles::Role;
use wva_supervise::{ActorRegistry, KillAt, Mishap, RoleReport, RoleState, TreeRole as _};

/// What shows later whether a fault has hit something.
#[derive(Debug)]
pub(super) enum Trail {
    /// The process in which a role was armed, and how often its budget had been spent by then.
    Armed(Arc<ControllerView>, u64),
    /// How often counters had fallen.
    Fallen(u64),
    /// A change that processes are to observe: a kind, and the version before it.
    News((&'static str, u64)),
}

impl Run<'_> {
    pub(super) async fn undo(&mut self, strike: &Strike) {
        self.trace.note("fault", "ends", &format!("#{} {}", strike.id, strike.fault));
        let now = self.now();
        for member in &self.cast.members {
            member.ills.clear(strike.id, now);
        }
        match &strike.fault {
            ChaosFault::Prometheus(_, fault) => {
                self.shake(*fault, strike, false);
            }
            ChaosFault::Autoscaler(_, AutoscalerFault::Removed(number)) => {
                self.injector.restore_autoscaler(*number).await;
            }
            ChaosFault::Object(_, ObjectFault::Crowd(_)) => self.injector.disperse().await,
            ChaosFault::Object(number, _) => self.injector.restore(*number).await,
            ChaosFault::Settings(_) => self.injector.restore_settings().await,
            ChaosFault::Workload(number, how) => self.injector.relieve(*number, *how).await,
            ChaosFault::Controller(place, ProcessFault::Handover) => {
                // It is the one that leads still, and the others do not know of something.
                let leader = self.cast.leader();
                let is_kept_from_others = *place == leader && self.hits(strike.id) > 0;
                let cast = &mut self.cast;
                let (how, lasts) = (ProcessFault::Restart, strike.lasts);
                if cast.strike(leader, how, now, lasts).await && is_kept_from_others {
                    self.credit(strike, true);
                }
            }
            ChaosFault::Controller(place, ProcessFault::Rollout) => {
                self.cast.roll_back(*place, now).await;
            }
            ChaosFault::Controller(place, ProcessFault::EveryWrite) => self.cast.forgive(*place),
            ChaosFault::Actor(place, fault) => self.disarm(*place, fault),
            ChaosFault::Api(..) | ChaosFault::Controller(..) | ChaosFault::Autoscaler(..) => {}
        }
    }

    /// What has not befallen a role while its fault lasted does not any more, unless another one demands it.
    fn disarm(&self, place: usize, fault: &RoleFault) {
        let role = awaited(fault);
        let others = self.active.iter().filter_map(|other| match &other.fault {
            ChaosFault::Actor(whom, other) if *whom == place => awaited(other),
            _ => None,
        });
        let mut others = others.filter(|other| Some(*other) == role);
        if let (Some(role), None, Some(door)) = (role, others.next(), self.cast.door(place)) {
            door.actors.disarm_role(role);
        }
    }

    /// Counts a fault that was effective if it hit something while it lasted.
    pub(super) fn count(&mut self, strike: &Strike) {
        let trail = self.trails.remove(&strike.id);
        let hits = self.hits(strike.id);
        let hit = match (&strike.fault, trail) {
            (ChaosFault::Object(_, ObjectFault::Midway), _) => hits > 0,
            (ChaosFault::Object(..) | ChaosFault::Settings(_), Some(Trail::News(news))) => {
                self.judge.has_delivered(news)
            }
            // Counted when it ends a process, and when it begins.
            (
                ChaosFault::Controller(_, ProcessFault::Handover)
                | ChaosFault::Autoscaler(_, AutoscalerFault::Removed(_)),
                _,
            ) => false,
            (ChaosFault::Controller(place, ProcessFault::Rollout), _) => {
                self.cast.rolls_out(*place)
            }
            // One end is what other faults do.
            (ChaosFault::Controller(_, ProcessFault::EveryWrite), _) => hits > 1,
            (ChaosFault::Prometheus(_, Prom::Reset), Some(Trail::Fallen(before))) => {
                before < self.prometheus().falls
            }
            (
                ChaosFault::Api(..)
                | ChaosFault::Autoscaler(..)
                | ChaosFault::Prometheus(..)
                | ChaosFault::Controller(..),
                _,
            ) => hits > 0,
            (ChaosFault::Actor(_, RoleFault::Storm(role)), Some(Trail::Armed(door, before))) => {
                before < budgets_spent(&door.actors, role)
            }
            (ChaosFault::Actor(_, fault), Some(Trail::Armed(door, _))) => {
                awaited(fault).is_some_and(|role| !door.actors.is_armed(role))
            }
            (ChaosFault::Workload(number, how), _) => match how {
                WorkloadFaultKind::NeverReady | WorkloadFaultKind::SlowStart => {
                    self.injector.has_begun(*number, *how)
                }
                WorkloadFaultKind::Shortage => self.injector.waits(*number),
                _ => false,
            },
            _ => false,
        };
        self.credit(strike, hit);
    }

    fn credit(&mut self, strike: &Strike, hit: bool) {
        let key = (strike.fault.class(), strike.fault.kind());
        self.outcome.tally.entry(key).or_default().effective += u64::from(hit);
    }

    fn hits(&self, id: usize) -> u64 {
        let members = self.cast.members.iter();
        members.map(|member| member.ills.hits(id)).sum()
    }

    fn ills(&self, place: usize, act: impl FnOnce(&ActiveFaults)) {
        if let Some(member) = self.cast.members.get(place) {
            act(&member.ills);
        }
    }

    fn inject_at(&self, place: usize, strike: &Strike) {
        let version = self.insider.version();
        self.ills(place, |ills| {
            ills.inject(strike.id, strike.fault.clone(), version);
        });
    }

    pub(super) async fn inject(&mut self, strike: &Strike, now: Duration) -> bool {
        match &strike.fault {
            ChaosFault::Api(_, Api::Compact) => {
                for place in 0..self.cast.members.len() {
                    self.inject_at(place, strike);
                }
                self.world.server.compact();
                false
            }
            ChaosFault::Api(place, fault) => {
                self.inject_at(*place, strike);
                // Who watches lists seldom.
                if is_younger(*fault) {
                    self.ills(*place, ActiveFaults::cut_watches);
                }
                false
            }
            ChaosFault::Prometheus(place, fault) => {
                self.inject_at(*place, strike);
                let fallen = self.prometheus().falls;
                self.trails.insert(strike.id, Trail::Fallen(fallen));
                self.shake(*fault, strike, true)
            }
            ChaosFault::Actor(place, fault) => self.afflict(strike.id, *place, fault),
            ChaosFault::Controller(place, how) => self.beset(strike, *place, *how, now).await,
            ChaosFault::Object(number, ObjectFault::Midway) => {
                let (number, injector) = (*number, self.injector.clone());
                let remove =
                    async move { injector.break_object(number, ObjectFault::Removed).await };
                let leader = self.cast.leader();
                self.ills(leader, |ills| ills.at_question(strike.id, Box::pin(remove)));
                false
            }
            ChaosFault::Object(number, how) => {
                self.disturb(strike.id, *number, *how).await;
                false
            }
            ChaosFault::Settings(how) => {
                if let Some(words) = self.injector.words(*how) {
                    self.trace.note("fault", "edits", &words);
                }
                let news = ("configmaps", self.insider.version());
                if self.injector.edit(*how).await && self.insider.version() > news.1 {
                    self.trails.insert(strike.id, Trail::News(news));
                }
                false
            }
            ChaosFault::Workload(number, how) => self.injector.burden(*number, *how).await,
            ChaosFault::Autoscaler(_, AutoscalerFault::Removed(number)) => {
                self.injector.remove_autoscaler(*number).await
            }
            ChaosFault::Autoscaler(place, _) => {
                self.inject_at(*place, strike);
                false
            }
        }
    }

    async fn beset(
        &mut self,
        strike: &Strike,
        place: usize,
        how: ProcessFault,
        now: Duration,
    ) -> bool {
        if how == ProcessFault::Handover {
            let version = self.insider.version();
            let others = self.cast.members.iter().enumerate();
            for (number, other) in others.filter(|(other, _)| *other != place) {
                let silent = ChaosFault::Api(number, Api::Silent);
                other.ills.inject(strike.id, silent, version);
            }
        }
        let mut runs = self.cast.strike(place, how, now, strike.lasts).await;
        // Counted when it ends, if a process has other settings.
        runs &= how != ProcessFault::Rollout;
        runs &= how != ProcessFault::Handover;
        let is_to_come = how.is_at_a_write();
        if how == ProcessFault::EveryWrite {
            self.inject_at(place, strike);
        } else if is_to_come {
            self.ills(place, |ills| ills.await_write(strike.id));
        }
        runs && !is_to_come
    }

    /// Changes an object; whether it has reached a process is asked when the fault ends.
    async fn disturb(&mut self, id: usize, number: usize, how: ObjectFault) {
        let news = (self.injector.kind(number, how), self.insider.version());
        let mut hit = self.injector.break_object(number, how).await;
        // What is so already is no news, nor is a label that no controller selects by.
        hit &= self.insider.version() > news.1;
        hit &= how != ObjectFault::Moved || self.plot.instance.is_some();
        if how == ObjectFault::Unseen {
            // Before any watch has had a turn.
            self.world.server.compact();
        }
        if hit {
            self.trails.insert(id, Trail::News(news));
        }
    }

    fn afflict(&mut self, id: usize, place: usize, fault: &RoleFault) -> bool {
        let Some(door) = self.cast.door(place).cloned() else {
            return false;
        };
        let actors = &door.actors;
        // One mishap of a role at a time: a second one would count for the first.
        if awaited(fault).is_some_and(|role| actors.is_armed(role)) {
            return false;
        }
        let spent = match fault {
            RoleFault::Storm(role) => budgets_spent(actors, role),
            _ => 0,
        };
        self.trails.insert(id, Trail::Armed(Arc::clone(&door), spent));
        match fault {
            RoleFault::Kill(role) => return actors.kill(role),
            RoleFault::Abort(role) => return actors.abort(role),
            RoleFault::Several(roles) => {
                let roles: BTreeSet<&Role> = roles.iter().collect();
                let hit = roles.into_iter().filter(|role| actors.kill(role));
                return hit.count() > 1;
            }
            RoleFault::Storm(role) => {
                actors.kill(role);
            }
            RoleFault::Before(role) => actors.kill_next(role, KillAt::Before),
            RoleFault::After(role) => actors.kill_next(role, KillAt::After),
            RoleFault::Panic(role) => actors.befall(role, Mishap::Panic),
            RoleFault::Torn(role, done) => actors.befall(role, Mishap::Torn(*done)),
            RoleFault::Hang(role) => actors.befall(role, Mishap::Hang),
        }
        false
    }

    fn prometheus(&self) -> MutexGuard<'_, Prometheus> {
        locked(&self.world.prometheus)
    }

    fn shake(&self, fault: Prom, strike: &Strike, begins: bool) -> bool {
        let begun = begins.then_some((strike, fault));
        // A shorter one may lie between two scrapes.
        let is_seen = begins && strike.lasts >= self.scenario.scrape_interval;
        // Another one of its kind may go on.
        let in_force = begun.or_else(|| {
            let mut others = self.active.iter().filter_map(|one| match one.fault {
                ChaosFault::Prometheus(_, other)
                    if discriminant(&other) == discriminant(&fault) =>
                {
                    Some((one, other))
                }
                _ => None,
            });
            others.next()
        });
        let mut prometheus = self.prometheus();
        match fault {
            Prom::Down => {
                prometheus.set_down(in_force.is_some());
                false
            }
            Prom::Gap => {
                let until = in_force.map(|(strike, _)| DATE.later(strike.at + strike.lasts));
                prometheus.set_gap(until);
                is_seen
            }
            Prom::Lag(_) => {
                let lag = match in_force {
                    Some((_, Prom::Lag(time))) => time,
                    _ => Duration::ZERO,
                };
                prometheus.set_lag(lag);
                is_seen
            }
            // Counted when a counter falls.
            Prom::Reset => {
                if begins || in_force.is_none() {
                    prometheus.set_reset(begins);
                }
                false
            }
            _ => false,
        }
    }

    pub(super) async fn calm(&mut self, now: Duration) {
        self.cover();
        let active = std::mem::take(&mut self.active);
        // What waits for a role does not count as met when the end of another fault takes it away.
        for strike in &active {
            self.count(strike);
        }
        for strike in &active {
            self.undo(strike).await;
        }
        for number in 0..self.plot.variants().len() {
            self.injector.restore(number).await;
        }
        for number in 0..self.plot.autoscalers().len() {
            self.injector.restore_autoscaler(number).await;
        }
        self.injector.disperse().await;
        self.injector.restore_settings().await;
        self.cast.calm(now);
        self.trace.note("fault", "calm", "everything is put back");
    }
}

fn awaited(fault: &RoleFault) -> Option<&Role> {
    match fault {
        RoleFault::Before(role)
        | RoleFault::After(role)
        | RoleFault::Panic(role)
        | RoleFault::Torn(role, _)
        | RoleFault::Hang(role) => Some(role),
        RoleFault::Kill(_) | RoleFault::Abort(_) | RoleFault::Several(_) | RoleFault::Storm(_) => {
            None
        }
    }
}

/// A number that grows each time a role has ended so often that its supervisor puts up with it no longer: it has
/// failed itself, or starts the role again only after a long time.
fn budgets_spent(actors: &ActorRegistry<Role>, role: &Role) -> u64 {
    let report = actors.report();
    let of = |role: &Role| report.iter().find(|one| one.role == *role);
    let is_quarantined = of(role).is_some_and(|one| one.state == RoleState::Quarantined);
    let has_failed = |parent: &&RoleReport<Role>| {
        let failure = parent.last_failure.as_deref().unwrap_or_default();
        failure.starts_with(&format!("{role} ended more than"))
            || failure.contains(&format!("at last {role}: "))
    };
    let parent = role.parent();
    let failed = parent.and_then(|parent| of(&parent)).filter(has_failed);
    failed.map_or(0, |parent| parent.incarnation * 2) + u64::from(is_quarantined)
}

//! Faults begin, hit, and end.

use std::collections::BTreeSet;
use std::mem::discriminant;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use super::{DATE, Run};
use crate::kit::{ActorRegistry, KillAt, Mishap, Role, RoleReport, RoleState};
use crate::policy::moment::WallTime;
use crate::sim::chaos::fault::{Actor, Api, Fault, Load, Object, Process, Prom};
use crate::sim::chaos::ills::{Ills, is_younger};
use crate::sim::chaos::schedule::Strike;
use crate::sim::prometheus::{Outage, Prometheus};

impl Run<'_> {
    pub(super) async fn heal(&mut self, strike: &Strike) {
        self.count(strike);
        self.undo(strike).await;
    }

    async fn undo(&mut self, strike: &Strike) {
        self.trace
            .note("fault", "ends", &format!("#{} {}", strike.id, strike.fault));
        let now = self.now();
        match &strike.fault {
            Fault::Api(_, Api::Compact) | Fault::Object(_, Object::Midway) => {
                for member in &self.cast.members {
                    member.ills.heal(strike.id, now);
                }
            }
            Fault::Api(place, _) => self.ills(*place, |ills| ills.heal(strike.id, now)),
            _ => {}
        }
        match &strike.fault {
            Fault::Prometheus(place, fault) => {
                self.ills(*place, |ills| ills.heal(strike.id, now));
                self.shake(*fault, strike, false);
            }
            Fault::Object(_, Object::Crowd(_)) => self.injector.disperse().await,
            Fault::Object(number, _) => self.injector.restore(*number).await,
            Fault::Settings(_) => self.injector.restore_settings().await,
            Fault::Workload(number, how) => self.injector.relieve(*number, *how).await,
            Fault::Controller(place, Process::Handover) => {
                // It is the one that leads still, and the others have not heard of something.
                let others = self.cast.members.iter().enumerate();
                let mut others = others.filter(|(other, _)| other != place);
                let is_kept_from_others = *place == self.cast.leader()
                    && others.any(|(_, other)| other.ills.hits(strike.id) > 0);
                for member in &self.cast.members {
                    member.ills.heal(strike.id, now);
                }
                let (leader, lasts) = (self.cast.leader(), strike.lasts);
                let cast = &mut self.cast;
                let ends = cast.strike(leader, Process::Restart, now, lasts).await;
                if ends && is_kept_from_others {
                    self.credit(strike, true);
                }
            }
            Fault::Controller(place, Process::Rollout) => self.cast.roll_back(*place, now).await,
            Fault::Controller(place, Process::EveryWrite) => {
                self.ills(*place, |ills| ills.heal(strike.id, now));
                self.cast.forgive(*place);
            }
            Fault::Actor(place, fault) => self.disarm(*place, fault),
            Fault::Api(..) | Fault::Controller(..) => {}
        }
    }

    /// What has not befallen a role while its fault lasted does not any more, unless another one asks for it.
    fn disarm(&self, place: usize, fault: &Actor) {
        let role = awaited(fault);
        let others = self.active.iter().filter_map(|other| match &other.fault {
            Fault::Actor(whom, other) if *whom == place => awaited(other),
            _ => None,
        });
        let mut others = others.filter(|other| Some(*other) == role);
        if let (Some(role), None, Some(door)) = (role, others.next(), self.cast.door(place)) {
            door.actors.disarm_role(role);
        }
    }

    /// Counts a fault that was effective if it hit something while it lasted.
    pub(super) fn count(&mut self, strike: &Strike) {
        let armed = self.cast.armed.remove(&strike.id);
        let spent = self.cast.spent.remove(&strike.id);
        let news = self.cast.news.remove(&strike.id);
        let by_any = || {
            let mut members = self.cast.members.iter();
            members.any(|member| member.ills.hits(strike.id) > 0)
        };
        let hit = match &strike.fault {
            Fault::Api(_, Api::Compact) | Fault::Object(_, Object::Midway) => by_any(),
            Fault::Object(..) | Fault::Settings(_) => {
                news.is_some_and(|news| self.judge.was_told(news))
            }
            // Counted when it ends somebody.
            Fault::Controller(_, Process::Handover) => false,
            Fault::Controller(place, Process::Rollout) => self.cast.rolls_out(*place),
            // One end is what other faults do.
            Fault::Controller(place, Process::EveryWrite) => self.hits(*place, strike.id) > 1,
            Fault::Prometheus(_, Prom::Reset) => {
                let fallen = self.prometheus().falls();
                spent.is_some_and(|before| before < fallen)
            }
            Fault::Api(place, _) | Fault::Prometheus(place, _) | Fault::Controller(place, _) => {
                self.hits(*place, strike.id) > 0
            }
            Fault::Actor(
                _,
                Actor::Before(role)
                | Actor::After(role)
                | Actor::Panic(role)
                | Actor::Torn(role, _)
                | Actor::Hang(role),
            ) => armed.is_some_and(|door| !door.actors.is_armed(role)),
            Fault::Actor(_, Actor::Storm(role)) => {
                armed.is_some_and(|door| spent < Some(budgets_spent(&door.actors, role)))
            }
            Fault::Workload(number, Load::NeverReady) => self.injector.has_started_never(*number),
            Fault::Workload(number, Load::Shortage) => self.injector.waits(*number),
            Fault::Workload(number, Load::SlowStart) => self.injector.has_started_slowly(*number),
            _ => false,
        };
        self.credit(strike, hit);
    }

    fn credit(&mut self, strike: &Strike, hit: bool) {
        let key = (strike.fault.class(), strike.fault.kind());
        self.outcome.tally.entry(key).or_default().effective += u64::from(hit);
    }

    fn hits(&self, place: usize, id: usize) -> u64 {
        let member = self.cast.members.get(place);
        member.map_or(0, |member| member.ills.hits(id))
    }

    fn ills(&self, place: usize, act: impl FnOnce(&Ills)) {
        if let Some(member) = self.cast.members.get(place) {
            act(&member.ills);
        }
    }

    /// Lets a fault begin; whether it has hit something by that alone.
    pub(super) async fn inject(&mut self, strike: &Strike, now: Duration) -> bool {
        match &strike.fault {
            Fault::Api(_, Api::Compact) => {
                for member in &self.cast.members {
                    member.ills.ail_api(strike.id, Api::Compact, 0);
                }
                self.world.server.compact();
                false
            }
            Fault::Api(place, fault) => {
                let version = self.insider.version();
                self.ills(*place, |ills| {
                    ills.ail_api(strike.id, *fault, version);
                    // Who watches lists seldom.
                    if is_younger(*fault) {
                        ills.cut_watches();
                    }
                });
                false
            }
            Fault::Prometheus(place, fault) => {
                self.ills(*place, |ills| ills.ail_prometheus(strike.id, *fault));
                let fallen = self.prometheus().falls();
                self.cast.spent.insert(strike.id, fallen);
                self.shake(*fault, strike, true)
            }
            Fault::Actor(place, fault) => self.afflict(strike.id, *place, fault),
            Fault::Controller(place, how) => {
                if *how == Process::Handover {
                    let version = self.insider.version();
                    let others = self.cast.members.iter().enumerate();
                    for (_, other) in others.filter(|(other, _)| other != place) {
                        other.ills.ail_api(strike.id, Api::Silent, version);
                    }
                }
                let mut runs = self.cast.strike(*place, *how, now, strike.lasts).await;
                // Counted when it ends, if somebody has other settings.
                runs &= *how != Process::Rollout;
                runs &= *how != Process::Handover;
                let is_to_come = how.is_at_a_write();
                if *how == Process::EveryWrite {
                    self.ills(*place, |ills| ills.await_writes(strike.id));
                } else if is_to_come {
                    self.ills(*place, |ills| ills.await_write(strike.id));
                }
                runs && !is_to_come
            }
            Fault::Object(number, Object::Midway) => {
                let (number, injector) = (*number, self.injector.clone());
                let remove = async move { injector.break_object(number, Object::Removed).await };
                let leader = self.cast.leader();
                self.ills(leader, |ills| ills.at_question(strike.id, Box::pin(remove)));
                false
            }
            Fault::Object(number, how) => {
                self.disturb(strike.id, *number, *how).await;
                false
            }
            Fault::Settings(how) => {
                if let Some(words) = self.injector.words(*how) {
                    self.trace.note("fault", "edits", &words);
                }
                let news = ("configmaps", self.insider.version());
                if self.injector.edit(*how).await && self.insider.version() > news.1 {
                    self.cast.news.insert(strike.id, news);
                }
                false
            }
            Fault::Workload(number, how) => self.injector.burden(*number, *how).await,
        }
    }

    /// Changes an object; whether anybody was told of it is asked when the fault ends.
    async fn disturb(&mut self, id: usize, number: usize, how: Object) {
        let news = (self.injector.kind(number, how), self.insider.version());
        let mut hit = self.injector.break_object(number, how).await;
        // What is so already is no news, nor is a label that no controller asks for.
        hit &= self.insider.version() > news.1;
        hit &= how != Object::Moved || self.plot.instance.is_some();
        if how == Object::Unseen {
            // Before any watch has had a turn.
            self.world.server.compact();
        }
        if hit {
            self.cast.news.insert(id, news);
        }
    }

    fn afflict(&mut self, id: usize, place: usize, fault: &Actor) -> bool {
        let Some(door) = self.cast.door(place).cloned() else {
            return false;
        };
        let actors = &door.actors;
        // One mishap of a role at a time: a second one would count for the first.
        if awaited(fault).is_some_and(|role| actors.is_armed(role)) {
            return false;
        }
        self.cast.armed.insert(id, Arc::clone(&door));
        match fault {
            Actor::Kill(role) => actors.kill(role),
            Actor::Storm(role) => {
                self.cast.spent.insert(id, budgets_spent(actors, role));
                actors.kill(role);
                false
            }
            Actor::Several(roles) => {
                let roles: BTreeSet<&Role> = roles.iter().collect();
                let hit = roles.into_iter().filter(|role| actors.kill(role));
                hit.count() > 1
            }
            Actor::Abort(role) => actors.abort(role),
            Actor::Before(role) => {
                actors.kill_next(role, KillAt::Before);
                false
            }
            Actor::After(role) => {
                actors.kill_next(role, KillAt::After);
                false
            }
            Actor::Panic(role) => {
                actors.befall(role, Mishap::Panic);
                false
            }
            Actor::Torn(role, done) => {
                actors.befall(role, Mishap::Torn(*done));
                false
            }
            Actor::Hang(role) => {
                actors.befall(role, Mishap::Hang);
                false
            }
        }
    }

    fn prometheus(&self) -> MutexGuard<'_, Prometheus> {
        let prometheus = self.world.prometheus.lock();
        prometheus.unwrap_or_else(PoisonError::into_inner)
    }

    /// Faults of Prometheus itself, which everybody sees.
    fn shake(&self, fault: Prom, strike: &Strike, begins: bool) -> bool {
        let begun = begins.then_some((strike, fault));
        // A shorter one may lie between two scrapes.
        let is_seen = begins && strike.lasts >= self.scenario.scrape_interval;
        // Another one of its kind may go on.
        let in_force = begun.or_else(|| {
            let mut others = self.active.iter().filter_map(|one| match one.fault {
                Fault::Prometheus(_, other) if discriminant(&other) == discriminant(&fault) => {
                    Some((one, other))
                }
                _ => None,
            });
            others.next()
        });
        let mut prometheus = self.prometheus();
        match fault {
            Prom::Down => {
                prometheus.set_outage(in_force.map(|_| Outage::Unreachable));
                false
            }
            Prom::Gap => {
                let until = in_force.map(|(strike, _)| strike.at + strike.lasts);
                let until = until.map(|at| i64::try_from(at.as_millis()).unwrap_or(i64::MAX));
                prometheus.set_gap(until.map(|at| WallTime(DATE.0.saturating_add(at))));
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

    /// Ends every fault and puts everything back.
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
        self.injector.disperse().await;
        self.injector.restore_settings().await;
        self.cast.calm(now);
        self.trace.note("fault", "calm", "everything is put back");
    }
}

/// The role whose next occasion a fault waits for.
fn awaited(fault: &Actor) -> Option<&Role> {
    match fault {
        Actor::Before(role)
        | Actor::After(role)
        | Actor::Panic(role)
        | Actor::Torn(role, _)
        | Actor::Hang(role) => Some(role),
        Actor::Kill(_) | Actor::Abort(_) | Actor::Several(_) | Actor::Storm(_) => None,
    }
}

/// A number that grows each time a role has ended so often that its supervisor puts up with it no longer: it has
/// failed itself, or starts the role again only after a long time.
fn budgets_spent(actors: &ActorRegistry, role: &Role) -> u64 {
    let report = actors.report();
    let of = |role: &Role| report.iter().find(|one| one.role == *role);
    let is_quarantined = of(role).is_some_and(|one| one.state == RoleState::Quarantined);
    let has_failed = |parent: &&RoleReport| {
        let failure = parent.last_failure.as_deref().unwrap_or_default();
        failure.starts_with(&format!("{role} ended more than"))
            || failure.contains(&format!("at last {role}: "))
    };
    let parent = role.parent();
    let failed = parent.and_then(|parent| of(&parent)).filter(has_failed);
    failed.map_or(0, |parent| parent.incarnation * 2) + u64::from(is_quarantined)
}

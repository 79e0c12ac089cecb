//! T: actors and their mailboxes, and what outlives them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::InvariantViolation;
use wva::policy::key::VariantKey;
use wva::policy::snapshot::VariantView;
use wva::roles::Role;
use wva_supervise::{ActorKind, ChildrenPolicy, RoleReport, RoleState, TreeRole as _};

/// Occasions that may wait for one life: one message for each mailbox, slot and timer that it has.
pub(crate) const MAILBOX: u64 = 40;
/// Occasions that a role may handle within a second, besides those for what changes and exists.
pub(crate) const PER_SECOND: u64 = 2_000;
/// Occasions for each change of the cluster and each variant: delivered, delivered twice, and listed.
const EACH: u64 = 3;
/// How long a role may be without a life before its restart is arranged.
const ARRANGEMENT: Duration = Duration::from_secs(3);
/// How long a supervisor may stand still: until its process says so, and the probes that end it.
const STUCK: Duration = Duration::from_secs(100);
/// How far from each other two looks are at most.
const LOOK: Duration = Duration::from_secs(2);
/// How much later than its limit a role that stands still is ended at most.
const SWEEPS: Duration = Duration::from_secs(4);

pub(crate) fn turns(before: &[RoleReport<Role>], now: &[RoleReport<Role>]) -> Vec<String> {
    let is_same = |was: &RoleReport<Role>, is: &RoleReport<Role>| {
        was.role == is.role && was.incarnation == is.incarnation && was.state == is.state
    };
    if before.len() == now.len() && before.iter().zip(now).all(|(was, is)| is_same(was, is)) {
        return Vec::new();
    }
    let known: BTreeMap<&Role, &RoleReport<Role>> =
        before.iter().map(|one| (&one.role, one)).collect();
    let turns = now.iter().filter_map(|one| {
        let was = known.get(&one.role)?;
        let why = one.last_failure.as_deref().unwrap_or("asked to end");
        (!is_same(was, one)).then(|| format!("{} is {:?}: {why}", one.role, one.state))
    });
    turns.collect()
}

/// T1: no role ends by itself. What makes one end here is planted, or its supervisor's to do.
pub(crate) fn unplanned(turns: &[String]) -> Option<InvariantViolation> {
    let is_planned = |turn: &&String| {
        [
            ": asked to end",
            "killed",
            "actor_task_cancelled",
            "a planted panic",
            ": hung: ",
            " ended more than ",
        ]
        .iter()
        .any(|why| turn.contains(why))
    };
    let turn = turns.iter().find(|turn| !is_planned(turn))?;
    Some(InvariantViolation::new("T1", format!("ended by itself: {turn}")))
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    seen: BTreeMap<Role, Seen>,
    looked: Option<Duration>,
    changes: u64,
}

#[derive(Debug, Default)]
struct Seen {
    incarnation: u64,
    handled: u64,
    moved: Duration,
    stopped: Option<Duration>,
    waiting: Option<Duration>,
    /// Since when occasions wait without one being finished.
    still: Option<Duration>,
    /// When its lives began after the first, under the present life of its supervisor.
    restarts: VecDeque<Duration>,
    parent: u64,
}

impl Tree {
    pub(crate) fn is_whole(&self, report: &[RoleReport<Role>]) -> bool {
        report.iter().all(|one| {
            let seen = self.seen.get(&one.role);
            one.state == RoleState::Running
                && seen.is_none_or(|seen| seen.incarnation == one.incarnation)
        })
    }

    /// Takes in the roles as they are now. `changes` is how much has changed since, and `variants` how many
    /// there are.
    pub(crate) fn judge(
        &mut self,
        report: &[RoleReport<Role>],
        changes: u64,
        variants: u64,
        now: Duration,
    ) -> Vec<InvariantViolation> {
        // While it was paused nothing could be done.
        let gap = now.saturating_sub(self.looked.replace(now).unwrap_or(now));
        let missed = gap.saturating_sub(LOOK);
        // What changed just before the last look is known after it.
        let news = changes + std::mem::replace(&mut self.changes, changes) + variants;
        let is_supervisor =
            |one: &&RoleReport<Role>| one.role.policy().kind == ActorKind::Supervisor;
        let lives: BTreeMap<&Role, (u64, bool)> = report
            .iter()
            .filter(is_supervisor)
            .map(|one| {
                let moved = self.seen.get(&one.role).map_or(now, |seen| seen.moved);
                let is_up = one.state == RoleState::Running;
                // It has moved since its children were due.
                let is_awake = now.saturating_sub(moved) <= ARRANGEMENT + missed;
                (&one.role, (one.incarnation, is_up && is_awake))
            })
            .collect();
        let mut found = Vec::new();
        for one in report {
            let parent = one.parent.as_ref().and_then(|parent| lives.get(parent));
            let (parent, supervised) = parent.copied().unwrap_or((0, false));
            let known = self.seen.entry(one.role.clone());
            let seen = known.or_insert_with(|| Seen::first(one, parent, now));
            let per_second = one.handled.saturating_sub(seen.handled);
            seen.shift(missed);
            seen.note(one, parent, now);
            let waiting = one.sent.saturating_sub(one.handled);
            if waiting > MAILBOX || per_second > PER_SECOND + EACH * news {
                let text = format!(
                    "{} has {waiting} occasions waiting and handled {per_second} in a second",
                    one.role
                );
                found.push(InvariantViolation::new("T2", text));
            }
            found.extend(seen.judge(one, supervised, now));
        }
        if self.seen.len() > report.len() {
            let known: BTreeSet<&Role> = report.iter().map(|one| &one.role).collect();
            self.seen.retain(|role, _| known.contains(role));
        }
        found
    }
}

impl Seen {
    fn first(one: &RoleReport<Role>, parent: u64, now: Duration) -> Self {
        Self {
            moved: now,
            incarnation: one.incarnation,
            handled: one.handled,
            parent,
            ..Self::default()
        }
    }

    fn shift(&mut self, by: Duration) {
        self.moved += by;
        for since in [&mut self.stopped, &mut self.waiting, &mut self.still] {
            *since = since.map(|since| since + by);
        }
    }

    fn note(&mut self, one: &RoleReport<Role>, parent: u64, now: Duration) {
        if self.parent != parent {
            self.restarts.clear();
        } else if self.incarnation != one.incarnation {
            self.restarts.push_back(now);
        }
        let waits = one.sent > one.handled && one.state == RoleState::Running;
        let stands = waits && self.handled == one.handled && self.incarnation == one.incarnation;
        if self.handled != one.handled || self.incarnation != one.incarnation {
            self.moved = now;
        }
        self.still = stands.then(|| self.still.unwrap_or(now));
        // Between two looks it may have been started again and ended again, which is another wait.
        let is_same_life = self.incarnation == one.incarnation;
        let since = |known: Option<Duration>| known.filter(|_| is_same_life).unwrap_or(now);
        let is_stopped = one.state == RoleState::Stopped;
        self.stopped = is_stopped.then(|| since(self.stopped));
        let is_waiting = matches!(one.state, RoleState::Restarting { .. });
        self.waiting = is_waiting.then(|| since(self.waiting));
        self.parent = parent;
        self.incarnation = one.incarnation;
        self.handled = one.handled;
    }

    fn judge(
        &mut self,
        one: &RoleReport<Role>,
        supervised: bool,
        now: Duration,
    ) -> Option<InvariantViolation> {
        let role = &one.role;
        let broken = |what: &str| {
            let text = format!("{role} {what}");
            Some(InvariantViolation::new("T1", text))
        };
        let for_long = |since: Option<Duration>, limit| {
            since.is_some_and(|since| now.saturating_sub(since) > limit)
        };
        if supervised && for_long(self.stopped, ARRANGEMENT) {
            return broken("has ended and is not started again");
        }
        let planned = match one.state {
            RoleState::Restarting { after } => Some(after + ARRANGEMENT),
            _ => None,
        };
        if let Some(planned) = planned.filter(|_| supervised)
            && for_long(self.waiting, planned)
        {
            return broken("was to be started again, and is not");
        }
        let limit = role.policy().stall_after;
        if let Some(limit) = limit.filter(|_| supervised)
            && for_long(self.still, limit + SWEEPS)
        {
            return broken("stands still with occasions waiting, and is not ended");
        }
        let is_supervisor = role.policy().kind == ActorKind::Supervisor;
        let is_stuck = one.state == RoleState::Running && now.saturating_sub(self.moved) > STUCK;
        if is_supervisor && is_stuck {
            return broken("has stopped its sweeps, and its process is not ended");
        }
        let policy = role.parent().and_then(|parent| parent.policy().children);
        if let Some(ChildrenPolicy::Restart(policy)) = policy {
            let oldest = now.saturating_sub(policy.window);
            while self.restarts.pop_front_if(|at| *at < oldest).is_some() {}
            // Delays shift restarts against the exits that are counted by one at most.
            if self.restarts.len() > policy.max_restarts + 1 {
                let text = format!(
                    "{role} was started again {} times within {} s",
                    self.restarts.len(),
                    policy.window.as_secs()
                );
                return Some(InvariantViolation::new("T3", text));
            }
        }
        None
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoleIncarnation {
    pub(crate) uid: Option<Arc<str>>,
    pub(crate) number: u64,
    /// How often the role was started again until then, since it was made.
    pub(crate) restarts: u64,
}

/// T6: since when a variant waits outlives the role that has seen it begin.
#[derive(Debug, Default)]
pub(crate) struct Clocks(BTreeMap<VariantKey, (RoleIncarnation, Arc<VariantView>)>);

impl Clocks {
    /// Judges what is known of all variants, with the life of each one's role. Where objects may be missing in
    /// answers for a moment, roles that were made anew are those of other objects.
    pub(crate) fn judge(
        &mut self,
        views: BTreeMap<VariantKey, Arc<VariantView>>,
        life: impl Fn(&VariantKey) -> Option<RoleIncarnation>,
        may_be_another: bool,
    ) -> Option<InvariantViolation> {
        let before = std::mem::take(&mut self.0);
        for (key, view) in views {
            let Some(life) = life(&key) else {
                continue;
            };
            self.0.insert(key, (life, view));
        }
        self.0.iter().find_map(|(key, (life, view))| {
            let (earlier, known) = before.get(key)?;
            let is_of_it = earlier.uid == life.uid;
            let is_made_anew = may_be_another && life.restarts <= earlier.restarts;
            let is_next = is_of_it && earlier.number != life.number && !is_made_anew;
            let what = forgotten(known, view).filter(|_| is_next)?;
            let text =
                format!("{key} was started again, and has forgotten since when it is {what}");
            Some(InvariantViolation::new("T6", text))
        })
    }
}

fn forgotten(known: &VariantView, view: &VariantView) -> Option<&'static str> {
    let is_same = known.target.resolved().is_some()
        && known.target == view.target
        && known.desired == view.desired;
    let clocks = [
        ("pending", known.pending_since, view.pending_since),
        ("unapplied", known.unapplied_since, view.unapplied_since),
    ];
    let mut clocks = clocks.into_iter().filter(|_| is_same);
    let (what, ..) = clocks.find(|(_, was, is)| was.is_some() && was != is)?;
    Some(what)
}

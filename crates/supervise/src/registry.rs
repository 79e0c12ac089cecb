//! Who is alive, since when, and how busy: the data of the debug tree, the metrics and the probes.
//!
//! The table is locked when a life begins, ends or is reported; its atomics count the messages.

#[cfg(feature = "hooks")]
mod harm;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ractor::ActorCell;
use serde::Serialize;
use tokio::sync::watch;

use super::epoch::Epoch;
use super::hooks::RegistryHooks;
use super::incarnation::Incarnation;
use super::locked;
use super::role::{ActorKind, TreeRole};
use wva_base::moment::Moment;

/// How long a supervisor may go without finishing a sweep, of which it makes one a second.
const SUPERVISOR_SILENCE: Duration = Duration::from_secs(30);

/// The roles of one process and their lives.
pub struct ActorRegistry<R>(Arc<Inner<R>>);

impl<R> Clone for ActorRegistry<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> Default for ActorRegistry<R> {
    fn default() -> Self {
        Self(Arc::new(Inner {
            incarnations: AtomicU64::new(0),
            table: Mutex::default(),
            forgotten: Mutex::default(),
            living: watch::Sender::default(),
            overdue: AtomicU64::new(0),
            hooks: RegistryHooks::default(),
        }))
    }
}

struct Inner<R> {
    /// Last incarnation number given out; one sequence for all roles, so that a role which was
    /// forgotten and comes back cannot start below its former lives.
    incarnations: AtomicU64,
    table: Mutex<BTreeMap<R, Entry>>,
    /// What roles did that were forgotten. Locked while the table is.
    forgotten: Mutex<BTreeMap<&'static str, RoleTotals>>,
    /// Lives that have not ended.
    living: watch::Sender<usize>,
    overdue: AtomicU64,
    hooks: RegistryHooks<R>,
}

struct Entry {
    incarnation: Arc<Incarnation>,
    cell: Option<ActorCell>,
    alive: bool,
    restarts: u64,
    /// Of the lives that have ended.
    past_sent: u64,
    past_lost: u64,
    state: RoleState,
    last_failure: Option<String>,
}

/// What a role is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoleState {
    /// A life is running.
    Running,
    /// A life was killed because it stood still, and has not ended yet.
    Stalled,
    /// A life ended, and the next one begins after a delay.
    Restarting {
        /// Delay between the two.
        after: Duration,
    },
    /// Its lives keep failing; the next attempt is made after a long delay, or when its object
    /// changes.
    Quarantined,
    /// No life is running, and none is planned.
    Stopped,
}

/// One role, over all its lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoleReport<R> {
    /// Which role.
    pub role: R,
    /// Its supervisor.
    pub parent: Option<R>,
    /// Number of the present life, or of the last one.
    pub incarnation: u64,
    /// Lives begun after the first.
    pub restarts: u64,
    /// Occasions that were delivered.
    #[serde(rename = "told")]
    pub sent: u64,
    /// Occasions that no longer wait: handled, or lost.
    pub handled: u64,
    /// Occasions among `handled` that ended with the life that should have handled them.
    pub lost: u64,
    /// What it is doing.
    pub state: RoleState,
    /// When the present life, or the last one, finished its latest occasion.
    pub last_progress: Option<Moment>,
    /// Why a life last ended without being asked to.
    pub last_failure: Option<String>,
}

/// What the roles of one label did since the process started. No figure ever falls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoleTotals {
    /// Messages sent to them.
    pub sent: u64,
    /// Messages that no longer wait.
    pub handled: u64,
    /// Lives begun after the first of each role.
    pub restarts: u64,
}

impl RoleTotals {
    fn add(&mut self, sent: u64, handled: u64, restarts: u64) {
        self.sent = self.sent.saturating_add(sent);
        self.handled = self.handled.saturating_add(handled);
        self.restarts = self.restarts.saturating_add(restarts);
    }
}

/// Whether the process should be left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Aliveness<R> {
    /// The root is running and nothing stands still.
    Alive,
    /// The root is not running.
    NoRoot,
    /// These roles have handlers that never await and never return. Nothing short of the end of the
    /// process ends them.
    Stuck(Vec<R>),
}

impl<R: TreeRole> ActorRegistry<R> {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every role that has lived, in the order of the tree. Children of a key that has gone are
    /// not listed any more.
    pub fn report(&self) -> Vec<RoleReport<R>> {
        self.table().iter().map(|(role, entry)| entry.report(role)).collect()
    }

    /// Totals by label, of the roles that are forgotten as well.
    pub fn totals(&self) -> BTreeMap<&'static str, RoleTotals> {
        let table = self.table();
        let mut totals = locked(&self.0.forgotten).clone();
        for (role, entry) in table.iter() {
            let report = entry.report(role);
            let total = totals.entry(role.label()).or_default();
            total.add(report.sent, report.handled, report.restarts);
        }
        totals
    }

    /// Whether the process should be left alone; the answer to a liveness probe.
    pub fn alive(&self, now: Moment) -> Aliveness<R> {
        let table = self.table();
        if !table.get(&R::root()).is_some_and(|entry| entry.alive) {
            return Aliveness::NoRoot;
        }
        let stuck: Vec<R> = table
            .iter()
            .filter(|(role, entry)| entry.is_stuck(*role, now))
            .map(|(role, _)| role.clone())
            .collect();
        if stuck.is_empty() { Aliveness::Alive } else { Aliveness::Stuck(stuck) }
    }

    /// Lives that did not stop within their grace in a shutdown and had to be killed.
    pub fn overdue(&self) -> u64 {
        self.0.overdue.load(Ordering::Relaxed)
    }

    pub(super) fn hooks(&self) -> &RegistryHooks<R> {
        &self.0.hooks
    }

    pub(super) fn begin(&self, role: &R, now: Moment) -> IncarnationGuard<R> {
        let number = self.0.incarnations.fetch_add(1, Ordering::AcqRel) + 1;
        let incarnation =
            Arc::new(Incarnation::new(Epoch::new(role, number), now, self.0.hooks.of(role)));
        self.0.living.send_modify(|living| *living += 1);
        self.table()
            .entry(role.clone())
            .and_modify(|entry| entry.begin(&incarnation))
            .or_insert_with(|| Entry::first(&incarnation));
        IncarnationGuard { actors: self.clone(), role: role.clone(), incarnation }
    }

    /// Notes that a life has ended; later calls for the same one change nothing.
    pub(super) fn end(&self, role: &R, incarnation: &Arc<Incarnation>) {
        if !incarnation.end() {
            return;
        }
        let mut table = self.table();
        if let Some(entry) = table.get_mut(role)
            && Arc::ptr_eq(&entry.incarnation, incarnation)
        {
            entry.end();
        }
        if role.policy().kind == ActorKind::Supervisor {
            // No supervisor is left to restart those that were waiting for it.
            for (below, entry) in table.iter_mut() {
                if !entry.alive && descends(below, role) {
                    entry.state = RoleState::Stopped;
                }
            }
        }
        drop(table);
        self.0.living.send_modify(|living| *living -= 1);
    }

    pub(super) fn set_state(&self, role: &R, state: RoleState) {
        if let Some(entry) = self.table().get_mut(role) {
            entry.state = state;
        }
    }

    pub(super) fn failed(&self, role: &R, why: &str) {
        if let Some(entry) = self.table().get_mut(role) {
            entry.last_failure = Some(why.to_owned());
        }
    }

    pub(super) fn last_failure(&self, role: &R) -> Option<String> {
        self.table().get(role)?.last_failure.clone()
    }

    /// Forgets a role that will not come back.
    pub(super) fn forget(&self, role: &R) {
        let mut table = self.table();
        if let Some(entry) = table.remove(role) {
            self.remember(role, &entry);
        }
    }

    /// Forgets the children of a keyed supervisor, of which some may not come back.
    pub(super) fn forget_children(&self, parent: &R) {
        self.table().retain(|role, entry| {
            let is_kept = role.parent().as_ref() != Some(parent);
            if !is_kept {
                self.remember(role, entry);
            }
            is_kept
        });
    }

    /// Keeps what a role did that is forgotten. What it did not handle waits no longer.
    fn remember(&self, role: &R, entry: &Entry) {
        let RoleReport { sent, restarts, .. } = entry.report(role);
        let mut forgotten = locked(&self.0.forgotten);
        let total = forgotten.entry(role.label()).or_default();
        total.add(sent, sent, restarts);
    }

    /// Kills a role with everything below it, in a fixed order: the deepest first, then as in the
    /// tree.
    pub(super) fn kill_tree(&self, role: &R) {
        self.kill_children(role);
        let cell = self.table().get(role).and_then(|entry| entry.cell.clone());
        if let Some(cell) = cell {
            cell.kill();
        }
    }

    /// Kills everything below a role, in the same order.
    pub(super) fn kill_children(&self, role: &R) {
        if role.policy().kind != ActorKind::Supervisor {
            return;
        }
        let mut below: Vec<(usize, ActorCell)> = self
            .table()
            .iter()
            .filter(|(candidate, _)| descends(*candidate, role))
            .filter_map(|(candidate, entry)| Some((depth(candidate), entry.cell.clone()?)))
            .collect();
        // Stable: the order of the tree stays within a depth.
        below.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        for (_, cell) in below {
            cell.kill();
        }
    }

    pub(super) fn count_overdue(&self) {
        self.0.overdue.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until no life is left.
    pub(super) async fn extinct(&self) {
        let mut living = self.0.living.subscribe();
        // It can only fail when the sender is gone, which lives as long as this census.
        drop(living.wait_for(|living| *living == 0).await);
    }

    pub(super) fn survivors(&self) -> Vec<R> {
        self.table().iter().filter(|(_, entry)| entry.alive).map(|(role, _)| role.clone()).collect()
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<R, Entry>> {
        locked(&self.0.table)
    }
}

wva_base::debug_of!([R] ActorRegistry<R>:);

impl Entry {
    fn first(incarnation: &Arc<Incarnation>) -> Self {
        Self {
            incarnation: Arc::clone(incarnation),
            cell: None,
            alive: true,
            restarts: 0,
            past_sent: 0,
            past_lost: 0,
            state: RoleState::Running,
            last_failure: None,
        }
    }

    fn begin(&mut self, incarnation: &Arc<Incarnation>) {
        // The former life may still be running under a supervisor that died before it.
        self.end();
        self.incarnation = Arc::clone(incarnation);
        self.alive = true;
        self.restarts = self.restarts.saturating_add(1);
        self.state = RoleState::Running;
    }

    fn end(&mut self) {
        if !self.alive {
            return;
        }
        self.alive = false;
        self.cell = None;
        let (handled, sent) = (self.incarnation.handled(), self.incarnation.sent());
        self.past_sent = self.past_sent.saturating_add(sent);
        self.past_lost = self.past_lost.saturating_add(sent.saturating_sub(handled));
        if matches!(self.state, RoleState::Running | RoleState::Stalled) {
            self.state = RoleState::Stopped;
        }
    }

    /// Killed for standing still without ending, or a supervisor that has stopped its sweeps: no
    /// actor above it would notice.
    fn is_stuck(&self, role: &impl TreeRole, now: Moment) -> bool {
        let silent = || now.since(self.incarnation.last_sign()) > SUPERVISOR_SILENCE;
        self.state == RoleState::Stalled
            || (self.alive && role.policy().kind == ActorKind::Supervisor && silent())
    }

    fn report<R: TreeRole>(&self, role: &R) -> RoleReport<R> {
        let (handled, sent) =
            if self.alive { (self.incarnation.handled(), self.incarnation.sent()) } else { (0, 0) };
        RoleReport {
            role: role.clone(),
            parent: role.parent(),
            incarnation: self.incarnation.epoch().number(),
            restarts: self.restarts,
            sent: self.past_sent.saturating_add(sent),
            handled: self.past_sent.saturating_add(handled),
            lost: self.past_lost,
            state: self.state.clone(),
            last_progress: self.incarnation.last_progress(),
            last_failure: self.last_failure.clone(),
        }
    }
}

/// Holds a life open; part of everything that the life owns, so that its end is noticed however it
/// comes.
pub(super) struct IncarnationGuard<R: TreeRole> {
    actors: ActorRegistry<R>,
    role: R,
    incarnation: Arc<Incarnation>,
}

impl<R: TreeRole> IncarnationGuard<R> {
    pub(super) fn role(&self) -> &R {
        &self.role
    }

    pub(super) fn incarnation(&self) -> &Arc<Incarnation> {
        &self.incarnation
    }

    /// Notes by which cell this life can be killed.
    pub(super) fn seat(&self, cell: ActorCell) {
        if let Some(entry) = self.actors.table().get_mut(&self.role)
            && Arc::ptr_eq(&entry.incarnation, &self.incarnation)
        {
            entry.cell = Some(cell);
        }
    }
}

impl<R: TreeRole> Drop for IncarnationGuard<R> {
    fn drop(&mut self) {
        self.actors.end(&self.role, &self.incarnation);
    }
}

fn ancestors<R: TreeRole>(role: &R) -> impl Iterator<Item = R> {
    std::iter::successors(role.parent(), R::parent)
}

fn descends<R: TreeRole>(role: &R, from: &R) -> bool {
    ancestors(role).any(|ancestor| ancestor == *from)
}

fn depth(role: &impl TreeRole) -> usize {
    ancestors(role).count()
}

//! The processes of the controller: started, ended, paused, and started again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::active_faults::ActiveFaults;
use super::api_server_proxy::ApiServerProxy;
use super::check::ends;
use super::checker::{Checker, RequestObserver};
use super::fault::ProcessFault;
use super::planted::Planted;
use super::process_checker::ProcessChecker;
use super::process_state::ProcessState;
use super::prometheus_proxy::{PodObservations, PrometheusProxy};
use super::stream::Watches;
use super::trace::{Misses, Trace};
use super::workload::{ChaosWorkload, Probe};
use crate::apiserver::{ApiServer, Insider};
use crate::prometheus::{InProcess, Prometheus};
pub(super) use crate::world::controller::MAIN;
use crate::world::controller::{ControllerView, ProcessConfig};
use crate::world::{PodListeners, PodNetwork};
use wva_supervise::{Aliveness, Clock, ExitReason, SeedTree};

mod stage;

pub(super) use stage::skews;
use stage::{skew_words, version};

const BACK: Duration = Duration::from_secs(2);
/// How long a process may say that it is stuck: three probes of the kubelet in a row.
const PROBES: Duration = Duration::from_mins(1);
const FAREWELL: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub(super) struct ProcessSetting {
    pub(super) clock: Clock,
    pub(super) server: ApiServer,
    pub(super) insider: Insider,
    pub(super) prometheus: Arc<Mutex<Prometheus>>,
    pub(super) routers: PodNetwork,
    pub(super) seed: SeedTree,
    pub(super) doors: PodListeners,
    pub(super) judge: Checker,
    pub(super) trace: Trace,
    pub(super) plot: Arc<ChaosWorkload>,
    pub(super) ended: Arc<Notify>,
}

#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) pod: String,
    pub(super) ills: ActiveFaults,
    lives: u64,
    running: Option<Running>,
    back_at: Option<Duration>,
    thaw_at: Option<Duration>,
    stuck: Option<Duration>,
    /// By how many milliseconds the wall clock of its processes is ahead: that of the machine, which they keep.
    ahead: i64,
    extra: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Running {
    life: ProcessState,
    door: Arc<ControllerView>,
    stop: watch::Sender<bool>,
    task: JoinHandle<ExitReason>,
    followers: [JoinHandle<()>; 2],
}

#[derive(Debug)]
pub(super) struct ProcessManager {
    stage: ProcessSetting,
    pub(super) members: Vec<Process>,
}

impl ProcessManager {
    pub(super) fn new(stage: ProcessSetting, size: usize) -> Self {
        let skews = skews(&stage.seed, size).into_iter().enumerate();
        let members = skews.map(|(number, ahead)| Process {
            pod: format!("wva-controller-{number}"),
            ahead,
            back_at: Some(Duration::ZERO),
            ..Process::default()
        });
        Self { members: members.collect(), stage }
    }

    pub(super) fn door(&self, place: usize) -> Option<&Arc<ControllerView>> {
        let running = self.members.get(place)?.running.as_ref()?;
        Some(&running.door)
    }

    pub(super) fn leader(&self) -> usize {
        let leads = |place: &usize| self.door(*place).is_some_and(|door| door.leads());
        (0..self.members.len()).find(leads).unwrap_or(0)
    }

    pub(super) async fn turn(&mut self, now: Duration) {
        for place in 0..self.members.len() {
            self.clear(place, now).await;
            let is_due = |at: Option<Duration>| at.is_some_and(|at| at <= now);
            let member = self.members.get(place);
            if member.is_some_and(|one| is_due(one.thaw_at)) {
                self.pause(place, None);
            }
            let member = self.members.get(place);
            if member.is_some_and(|one| one.running.is_none() && is_due(one.back_at)) {
                self.start(place, now);
            }
        }
    }

    /// What the kubelet does, asked once a second: a process that has said for long that it is stuck is
    /// ended.
    pub(super) fn probe(&mut self, now: Duration) {
        for (place, member) in self.members.iter_mut().enumerate() {
            let Some(running) = &member.running else {
                member.stuck = None;
                continue;
            };
            // One that is paused says nothing, which changes nothing.
            if member.thaw_at.is_some() {
                continue;
            }
            let moment = self.stage.clock.now();
            let actors = &running.door.actors;
            let said = actors.alive(moment);
            if said == Aliveness::Alive {
                member.stuck = None;
            } else if now.saturating_sub(*member.stuck.get_or_insert(now)) >= PROBES {
                self.stage.note(place, "is stuck");
                let what = ends::stuck(&said, &actors.hanging());
                self.stage.judge.wrong("T1", place, what);
                running.life.end();
            }
        }
    }

    pub(super) fn next(&self) -> Option<Duration> {
        let members = self.members.iter();
        members.flat_map(|member| [member.back_at, member.thaw_at]).flatten().min()
    }

    async fn clear(&mut self, place: usize, now: Duration) {
        let Some(member) = self.members.get_mut(place) else {
            return;
        };
        let over = |running: &mut Running| running.life.is_dead() || running.task.is_finished();
        let Some(mut running) = member.running.take_if(over) else {
            return;
        };
        let why = if running.life.is_dead() {
            running.task.abort();
            "crashed".to_owned()
        } else {
            running.life.end();
            let why = (&mut running.task).await;
            let why = why.map_err(|error| error.to_string());
            self.stage.exited(place, &running.door, &why);
            why.map_or_else(|error| error, |reason| format!("{reason:?}"))
        };
        member.back_at.get_or_insert(now + BACK);
        member.thaw_at = None;
        self.gone(place, &running, &why);
    }

    fn gone(&self, place: usize, running: &Running, why: &str) {
        running.followers.iter().for_each(JoinHandle::abort);
        if let Some(member) = self.members.get(place) {
            self.stage.doors.set(&member.pod, None);
        }
        self.stage.judge.left(place);
        self.stage.note(place, &format!("ended: {why}"));
    }

    fn start(&mut self, place: usize, now: Duration) {
        let stage = self.stage.clone();
        let Some(member) = self.members.get_mut(place) else {
            return;
        };
        member.lives += 1;
        member.back_at = None;
        // What the one before it observed is not known to this one.
        let observed = PodObservations::default();
        let life = ProcessState::new(Arc::clone(&stage.ended));
        let listener =
            RequestObserver { judge: stage.judge.clone(), place, pod: member.pod.clone() };
        let (watches, misses) = (Watches::default(), Misses::new(stage.trace.clone(), place));
        let way = ApiServerProxy {
            server: stage.server.clone(),
            insider: stage.insider.clone(),
            ills: member.ills.clone(),
            life: life.clone(),
            listener: listener.clone(),
            misses: misses.clone(),
            watches: watches.clone(),
        };
        let lens = PrometheusProxy {
            inner: InProcess::new(Arc::clone(&stage.prometheus), stage.clock.clone()),
            ills: member.ills.clone(),
            life: life.clone(),
            clock: stage.clock.clone(),
            observed: observed.clone(),
            misses,
            listener,
            memory: Arc::default(),
        };
        let name = format!("{}_{}", member.pod, member.lives);
        let (fixed, sources) = stage.sources(member);
        let of_process = fixed.clone();
        let pages = stage.pages(&member.ills);
        let reads = pages.reads.clone();
        let casting = ProcessConfig {
            clock: stage.clock.ahead(member.ahead),
            seed: SeedTree::new(stage.seed.child(&name).next_u64()),
            kube: way.client(),
            prometheus: Arc::new(lens),
            routers: Arc::new(stage.routers.clone()),
            pods: Arc::new(pages),
            identity: Arc::from(&*name),
            fixed,
            sources,
            hooks: Arc::new(Planted::new(stage.plot.mutation)),
        };
        let (controller, door) = match stage.owned(casting) {
            Ok((controller, door)) => (controller, Arc::new(door)),
            Err(error) => {
                member.back_at = Some(now + BACK * 5);
                return stage.cannot_begin(place, &error);
            }
        };
        if place == 0 && member.lives == 1 {
            stage.aim(&door, &life);
        }
        if member.ills.awaits_writes() {
            let (after, how) = ProcessFault::end_of(member.lives);
            life.end_at_write(after, how);
        }
        let skew = skew_words(member.ahead);
        stage.note(place, &format!("begins as {name}{skew}"));
        stage.doors.set(&member.pod, Some(Arc::clone(&door)));
        let news = (observed, watches, reads);
        let seat = ProcessChecker::new(Arc::clone(&door), news, member.ills.clone(), of_process);
        stage.judge.came(place, seat);
        member.running = Some(stage.run(place, controller, door, life));
    }

    pub(super) async fn strike(
        &mut self,
        place: usize,
        how: ProcessFault,
        now: Duration,
        lasts: Duration,
    ) -> bool {
        let Some(member) = self.members.get_mut(place) else {
            return false;
        };
        let Some(running) = &member.running else {
            return false;
        };
        match how {
            ProcessFault::Crash => {
                running.life.end();
                member.back_at = Some(now + lasts.min(Duration::from_mins(1)));
            }
            ProcessFault::BeforeWrite | ProcessFault::DuringWrite | ProcessFault::AfterWrite => {
                running.life.end_at_write(0, how);
            }
            ProcessFault::EveryWrite => {
                let (after, how) = ProcessFault::end_of(member.lives);
                running.life.end_at_write(after, how);
            }
            ProcessFault::Pause => self.pause(place, Some(now + lasts)),
            // At its end.
            ProcessFault::Handover => {}
            ProcessFault::Restart => self.stop(place, now + BACK).await,
            ProcessFault::Rollout => {
                let life = format!("rollout/{}/{}", member.pod, member.lives);
                member.extra.extend(version(self.stage.seed.child(&life)));
                let words = format!("another version comes: {:?}", member.extra);
                self.stage.note(place, &words);
                self.stop(place, now + BACK).await;
            }
        }
        true
    }

    pub(super) fn rolls_out(&self, place: usize) -> bool {
        let running = |member: &&Process| member.running.is_some();
        let Some(own) = self.members.get(place).filter(running) else {
            return false;
        };
        let mut others = self.members.iter().filter(running);
        !own.extra.is_empty() && others.any(|other| other.extra != own.extra)
    }

    /// The settings of a rollout are taken back: the process at a place ends in order, and one comes with
    /// those of all.
    pub(super) async fn roll_back(&mut self, place: usize, now: Duration) {
        let Some(member) = self.members.get_mut(place) else {
            return;
        };
        if std::mem::take(&mut member.extra).is_empty() {
            return;
        }
        // One that is about to come has them from the start.
        if member.running.is_some() {
            self.stop(place, now + BACK).await;
        }
    }

    pub(super) fn forgive(&self, place: usize) {
        let member = self.members.get(place);
        let member = member.filter(|member| !member.ills.awaits_write());
        if let Some(running) = member.and_then(|member| member.running.as_ref()) {
            running.life.forgive();
        }
    }

    fn pause(&mut self, place: usize, until: Option<Duration>) {
        let Some(member) = self.members.get_mut(place) else {
            return;
        };
        member.thaw_at = until;
        if let Some(running) = &member.running {
            running.life.freeze(until.is_some());
            running.door.actors.pause(until.is_some());
            let door = until.is_none().then(|| Arc::clone(&running.door));
            self.stage.doors.set(&member.pod, door);
            let text = until.map_or_else(
                || "goes on".to_owned(),
                |at| format!("stands still until {:.3}", at.as_secs_f64()),
            );
            self.stage.note(place, &text);
            self.stage.judge.paused(place, until.is_some());
        }
    }

    pub(super) async fn stop(&mut self, place: usize, back_at: Duration) {
        self.pause(place, None);
        let Some(member) = self.members.get_mut(place) else {
            return;
        };
        member.back_at = Some(back_at);
        let Some(mut running) = member.running.take() else {
            return;
        };
        self.stage.judge.leaves(place);
        running.stop.send_replace(true);
        let judge = &self.stage.judge;
        match timeout(FAREWELL, &mut running.task).await {
            Ok(Ok(ExitReason::Shutdown)) => {}
            Ok(why) => {
                let why = why.map_err(|error| error.to_string());
                self.stage.exited(place, &running.door, &why);
            }
            Err(_) => {
                running.task.abort();
                let what = "did not end within its grace".to_owned();
                judge.wrong("T4", place, Some(what));
            }
        }
        let is_whole = !running.life.is_dead();
        running.life.end();
        judge.ended(place, &running.door, is_whole);
        self.gone(place, &running, "asked to");
    }

    pub(super) fn calm(&mut self, now: Duration) {
        // A probe may act until everything is at rest.
        let is_over = self.stage.plot.probe.is_none();
        for place in 0..self.members.len() {
            self.pause(place, None);
        }
        for member in &mut self.members {
            if is_over {
                member.ills.forgive();
            }
            if let Some(running) = member.running.as_ref().filter(|_| is_over) {
                running.door.actors.disarm();
                running.life.forgive();
            }
            member.back_at = member.back_at.map(|at| at.min(now + BACK));
        }
    }

    pub(super) fn has_struck(&self) -> bool {
        match &self.stage.plot.probe {
            None => false,
            Some(Probe::Role(role, _)) => {
                let door = self.door(0);
                door.is_some_and(|door| !door.actors.is_armed(role))
            }
            // Nothing else ends a process here.
            Some(Probe::Write(..)) => self.members.first().is_some_and(|first| first.lives > 1),
        }
    }

    /// Ends every process without a word: what is wrong with it may be that it never rests.
    pub(super) fn halt(&self) {
        for running in self.members.iter().filter_map(|one| one.running.as_ref()) {
            running.life.end();
            running.task.abort();
        }
    }

    pub(super) async fn end(&mut self) {
        for place in 0..self.members.len() {
            self.stop(place, Duration::MAX).await;
        }
    }
}

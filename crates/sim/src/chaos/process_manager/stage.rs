//! What every process is started with, and what is planted in it.

use std::sync::Arc;
use std::time::Duration;

use allocations::Owner;
use tokio::sync::watch;

use super::{MAIN, Process, ProcessSetting, Running};
use crate::chaos::active_faults::ActiveFaults;
use crate::chaos::check::ends;
use crate::chaos::check::settings::data_of;
use crate::chaos::planted::PlantedSupervision;
use crate::chaos::pod_pages_proxy::{PageReads, PodPagesProxy};
use crate::chaos::process_state::ProcessState;
use crate::chaos::trace::claims;
use crate::chaos::workload::Probe;
use crate::world::controller::{ControllerView, ProcessConfig, cast, environment};
use crate::world::objects::SYSTEM;
use wva::app::Controller;
use wva::roles::Role;
use wva::settings::Sources;
use wva::settings::schema;
use wva::settings::sources::MainConfigMap;
use wva_supervise::ExitReason;

impl ProcessSetting {
    pub(super) fn note(&self, place: usize, text: &str) {
        self.trace.note(&format!("c{place}"), "process", text);
    }

    pub(super) fn cannot_begin(&self, place: usize, error: &str) {
        let what = format!("cannot begin: {error}");
        self.note(place, &what);
        self.judge.wrong("T1", place, Some(what));
    }

    /// T1: a process has ended unasked.
    pub(super) fn exited(
        &self,
        place: usize,
        door: &ControllerView,
        why: &Result<ExitReason, String>,
    ) {
        let what = ends::unasked(why, door.actors.harmed(&Role::Root));
        self.judge.wrong("T1", place, what);
    }

    pub(super) fn pages(&self, ills: &ActiveFaults) -> PodPagesProxy {
        PodPagesProxy {
            inner: self.routers.clone(),
            ills: ills.clone(),
            clock: self.clock.clone(),
            reads: PageReads::default(),
            mutation: self.plot.mutation,
        }
    }

    /// A process that differs from all others by what it allocates, with its defect.
    pub(super) fn owned(
        &self,
        casting: ProcessConfig,
    ) -> Result<(Controller, ControllerView), String> {
        let owner = Owner::new();
        let scope = owner.enter();
        let made = cast(casting);
        drop(scope);
        let (controller, mut door) = made?;
        door.owner = owner;
        door.actors.plant(Arc::new(PlantedSupervision { owner, mutation: self.plot.mutation }));
        Ok((controller, door))
    }

    pub(super) fn run(
        &self,
        place: usize,
        controller: Controller,
        door: Arc<ControllerView>,
        life: ProcessState,
    ) -> Running {
        let (stop, mut stopped) = watch::channel(false);
        let owner = door.owner;
        Running {
            life,
            followers: [
                tokio::spawn(self.judge.clone().follow(place, Arc::clone(&door))),
                tokio::spawn(claims(self.trace.clone(), place, Arc::clone(&door))),
            ],
            door,
            stop,
            task: tokio::spawn(owner.does(controller.run(async move {
                // An error means that the place is gone, which is as good a reason.
                drop(stopped.wait_for(|stop| *stop).await);
            }))),
        }
    }

    pub(super) fn aim(&self, door: &ControllerView, life: &ProcessState) {
        match &self.plot.probe {
            Some(Probe::Role(role, moment)) => door.actors.kill_at(role, *moment),
            Some(Probe::Write(number, how)) => life.end_at_write(number.saturating_sub(1), *how),
            None => {}
        }
    }

    pub(super) fn sources(&self, member: &Process) -> (Sources, Sources) {
        let mut environment = environment(&member.pod, Duration::from_secs(10));
        // It would win against the ConfigMap.
        environment.remove("GLOBAL_OPT_INTERVAL");
        for (name, value) in [
            ("LEADER_ELECTION_LEASE_DURATION", "20s"),
            ("LEADER_ELECTION_RENEW_DEADLINE", "15s"),
            ("LEADER_ELECTION_RETRY_PERIOD", "4s"),
        ] {
            environment.insert(name.to_owned(), value.to_owned());
        }
        if let Some(instance) = self.plot.instance {
            environment.insert("CONTROLLER_INSTANCE".to_owned(), instance.to_owned());
        }
        if self.plot.chooses_pods {
            let name = schema::POD_DELETION_COST_ENABLED.name;
            environment.insert(name.to_owned(), "true".to_owned());
        }
        environment.extend(member.extra.clone());
        let fixed = Sources { environment, ..Sources::default() };
        let stored = self.insider.get("configmaps.", SYSTEM, MAIN);
        let main =
            stored.map_or(MainConfigMap::Absent, |map| MainConfigMap::Present(data_of(&map)));
        let sources = Sources { main, ..fixed.clone() };
        (fixed, sources)
    }
}

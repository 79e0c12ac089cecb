//! The part of the tree that publishes and writes.

use std::sync::Arc;

use super::{Env, Wiring};
use crate::actors::autoscaler_writer::AutoscalerWriter;
use crate::actors::event_recorder::EventRecorder;
use crate::actors::pod_marker::PodMarks;
use crate::actors::rounds::{RoundWork, Rounds};
use crate::actors::status_writer::StatusWriter;
use crate::actors::target_scaler::DirectScales;
use crate::actors::{WriterContext, emitter, pump};
use crate::cluster::event::{EventApi, REPORTING_CONTROLLER};
use crate::cluster::permit::WriteApi;
use crate::roles::Role;
use crate::settings::FeatureSwitch;
use crate::state::requests::RequestReporter;
use wva_supervise::ChildSpec;

impl Wiring {
    pub(super) fn egress(&self, env: &Env) -> Vec<ChildSpec<Role>> {
        let mut children =
            vec![self.emitter(), self.status_writer(env), self.autoscaler_writer(env)];
        if self.statics.deletion_costs == FeatureSwitch::Enabled {
            children.push(self.pod_marker(env));
        }
        children.extend([self.target_scaler(env), self.event_recorder(env)]);
        children
    }

    fn emitter(&self) -> ChildSpec<Role> {
        let (shared, writers) = (self.readers.clone(), Arc::clone(&self.writers.emitter));
        let mailboxes = Arc::clone(&self.mailboxes);
        wva_supervise::machine(Role::Emitter, &self.addresses().emitter, move |epoch| {
            let (shared, writers) = (shared.clone(), Arc::clone(&writers));
            emitter::Emitter::new(shared, writers, epoch, Arc::clone(&mailboxes))
        })
    }

    fn status_writer(&self, env: &Env) -> ChildSpec<Role> {
        let context = self.context(env, &self.writers.status_writer);
        let writer = StatusWriter::new(context, env.kit.seed.child("status-writer"));
        pump(Role::StatusWriter, &self.addresses().status_writer, writer)
    }

    fn event_recorder(&self, env: &Env) -> ChildSpec<Role> {
        let api = EventApi {
            client: env.kube.clone(),
            controller: Arc::from(REPORTING_CONTROLLER),
            instance: Arc::clone(&env.identity),
            timeout: self.write_timeout(),
        };
        let recorder = EventRecorder::new(
            self.readers.clone(),
            Arc::clone(&self.writers.event_recorder),
            self.mailboxes.events.clone(),
            self.permissions(env),
            api,
        );
        pump(Role::EventRecorder, &self.addresses().event_recorder, recorder)
    }

    fn autoscaler_writer(&self, env: &Env) -> ChildSpec<Role> {
        let context = self.context(env, &self.writers.autoscaler_writer);
        let writer = AutoscalerWriter::new(context, env.kit.seed.child("autoscaler-writer"));
        let address = &self.addresses().autoscaler_writer;
        pump(Role::AutoscalerWriter, address, writer)
    }

    fn context(&self, env: &Env, requests: &Arc<RequestReporter>) -> WriterContext {
        WriterContext {
            shared: self.readers.clone(),
            requests: Arc::clone(requests),
            mailboxes: Arc::clone(&self.mailboxes),
            permissions: self.permissions(env),
            api: self.write_api(env),
        }
    }

    fn pod_marker(&self, env: &Env) -> ChildSpec<Role> {
        let marks = PodMarks::new(self.readers.clone(), self.write_api(env));
        let requests = &self.writers.pod_marker;
        let rounds = self.rounds(env, marks, requests);
        pump(Role::PodMarker, &self.addresses().pod_marker, rounds)
    }

    fn target_scaler(&self, env: &Env) -> ChildSpec<Role> {
        let (api, named) = (self.write_api(env), self.mailboxes.named.clone());
        let scales = DirectScales::new(self.readers.clone(), api, named);
        let requests = &self.writers.target_scaler;
        let rounds = self.rounds(env, scales, requests);
        pump(Role::TargetScaler, &self.addresses().target_scaler, rounds)
    }

    fn rounds<W: RoundWork>(
        &self,
        env: &Env,
        work: W,
        requests: &Arc<RequestReporter>,
    ) -> Rounds<W> {
        let (shared, requests) = (self.readers.clone(), Arc::clone(requests));
        Rounds::new(work, shared, requests, self.permissions(env))
    }

    fn write_api(&self, env: &Env) -> WriteApi {
        WriteApi {
            client: env.kube.clone(),
            manager: Arc::clone(&self.readers.manager),
            timeout: self.write_timeout(),
        }
    }
}

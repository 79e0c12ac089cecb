//! The part of the tree that publishes and writes.

use std::sync::Arc;

use super::{Env, Wiring};
use crate::actors::event_recorder::EventRecorder;
use crate::actors::pod_marker::PodMarks;
use crate::actors::rounds::Rounds;
use crate::actors::target_scaler::DirectScales;
use crate::actors::{autoscaler_writer, emitter, status_writer};
use crate::cluster::autoscaler::AutoscalerApi;
use crate::cluster::event::{EventApi, REPORTING_CONTROLLER};
use crate::cluster::status::StatusApi;
use crate::roles::Role;
use crate::settings::FeatureSwitch;
use wva_supervise::ChildSpec;

impl Wiring {
    pub(super) fn egress(&self, env: &Env) -> Vec<ChildSpec<Role>> {
        let mut children = vec![
            self.emitter(),
            self.status_writer(env),
            self.autoscaler_writer(env),
        ];
        if self.statics.deletion_costs == FeatureSwitch::Enabled {
            children.push(self.pod_marker(env));
        }
        children.extend([self.target_scaler(env), self.event_recorder(env)]);
        children
    }

    fn emitter(&self) -> ChildSpec<Role> {
        let (shared, writers) = (self.readers.clone(), Arc::clone(&self.writers.emitter));
        let connections = emitter::EmitterConnections {
            plans: self.plans.clone(),
            changed: self.changed.clone(),
            statuses: self.statuses.clone(),
            events: self.events.clone(),
            settled: self.settled.clone(),
        };
        wva_supervise::machine(Role::Emitter, &self.addresses.emitter, move |epoch| {
            let (shared, writers) = (shared.clone(), Arc::clone(&writers));
            emitter::Emitter::new(shared, writers, epoch, connections.clone())
        })
    }

    fn status_writer(&self, env: &Env) -> ChildSpec<Role> {
        let (shared, statuses) = (self.readers.clone(), self.statuses.clone());
        let requests = Arc::clone(&self.writers.status_writer);
        let seed = env.kit.seed.clone();
        let connections = status_writer::StatusWriterConnections {
            settled: self.settled.clone(),
            permissions: self.permissions(env),
        };
        let api = StatusApi {
            client: env.kube.clone(),
            manager: Arc::clone(&self.readers.manager),
            timeout: self.write_timeout(),
        };
        wva_supervise::child(
            Role::StatusWriter,
            &self.addresses.status_writer,
            move |_epoch| {
                let generator = seed.child("status-writer");
                status_writer::StatusWriter::new(
                    shared.clone(),
                    Arc::clone(&requests),
                    statuses.clone(),
                    connections.clone(),
                    api.clone(),
                    generator,
                )
            },
        )
    }

    fn event_recorder(&self, env: &Env) -> ChildSpec<Role> {
        let (shared, events) = (self.readers.clone(), self.events.clone());
        let requests = Arc::clone(&self.writers.event_recorder);
        let permissions = self.permissions(env);
        let api = EventApi {
            client: env.kube.clone(),
            controller: Arc::from(REPORTING_CONTROLLER),
            instance: Arc::clone(&env.identity),
            timeout: self.write_timeout(),
        };
        wva_supervise::child(
            Role::EventRecorder,
            &self.addresses.event_recorder,
            move |_epoch| {
                EventRecorder::new(
                    shared.clone(),
                    Arc::clone(&requests),
                    events.clone(),
                    permissions.clone(),
                    api.clone(),
                )
            },
        )
    }

    fn autoscaler_writer(&self, env: &Env) -> ChildSpec<Role> {
        let (shared, queue) = (self.readers.clone(), self.autoscaler_writes.clone());
        let requests = Arc::clone(&self.writers.autoscaler_writer);
        let (events, permissions) = (self.events.clone(), self.permissions(env));
        let (seed, named) = (env.kit.seed.clone(), self.named.clone());
        let api = self.autoscaler_api(env);
        wva_supervise::child(
            Role::AutoscalerWriter,
            &self.addresses.autoscaler_writer,
            move |_epoch| {
                let generator = seed.child("autoscaler-writer");
                autoscaler_writer::AutoscalerWriter::new(
                    shared.clone(),
                    Arc::clone(&requests),
                    queue.clone(),
                    autoscaler_writer::AutoscalerWriterConnections {
                        events: events.clone(),
                        permissions: permissions.clone(),
                        named: named.clone(),
                    },
                    api.clone(),
                    generator,
                )
            },
        )
    }

    fn pod_marker(&self, env: &Env) -> ChildSpec<Role> {
        let requests = Arc::clone(&self.writers.pod_marker);
        let (shared, permissions) = (self.readers.clone(), self.permissions(env));
        let api = self.autoscaler_api(env);
        wva_supervise::child(Role::PodMarker, &self.addresses.pod_marker, move |_epoch| {
            let marks = PodMarks::new(shared.clone(), api.clone());
            Rounds::new(
                marks,
                shared.clone(),
                Arc::clone(&requests),
                permissions.clone(),
            )
        })
    }

    fn target_scaler(&self, env: &Env) -> ChildSpec<Role> {
        let requests = Arc::clone(&self.writers.target_scaler);
        let (shared, permissions) = (self.readers.clone(), self.permissions(env));
        let (api, named) = (self.autoscaler_api(env), self.named.clone());
        let address = &self.addresses.target_scaler;
        wva_supervise::child(Role::TargetScaler, address, move |_epoch| {
            let scales = DirectScales::new(shared.clone(), api.clone(), named.clone());
            Rounds::new(
                scales,
                shared.clone(),
                Arc::clone(&requests),
                permissions.clone(),
            )
        })
    }

    fn autoscaler_api(&self, env: &Env) -> AutoscalerApi {
        AutoscalerApi {
            client: env.kube.clone(),
            manager: Arc::clone(&self.readers.manager),
            timeout: self.write_timeout(),
        }
    }
}

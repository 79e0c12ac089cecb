//! The part of the tree that measures and decides.

use std::sync::Arc;
use std::time::Duration;

use super::{Env, Wiring};
use crate::actors::{collector, metrics_reader, optimizer, pod_scraper, pump, router_scraper};
use crate::cluster::metrics_apis::MetricsApiClient;
use crate::roles::Role;
use crate::signals::Namespace;
use wva_supervise::{Address, ChildSpec};

/// Longest wait for an answer of a metrics API.
const METRICS_API_TIMEOUT: Duration = Duration::from_secs(5);

impl Wiring {
    pub(super) fn engine(&self, env: &Env) -> Vec<ChildSpec<Role>> {
        vec![
            self.collector(env),
            self.optimizer(),
            self.router_scraper(env),
            self.pod_scraper(env),
            self.metrics_reader(env),
        ]
    }

    fn collector(&self, env: &Env) -> ChildSpec<Role> {
        // Settings have validated it already.
        let namespace = self.statics.scope.watch_namespace.as_deref();
        let namespace = namespace.and_then(|namespace| Namespace::parse(namespace).ok());
        let collector = collector::Collector::new(
            self.readers.clone(),
            Arc::clone(&self.writers.collector),
            Arc::clone(&env.prometheus),
            namespace,
            self.addresses().optimizer.clone(),
        );
        pump(Role::Collector, &self.addresses().collector, collector)
    }

    fn optimizer(&self) -> ChildSpec<Role> {
        let optimizer = optimizer::Optimizer::new(
            self.readers.clone(),
            self.mailboxes.plans.clone(),
            self.addresses().collector.clone(),
        );
        wva_supervise::machine(Role::Optimizer, &self.addresses().optimizer, move |_epoch| {
            optimizer.clone()
        })
    }

    fn pod_scraper(&self, env: &Env) -> ChildSpec<Role> {
        let (shared, pages) = (self.readers.clone(), Arc::clone(&env.pods));
        let writer = Arc::clone(&self.writers.pod_scraper);
        wva_supervise::child(Role::PodScraper, &Address::vacant(), move |_epoch| {
            pod_scraper::PodScraper::new(shared.clone(), Arc::clone(&writer), Arc::clone(&pages))
        })
    }

    fn metrics_reader(&self, env: &Env) -> ChildSpec<Role> {
        let (shared, permissions) = (self.readers.clone(), self.permissions(env));
        let writers = Arc::clone(&self.writers.metrics_reader);
        let api = MetricsApiClient {
            client: env.kube.clone(),
            timeout: METRICS_API_TIMEOUT.min(self.statics.rest_client_timeout),
        };
        wva_supervise::child(Role::MetricsReader, &Address::vacant(), move |_epoch| {
            metrics_reader::MetricsReader::new(
                shared.clone(),
                Arc::clone(&writers),
                api.clone(),
                permissions.clone(),
            )
        })
    }

    fn router_scraper(&self, env: &Env) -> ChildSpec<Role> {
        let scraper = router_scraper::RouterScraper::new(
            self.readers.clone(),
            Arc::clone(&self.writers.router_scraper),
            Arc::clone(&env.routers),
            Arc::clone(&self.mailboxes),
        );
        pump(Role::RouterScraper, &Address::vacant(), scraper)
    }
}

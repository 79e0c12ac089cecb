//! Owns the listeners, so that they are restarted like everything else.

use std::net::SocketAddr;
use std::sync::Arc;

use futures::future;

use crate::kit::{Behaviour, Context, Occasion, Trouble};
use crate::serve::routes::{MetricsRoutes, ProbeRoutes};
use crate::serve::server;

/// Messages of the HTTP role: none, it serves until it is stopped.
#[derive(Debug)]
pub enum Message {}

/// Where to serve what.
#[derive(Debug, Clone)]
pub struct Listeners {
    /// `METRICS_BIND_ADDRESS`: the first that can be had; none where it is `0`.
    pub metrics: Vec<SocketAddr>,
    /// `HEALTH_PROBE_BIND_ADDRESS`, likewise.
    pub probes: Vec<SocketAddr>,
}

/// The pump behind the role.
#[derive(Debug)]
pub struct Http {
    listeners: Listeners,
    metrics: Arc<MetricsRoutes>,
    probes: Arc<ProbeRoutes>,
}

impl Http {
    /// A new life of the role.
    pub fn new(
        listeners: Listeners,
        metrics: Arc<MetricsRoutes>,
        probes: Arc<ProbeRoutes>,
    ) -> Self {
        Self {
            listeners,
            metrics,
            probes,
        }
    }
}

impl Behaviour for Http {
    type Msg = Message;

    async fn handle(
        &mut self,
        _cx: &Context<Message>,
        _occasion: Occasion<Message>,
    ) -> Result<(), Trouble> {
        let metrics = server::listen("METRICS_BIND_ADDRESS", &self.listeners.metrics).await?;
        let probes = server::listen("HEALTH_PROBE_BIND_ADDRESS", &self.listeners.probes).await?;
        let metrics = metrics.map(|listener| server::serve(listener, Arc::clone(&self.metrics)));
        let probes = probes.map(|listener| server::serve(listener, Arc::clone(&self.probes)));
        future::join(
            future::OptionFuture::from(metrics),
            future::OptionFuture::from(probes),
        )
        .await;
        Ok(())
    }
}

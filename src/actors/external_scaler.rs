//! Owns the port of the external scaler, so that it is restarted apart from the other servers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use kube::Client;

use crate::serve::access::Authorizer;
use crate::serve::external_scaler::ExternalScalerServer;
use crate::serve::routes::ProtectedServer;
use crate::serve::server;
use crate::serve::tls::{AuthorityFile, CertificateFiles, ClientAuthorities, Http2, Tls};
use crate::settings::address::BindAddress;
use crate::settings::statics::ExternalScalerSettings;
use crate::state::Readers;
use crate::state::permission_reporter::PermissionReporter;
use wva_supervise::{Actor, ActorResult, Context, Event};

const NAME: &str = "external-scaler";

/// Where to serve, and how. What is known about clients and certificates outlives the role.
#[derive(Debug, Clone)]
pub(crate) struct ExternalScalerPort {
    addresses: Vec<SocketAddr>,
    tls: Option<Arc<Tls>>,
    authorizer: Option<Arc<Authorizer>>,
    server: ExternalScalerServer,
}

impl ExternalScalerPort {
    /// What the settings open; `None` if nothing.
    pub(crate) fn new(
        settings: &ExternalScalerSettings,
        shared: &Readers,
        client: &Client,
        permissions: &PermissionReporter,
    ) -> Option<Self> {
        if settings.address == BindAddress::Off {
            return None;
        }
        let files = settings.certificate.clone();
        let files =
            files.map(|files| CertificateFiles { setting: "EXTERNAL_SCALER_CERT_PATH", files });
        let authorities = settings.client_authorities.clone();
        let authorizer = authorities.is_some().then(|| {
            let clock = shared.clock.clone();
            Arc::new(Authorizer::new(NAME, clock, client.clone(), None, permissions.clone()))
        });
        let authorities = authorities.map_or(ClientAuthorities::None, |path| {
            ClientAuthorities::File(AuthorityFile {
                setting: "EXTERNAL_SCALER_CLIENT_CA_PATH",
                path,
            })
        });
        // gRPC is HTTP/2, whatever the other servers offer.
        let tls = || Arc::new(Tls::new(NAME, files, authorities, Http2::Offered));
        let tls = settings.secure.then(tls);
        let server = ExternalScalerServer::new(shared.clone(), tls.clone(), authorizer.clone());
        Some(Self { addresses: settings.address.candidates(), tls, authorizer, server })
    }

    /// Certificate and clients, for the readiness probe; `None` in plain text.
    pub(crate) fn protection(&self) -> Option<ProtectedServer> {
        let tls = self.tls.clone()?;
        let authorizer = self.authorizer.clone();
        Some(ProtectedServer { tls, authorizer })
    }
}

impl Actor for ExternalScalerPort {
    /// None: it serves until it is stopped.
    type Msg = Infallible;

    async fn handle(&mut self, _cx: &Context<Self::Msg>, _event: Event<Self::Msg>) -> ActorResult {
        let key = "EXTERNAL_SCALER_BIND_ADDRESS";
        if let Some(listener) = server::listen(key, &self.addresses).await? {
            match server::serve(listener, self.server.clone()).await {}
        }
        Ok(())
    }
}

//! Routers as their clients reach them: by the addresses of their pods.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::workloads::object::Object;
use wva::signals::router_page::PageReader;
use wva::signals::{HeldRequests, RouterApi, RouterError};

/// The port at which routers show their metrics.
pub(super) const PORT: u16 = 9090;

/// The label of a router's pod that names its model.
pub(super) const LABEL: &str = "llm-d.ai/router-of";

/// A request for the metrics of a router.
#[derive(Debug)]
pub(super) struct Question {
    router: SocketAddr,
    /// Dropped where nobody listens.
    answer: oneshot::Sender<String>,
}

/// Asks routers, which answer when the world next takes a step or is at rest.
#[derive(Debug, Clone)]
pub(crate) struct Routers(mpsc::UnboundedSender<Question>);

pub(super) fn routers() -> (Routers, mpsc::UnboundedReceiver<Question>) {
    let (ask, asked) = mpsc::unbounded_channel();
    (Routers(ask), asked)
}

impl Routers {
    async fn page(&self, router: SocketAddr) -> Option<String> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Question { router, answer }).ok()?;
        answered.await.ok()
    }
}

impl RouterApi for Routers {
    fn held(
        &self,
        router: SocketAddr,
        deadline: Duration,
    ) -> BoxFuture<'_, Result<HeldRequests, RouterError>> {
        Box::pin(async move {
            let page = tokio::time::timeout(deadline, self.page(router)).await;
            let page = page.map_err(|_elapsed| RouterError::Timeout { deadline })?;
            let page = page.ok_or_else(|| RouterError::Unreachable {
                cause: "connection refused".to_owned(),
            })?;
            let mut reader = PageReader::default();
            reader.feed(page.as_bytes())?;
            Ok(reader.finish()?)
        })
    }
}

impl Question {
    pub(super) fn pod<'a>(&self, pods: &'a [Object]) -> Option<&'a Object> {
        let (address, port) = (self.router.ip().to_string(), self.router.port());
        let mut pods = pods.iter();
        pods.find(|pod| port == PORT && pod.text("/status/podIP") == address)
    }

    /// Answers with a page; without one the connection is refused.
    pub(super) fn answer(self, page: Option<String>) {
        if let Some(page) = page {
            // Who asked may have given up.
            drop(self.answer.send(page));
        }
    }
}

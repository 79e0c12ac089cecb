//! PodNetwork and model servers as their clients reach them: by the addresses of their pods.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::workloads::object::Object;
use wva::signals::metrics_page::FamilyReader;
use wva::signals::router_page::PageReader;
use wva::signals::{
    PageAnswer, PageReadError, PageUrl, PodPages, RouterAnswer, RouterApi, RouterError,
};

/// The port at which routers show their metrics.
pub(super) const PORT: u16 = 9090;

/// The port at which model servers show theirs.
pub(super) const SERVER_PORT: u16 = 8000;

/// The label of a router's pod that names its model.
pub(super) const LABEL: &str = "llm-d.ai/router-of";

#[derive(Debug)]
pub(super) struct Question {
    address: SocketAddr,
    /// Dropped where no pod listens.
    answer: oneshot::Sender<String>,
}

/// Asks pods, which answer when the world next takes a step or is at rest.
#[derive(Debug, Clone)]
pub(crate) struct PodNetwork(mpsc::UnboundedSender<Question>);

pub(super) fn pod_network() -> (PodNetwork, mpsc::UnboundedReceiver<Question>) {
    let (ask, asked) = mpsc::unbounded_channel();
    (PodNetwork(ask), asked)
}

impl PodNetwork {
    async fn page(&self, address: SocketAddr) -> Option<String> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Question { address, answer }).ok()?;
        answered.await.ok()
    }
}

impl RouterApi for PodNetwork {
    fn held(&self, router: SocketAddr, deadline: Duration) -> RouterAnswer<'_> {
        Box::pin(async move {
            let page = tokio::time::timeout(deadline, self.page(router)).await;
            let page = page.map_err(|_elapsed| RouterError::Timeout(deadline))?;
            let page =
                page.ok_or_else(|| RouterError::Unreachable("connection refused".to_owned()))?;
            let mut reader = PageReader::default();
            reader.feed(page.as_bytes())?;
            Ok(reader.finish()?)
        })
    }
}

impl PodPages for PodNetwork {
    fn read(&self, page: PageUrl, wanted: Vec<Arc<str>>, deadline: Duration) -> PageAnswer {
        let network = self.clone();
        Box::pin(async move {
            let refused = || PageReadError::Unreachable("connection refused".to_owned());
            let address = page.to_string();
            let address = address.trim_start_matches("http://").split('/').next();
            let address = address.and_then(|address| address.parse().ok());
            let address = address.ok_or_else(refused)?;
            let page = tokio::time::timeout(deadline, network.page(address)).await;
            let page = page.map_err(|_elapsed| PageReadError::Timeout(deadline))?;
            let mut reader = FamilyReader::new(wanted);
            reader.feed(page.ok_or_else(refused)?.as_bytes())?;
            Ok(reader.finish()?)
        })
    }
}

impl Question {
    /// The pod that is asked, and at which port.
    pub(super) fn listener<'a>(&self, pods: &'a [Object]) -> Option<(&'a Object, u16)> {
        let address = self.address.ip().to_string();
        let mut pods = pods.iter();
        let pod = pods.find(|pod| pod.text("/status/podIP") == address)?;
        Some((pod, self.address.port()))
    }

    /// Answers with a page; without one the connection is refused.
    pub(super) fn answer(self, page: Option<String>) {
        if let Some(page) = page {
            // Who asked may have given up.
            drop(self.answer.send(page));
        }
    }
}

//! A page of metrics served by the test process, for Prometheus to scrape.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;

use super::fault::Result;
use super::web::{PlayedServer, anywhere, response};

/// Prometheus 3 refuses a page without a content type that it knows.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a scrape gets.
pub(crate) enum Page {
    Text(String),
    /// The server answers with an error, so that Prometheus counts the scrape as failed.
    Unavailable,
}

/// A page on a loopback port, rendered anew for each scrape, until it is dropped.
pub(crate) struct Exporter {
    _server: PlayedServer,
    pub(crate) address: SocketAddr,
}

impl Exporter {
    pub(crate) async fn start(render: impl Fn() -> Page + Send + Sync + 'static) -> Result<Self> {
        Self::start_at(anywhere(), render).await
    }

    /// The same at an address that clients know beforehand.
    pub(crate) async fn start_at(
        address: SocketAddr,
        render: impl Fn() -> Page + Send + Sync + 'static,
    ) -> Result<Self> {
        let render = Arc::new(render);
        let server = PlayedServer::start(address, move |_request| {
            let page = render();
            async move { Ok(answer(page)) }
        })
        .await?;
        Ok(Self { address: server.address, _server: server })
    }
}

fn answer(page: Page) -> Response<Full<Bytes>> {
    match page {
        Page::Text(text) => response(StatusCode::OK, TEXT, text),
        Page::Unavailable => response(StatusCode::SERVICE_UNAVAILABLE, TEXT, String::new()),
    }
}

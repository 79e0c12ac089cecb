//! A page of metrics served by the test process, for Prometheus to scrape.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::background::Background;
use super::fault::Result;

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
    _task: Background,
    pub(crate) address: SocketAddr,
}

impl Exporter {
    pub(crate) async fn start(render: impl Fn() -> Page + Send + Sync + 'static) -> Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), render).await
    }

    /// The same at an address that clients know beforehand.
    pub(crate) async fn start_at(
        address: SocketAddr,
        render: impl Fn() -> Page + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let render = Arc::new(render);
        let task = Background::start(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&render)));
            }
        });
        Ok(Self {
            _task: task,
            address,
        })
    }
}

/// One request per connection, so that a dropped exporter is gone for a scraper that kept its
/// connection open, too.
async fn answer(stream: TcpStream, render: Arc<impl Fn() -> Page + Send + Sync + 'static>) {
    let service = service_fn(move |_request| {
        let page = render();
        async move { Ok::<_, Infallible>(response(page)) }
    });
    let served = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        eprintln!("a scrape broke off: {error}");
    }
}

fn response(page: Page) -> Response<Full<Bytes>> {
    let (status, text) = match page {
        Page::Text(text) => (StatusCode::OK, text),
        Page::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, http::HeaderValue::from_static(TEXT));
    response
}

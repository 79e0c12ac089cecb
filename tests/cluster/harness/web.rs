//! Talking to servers on loopback, and playing them.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use tokio::net::TcpListener;
use tower::service_fn;
use wva_sim::socket;

use super::background::Background;
use super::fault::Result;

/// A client that no proxy variable of the caller's environment can lead astray.
pub(crate) fn client() -> Result<reqwest::Client> {
    Ok(reqwest::Client::builder().no_proxy().build()?)
}

/// Any free port of loopback.
pub(crate) fn anywhere() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// A server played by the test process. Its end breaks off connections that clients keep open, too.
pub(crate) struct PlayedServer {
    _task: Background,
    pub(crate) address: SocketAddr,
}

impl PlayedServer {
    /// One at this address. An answer that fails ends its connection.
    pub(crate) async fn start<F>(
        address: SocketAddr,
        answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    ) -> Result<Self>
    where
        F: Future<Output = Result<Response<Full<Bytes>>>> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let service = service_fn(move |request| {
            let answer = answer(request);
            async move { answer.await.map_err(|fault| fault.text().to_owned()) }
        });
        let task = Background::start(async move {
            let never: Infallible = socket::serve(listener, service).await;
            match never {}
        });
        Ok(Self { _task: task, address })
    }
}

/// An answer of this type.
pub(crate) fn response(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

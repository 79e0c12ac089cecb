//! A Prometheus whose clock is ahead: the real one, which answers for a later time.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio::net::{TcpListener, TcpStream};

use super::background::Background;
use super::fault::Result;
use super::web;

/// Passes queries on until it is dropped.
pub(crate) struct Ahead {
    _task: Background,
    pub(crate) url: String,
}

struct Way {
    url: String,
    seconds: i64,
    http: reqwest::Client,
}

impl Ahead {
    /// One that is so many seconds ahead of the Prometheus at this address.
    pub(crate) async fn start(url: &str, seconds: i64) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let way = Arc::new(Way {
            url: url.to_owned(),
            seconds,
            http: web::client()?,
        });
        let task = Background::start(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&way)));
            }
        });
        Ok(Self {
            _task: task,
            url: format!("http://{address}"),
        })
    }
}

async fn serve(stream: TcpStream, way: Arc<Way>) {
    let service = service_fn(move |request| {
        let way = Arc::clone(&way);
        async move {
            let answer = way.answer(request).await;
            answer.map_err(|fault| io::Error::other(fault.text().to_owned()))
        }
    });
    let served = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        eprintln!("a query broke off: {error}");
    }
}

impl Way {
    /// The answer to the form of a query.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>> {
        let url = format!("{}{}", self.url, request.uri().path());
        let mut form = request.into_body().collect().await?.to_bytes().to_vec();
        let time = Timestamp::now().as_second() + self.seconds;
        form.extend(format!("&time={time}").into_bytes());
        let asked = self
            .http
            .post(url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let answer = asked.body(form).send().await?;
        let status = answer.status();
        let mut response = Response::new(Full::new(answer.bytes().await?));
        *response.status_mut() = status;
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(response)
    }
}

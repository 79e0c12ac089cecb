//! A Prometheus whose clock is ahead: the real one, which answers for a later time.

use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use jiff::Timestamp;

use super::fault::Result;
use super::web::{self, PlayedServer};

/// Passes queries on until it is dropped.
pub(crate) struct Ahead {
    _server: PlayedServer,
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
        let way = Arc::new(Way { url: url.to_owned(), seconds, http: web::client()? });
        let server = PlayedServer::start(web::anywhere(), move |request| {
            let way = Arc::clone(&way);
            async move { way.answer(request).await }
        })
        .await?;
        Ok(Self { url: format!("http://{}", server.address), _server: server })
    }
}

impl Way {
    /// The answer to the form of a query.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>> {
        let url = format!("{}{}", self.url, request.uri().path());
        let mut form = request.into_body().collect().await?.to_bytes().to_vec();
        let time = Timestamp::now().as_second() + self.seconds;
        form.extend(format!("&time={time}").into_bytes());
        let asked = self.http.post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let answer = asked.body(form).send().await?;
        let status = answer.status();
        let body = answer.bytes().await?;
        Ok(web::response(status, "application/json", body))
    }
}

//! What a world shows at one address: the pages of its controller, and the query API of its Prometheus.

use http::StatusCode;
use http::request::Parts;

use super::{World, controller};
use crate::threads::locked;
use wva::serve::answer::{HttpResponse, json, plain};

impl World {
    pub(crate) fn page(&self, head: &Parts, body: &[u8]) -> HttpResponse {
        if head.uri.path() == "/api/v1/query" {
            return self.queried(head, body);
        }
        match self.doors.door(controller::POD) {
            Some(door) => door.page(head),
            None => plain(StatusCode::NOT_FOUND, "no controller decides here"),
        }
    }

    fn queried(&self, head: &Parts, body: &[u8]) -> HttpResponse {
        let query = head.uri.query().unwrap_or_default().as_bytes();
        let mut pairs = form_urlencoded::parse(query).chain(form_urlencoded::parse(body));
        let promql = pairs.find(|(name, _)| name == "query");
        let promql = promql.map_or_else(String::new, |(_, promql)| promql.into_owned());
        let now = self.clock.now().wall;
        let (status, document) = locked(&self.prometheus).document(&promql, now);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        json(status, &document)
    }
}

//! The server as the controller asks it, without a network between them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use allocations::Owner;

use super::eval::QueryValue;
use super::number::seconds;
use super::refusal::QueryRefusal;
use super::server::Prometheus;
use crate::threads::locked;
use wva::signals::decode::Expected;
use wva::signals::{PromAnswer, PromApi, QueryError, QueryResult};
use wva_supervise::Clock;

#[derive(Debug, Clone)]
pub(crate) struct InProcess {
    server: Arc<Mutex<Prometheus>>,
    clock: Clock,
}

impl InProcess {
    pub(crate) fn new(server: Arc<Mutex<Prometheus>>, clock: Clock) -> Self {
        Self { server, clock }
    }

    fn ask(&self, promql: &str, expected: Expected) -> Result<QueryResult, QueryError> {
        let now = self.clock.now().wall;
        let server = locked(&self.server);
        if server.is_down() {
            return Err(QueryError::Unreachable("connection refused".to_owned()));
        }
        let answer = {
            // What the server needs for an answer is not held by who asks.
            let _scope = Owner::NONE.enter();
            let answer = server.query(promql, now);
            answer.map_err(|refusal| refused(&refusal))?
        };
        let mut result = QueryResult::default();
        match (&answer, expected) {
            (QueryValue::Vector(samples), Expected::Vector) => {
                let time = seconds(now.0);
                for sample in samples {
                    result.push(sample.labels.iter(), time, sample.value);
                }
            }
            (QueryValue::Matrix(all), Expected::Matrix) => {
                for past in all {
                    for (time, value) in &past.values {
                        result.push(past.labels.iter(), seconds(*time), *value);
                    }
                }
            }
            (other, _) => {
                let (kind, expected) = (other.kind(), expected.as_str());
                return Err(QueryError::Malformed(format!(
                    "it is a {kind} where a {expected} was expected"
                )));
            }
        }
        Ok(result)
    }
}

fn refused(refusal: &QueryRefusal) -> QueryError {
    QueryError::BadRequest { status: refusal.kind.status(), message: format!(": {refusal}") }
}

impl PromApi for InProcess {
    fn history<'a>(&'a self, promql: &'a str, _deadline: Duration) -> PromAnswer<'a> {
        Box::pin(std::future::ready(self.ask(promql, Expected::Matrix)))
    }

    fn query<'a>(&'a self, promql: &'a str, _deadline: Duration) -> PromAnswer<'a> {
        Box::pin(std::future::ready(self.ask(promql, Expected::Vector)))
    }
}

//! A Prometheus of a few lines.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::collect::NOW;
use crate::policy::signal::FreshnessBands;
use crate::policy::snapshot::SignalName;
use crate::signals::query::{Part, Scope, TABLE};
use crate::signals::{PromApi, QueryError, QueryResult};

/// Answers each query of one scope from a table, the later ones first.
#[derive(Debug)]
pub(super) struct Stub {
    pub(super) scope: Scope,
    pub(super) answers: BTreeMap<(SignalName, Part), Result<QueryResult, QueryError>>,
    pub(super) asked: Mutex<Vec<(SignalName, Part)>>,
}

impl Stub {
    pub(super) fn new() -> Self {
        Self {
            scope: Scope::new(&FreshnessBands::default(), None),
            answers: BTreeMap::new(),
            asked: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn result(&mut self, signal: SignalName, part: Part) -> &mut QueryResult {
        self.answers
            .entry((signal, part))
            .or_insert_with(|| Ok(QueryResult::default()))
            .as_mut()
            .unwrap()
    }

    /// One sample of a pod of model `m` in namespace `ns`.
    pub(super) fn sample(
        &mut self,
        signal: SignalName,
        part: Part,
        source: &str,
        pod: &str,
        number: f64,
    ) {
        let labels = [
            ("namespace", "ns"),
            ("model_name", "m"),
            ("pod", pod),
            ("source", source),
        ];
        self.result(signal, part).push(labels, NOW, number);
    }

    pub(super) fn reading(
        &mut self,
        signal: SignalName,
        source: &str,
        pod: &str,
        value: f64,
        time: f64,
    ) {
        self.sample(signal, Part::Value, source, pod, value);
        self.sample(signal, Part::Age, source, pod, time);
    }

    pub(super) fn fail(&mut self, signal: SignalName, part: Part, error: QueryError) {
        self.answers.insert((signal, part), Err(error));
    }
}

impl PromApi for Stub {
    fn query<'a>(
        &'a self,
        promql: &'a str,
        deadline: Duration,
    ) -> BoxFuture<'a, Result<QueryResult, QueryError>> {
        assert_eq!(deadline, Duration::from_secs(10));
        let all = TABLE
            .iter()
            .flat_map(|row| Part::ALL.map(|part| (row, part)));
        let (place, id) = all
            .enumerate()
            .find(|(_, (row, part))| row.query(*part, &self.scope) == promql)
            .map(|(place, (row, part))| (place, (row.signal, part)))
            .expect("a query of the table");
        self.asked.lock().unwrap().push(id);
        let answer = self.answers.get(&id).cloned();
        async move {
            for _ in place..TABLE.len() * Part::ALL.len() {
                tokio::task::yield_now().await;
            }
            answer.unwrap_or_else(|| Ok(QueryResult::default()))
        }
        .boxed()
    }
}

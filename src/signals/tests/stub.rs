//! A Prometheus of a few lines.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt as _;

use super::collect::NOW;
use crate::policy::signal::FreshnessBands;
use crate::signals::query::{QueryName, QueryScope};
use crate::signals::{PromAnswer, PromApi, QueryError, QueryResult};

/// Answers each query of one scope from a table, the later ones first.
#[derive(Debug)]
pub(super) struct Stub {
    pub(super) scope: QueryScope,
    pub(super) answers: BTreeMap<QueryName, Result<QueryResult, QueryError>>,
    pub(super) asked: Mutex<Vec<QueryName>>,
}

impl Stub {
    pub(super) fn new() -> Self {
        Self {
            scope: QueryScope::new(&FreshnessBands::default(), None),
            answers: BTreeMap::new(),
            asked: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn result(&mut self, query: QueryName) -> &mut QueryResult {
        self.answers.entry(query).or_insert_with(|| Ok(QueryResult::default())).as_mut().unwrap()
    }

    /// One sample of a pod of model `m` in namespace `ns`.
    pub(super) fn sample(&mut self, query: QueryName, source: &str, pod: &str, number: f64) {
        self.rank(query, source, pod, "", number);
    }

    /// As before, of one rank of the pod.
    pub(super) fn rank(
        &mut self,
        query: QueryName,
        source: &str,
        pod: &str,
        engine: &str,
        number: f64,
    ) {
        let labels = [
            ("namespace", "ns"),
            ("model_name", "m"),
            ("pod", pod),
            ("engine", engine),
            ("source", source),
        ];
        self.result(query).push(labels, NOW, number);
    }

    /// A value and when it was read.
    pub(super) fn reading(
        &mut self,
        [value, age]: [QueryName; 2],
        source: &str,
        pod: &str,
        number: f64,
        time: f64,
    ) {
        self.sample(value, source, pod, number);
        self.sample(age, source, pod, time);
    }

    /// One sample with labels of its own.
    pub(super) fn push(&mut self, query: QueryName, labels: &[(&str, &str)], number: f64) {
        self.result(query).push(labels.iter().copied(), NOW, number);
    }

    pub(super) fn fail(&mut self, query: QueryName, error: QueryError) {
        self.answers.insert(query, Err(error));
    }
}

impl PromApi for Stub {
    fn query<'a>(&'a self, promql: &'a str, deadline: Duration) -> PromAnswer<'a> {
        assert_eq!(deadline, Duration::from_secs(10));
        let mut all = QueryName::ALL.into_iter().enumerate();
        let (place, query) =
            all.find(|(_, query)| query.text(&self.scope) == promql).expect("a query of the set");
        self.asked.lock().unwrap().push(query);
        let answer = self.answers.get(&query).cloned();
        async move {
            for _ in place..QueryName::ALL.len() {
                tokio::task::yield_now().await;
            }
            answer.unwrap_or_else(|| Ok(QueryResult::default()))
        }
        .boxed()
    }
}

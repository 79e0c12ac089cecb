//! External metrics for autoscalers, as an adapter before Prometheus serves them.

use std::sync::{Arc, Mutex};

use crate::hpa::{ExternalMetricSpec, ExternalMetrics, Milli};
use crate::prometheus::{Prometheus, QueryValue};
use crate::threads::locked;
use wva_supervise::Clock;

pub(super) fn adapter(prometheus: Arc<Mutex<Prometheus>>, clock: Clock) -> Arc<ExternalMetrics> {
    Arc::new(move |namespace: &str, metric: &ExternalMetricSpec| {
        let selector = metric.selector.match_labels.iter().flatten();
        let matchers: Vec<String> =
            selector.map(|(name, value)| format!("{name}={value:?}")).collect();
        let query = format!("{}{{{}}}", metric.name, matchers.join(","));
        let now = clock.now().wall;
        let failed = |why: &str| {
            let name = &metric.name;
            format!("unable to get external metric {namespace}/{name}: {why}")
        };
        let prometheus = locked(&prometheus);
        if prometheus.is_down() {
            return Err(failed("Prometheus cannot be reached"));
        }
        let answer =
            prometheus.query(&query, now).map_err(|refusal| failed(&refusal.to_string()))?;
        let QueryValue::Vector(samples) = answer else {
            return Err(failed("the answer is no vector"));
        };
        if samples.is_empty() {
            return Err(failed("no metrics returned from external metrics API"));
        }
        let sum: f64 = samples.iter().map(|sample| sample.value).sum();
        Milli::of(sum).ok_or_else(|| failed("its value is negative or no number"))
    })
}

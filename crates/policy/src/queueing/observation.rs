//! What a filter learns from: the latencies of one replica under a known load.

use serde::{Deserialize, Serialize};

use super::performance::ReplicaModel;
use super::quantity::{Millis, RequestRate};
use super::service::{ReplicaRoom, ServiceParameters, Workload};

/// Share of an observed time between tokens that a first guess takes for the empty iteration.
const ITERATION_SHARE: f64 = 0.9;

/// One replica over one measuring interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReplicaObservation {
    /// Requests that it was sent.
    pub rate: RequestRate,
    /// Their mean size.
    pub workload: Workload,
    /// Requests that it works on at once at most.
    pub batch: u32,
    pub time_to_first_token: Millis,
    pub inter_token_latency: Millis,
}

impl ReplicaObservation {
    /// Whether every figure is above zero and finite; nothing can be learned otherwise.
    pub(crate) fn is_usable(&self) -> bool {
        let figures = [
            self.rate.0,
            self.workload.input_tokens,
            self.workload.output_tokens,
            self.time_to_first_token.0,
            self.inter_token_latency.0,
        ];
        self.batch > 0 && figures.iter().all(|figure| *figure > 0.0 && figure.is_finite())
    }

    /// Whether the replica is sent more than it can work on, whatever its parameters: by Little's law, the
    /// requests that write answers at once are their rate times the time that writing takes, and no more
    /// of them fit than one batch.
    pub(super) fn overflows(&self) -> bool {
        let seconds = self.workload.output_tokens * self.inter_token_latency.0 / 1_000.0;
        self.rate.0 * seconds > f64::from(self.batch)
    }

    /// Time to first token and time between tokens that the model expects, in ms. The former is
    /// waiting and reading the prompt, without the first decode step. `None` where the parameters
    /// say that the replica cannot keep up with the rate.
    pub(super) fn expected(&self, parameters: &ServiceParameters) -> Option<[f64; 2]> {
        let model = self.model(parameters)?;
        let performance = model.analyze(self.rate).ok()?;
        let first_token = performance.wait_time.0 + performance.prefill_time.0;
        Some([first_token, performance.inter_token_latency.0])
    }

    /// The replica, with ten batches of requests allowed to wait: the filter looks at replicas that
    /// may be overloaded.
    pub(super) fn model(&self, parameters: &ServiceParameters) -> Option<ReplicaModel> {
        let shape = ReplicaRoom { batch: self.batch, queue: self.batch.saturating_mul(10) };
        ReplicaModel::new(*parameters, self.workload, shape).ok()
    }

    pub(super) fn latencies(&self) -> [f64; 2] {
        [self.time_to_first_token.0, self.inter_token_latency.0]
    }

    /// Parameters that a lone request with these latencies would have; `None` where the latencies
    /// contradict the model.
    pub fn guess(&self) -> Option<ServiceParameters> {
        let Workload { input_tokens: input, output_tokens: output } = self.workload;
        let [first_token, step] = self.latencies();
        let alpha = ITERATION_SHARE * step;
        let per_input = (first_token - alpha) / input;
        let gamma = ((step - alpha) - per_input) / (input + f64::midpoint(output, 1.0) - 1.0);
        let beta = per_input - gamma;
        let possible = |value: f64| value > 0.0 && value.is_finite();
        let all = per_input >= 0.0 && [alpha, beta, gamma].into_iter().all(possible);
        all.then_some(ServiceParameters { alpha, beta, gamma })
    }
}

//! Service times: how long a replica takes as a function of the requests it works on at once.

use serde::{Deserialize, Serialize};

use super::quantity::Millis;

/// Most requests that a replica may work on at once; keeps the time of one solution bounded.
pub(crate) const MAX_BATCH: u32 = 8192;

/// Most requests that may wait in front of a replica.
pub(crate) const MAX_QUEUE: u32 = 10 * MAX_BATCH;

/// What describes a replica, whatever it is asked to do. All three are at least zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ServiceParameters {
    /// Time of an empty iteration, in ms.
    pub alpha: f64,
    /// Time to compute one token, in ms.
    pub beta: f64,
    /// Time to read the cached keys and values of one token, in ms.
    pub gamma: f64,
}

/// Mean request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Tokens of the prompt; zero or more.
    pub input_tokens: f64,
    /// Tokens generated; one or more.
    pub output_tokens: f64,
}

/// Room of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaRoom {
    /// Requests worked on at once; the engine's `max-num-seqs`.
    pub batch: u32,
    /// Requests that may wait in front of it.
    pub queue: u32,
}

/// A model that cannot be computed with.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum InvalidModel {
    #[error("batch {0} must be between 1 and {MAX_BATCH}; check the engine's max-num-seqs")]
    Batch(u32),
    #[error("queue {0} must be at most {MAX_QUEUE}")]
    Queue(u32),
    #[error(
        "a request of {input} input and {output} output tokens is impossible: at least 0 and at \
         least 1 are needed"
    )]
    Workload { input: f64, output: f64 },
    #[error(
        "service parameters alpha {alpha}, beta {beta}, gamma {gamma} give no service rate: each \
         must be finite and at least 0, and one above 0"
    )]
    Parameters { alpha: f64, beta: f64, gamma: f64 },
}

impl ServiceParameters {
    /// Time of one iteration over a batch of mean requests: `α + n·(β·(I+O)/(O+1) + γ·(I+O/2))`.
    pub(crate) fn iteration(&self, work: Workload, batch: f64) -> Millis {
        let Workload { input_tokens: input, output_tokens: output } = work;
        let computed = (input + output) / (output + 1.0);
        let read = input + output / 2.0;
        Millis(self.alpha + batch * (self.beta * computed + self.gamma * read))
    }

    /// Time of reading the prompt of one request while `batch` are worked on; nothing without a
    /// prompt.
    pub fn prefill(&self, work: Workload, batch: f64) -> Millis {
        if work.input_tokens > 0.0 {
            let own = (self.beta + self.gamma) * work.input_tokens;
            Millis(self.iteration(work, batch).0 + own)
        } else {
            Millis(0.0)
        }
    }

    /// Time of generating one token of one request while `batch` are worked on.
    pub(crate) fn decode_step(&self, work: Workload, batch: f64) -> Millis {
        let read = work.input_tokens + work.output_tokens / 2.0;
        Millis(self.iteration(work, batch).0 + self.beta + self.gamma * read)
    }

    /// All three times a factor: the same replica, faster or slower.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self { alpha: self.alpha * factor, beta: self.beta * factor, gamma: self.gamma * factor }
    }

    /// Requests finished per ms while 1, 2, … `batch` are worked on: `n / (P(n) + O·G(n))`.
    pub(super) fn rates(
        &self,
        work: Workload,
        shape: ReplicaRoom,
    ) -> Result<Vec<f64>, InvalidModel> {
        self.check(work, shape)?;
        let rates: Vec<f64> = (1..=shape.batch)
            .map(|count| {
                let count = f64::from(count);
                let decode = work.output_tokens * self.decode_step(work, count).0;
                count / (self.prefill(work, count).0 + decode)
            })
            .collect();
        if rates.iter().all(|rate| rate.is_normal()) { Ok(rates) } else { Err(self.invalid()) }
    }

    fn check(&self, work: Workload, shape: ReplicaRoom) -> Result<(), InvalidModel> {
        if !(1..=MAX_BATCH).contains(&shape.batch) {
            return Err(InvalidModel::Batch(shape.batch));
        }
        if shape.queue > MAX_QUEUE {
            return Err(InvalidModel::Queue(shape.queue));
        }
        let (input, output) = (work.input_tokens, work.output_tokens);
        if !(0.0..=f64::MAX).contains(&input) || !(1.0..=f64::MAX).contains(&output) {
            return Err(InvalidModel::Workload { input, output });
        }
        let possible = |value: f64| (0.0..=f64::MAX).contains(&value);
        if [self.alpha, self.beta, self.gamma].into_iter().all(possible) {
            Ok(())
        } else {
            Err(self.invalid())
        }
    }

    fn invalid(&self) -> InvalidModel {
        InvalidModel::Parameters { alpha: self.alpha, beta: self.beta, gamma: self.gamma }
    }
}

//! Every state of a queue one by one, to compare the closed forms with.

use super::{BirthDeathQueue, LARGE, NEGLIGIBLE, QueueError};

impl BirthDeathQueue {
    /// Probability of 0, 1, … requests in the queue. States at the end that are so rare that they
    /// change nothing are left out.
    pub(crate) fn probabilities(&self, arrival_rate: f64) -> Result<Vec<f64>, QueueError> {
        let load = self.load(arrival_rate)?;
        let mut weights = vec![1.0];
        let mut weight = 1.0;
        let mut sum = 1.0;
        let waiting = std::iter::repeat(self.full_rate());
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        for (served, rate) in self.rates.iter().copied().chain(waiting).take(room).enumerate() {
            weight *= arrival_rate / rate;
            sum += weight;
            weights.push(weight);
            if weight > LARGE {
                for earlier in &mut weights {
                    *earlier /= weight;
                }
                sum /= weight;
                weight = 1.0;
            }
            // Beyond the batch, weights fall by the same factor each.
            if served >= self.rates.len() && weight < NEGLIGIBLE * (1.0 - load) * sum {
                break;
            }
        }
        for weight in &mut weights {
            *weight /= sum;
        }
        Ok(weights)
    }
}

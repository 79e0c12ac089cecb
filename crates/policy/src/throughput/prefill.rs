//! What is learned of the engine of one variant that reads prompts: `TTFT(T) = A * T + B`, with T
//! the prompt tokens between the arrival of a request and its first token.

use serde::{Deserialize, Serialize};

use super::input::PrefillReading;
use super::line::Fit;
use super::window::{Domain, ObservationWindow, Proof};
use wva_base::moment::Moment;

/// What is learned of a prefill engine. Tokens have no shape, so the line outlives every change of
/// the requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PrefillEngine {
    pub(super) window: ObservationWindow,
    pub(super) fitted: Option<Fit>,
    #[serde(default)]
    proof: Option<Proof>,
}

impl PrefillEngine {
    pub(super) fn learn(&mut self, readings: &[PrefillReading], now: Moment) {
        let points = readings.iter().map(|one| (one.tokens, one.latency));
        self.window.learn(points, Domain::TOKENS, now);
        if let Some(fit) = self.window.fit(Domain::TOKENS) {
            self.fitted = Some(fit);
            self.proof = Proof::extend(self.proof, &self.window);
        }
    }

    /// Whether the last fit rests on two rate windows.
    pub(crate) fn is_proven(&self) -> bool {
        self.fitted.is_some() && self.proof.is_some_and(Proof::is_given)
    }
}

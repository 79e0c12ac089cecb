//! Requests drawn by chance.

use super::Arrival;
use super::lengths::{Lengths, Sharing};
use super::shape::RateProfile;
use crate::engine::Mix;
use crate::number;
use wva_supervise::{Generator, SeedTree};

/// Everything about a generated load.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    pub(crate) shape: RateProfile,
    pub(crate) lengths: Lengths,
    /// What prompts share; none where they share nothing.
    pub(crate) sharing: Option<Sharing>,
}

impl Demand {
    /// What its requests are like on average, for servers that know no single one.
    pub(crate) fn mix(&self) -> Mix {
        let (prompt, output) = self.lengths.mean();
        let shared = self
            .sharing
            .map_or(0.0, |sharing| sharing.share * f64::from(sharing.tokens) / prompt.max(1.0));
        Mix {
            prompt_tokens: number::rounded(prompt).max(1),
            output_tokens: number::rounded(output).max(1),
            cached: shared.min(1.0),
        }
    }
}

/// Requests in the order of arrival; ends when the rate stays zero.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    demand: Demand,
    seconds: f64,
    gaps: Generator,
    lengths: Generator,
    sharing: Generator,
}

impl Arrivals {
    pub(crate) fn new(demand: Demand, seed: &SeedTree, name: &str) -> Result<Self, String> {
        demand.shape.check()?;
        let child = |part: &str| seed.child(&format!("load/{name}/{part}"));
        Ok(Self {
            demand,
            seconds: 0.0,
            gaps: child("gaps"),
            lengths: child("lengths"),
            sharing: child("sharing"),
        })
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        // In units of the mean: requests are independent of one another.
        let gap = number::exponential(&mut self.gaps);
        self.seconds = self.demand.shape.after(self.seconds, gap)?;
        let (prompt_tokens, output_tokens) = self.demand.lengths.draw(&mut self.lengths);
        let sharing = self.demand.sharing.as_ref();
        Some(Arrival {
            at: number::duration(self.seconds),
            prompt_tokens,
            output_tokens,
            prefix: sharing.and_then(|sharing| sharing.draw(&mut self.sharing)),
            within: None,
        })
    }
}

//! Terms of the demand of the SLO analyzer that can be left out, to see what each is worth.

use serde::{Deserialize, Serialize};

wva_base::named! {
    listed
    /// A term that the laboratory leaves out. No setting does.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum SloTerm {
        /// The last minute, where it exceeds the smoothed rate.
        ShortWindow = "short-window",
        /// Tokens that are generated.
        Generated = "generated",
        /// Growth of the requests in flight.
        Surge = "surge",
        /// What arrived since the last count.
        Jump = "jump",
        /// The slope of the latency over the work.
        Slope = "slope",
        /// The backlog at landing.
        Landing = "landing",
        /// Replicas on their way, until they are ready.
        Starts = "starts",
        /// Needs of before.
        Memory = "memory",
        /// What the need grows by until a start is over.
        Growth = "growth",
        /// Variants that are too slow to serve with the others.
        Stragglers = "stragglers",
    }
}

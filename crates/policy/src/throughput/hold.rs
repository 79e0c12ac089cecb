//! Keeping a demand where it neither orders nor releases anything.

use crate::combine::Band;

/// Distance to the edges of the band, so that rounding never orders or releases a replica.
const MARGIN: f64 = 1e-9;

/// Moves a demand into `[scale_down * supply, scale_up * anticipated]`.
pub fn hold(demand: f64, supply: f64, anticipated: f64, band: Band) -> f64 {
    at_most_held(demand, anticipated, band).max(band.scale_down * supply * (1.0 + MARGIN))
}

/// Cuts a demand to what orders nothing.
pub(crate) fn at_most_held(demand: f64, anticipated: f64, band: Band) -> f64 {
    demand.min(band.scale_up * anticipated * (1.0 - MARGIN))
}

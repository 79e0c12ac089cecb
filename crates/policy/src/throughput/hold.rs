//! Keeping a demand where it neither orders nor releases anything.

use crate::combine::Band;

/// Distance to the edges of the band, so that rounding never orders or releases a replica.
pub(crate) const MARGIN: f64 = 1e-9;

/// Moves a demand into `[scale_down * supply, scale_up * anticipated]`.
pub fn hold(demand: f64, supply: f64, anticipated: f64, band: Band) -> f64 {
    let held = demand.min(orders_nothing(anticipated, band));
    held.max(band.scale_down * supply * (1.0 + MARGIN))
}

/// The largest demand at which nothing is ordered.
pub(crate) fn orders_nothing(anticipated: f64, band: Band) -> f64 {
    band.scale_up * anticipated * (1.0 - MARGIN)
}

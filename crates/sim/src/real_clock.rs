//! The real clock, in the few places that simulate nothing.

use std::time::Instant;

#[expect(
    clippy::disallowed_methods,
    reason = "no simulated clock knows how long something takes in the real world"
)]
pub(crate) fn real() -> Instant {
    Instant::now()
}

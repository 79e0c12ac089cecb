//! Quantities of resources that only come whole.

/// A count like `8` or `1k`; 0 for what is none.
pub(super) fn whole(text: &str) -> u32 {
    match text.strip_suffix('k') {
        Some(thousands) => {
            thousands.parse().map_or(0, |thousands: u32| thousands.saturating_mul(1_000))
        }
        None => text.parse().unwrap_or(0),
    }
}

//! The smallest fixed fleet that meets the objective, by playing.

use super::fluid::GOAL;

/// Walks from a first guess to the least count whose attainment meets the goal; the maximum where none does.
pub(super) fn least_count<E>(
    guess: u32,
    (min, max): (u32, u32),
    mut attainment: impl FnMut(u32) -> Result<f64, E>,
) -> Result<u32, E> {
    let min = min.max(1);
    let mut count = guess.clamp(min, max.max(min));
    if attainment(count)? >= GOAL {
        while count > min && attainment(count - 1)? >= GOAL {
            count -= 1;
        }
        return Ok(count);
    }
    while count < max {
        count += 1;
        if attainment(count)? >= GOAL {
            break;
        }
    }
    Ok(count)
}

//! How far the wall clocks of processes are from the true one.

use super::dice::Dice;
use wva_supervise::SeedTree;

const SKEWED: u64 = 50;
/// By how many milliseconds a clock is ahead or behind at most: by more than a lease lasts, which is 20 s. A process
/// that judges one by the date in it takes what is held, or leaves what is free. How old samples are is measured by the
/// clock of Prometheus; limits for what others date, like the creation of a pod, are minutes.
const FURTHEST: u64 = 30_000;

/// By how many milliseconds the wall clock at each place is ahead, behind where that is negative: in half of the
/// seeds by none, in the others each by its own.
pub(super) fn skews(seed: &SeedTree, places: usize) -> Vec<i64> {
    let mut dice = Dice::new(seed.child("skew"));
    let is_skewed = dice.chance(SKEWED);
    let mut skew = || {
        let drawn = i64::try_from(dice.below(2 * FURTHEST + 1)).unwrap_or_default();
        drawn.saturating_sub_unsigned(FURTHEST)
    };
    let skews = (0..places).map(|_| if is_skewed { skew() } else { 0 });
    skews.collect()
}

pub(super) fn words(ahead: i64) -> String {
    let way = match ahead {
        0 => return String::new(),
        1.. => "ahead",
        _ => "behind",
    };
    let by = ahead.unsigned_abs();
    format!(", its clock {}.{:03} s {way}", by / 1000, by % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_half_of_the_seeds_each_clock_is_off_by_its_own() {
        let all: Vec<Vec<i64>> = (1..=200).map(|seed| skews(&SeedTree::new(seed), 3)).collect();
        let (right, wrong): (Vec<_>, Vec<_>) = all.iter().partition(|skews| **skews == [0, 0, 0]);
        assert!((70..130).contains(&right.len()), "{}", right.len());
        for skews in &wrong {
            assert!(skews.iter().all(|skew| skew.abs() <= 30_000), "{skews:?}");
            assert!(skews[0] != skews[1] && skews[1] != skews[2], "{skews:?}");
        }
        // Further than a lease is free by its date.
        let far = |skews: &&&Vec<i64>| skews[0].abs_diff(skews[1]) > 20_000;
        assert!(wrong.iter().filter(far).count() > 20);
        assert_eq!(all[6], skews(&SeedTree::new(7), 3));
    }
}

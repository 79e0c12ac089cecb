//! The middle and the mean of a few values.

/// The median; of an even number the mean of the two in the middle. None of none.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values.get(values.len().saturating_sub(1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

/// The mean, summed in ascending order, so that the order of the input cannot move its last digit.
/// None of none.
pub(super) fn mean(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    // Those of like replicas are in order.
    if values.clone().is_sorted_by(|one, other| one.total_cmp(other).is_le()) {
        let count = u32::try_from(values.clone().count()).unwrap_or(u32::MAX);
        return (count > 0).then(|| values.sum::<f64>() / f64::from(count));
    }
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let count = f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX));
    (count > 0.0).then(|| values.iter().sum::<f64>() / count)
}

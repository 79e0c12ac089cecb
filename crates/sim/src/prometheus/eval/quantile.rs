//! Quantiles of classic histograms. Source: `BucketQuantile` of Prometheus.

use crate::prometheus::number::equal;

/// Relative difference of two counts that is taken for rounding.
const TOLERANCE: f64 = 1e-12;

/// Observations up to a bound.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    pub(super) bound: f64,
    pub(super) count: f64,
}

/// The value below which this share of observations lies, linear within a bucket.
pub(super) fn quantile(share: f64, mut buckets: Vec<Bucket>) -> f64 {
    if share.is_nan() {
        return f64::NAN;
    }
    if share < 0.0 {
        return f64::NEG_INFINITY;
    }
    if share > 1.0 {
        return f64::INFINITY;
    }
    buckets.sort_by(|left, right| left.bound.total_cmp(&right.bound));
    if !buckets
        .last()
        .is_some_and(|last| equal(last.bound, f64::INFINITY))
    {
        return f64::NAN;
    }
    buckets.dedup_by(|later, kept| {
        let same = equal(later.bound, kept.bound);
        if same {
            kept.count += later.count;
        }
        same
    });
    make_monotonic(&mut buckets);
    let [inner @ .., last] = buckets.as_slice() else {
        return f64::NAN;
    };
    let (Some(highest), false) = (inner.last(), equal(last.count, 0.0)) else {
        return f64::NAN;
    };
    let rank = share * last.count;
    let place = inner.partition_point(|bucket| bucket.count < rank);
    let Some(bucket) = inner.get(place) else {
        return highest.bound;
    };
    let before = place.checked_sub(1).and_then(|before| inner.get(before));
    let (start, below) = match before {
        None if bucket.bound <= 0.0 => return bucket.bound,
        None => (0.0, 0.0),
        Some(before) => (before.bound, before.count),
    };
    start + (bucket.bound - start) * ((rank - below) / (bucket.count - below))
}

/// Counts must not fall from bucket to bucket; scrapes and rates make them.
fn make_monotonic(buckets: &mut [Bucket]) {
    let mut highest = f64::NAN;
    for bucket in buckets {
        if highest.is_nan() {
            highest = bucket.count;
        } else if bucket.count < highest || is_almost(highest, bucket.count) {
            bucket.count = highest;
        } else {
            highest = bucket.count;
        }
    }
}

fn is_almost(left: f64, right: f64) -> bool {
    let size = left.abs() + right.abs();
    let difference = (left - right).abs();
    if equal(left, 0.0) || equal(right, 0.0) || size < f64::MIN_POSITIVE {
        return difference < TOLERANCE * f64::MIN_POSITIVE;
    }
    difference / size.min(f64::MAX) < TOLERANCE
}

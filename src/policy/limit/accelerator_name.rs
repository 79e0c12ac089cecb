//! Names of accelerator types: nodes write them long, people short.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The short name of a product: `NVIDIA-H100-SXM5-80GB` is `H100`. Intel's keep their generation:
/// `Intel-Gaudi-2-96GB` is `Gaudi-2`. A name without a hyphen is short already.
pub fn short_name(product: &str) -> &str {
    let Some((vendor, rest)) = product.split_once('-') else {
        return product;
    };
    let segments = if vendor.eq_ignore_ascii_case("intel") {
        2
    } else {
        1
    };
    rest.match_indices('-')
        .nth(segments - 1)
        .and_then(|(end, _)| rest.get(..end))
        .unwrap_or(rest)
}

/// The key among `pools` that a declared name means: the name itself, else its short form, else the
/// first key that means the same type.
pub fn reconcile<'a, V>(name: &str, pools: &'a BTreeMap<Arc<str>, V>) -> Option<&'a Arc<str>> {
    let exact = |wanted: &str| pools.get_key_value(wanted).map(|(key, _)| key);
    let short = short_name(name);
    exact(name)
        .or_else(|| exact(short))
        .or_else(|| pools.keys().find(|key| is_same_type(name, key)))
}

/// Whether two names mean one type, whichever of them is short.
pub(super) fn is_same_type(one: &str, other: &str) -> bool {
    let (short, other_short) = (short_name(one), short_name(other));
    one == other || short == other_short || one == other_short || short == other
}

//! Names of accelerator types: nodes write them long, people short.

use std::borrow::Borrow;
use std::collections::BTreeMap;

/// First words of product names that say who makes it, or the line it belongs to.
const MAKERS: [&str; 5] = ["nvidia", "amd", "intel", "tesla", "instinct"];

/// The short name of a product: `NVIDIA-H100-SXM5-80GB` is `H100`, `Tesla-T4` is `T4`. Intel's keep
/// their generation: `Intel-Gaudi-2-96GB` is `Gaudi-2`. A name that begins with no maker is short
/// already.
pub(crate) fn short_name(product: &str) -> &str {
    let is_maker = |word: &str| MAKERS.iter().any(|maker| word.eq_ignore_ascii_case(maker));
    let (mut maker, mut rest) = (None, product);
    while let Some((word, more)) = rest.split_once(is_separator)
        && is_maker(word)
    {
        (maker, rest) = (Some(word), more);
    }
    let Some(maker) = maker else { return product };
    let more_words = usize::from(maker.eq_ignore_ascii_case("intel"));
    rest.match_indices(is_separator)
        .nth(more_words)
        .and_then(|(end, _)| rest.get(..end))
        .unwrap_or(rest)
}

/// AMD's labels have underscores.
fn is_separator(letter: char) -> bool {
    letter == '-' || letter == '_'
}

/// The key among `pools` that a declared name means: the name itself, else its short form, else the
/// first key that means the same type, else the only one that does but for the case of its letters.
pub fn reconcile<'a, K: Borrow<str> + Ord, V>(
    name: &str,
    pools: &'a BTreeMap<K, V>,
) -> Option<&'a K> {
    let exact = |wanted: &str| pools.get_key_value(wanted).map(|(key, _)| key);
    let in_any_case = || {
        let lower = name.to_ascii_lowercase();
        let mut fitting = (pools.keys())
            .filter(|key| is_same_type(&lower, &(**key).borrow().to_ascii_lowercase()));
        fitting.next().filter(|_| fitting.next().is_none())
    };
    exact(name)
        .or_else(|| exact(short_name(name)))
        .or_else(|| pools.keys().find(|key| is_same_type(name, (**key).borrow())))
        .or_else(in_any_case)
}

/// Whether what is in use under a name counts under a key of `pools`: of a type that no pool has, every
/// spelling does.
pub(super) fn counts_under<K: Borrow<str> + Ord, V>(
    name: &str,
    key: &str,
    pools: &BTreeMap<K, V>,
) -> bool {
    reconcile(name, pools).map_or_else(|| is_same_type(name, key), |found| found.borrow() == key)
}

fn is_same_type(one: &str, other: &str) -> bool {
    let (short, other_short) = (short_name(one), short_name(other));
    one == other || short == other_short || one == other_short || short == other
}

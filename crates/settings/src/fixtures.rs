//! What tests of several modules build.

use crate::sources::{Data, PolicySources};

pub(crate) fn data(pairs: &[(&str, &str)]) -> Data {
    let owned = |(key, text): &(&str, &str)| ((*key).to_owned(), (*text).to_owned());
    pairs.iter().map(owned).collect()
}

pub(crate) fn global_sources(data: Data) -> PolicySources {
    PolicySources { global: Some(data), ..PolicySources::default() }
}

pub(crate) fn texts<T: ToString>(items: &[T]) -> Vec<String> {
    items.iter().map(T::to_string).collect()
}

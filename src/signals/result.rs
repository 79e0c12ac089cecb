//! The answer to one query, held compactly: every string once, every label as two numbers.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashTable;

/// Number of a string within its [`SymbolTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Symbol(u32);

impl Symbol {
    pub(super) fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Keeps each string once. Its table is only ever searched, so that its order shows nowhere.
#[derive(Debug, Clone, Default)]
pub(super) struct SymbolTable {
    found_by_hash: HashTable<Known>,
    strings: Vec<Arc<str>>,
}

/// A string that was seen, by its hash and its number.
#[derive(Debug, Clone, Copy)]
struct Known {
    hash: u64,
    symbol: Symbol,
}

impl SymbolTable {
    /// The number of a string; the same string always gets the same one.
    pub(super) fn intern(&mut self, text: &str) -> Symbol {
        self.symbol(text, || Arc::from(text))
    }

    /// As [`intern`](Self::intern), and quicker where the string is the one that is suspected.
    fn intern_near(&mut self, suspect: Option<Symbol>, text: &str) -> Symbol {
        match suspect {
            Some(symbol) if self.get(symbol).is_some_and(|known| **known == *text) => symbol,
            _ => self.intern(text),
        }
    }

    /// As [`intern`](Self::intern), without copying a string that is already shared.
    pub(super) fn intern_shared(&mut self, text: &Arc<str>) -> Symbol {
        self.symbol(text, || Arc::clone(text))
    }

    fn find(&self, text: &str) -> Option<Symbol> {
        self.find_hashed(hash(text), text)
    }

    fn symbol(&mut self, text: &str, share: impl FnOnce() -> Arc<str>) -> Symbol {
        self.symbol_hashed(hash(text), text, share)
    }

    fn find_hashed(&self, hash: u64, text: &str) -> Option<Symbol> {
        let is_same = |known: &Known| self.get(known.symbol).is_some_and(|own| **own == *text);
        let known = self.found_by_hash.find(hash, is_same)?;
        Some(known.symbol)
    }

    fn symbol_hashed(&mut self, hash: u64, text: &str, share: impl FnOnce() -> Arc<str>) -> Symbol {
        if let Some(symbol) = self.find_hashed(hash, text) {
            return symbol;
        }
        // Four thousand million strings do not fit in any answer that is accepted.
        let symbol = Symbol(u32::try_from(self.strings.len()).unwrap_or(u32::MAX));
        self.strings.push(share());
        self.found_by_hash.insert_unique(hash, Known { hash, symbol }, |known| known.hash);
        symbol
    }

    pub(super) fn get(&self, symbol: Symbol) -> Option<&Arc<str>> {
        self.strings.get(symbol.index())
    }
}

/// Its keys are fixed, so that equal inputs give equal runs.
fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The answer to an instant query: samples with labels, and what the server warned of.
#[derive(Debug, Clone, Default)]
pub struct QueryResult {
    strings: SymbolTable,
    labels: Vec<(Symbol, Symbol)>,
    samples: Vec<Entry>,
    warnings: Vec<String>,
}

/// One sample; its labels are those between the end of its predecessor's and its own.
#[derive(Debug, Clone, Copy)]
struct Entry {
    labels_end: usize,
    time: f64,
    value: f64,
}

/// One sample of a [`QueryResult`].
#[derive(Debug, Clone, Copy)]
pub struct SampleRef<'a> {
    result: &'a QueryResult,
    labels: &'a [(Symbol, Symbol)],
    /// When the query was evaluated, in seconds since the Unix epoch by the clock of Prometheus.
    pub time: f64,
    /// The value, which may be NaN or infinite.
    pub value: f64,
}

impl QueryResult {
    /// Adds a sample.
    pub fn push<'a>(
        &mut self,
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        time: f64,
        value: f64,
    ) {
        // Neighbours mostly carry the same names, and many of the same values, in the same order.
        let before = match self.samples.as_slice() {
            [.., earlier, _] => earlier.labels_end,
            _ => 0,
        };
        for (place, (name, text)) in labels.into_iter().enumerate() {
            let near = self.labels.get(before + place).copied();
            let name = self.strings.intern_near(near.map(|(name, _)| name), name);
            let text = self.strings.intern_near(near.map(|(_, text)| text), text);
            self.labels.push((name, text));
        }
        self.samples.push(Entry { labels_end: self.labels.len(), time, value });
    }

    /// Notes what the server warned of.
    pub fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// What the server warned of: usually that the answer is incomplete.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The number of a label name or value, if any sample has it.
    pub(super) fn symbol(&self, text: &str) -> Option<Symbol> {
        self.strings.find(text)
    }

    pub(super) fn text(&self, symbol: Symbol) -> Option<&Arc<str>> {
        self.strings.get(symbol)
    }

    /// The samples, in the order of the answer.
    pub fn samples(&self) -> impl Iterator<Item = SampleRef<'_>> {
        let mut start = 0;
        self.samples.iter().map(move |entry| {
            let labels = self.labels.get(start..entry.labels_end).unwrap_or_default();
            start = entry.labels_end;
            SampleRef { result: self, labels, time: entry.time, value: entry.value }
        })
    }
}

impl<'a> SampleRef<'a> {
    /// The value of a label; an empty one is the same as none, as in Prometheus.
    pub fn label(&self, name: &str) -> Option<&'a Arc<str>> {
        self.labels()
            .find_map(|(label, text)| (**label == *name && !text.is_empty()).then_some(text))
    }

    pub(super) fn value_of(self, label: Symbol) -> Option<Symbol> {
        self.labels.iter().find_map(|(name, text)| (*name == label).then_some(*text))
    }

    /// All labels, in the order of the answer.
    pub fn labels(&self) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<str>)> {
        let strings = &self.result.strings;
        self.labels
            .iter()
            .filter_map(|(name, text)| Some((strings.get(*name)?, strings.get(*text)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_are_kept_once_and_hash_collisions_do_not_merge_strings() {
        let mut symbols = SymbolTable::default();
        let first = symbols.intern("a");
        assert_eq!(symbols.intern("a"), first);
        assert_eq!(symbols.strings.len(), 1);

        let one_hash = 1;
        let second = symbols.symbol_hashed(one_hash, "b", || Arc::from("b"));
        let third = symbols.symbol_hashed(one_hash, "c", || Arc::from("c"));
        assert_ne!(second, first);
        assert_ne!(third, second);
        assert_eq!(symbols.symbol_hashed(one_hash, "b", || Arc::from("b")), second);
        assert_eq!(symbols.get(second).map(AsRef::as_ref), Some("b"));
        assert_eq!(symbols.get(third).map(AsRef::as_ref), Some("c"));
    }

    #[test]
    fn samples_keep_their_own_labels() {
        let mut result = QueryResult::default();
        result.push([("pod", "a"), ("namespace", "n")], 10.0, 1.0);
        result.push([], 10.0, 2.0);
        result.push([("pod", ""), ("pod_name", "b")], 10.0, 3.0);
        let read: Vec<_> = result
            .samples()
            .map(|sample| {
                let text = |name| sample.label(name).map(ToString::to_string);
                (text("pod"), text("pod_name"), sample.labels().count())
            })
            .collect();
        assert_eq!(
            read,
            [(Some("a".to_owned()), None, 2), (None, None, 0), (None, Some("b".to_owned()), 2)]
        );
    }
}

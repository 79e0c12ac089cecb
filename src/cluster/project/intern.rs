//! Texts that many objects share, stored once.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Hands out one allocation for equal texts. A watcher owns one and sweeps it after a list.
#[derive(Debug, Default)]
pub struct Interner {
    texts: BTreeSet<Arc<str>>,
}

impl Interner {
    /// The shared allocation of a text.
    pub fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = Arc::from(text);
        self.texts.insert(Arc::clone(&text));
        text
    }

    /// Forgets the texts that nobody else holds any more.
    pub fn sweep(&mut self) {
        self.texts.retain(|text| Arc::strong_count(text) > 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Interner;

    #[test]
    fn equal_texts_share_and_unused_ones_go() {
        let mut texts = Interner::default();
        let (first, second) = (texts.intern("a"), texts.intern("a"));
        assert!(Arc::ptr_eq(&first, &second));
        drop(texts.intern("b"));
        assert_eq!(texts.texts.len(), 2);
        texts.sweep();
        assert_eq!(texts.texts.len(), 1);
        assert!(Arc::ptr_eq(&first, &texts.intern("a")));
    }
}

//! Texts that many objects share, stored once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::policy::key::ObjectLabels;

/// Hands out one allocation for equal texts and equal labels. A watcher owns one and sweeps it after
/// a list.
#[derive(Debug, Default)]
pub struct Interner {
    texts: BTreeSet<Arc<str>>,
    labels: BTreeSet<Arc<ObjectLabels>>,
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

    /// The shared allocation of a set of labels: that of all pods of a template.
    pub fn labels(&mut self, labels: &BTreeMap<String, String>) -> Arc<ObjectLabels> {
        let pairs = labels.iter();
        let labels: ObjectLabels =
            pairs.map(|(key, value)| (self.intern(key), self.intern(value))).collect();
        if let Some(known) = self.labels.get(&labels) {
            return Arc::clone(known);
        }
        let labels = Arc::new(labels);
        self.labels.insert(Arc::clone(&labels));
        labels
    }

    /// Forgets what is not held elsewhere any more.
    pub fn sweep(&mut self) {
        self.labels.retain(|labels| Arc::strong_count(labels) > 1);
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

    #[test]
    fn pods_of_a_template_share_their_labels() {
        let labels = |app: &str| [("app".to_owned(), app.to_owned())].into();
        let mut texts = Interner::default();
        let (first, second) = (texts.labels(&labels("a")), texts.labels(&labels("a")));
        assert!(Arc::ptr_eq(&first, &second));
        drop(texts.labels(&labels("b")));
        assert_eq!((texts.labels.len(), texts.texts.len()), (2, 3));
        texts.sweep();
        assert_eq!((texts.labels.len(), texts.texts.len()), (1, 2));
    }
}

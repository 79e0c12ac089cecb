//! What else is to be said of a document of which a field has a wrong type: its parser stops there.

use serde::de::DeserializeOwned;
use serde_yaml::{Mapping, Value};

use super::outline::Comparison;
use super::{DocumentField, outline, plain_words};
use crate::text::shortened;

/// A document without its fields of a wrong type.
#[derive(Debug, Clone)]
pub struct SiftedDocument<T> {
    /// The other fields.
    pub rest: T,
    /// Paths of fields that are not known, with what to write instead.
    pub unknown: Vec<(String, String)>,
    /// What is wrong with each field that was left out, behind its path and without a position.
    pub faults: Vec<String>,
}

/// Reads what can be read of a document that was refused; `None` where that is nothing.
pub fn sift_yaml<T: DeserializeOwned>(
    text: &str,
    fields: &'static [DocumentField],
) -> Option<SiftedDocument<T>> {
    let outline = outline(text).ok()?;
    let document: Value = serde_yaml::from_str(text).ok()?;
    let mut faults = Vec::new();
    let rest = sift::<T>(document, &|document| document, &[], &mut faults)?;
    let rest = serde_yaml::to_string(&rest).ok()?;
    let mut comparison = Comparison::default();
    comparison.walk(&outline, "", fields);
    (!faults.is_empty()).then_some(SiftedDocument {
        rest: serde_yaml::from_str(&rest).ok()?,
        unknown: comparison.unknown,
        faults,
    })
}

/// A part of a document without what has a wrong type. `document` makes a document of one part alone; `indices` are
/// the places in lists that it stands at.
fn sift<T: DeserializeOwned>(
    part: Value,
    document: &dyn Fn(Value) -> Value,
    indices: &[usize],
    faults: &mut Vec<String>,
) -> Option<Value> {
    let is_read = |part: Value| fault::<T>(&document(part)).is_none();
    let Some(why) = fault::<T>(&document(part.clone())) else {
        return Some(part);
    };
    match part {
        Value::Mapping(fields) if is_read(Value::Mapping(Mapping::new())) => {
            let mut kept = Mapping::new();
            for (key, value) in fields {
                let alone = |value: Value| {
                    document(Value::Mapping([(key.clone(), value)].into_iter().collect()))
                };
                if let Some(value) = sift::<T>(value, &alone, indices, faults) {
                    kept.insert(key, value);
                }
            }
            Some(Value::Mapping(kept))
        }
        Value::Sequence(items) if is_read(Value::Sequence(Vec::new())) => {
            let alone = |item: Value| document(Value::Sequence(vec![item]));
            let items = items.into_iter().enumerate().map(|(index, item)| {
                let indices: Vec<usize> = indices.iter().copied().chain([index]).collect();
                sift::<T>(item, &alone, &indices, faults)
            });
            let items: Vec<Option<Value>> = items.collect();
            // Without one of its items the places of the others would be wrong.
            items.into_iter().collect::<Option<Vec<_>>>().map(Value::Sequence)
        }
        _ => {
            faults.push(placed(&why, indices));
            None
        }
    }
}

/// What keeps a document from being read, without its position in a text that is written anew.
fn fault<T: DeserializeOwned>(document: &Value) -> Option<String> {
    let text = serde_yaml::to_string(document).ok()?;
    let error = serde_yaml::from_str::<T>(&text).err()?;
    let mut said = error.to_string();
    if let Some(place) = error.location() {
        let position = format!(" at line {} column {}", place.line(), place.column());
        said.truncate(said.strip_suffix(position.as_str()).map_or(said.len(), str::len));
    }
    Some(shortened(&plain_words(&said)))
}

/// A fault of items that stood alone in their lists, with the places that they have.
fn placed(why: &str, indices: &[usize]) -> String {
    let mut parts = why.splitn(indices.len().saturating_add(1), "[0]");
    let mut placed = parts.next().unwrap_or_default().to_owned();
    for (part, index) in parts.zip(indices) {
        placed.extend(["[", index.to_string().as_str(), "]", part]);
    }
    placed
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::yaml::parse_yaml;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Shelf {
        height: Option<f64>,
        width: Option<f64>,
        books: Vec<Book>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Book {
        title: Option<String>,
        pages: Option<u32>,
    }

    const FIELDS: &[DocumentField] = &[
        DocumentField::named("height"),
        DocumentField::named("width"),
        DocumentField::named("books"),
    ];

    fn sifted(text: &str) -> Option<SiftedDocument<Shelf>> {
        sift_yaml(text, FIELDS)
    }

    #[test]
    fn every_field_of_a_wrong_type_is_named_and_the_others_are_read() {
        let sound = "{height: 2, width: 1, books: [{title: a, pages: 3}]}";
        assert!(parse_yaml::<Shelf>(sound, FIELDS).is_ok());
        assert!(sifted(sound).is_none());
        let text = "{height: high, width: 1, depth: 3, books: [{title: a}, {title: b, pages: many}, {pages: [1]}]}";
        let first = parse_yaml::<Shelf>(text, FIELDS).unwrap_err().to_string();
        let sifted = sifted(text).unwrap();
        assert_eq!(
            sifted.faults,
            [
                "height: invalid type: string \"high\", expected a number",
                "books[1].pages: invalid type: string \"many\", expected a whole number from 0 to 4294967295",
                "books[2].pages: invalid type: list, expected a whole number from 0 to 4294967295",
            ]
        );
        assert!(first.starts_with(&sifted.faults[0]), "{first}");
        let unknown: Vec<&str> = sifted.unknown.iter().map(|(path, _)| &**path).collect();
        assert_eq!(unknown, ["depth"]);
        let book = |title: Option<&str>| Book { title: title.map(str::to_owned), pages: None };
        let rest = Shelf {
            height: None,
            width: Some(1.0),
            books: vec![book(Some("a")), book(Some("b")), book(None)],
        };
        assert_eq!(sifted.rest, rest);
    }

    #[test]
    fn a_list_with_an_item_that_is_no_mapping_is_left_out() {
        let found = sifted("{width: 1, books: [{title: a}, 7]}").unwrap();
        assert_eq!(found.faults.len(), 1, "{found:?}");
        assert!(found.faults[0].starts_with("books[1]: invalid type"), "{found:?}");
        assert_eq!((found.rest.width, found.rest.books.len()), (Some(1.0), 0));
        for text in ["[1, 2]", "text", "{width: !tag 1}", "{width: 1, width: 2}"] {
            assert!(sifted(text).is_none(), "{text}");
        }
    }
}

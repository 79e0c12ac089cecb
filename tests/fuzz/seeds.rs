//! Valid texts from the case tables and pages of the project.

use serde_yaml::Value;

/// Everything in a file of vectors.
pub(crate) fn vectors(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap()
}

/// Every value under this key, at any depth.
pub(crate) fn all<'a>(document: &'a Value, key: &str) -> Vec<&'a Value> {
    let mut found = Vec::new();
    let mut rest = vec![document];
    while let Some(value) = rest.pop() {
        match value {
            Value::Mapping(entries) => {
                found.extend(entries.get(key));
                rest.extend(entries.values());
            }
            Value::Sequence(items) => rest.extend(items),
            _ => {}
        }
    }
    found
}

/// Every text under this key, at any depth.
pub(crate) fn texts(document: &Value, key: &str) -> Vec<String> {
    let texts = all(document, key).into_iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Blocks of this language in a page.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    page.split(&fence)
        .skip(1)
        .filter_map(|part| part.split("```").next())
        .map(str::to_owned)
        .collect()
}

pub(crate) fn yaml(value: &Value) -> String {
    serde_yaml::to_string(value).unwrap()
}

pub(crate) fn json(value: &Value) -> String {
    serde_json::to_string(value).unwrap()
}

pub(crate) fn owned<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

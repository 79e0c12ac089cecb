//! Label and field selectors.

use serde_json::Value;

use super::refusal::ApiRefusal;

#[derive(Debug, Clone, Default)]
pub(super) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
}

impl Selector {
    pub(super) fn read(labels: &str, fields: &str) -> Result<Self, ApiRefusal> {
        let labels = split(labels).map(|part| {
            let why = || format!("unable to parse requirement: {part:?}");
            label(part).ok_or_else(|| ApiRefusal::bad_request(why()))
        });
        let fields = split(fields).map(|part| {
            let why = || format!("invalid selector: {part:?}; can't understand '{part}'");
            equality(part).ok_or_else(|| ApiRefusal::bad_request(why()))
        });
        Ok(Self {
            labels: labels.collect::<Result<_, _>>()?,
            fields: fields.collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels
            .iter()
            .all(|one| one.holds(labels.get(&one.key).and_then(Value::as_str)))
            && self.fields.iter().all(|one| {
                let pointer = format!("/{}", one.key.replace('.', "/"));
                let value = match object.pointer(&pointer) {
                    Some(Value::String(text)) => text.clone(),
                    Some(Value::Null) | None => String::new(),
                    Some(other) => other.to_string(),
                };
                one.holds(Some(&value))
            })
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let among =
            |list: &[String]| value.is_some_and(|value| list.iter().any(|one| one == value));
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Missing => value.is_none(),
            Test::In(list) => among(list),
            Test::NotIn(list) => !among(list),
        }
    }
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

fn label(part: &str) -> Option<Requirement> {
    if let Some((left, list)) = part.split_once('(') {
        let values = list.strip_suffix(')')?;
        let values = values
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        let mut words = left.split_whitespace();
        let (key, operator) = (words.next()?, words.next()?);
        let test = match operator {
            "in" => Test::In(values),
            "notin" => Test::NotIn(values),
            _ => return None,
        };
        return Some(requirement(key, test)).filter(|one| is_key(&one.key));
    }
    let found = if part.contains('=') {
        equality(part)?
    } else if let Some(key) = part.strip_prefix('!') {
        requirement(key, Test::Missing)
    } else {
        requirement(part, Test::Exists)
    };
    Some(found).filter(|one| is_key(&one.key))
}

fn equality(part: &str) -> Option<Requirement> {
    for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some((key, value)) = part.split_once(operator) {
            let values = vec![value.trim().to_owned()];
            let test = if equal {
                Test::In(values)
            } else {
                Test::NotIn(values)
            };
            return Some(requirement(key, test));
        }
    }
    None
}

fn requirement(key: &str, test: Test) -> Requirement {
    Requirement {
        key: key.trim().to_owned(),
        test,
    }
}

fn is_key(key: &str) -> bool {
    !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
}

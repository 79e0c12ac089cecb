//! A change of one field of a scenario, so that a sensitivity needs no file of its own.

use std::str::FromStr;

use serde_yaml::{Mapping, Value};

/// `PATH=VALUE`, like `scrape=60s` or `models.*.variants.*.startUp.median=420s`. A star is every entry of a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScenarioChange {
    path: Vec<String>,
    value: Value,
    text: String,
}

impl FromStr for ScenarioChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let remedy = "give PATH=VALUE, for example scrape=60s";
        let (path, value) = text.split_once('=').ok_or(remedy)?;
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(remedy.to_owned());
        }
        let value = serde_yaml::from_str(value).map_err(|error| format!("{error}; {remedy}"))?;
        Ok(Self { path, value, text: text.to_owned() })
    }
}

impl ScenarioChange {
    /// Changes the document of a scenario, and its name, so that results do not mix.
    pub(super) fn apply(&self, scenario: &mut Value) -> Result<(), String> {
        self.set(scenario, &self.path)?;
        let Some(name) = scenario.get("name").and_then(Value::as_str) else {
            return Ok(());
        };
        let words = self.text.split(|letter: char| !letter.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let name = format!("{name}-{}", words.join("-"));
        self.put(scenario, "name", Value::from(name))
    }

    fn set(&self, at: &mut Value, path: &[String]) -> Result<(), String> {
        let [first, rest @ ..] = path else {
            return Ok(());
        };
        if first == "*" {
            let Value::Sequence(entries) = at else {
                return Err(format!("{}: the star is at no list", self.text));
            };
            return entries.iter_mut().try_for_each(|one| {
                if rest.is_empty() {
                    *one = self.value.clone();
                }
                self.set(one, rest)
            });
        }
        if rest.is_empty() {
            return self.put(at, first, self.value.clone());
        }
        if at.get(first.as_str()).is_none() {
            self.put(at, first, Value::Mapping(Mapping::new()))?;
        }
        at.get_mut(first.as_str()).map_or(Ok(()), |next| self.set(next, rest))
    }

    fn put(&self, at: &mut Value, field: &str, value: Value) -> Result<(), String> {
        let Value::Mapping(fields) = at else {
            return Err(format!("{}: {field} is a field of no mapping", self.text));
        };
        fields.insert(Value::from(field), value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_changed_in_every_entry() {
        let text = "{name: step, scrape: 15s, models: [{router: {}, slo: {ttft: 1s}}, {}]}";
        let changed = |change: &str| {
            let mut document: Value = serde_yaml::from_str(text).unwrap();
            let change: ScenarioChange = change.parse()?;
            change.apply(&mut document)?;
            let written = serde_yaml::to_value(&document).unwrap();
            Ok::<_, String>(serde_json::to_string(&written).unwrap())
        };
        let expected = r#"{"name":"step-scrape-60s","scrape":"60s","models":[{"router":{},"slo":{"ttft":"1s"}},{}]}"#;
        assert_eq!(changed("scrape=60s").unwrap(), expected);
        let expected = r#"{"name":"step-models-router-binding-early","scrape":"15s","models":[{"router":{"binding":"early"},"slo":{"ttft":"1s"}},{"router":{"binding":"early"}}]}"#;
        assert_eq!(changed("models.*.router.binding=early").unwrap(), expected);
        for (wrong, part) in [
            ("scrape", "PATH=VALUE"),
            ("models..x=1", "PATH=VALUE"),
            ("scrape={", "PATH=VALUE"),
            ("scrape.*=1", "no list"),
            ("scrape.every=1s", "no mapping"),
        ] {
            let error = changed(wrong).unwrap_err();
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }
}

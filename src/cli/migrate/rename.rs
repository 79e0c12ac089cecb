//! Puts another name where a scaler reads the count of a variant.

use serde_json::Value;

use crate::cluster::project::scaler::EXTERNAL_VARIANT;
use crate::policy::series::DESIRED;
use wva_base::text::shortened;

/// The label of our series, and what may end its name in a text other than a matcher.
const LABEL: &str = "variant_name";
const BLANKS_AND_QUOTES: [char; 4] = [' ', '\n', '\t', '"'];

/// Puts the name of the scaler where the name of the variant is read: the variant has the former from now on.
///
/// # Errors
/// The text of which it cannot be said that it reads the new name then.
pub(super) fn rename(spec: &mut Value, from: &str, to: &str) -> Result<(), String> {
    match spec {
        Value::Object(fields) if fields.get("key").is_some_and(|key| key == LABEL) => {
            let operator = fields.get("operator").and_then(Value::as_str);
            let is_own = fields.get("values") == Some(&Value::from(vec![from]));
            match operator {
                Some("Exists") => {}
                Some("In") if is_own => {
                    fields.insert("values".to_owned(), Value::from(vec![to]));
                }
                _ => return Err(Value::Object(fields.clone()).to_string()),
            }
            Ok(())
        }
        Value::Object(fields) => fields.iter_mut().try_for_each(|(name, value)| match value {
            Value::String(text) if [LABEL, EXTERNAL_VARIANT].contains(&&**name) => {
                if text == from {
                    to.clone_into(text);
                }
                Ok(())
            }
            value => rename(value, from, to),
        }),
        Value::Array(values) => values.iter_mut().try_for_each(|value| rename(value, from, to)),
        Value::String(text) => {
            *text = renamed(text, from, to).ok_or_else(|| shortened(text))?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A text, for instance a query, that reads the new name; `None` where that is not certain: each matcher of the label has to
/// want exactly one name.
fn renamed(text: &str, from: &str, to: &str) -> Option<String> {
    let is_count = text.contains(DESIRED);
    // Letters of an address may be written as numbers.
    if text.contains('%') && text.contains(LABEL) {
        return None;
    }
    let mut new = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(LABEL) {
        new.push_str(before);
        new.push_str(LABEL);
        rest = after;
        let is_in_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let own_end = after.chars().next();
        if before.chars().next_back().is_some_and(is_in_name) || own_end.is_some_and(is_in_name) {
            continue;
        }
        let sign = after.trim_start_matches(BLANKS_AND_QUOTES);
        // A label that is kept or joined by, which is no matcher.
        if sign.is_empty() || sign.starts_with([',', ')']) {
            continue;
        }
        let value = sign.strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|one| "\"'`".contains(*one))?;
        let (stated, end) = value.get(1..)?.split_once(quote)?;
        if stated.contains('\\') || (is_count && stated != from) {
            return None;
        }
        let until_value = after.len() - value.len() + 1;
        new.push_str(after.get(..until_value)?);
        new.push_str(if stated == from { to } else { stated });
        new.push(quote);
        rest = end;
    }
    new.push_str(rest);
    Some(new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{rename, renamed};

    #[test]
    fn a_text_reads_the_new_name_or_is_refused() {
        for (text, expected) in [
            ("up", Some("up")),
            ("max(wva_desired_replicas)", Some("max(wva_desired_replicas)")),
            (
                "max by (variant_name) (wva_desired_replicas{variant_name=\"old\",a=\"b\"})",
                Some("max by (variant_name) (wva_desired_replicas{variant_name=\"new\",a=\"b\"})"),
            ),
            (
                "wva_desired_replicas{variant_name = 'old'}",
                Some("wva_desired_replicas{variant_name = 'new'}"),
            ),
            (
                "wva_desired_replicas{\"variant_name\"=`old`}",
                Some("wva_desired_replicas{\"variant_name\"=`new`}"),
            ),
            (
                "wva_desired_replicas{my_variant_name=~\"old\"}",
                Some("wva_desired_replicas{my_variant_name=~\"old\"}"),
            ),
            ("up{variant_name=\"x\"}", Some("up{variant_name=\"x\"}")),
            ("wva_desired_replicas{variant_name=\"x\"}", None),
            (
                "wva_desired_replicas{variant_name=\"old\"} or wva_desired_replicas{variant_name=\"x\"}",
                None,
            ),
            ("wva_desired_replicas{variant_name=~\"old\"}", None),
            ("wva_desired_replicas{variant_name!=\"x\"}", None),
            ("wva_desired_replicas{variant_name=\"o\\x6cd\"}", None),
            ("query=wva_desired_replicas%7Bvariant_name%3D%22old%22%7D", None),
            ("wva_desired_replicas{variant_name=\"old", None),
        ] {
            assert_eq!(renamed(text, "old", "new").as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn an_expression_of_a_selector_reads_the_new_name_or_is_refused() {
        let expression = |operator: &str, values: &[&str]| json!({ "matchExpressions": [{ "key": "variant_name", "operator": operator, "values": values }] });
        for (operator, values, expected) in [
            ("In", &["old"][..], Some(&["new"][..])),
            ("Exists", &[], Some(&[])),
            ("In", &["old", "x"], None),
            ("In", &["x"], None),
            ("NotIn", &["x"], None),
        ] {
            let mut spec = expression(operator, values);
            let renamed = rename(&mut spec, "old", "new").ok().map(|()| spec);
            let expected = expected.map(|values| expression(operator, values));
            assert_eq!(renamed, expected, "{operator} {values:?}");
        }
    }
}

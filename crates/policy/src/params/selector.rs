//! Label selector expressions, as `WVA_NODE_SELECTOR` and kubectl's `-l` take them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use wva_base::names::{check_label_value, check_object_name};
use wva_base::text::shortened;

/// Longest expression that is looked at.
const MAX_TEXT: usize = 4096;

/// Requirements that must all hold; none means every object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelSelector {
    /// In the order they were written.
    pub requirements: Vec<Requirement>,
}

/// One requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// The label.
    pub label: String,
    /// What must hold for it.
    pub holds: LabelRequirement,
}

/// What must hold for a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LabelRequirement {
    /// It is there.
    Exists,
    /// It is not there.
    Absent,
    /// It has one of these values.
    OneOf(BTreeSet<String>),
    /// It is not there, or has none of these values.
    NoneOf(BTreeSet<String>),
}

/// Why a text is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{term:?} is not a label requirement like key=value, key!=value, key in (a,b), key or !key"
)]
pub struct InvalidSelector {
    /// The part that was not understood, shortened.
    pub term: String,
}

impl LabelSelector {
    /// Reads a comma-separated list of requirements.
    pub fn parse(text: &str) -> Result<Self, InvalidSelector> {
        let invalid = |term: &str| InvalidSelector { term: shortened(term) };
        if text.len() > MAX_TEXT {
            return Err(invalid(text));
        }
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let requirements = split_terms(text)
            .into_iter()
            .map(|term| parse_term(term.trim()).ok_or_else(|| invalid(term)))
            .collect::<Result<_, _>>()?;
        Ok(Self { requirements })
    }

    /// The same, where a label also has a value.
    #[must_use]
    pub fn and(mut self, label: &str, value: &str) -> Self {
        self.requirements.push(Requirement {
            label: label.to_owned(),
            holds: LabelRequirement::OneOf(BTreeSet::from([value.to_owned()])),
        });
        self
    }

    /// The values that a label may have, where the selector lists them.
    pub fn values(&self, label: &str) -> Option<&BTreeSet<String>> {
        let mut of_label = self.requirements.iter().filter(|one| one.label == label);
        of_label.find_map(|one| match &one.holds {
            LabelRequirement::OneOf(values) => Some(values),
            _ => None,
        })
    }

    /// Whether every requirement holds for an object whose labels `value_of` looks up.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = value_of(&requirement.label);
            match &requirement.holds {
                LabelRequirement::Exists => value.is_some(),
                LabelRequirement::Absent => value.is_none(),
                LabelRequirement::OneOf(values) => {
                    value.is_some_and(|value| values.contains(value))
                }
                LabelRequirement::NoneOf(values) => {
                    value.is_none_or(|value| !values.contains(value))
                }
            }
        })
    }
}

/// Splits at the commas outside parentheses.
fn split_terms(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.split(|letter| {
        match letter {
            '(' => inside = true,
            ')' => inside = false,
            _ => {}
        }
        letter == ',' && !inside
    })
    .collect()
}

fn parse_term(term: &str) -> Option<Requirement> {
    let one = |value: &str| BTreeSet::from([value.trim().to_owned()]);
    let (label, holds) = if let Some((head, list)) =
        term.strip_suffix(')').and_then(|head| head.split_once('('))
    {
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        match head.trim().rsplit_once(' ')? {
            (label, "in") => (label, LabelRequirement::OneOf(values)),
            (label, "notin") => (label, LabelRequirement::NoneOf(values)),
            _ => return None,
        }
    } else if let Some((label, value)) = term.split_once("!=") {
        (label, LabelRequirement::NoneOf(one(value)))
    } else if let Some((label, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        (label, LabelRequirement::OneOf(one(value)))
    } else if let Some(label) = term.strip_prefix('!') {
        (label, LabelRequirement::Absent)
    } else {
        (term, LabelRequirement::Exists)
    };
    let label = label.trim();
    let fits = is_label_key(label)
        && match &holds {
            LabelRequirement::OneOf(values) | LabelRequirement::NoneOf(values) => {
                values.iter().all(|value| check_label_value(value).is_ok())
            }
            LabelRequirement::Exists | LabelRequirement::Absent => true,
        };
    fits.then(|| Requirement { label: label.to_owned(), holds })
}

/// `name` or `prefix/name`.
fn is_label_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    !name.is_empty()
        && check_label_value(name).is_ok()
        && prefix.is_none_or(|prefix| check_object_name(prefix).is_ok())
}

wva_base::display_of! { LabelSelector: Self { requirements } => "{}", joined(requirements); }

wva_base::display_of! { Requirement:
    Self { label, holds: LabelRequirement::Exists } => "{label}";
    Self { label, holds: LabelRequirement::Absent } => "!{label}";
    Self { label, holds: LabelRequirement::OneOf(values) } => "{label} in ({})", joined(values);
    Self { label, holds: LabelRequirement::NoneOf(values) } => "{label} notin ({})", joined(values);
}

fn joined<T: ToString>(parts: impl IntoIterator<Item = T>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.to_string()).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::{LabelRequirement, LabelSelector, Requirement};

    #[test]
    fn every_form_of_requirement_is_read() {
        for (text, shown) in [
            ("", ""),
            ("wva.llmd.ai/shard=a", "wva.llmd.ai/shard in (a)"),
            ("a==b,c!=d", "a in (b),c notin (d)"),
            ("tier in (x, y),zone notin (z), gpu, !spot", "tier in (x,y),zone notin (z),gpu,!spot"),
            ("a=", "a in ()"),
        ] {
            let selector = LabelSelector::parse(text).unwrap();
            assert_eq!(selector.to_string(), shown, "{text}");
            assert_eq!(selector.values("a").is_some(), shown.contains("a in"), "{text}");
            assert_eq!(LabelSelector::parse(shown).unwrap(), selector, "{shown}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_part_that_is_wrong() {
        for (text, term) in [
            ("a=b,,c", ""),
            ("a=b c", "a=b c"),
            ("a in b", "a in b"),
            ("a within (b)", "a within (b)"),
            ("/a=b", "/a=b"),
            ("a=b,=c", "=c"),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap_err().term, term, "{text}");
        }
    }
    #[test]
    fn a_label_that_is_not_there_has_none_of_the_values() {
        let labels = BTreeMap::from([("app", "llm"), ("tier", "gold"), ("spot", "")]);
        for (text, expected) in [
            ("", true),
            ("app=llm", true),
            ("app==llm,tier!=iron", true),
            ("app=llm,tier!=gold", false),
            ("app in(llm,other)", true),
            ("app in (other)", false),
            ("app notin (llm)", false),
            ("zone notin (a, b)", true),
            ("zone!=a", true),
            ("zone=a", false),
            ("zone=", false),
            ("spot=", true),
            ("spot", true),
            ("!spot", false),
            ("!zone", true),
        ] {
            let selector = LabelSelector::parse(text).unwrap();
            let found = selector.matches(|label| labels.get(label).copied());
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_text_without_end_is_refused() {
        let terms: Vec<String> = (0..1_000).map(|index| format!("label-{index}=a")).collect();
        assert!(LabelSelector::parse(&terms[..100].join(",")).is_ok());
        assert!(LabelSelector::parse(&terms.join(",")).is_err());
    }

    fn any_requirement() -> impl Strategy<Value = Requirement> {
        let values = || prop::collection::btree_set("[ab]{0,2}", 1..3);
        let holds = prop_oneof![
            Just(LabelRequirement::Exists),
            Just(LabelRequirement::Absent),
            values().prop_map(LabelRequirement::OneOf),
            values().prop_map(LabelRequirement::NoneOf),
        ];
        ("[xyz]", holds).prop_map(|(label, holds)| Requirement { label, holds })
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_as_the_same(requirements in prop::collection::vec(any_requirement(), 1..5)) {
            let selector = LabelSelector { requirements };
            let read = LabelSelector::parse(&selector.to_string()).unwrap();
            prop_assert_eq!(read, selector);
        }

        #[test]
        fn each_further_requirement_leaves_fewer(
            requirements in prop::collection::vec(any_requirement(), 0..4),
            value in "[ab]{0,2}",
            labels in prop::collection::btree_map("[xyz]", "[ab]{0,2}", 0..4),
        ) {
            let of = |label: &str| labels.get(label).map(String::as_str);
            let selector = LabelSelector { requirements };
            let narrower = selector.clone().and("x", &value);
            let expected = selector.matches(of) && of("x") == Some(&value);
            prop_assert_eq!(narrower.matches(of), expected);
            let read = LabelSelector::parse(&narrower.to_string()).unwrap();
            prop_assert_eq!(read.matches(of), expected);
        }

        #[test]
        fn any_text_has_an_answer(text in "[a-c=!,() \u{e9}]{0,40}") {
            if let Ok(selector) = LabelSelector::parse(&text) {
                let keys: BTreeSet<_> = selector.requirements.iter().map(|one| &one.label).collect();
                prop_assert!(keys.iter().all(|key| !key.is_empty()));
            }
        }
    }
}

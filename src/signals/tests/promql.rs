//! Escaping, windows and the text of every query.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use serde::Deserialize;

use super::vectors::load;
use crate::policy::params::RequiredSignals;
use crate::policy::signal::{FreshnessBands, SignalName};
use crate::signals::promql::{Namespace, RangeWindow, SeriesSelector, escape};
use crate::signals::query::{MAX_QUERIES, QueryName, QueryScope};
use crate::signals::sources::{ARRIVALS, ENGINE, ROUTER};

#[derive(Deserialize)]
struct Escaping {
    cases: Vec<EscapingCase>,
}

#[derive(Deserialize)]
struct EscapingCase {
    id: String,
    value: String,
    escaped: String,
}

#[test]
fn label_values_are_escaped() {
    for case in load::<Escaping>("escaping.yaml").cases {
        assert_eq!(escape(&case.value), case.escaped, "{}", case.id);
    }
}

/// Reads a PromQL string literal as Prometheus does: the value, and what follows the closing quote.
fn read_literal(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut rest = text.strip_prefix('"').unwrap().chars();
    while let Some(character) = rest.next() {
        match character {
            '"' => return (value, rest.as_str()),
            '\n' => panic!("a line break ends the literal: {text}"),
            '\\' => match rest.next().unwrap() {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                'u' => {
                    let digits: String = rest.by_ref().take(4).collect();
                    let code = u32::from_str_radix(&digits, 16).unwrap();
                    value.push(char::from_u32(code).unwrap());
                }
                same @ ('\\' | '"') => value.push(same),
                other => panic!("escape \\{other} means something else in PromQL"),
            },
            other => value.push(other),
        }
    }
    panic!("the literal does not end: {text}")
}

fn check_matcher(value: &str) {
    let text = SeriesSelector::named("up").matching("namespace", value).to_string();
    let literal = text.strip_prefix("up{namespace=").unwrap();
    let (read, rest) = read_literal(literal);
    assert_eq!((read.as_str(), rest), (value, "}"));
}

#[test]
fn attacks_stay_within_their_literal() {
    for value in [
        r#"a"} or up{x=""#,
        r#"a\"} or vector(1) #"#,
        "a\"} #\n",
        "\n\r\t\u{0}\u{7f}\u{85}",
        r"\",
        r#"\""#,
        "${x} `raw` 'single' {{.namespace}}",
        "\u{2028}\u{202e}",
    ] {
        check_matcher(value);
    }
}

proptest! {
    #[test]
    fn no_value_leaves_its_literal(value in any::<String>()) {
        check_matcher(&value);
    }

    #[test]
    fn values_made_of_syntax_do_not_either(value in r#"["\\{}()\[\]=,\n# a-c]{0,40}"#) {
        check_matcher(&value);
    }
}

#[derive(Deserialize)]
struct Queries {
    queries: Vec<QueryCase>,
    windows: Vec<WindowCase>,
}

#[derive(Deserialize)]
struct QueryCase {
    id: String,
    namespace: Option<String>,
    name: Option<String>,
    query: Option<String>,
    contains: Option<String>,
    #[serde(default)]
    refused: bool,
    count: Option<usize>,
}

#[derive(Deserialize)]
struct WindowCase {
    id: String,
    milliseconds: Option<u64>,
    text: Option<String>,
}

impl QueryCase {
    fn text(&self, namespace: Option<Namespace>) -> String {
        let scope = QueryScope::new(&FreshnessBands::default(), namespace);
        let mut all = QueryName::ALL.into_iter();
        let query = all
            .find(|query| Some(query.as_str()) == self.name.as_deref())
            .unwrap_or_else(|| panic!("{}: unknown query", self.id));
        query.text(&scope)
    }
}

#[test]
fn queries_have_the_expected_text() {
    let mut checked = 0;
    for case in load::<Queries>("queries.yaml").queries {
        let id = &case.id;
        let namespace = case.namespace.as_deref().map(Namespace::parse).transpose();
        if case.refused {
            let error = namespace.unwrap_err().to_string();
            let name = case.namespace.unwrap();
            assert!(error.contains(&format!("{name:?}")), "{id}: {error}");
            checked += 1;
            continue;
        }
        let namespace = namespace.unwrap();
        if let Some(query) = &case.query {
            assert_eq!(case.text(namespace.clone()), *query, "{id}");
            checked += 1;
        }
        if let Some(part) = &case.contains {
            let text = case.text(namespace);
            assert!(text.contains(part), "{id}: {text}");
            checked += 1;
        }
        if let Some(count) = case.count {
            assert_eq!(count, MAX_QUERIES, "{id}");
            checked += 1;
        }
    }
    assert_eq!(checked, 8, "cases that check something");
}

#[test]
fn windows_use_the_largest_unit_that_divides_them() {
    for case in load::<Queries>("queries.yaml").windows {
        if let (Some(milliseconds), Some(text)) = (case.milliseconds, case.text) {
            let window = RangeWindow::of(Duration::from_millis(milliseconds));
            assert_eq!(window.to_string(), text, "{}", case.id);
        }
    }
}

#[test]
fn every_signal_has_sources_in_order() {
    let routers = ROUTER.iter().map(|row| row.signal);
    let engines = ENGINE.iter().map(|row| row.signal);
    let signals: Vec<_> = engines.chain([ARRIVALS.signal]).chain(routers).collect();
    assert_eq!(signals, SignalName::ALL, "one row per signal, in order");
}

#[test]
fn every_name_is_one_and_stands_once_in_a_query() {
    for query in QueryName::ALL {
        let names: Vec<_> = query.terms().iter().map(|term| term.name).collect();
        assert!(!names.is_empty(), "{query:?}");
        let different: BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{query:?}: a name occurs twice");
        for name in names {
            let mut bytes = name.bytes();
            let letter = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':');
            assert!(bytes.next().is_some_and(letter), "{name}");
            assert!(bytes.all(|byte| letter(byte) || byte.is_ascii_digit()), "{name}");
        }
    }
}

#[test]
fn the_documentation_names_every_series_and_query() {
    let text = include_str!("../../../docs/integrations/prometheus.md");
    for query in QueryName::ALL {
        let quoted = |name: &str| text.contains(&format!("`{name}`"));
        assert!(quoted(query.as_str()), "{}", query.as_str());
        for term in query.terms() {
            let own = ["vllm:", "vllm_", "sglang:", "sglang_"];
            let mut own = own.iter().filter_map(|page| term.name.strip_prefix(page));
            let name = own.next().unwrap_or(term.name);
            assert!(quoted(name), "{name}");
        }
    }
}

#[test]
fn no_query_is_sent_for_nothing() {
    let wanted = |required_signals| QueryName::wanted(required_signals).collect::<Vec<_>>();
    assert_eq!(wanted(RequiredSignals::Saturation), QueryName::ALL[..4]);
    let in_use = wanted(RequiredSignals::Use);
    assert!(!in_use.contains(&QueryName::KvCapacity) && in_use.len() == 9);
    assert_eq!(wanted(RequiredSignals::Everything), QueryName::ALL);
}

#[test]
fn the_look_back_covers_the_unavailable_threshold_and_the_peak() {
    let text = |seconds: u64, millis: u64| {
        let bands = FreshnessBands {
            unavailable: Duration::from_millis(seconds * 1000 + millis),
            ..FreshnessBands::default()
        };
        QueryName::QueueLengthAge.text(&QueryScope::new(&bands, None))
    };
    for (seconds, millis, range) in [
        (300, 0, "[345s:15s]"),
        (1, 0, "[63s:1s]"),
        (40, 0, "[66s:2s]"),
        (100, 1, "[119s:6s]"),
        (3600, 0, "[3645s:15s]"),
    ] {
        let text = text(seconds, millis);
        assert!(text.contains(range), "{seconds} s: {text}");
    }
    assert!(text(u64::MAX / 1000 - 1, 0).contains(":15s]"));
}

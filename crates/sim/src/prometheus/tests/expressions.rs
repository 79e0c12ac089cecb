//! What is refused, and how.

use super::*;
use crate::prometheus::refusal::FaultKind;

fn refused(promql: &str) -> (FaultKind, String) {
    let (mut server, id) = server(target("a"));
    let text = "x{a=\"1\"} 1\nx{a=\"2\"} 2\ny{a=\"1\"} 3\ny{a=\"2\"} 3\n";
    page(&mut server, id, 10, text);
    let refusal = server.query(promql, seconds(10)).expect_err(promql);
    (refusal.kind, refusal.text)
}

#[test]
fn unreadable_expressions_say_where_and_why() {
    let cases = [
        ("", "parse error at 0: unexpected end of input"),
        ("x{", "parse error at 2: unexpected end of input"),
        ("x{a=1}", "parse error at 4: unexpected \"1\""),
        ("sum(x", "parse error at 5: unexpected end of input"),
        ("x y", "parse error at 2: unexpected \"y\""),
        ("x[5m]", "a range of samples is not answered"),
        ("rate(x)", "unexpected ')', expected '['"),
        ("holt(x)", "unknown function with name \"holt\""),
        ("x > y", "expected a number"),
        ("x[0s:1s]", "expected a duration above zero"),
        (
            "max_over_time(sum(x)[5m])",
            "ranges only allowed for vector selectors",
        ),
        ("x{a=\"b", "unterminated quoted string"),
        ("x & y", "unexpected character: '&'"),
        (
            "label_replace(x, \"a\", \"$1\", \"b\", \"(.*)\")",
            "label_replace reads no labels here",
        ),
    ];
    for (promql, wanted) in cases {
        let (kind, text) = refused(promql);
        assert_eq!(kind, FaultKind::BadData, "{promql}");
        assert!(text.contains(wanted), "{promql}: {text}");
    }
    let deep = format!("{}x{}", "(".repeat(200), ")".repeat(200));
    assert!(refused(&deep).1.contains("nests too deeply"));
}

#[test]
fn expressions_that_cannot_be_evaluated_say_why() {
    let cases = [
        (
            "label_replace(x, \"a\", \"3\", \"\", \"\")",
            "vector cannot contain metrics with the same labelset",
        ),
        ("max_over_time(x[1d:1s])", "too many samples"),
    ];
    for (promql, wanted) in cases {
        let (kind, text) = refused(promql);
        assert_eq!(kind, FaultKind::Execution, "{promql}");
        assert!(text.contains(wanted), "{promql}: {text}");
    }
}

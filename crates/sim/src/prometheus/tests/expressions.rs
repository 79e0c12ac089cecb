//! What is refused, and how; and arithmetic without series.

use super::*;
use crate::prometheus::FaultKind;

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
        ("", "no expression found in input"),
        ("x{", "1:3: parse error: unexpected input in label matching"),
        ("x{a=1}", "1:5: parse error: unexpected number \"1\""),
        ("x{a=~\"(\"}", "error parsing regexp: unclosed group"),
        ("sum(x", "1:6: parse error: unexpected end of input"),
        ("x y", "1:3: parse error: unexpected identifier \"y\""),
        ("\n x +", "2:5: parse error"),
        ("{a=\"\"}", "at least one non-empty matcher"),
        ("x{__name__=\"y\"}", "metric name must not be set twice"),
        (
            "rate(x)",
            "expected type range vector in call to function \"rate\", got instant vector",
        ),
        (
            "x[5m]",
            "answers scalars, instant vectors and subqueries only",
        ),
        (
            "sum(x[5m])",
            "expected type instant vector in aggregation expression",
        ),
        ("sum(x, x)", "wrong number of arguments"),
        ("holt(x)", "unknown function with name \"holt\""),
        (
            "1 > 2",
            "comparisons between scalars must use BOOL modifier",
        ),
        (
            "x or 1",
            "set operator not allowed in binary scalar expression",
        ),
        (
            "x + on (a) group_left (a) y",
            "must not occur in ON and GROUP clause at once",
        ),
        ("x[0s]", "duration must be greater than 0"),
        ("sum(x)[5m]", "ranges only allowed for vector selectors"),
        ("\"a", "unterminated quoted string"),
        ("x & y", "unexpected character: \"&\""),
        ("-\"a\"", "unary expression only allowed"),
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
            "max_over_time({__name__=~\"x|y\"}[1m])",
            "vector cannot contain metrics with the same labelset",
        ),
        (
            "x + on (pod) y",
            "found duplicate series for the match group {pod=\"a\"} on the right hand-side of the operation: [{__name__=\"y\", a=\"1\", job=\"pods\", namespace=\"ns\", pod=\"a\"}, {__name__=\"y\", a=\"2\", job=\"pods\", namespace=\"ns\", pod=\"a\"}];many-to-many matching not allowed: matching labels must be unique on one side",
        ),
        (
            "x + on (pod) sum by (pod) (y)",
            "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)",
        ),
        (
            "label_replace(x, \"a\", \"$1\", \"a\", \"(\")",
            "invalid regular expression in label_replace()",
        ),
        ("max_over_time(x[1d:1s])", "too many samples"),
    ];
    for (promql, wanted) in cases {
        let (kind, text) = refused(promql);
        assert_eq!(kind, FaultKind::Execution, "{promql}");
        assert!(text.contains(wanted), "{promql}: {text}");
    }
}

#[test]
fn numbers_follow_the_rules_of_arithmetic() {
    let cases = [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("-2 ^ 2", -4.0),
        ("-2 * -3", 6.0),
        ("7 % 4 - 1", 2.0),
        ("0x1F + 1e1 + .5", 41.5),
        ("5m", 300.0),
        ("Inf", f64::INFINITY),
        ("1 < bool 2", 1.0),
        ("2 <= bool 1", 0.0),
        ("NaN != bool NaN", 1.0),
        ("1 # the rest is said to nobody", 1.0),
        ("time()", 1_700_000_050.0),
    ];
    let server = Prometheus::new(Settings::default());
    for (promql, wanted) in cases {
        assert_eq!(values(&server, promql, 10), [wanted], "{promql}");
    }
}

//! Regular expressions.

use crate::prometheus::pattern::Pattern;

#[test]
fn the_whole_text_has_to_match() {
    let cases = [
        ("", "", true),
        ("", "a", false),
        ("a|bc", "bc", true),
        ("a|bc", "abc", false),
        ("vllm:(num_requests|kv)_.+", "vllm:kv_usage", true),
        ("vllm:(num_requests|kv)_.+", "vllm:kv_", false),
        (".*", "a\nb", true),
        ("^a+b?$", "aaa", true),
        ("^a+b?$", "aab", true),
        ("^a+b?$", "b", false),
        ("[a-c_.-]+", "a.b-c_", true),
        ("[^0-9]+", "a1", false),
        ("\\d+\\.\\w*", "12.a_", true),
        ("(a*)*", "aaaa", true),
        ("(?:x|y)z", "yz", true),
        ("(a|ab)(c|bcd)(d*)", "abcd", true),
        ("\u{e4}.", "\u{e4}\u{f6}", true),
        ("a{2}", "aa", true),
        ("(?i)ab", "AB", true),
        ("[[:alpha:]]+", "ab", true),
        ("\\d", "\u{664}", false),
        ("[\\D]", "\u{664}", true),
        ("a\\b.c", "a-c", true),
    ];
    for (pattern, text, wanted) in cases {
        assert_eq!(
            Pattern::new(pattern).unwrap().matches(text),
            wanted,
            "{pattern} on {text}"
        );
    }
}

#[test]
fn groups_remember_what_they_matched() {
    let cases: [(&str, &str, &[Option<&str>]); 4] = [
        (
            "(.*)-(.*)",
            "a-b-c",
            &[Some("a-b-c"), Some("a-b"), Some("c")],
        ),
        (
            "(.*?)-(.*)",
            "a-b-c",
            &[Some("a-b-c"), Some("a"), Some("b-c")],
        ),
        ("(a)|(b)", "b", &[Some("b"), None, Some("b")]),
        (
            "(a|ab)(c|bcd)(d*)",
            "abcd",
            &[Some("abcd"), Some("a"), Some("bcd"), Some("")],
        ),
    ];
    for (pattern, text, wanted) in cases {
        let found = Pattern::new(pattern).unwrap().captures(text).unwrap();
        assert_eq!(found, wanted, "{pattern} on {text}");
    }
}

#[test]
fn what_is_not_understood_is_refused() {
    for pattern in [
        "(", ")", "[a", "[]", "*", "a\\", "[z-a]", "(?=a)", "\\y", "(?<!a)b", "a)(b",
    ] {
        assert!(Pattern::new(pattern).is_err(), "{pattern}");
    }
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Pattern::new(&nested(50)).is_ok());
    assert!(Pattern::new(&nested(1_000)).is_err());
    assert!(Pattern::new("((a{1000}){1000}){1000}").is_err());
}

#[test]
fn hard_patterns_take_no_longer_than_pattern_times_text() {
    let pattern = Pattern::new(&format!("{}b", "(a*)*".repeat(20))).unwrap();
    assert!(!pattern.matches(&"a".repeat(2_000)));
}

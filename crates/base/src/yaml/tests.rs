use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Sample {
    share: Option<f64>,
    name: Option<String>,
    list: Vec<Item>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Item {
    score: Option<f64>,
}

const FIELDS: &[DocumentField] = &[
    DocumentField::named("share"),
    DocumentField::named("name").also(&["title"]),
    DocumentField::named("list").holds(&[DocumentField::named("score")]),
];

fn read(text: &str) -> Result<Document<Sample>, YamlError> {
    parse_yaml(text, FIELDS)
}

#[track_caller]
fn refused(text: &str, part: &str) {
    let error = read(text).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[test]
fn a_document_is_typed_and_its_fields_are_compared() {
    let document = read("share: 0.5\nnmae: x\nlist:\n- score: 1\n- scoer: 2\n").unwrap();
    assert_eq!(document.content.share, Some(0.5));
    assert_eq!(document.content.list.len(), 2);
    let meant = |path: &str, name: &str| (path.to_owned(), format!("did you mean {name:?}?"));
    assert_eq!(document.unknown, [meant("list[1].scoer", "score"), meant("nmae", "name")]);
    assert_eq!(read("title: x").unwrap().unknown, []);
}

#[test]
fn a_blank_document_states_nothing() {
    for text in ["", "\n  \n", "# only a comment\n"] {
        assert_eq!(read(text).unwrap().content, Sample::default(), "{text:?}");
        assert_eq!(flat_yaml(text).unwrap(), FlatYaml::default());
    }
}

#[test]
fn what_is_no_number_or_stands_twice_is_refused_with_its_position() {
    refused("share: .nan", "share: NaN is not a usable number at line 1 column 8");
    refused("share: -.inf", "not a usable number");
    refused("list: [{score: .inf}]", "list[0].score: inf is not a usable number");
    refused("share: \"0.5\"", "share: invalid type: string \"0.5\", expected a number at line 1");
    refused("share: 1\nshare: 2", "\"share\" stands twice");
    refused("name: !tag x", "tag");
    refused("? [a]\n: 1", "a key is not a single value");
    refused("a: 1\n---\na: 2", "more than one document");
    refused("share: [", "line 2");
    let long = format!("share: {}", "x".repeat(1000));
    refused(&long, "at line 1 column 8");
}

#[test]
fn size_depth_and_aliases_are_bounded() {
    assert_eq!(read(&"#".repeat(MAX_TEXT + 1)).unwrap_err(), YamlError::TooLarge);
    assert_eq!(read(&"[".repeat(100_000)).unwrap_err(), YamlError::TooDeep);
    refused(&"- ".repeat(100_000), "recursion limit");
    refused("# comment\n%TAG !a! b\n---\nshare: 1", "line 2 is a % directive");
    assert!(read("list: &a [{score: 1}]\nother: *a").is_ok());
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..10 {
        let row = vec![format!("*a{}", level - 1); 9].join(",");
        bomb = format!("{bomb}a{level}: &a{level} [{row}]\n");
    }
    refused(&bomb, "aliases make the document too large");
    let large = format!("a: &a {}\nb: [{}]", "x".repeat(100_000), vec!["*a"; 1000].join(","));
    refused(&large, "aliases make the document too large");
}

#[test]
fn unknown_fields_are_named_up_to_a_bound() {
    let fields: Vec<String> = (0..1000).map(|number| format!("unknown{number}: 1")).collect();
    let text = fields.join("\n");
    assert_eq!(read(&text).unwrap().unknown.len(), 32);
}

#[test]
fn a_flat_document_keeps_the_texts_of_its_values() {
    let data = flat_yaml("A: 0\nB: true\nC: :8443\nD:\nE: \"07\"\nF: 1e300\n1: x").unwrap();
    assert_eq!(data.nested, BTreeSet::new());
    let pairs: Vec<(&str, &str)> =
        data.texts.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    assert_eq!(
        pairs,
        [
            ("1", "x"),
            ("A", "0"),
            ("B", "true"),
            ("C", ":8443"),
            ("D", ""),
            ("E", "07"),
            ("F", "1e300")
        ]
    );
    for text in ["- A", "A"] {
        assert!(flat_yaml(text).is_err(), "{text}");
    }
    let data = flat_yaml("A: {b: 1, c: [x, ~]}\nB: []\nC: 2").unwrap();
    let texts: Vec<&str> = data.texts.values().map(String::as_str).collect();
    assert_eq!(texts, ["{b: 1, c: [x, ]}", "[]", "2"]);
    assert!(data.nested.iter().eq(["A", "B"]), "{:?}", data.nested);
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[-a-z:\\[\\]{}&*!|>?#\"' \n0-9.~]{0,200}|\\PC{0,200}") {
        drop(read(&text));
        drop(flat_yaml(&text));
    }
}

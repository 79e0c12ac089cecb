use super::arguments::{Arguments, Command, Detail, Format, parse};
use super::{answer, schema};
use serde_json::Value;

const PAGE: &str = include_str!("../../../docs/user-guide/plan.md");

fn command(arguments: &[&str]) -> Result<Command, Vec<String>> {
    parse(arguments.iter().map(|argument| (*argument).to_owned()))
}

fn how(format: Format, detail: Detail) -> Arguments {
    Arguments {
        snapshot: "fleet.yaml".to_owned(),
        settings: Some("settings.yaml".to_owned()),
        format,
        detail,
    }
}

/// The block of the page that follows a line.
fn block(after: &str) -> &'static str {
    let rest = PAGE
        .split_once(after)
        .unwrap_or_else(|| panic!("{after}"))
        .1;
    let (_, rest) = rest.split_once("```").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    rest.split_once("```").unwrap().0
}

fn lines(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[test]
fn the_worked_example_of_the_page_gives_what_the_page_shows() {
    let (snapshot, settings) = (block("`fleet.yaml`:"), block("`settings.yaml`:"));
    let shown = answer(snapshot, settings, &how(Format::Table, Detail::Decisions)).unwrap();
    assert_eq!(lines(&shown), lines(block("prints:")));
    let explained = answer(snapshot, settings, &how(Format::Table, Detail::Everything)).unwrap();
    assert_eq!(lines(&explained), lines(block("adds the steps:")));
}

#[test]
fn settings_decide() {
    let snapshot = block("`fleet.yaml`:");
    let to = |settings: &str| {
        let text = answer(snapshot, settings, &how(Format::Json, Detail::Decisions)).unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        answer["variants"]["serving/llama-l4"]["to"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(to(block("`settings.yaml`:")), 3);
    assert_eq!(to(""), 2);
}

#[test]
fn an_explanation_holds_steps_figures_and_what_was_learned() {
    let (snapshot, settings) = (block("`fleet.yaml`:"), block("`settings.yaml`:"));
    let plain = answer(snapshot, settings, &how(Format::Json, Detail::Decisions)).unwrap();
    let plain: Value = serde_json::from_str(&plain).unwrap();
    assert!(plain.get("learned").is_none() && plain.get("models").is_none());
    assert!(
        plain["variants"]["serving/llama-l4"]["steps"]
            .as_array()
            .unwrap()
            .len()
            >= 3
    );

    let text = answer(snapshot, settings, &how(Format::Json, Detail::Everything)).unwrap();
    let whole: Value = serde_yaml::from_str(&text).unwrap();
    let figures = &whole["models"]["serving/meta-llama/Llama-3.1-8B"]["percentage"];
    assert_eq!(figures["replicas"], 3);
    assert_eq!(
        whole["variants"]["serving/llama-l4"]["figures"]["reporting"],
        2
    );
    assert!(whole["learned"]["reporting"].is_object());

    // What was learned goes into the next snapshot as it is.
    let mut next: serde_yaml::Value = serde_yaml::from_str(snapshot).unwrap();
    let learned = serde_yaml::to_value(&whole["learned"]).unwrap();
    next.as_mapping_mut()
        .unwrap()
        .insert("learned".into(), learned);
    let next = serde_yaml::to_string(&next).unwrap();
    let again = answer(&next, settings, &how(Format::Json, Detail::Everything)).unwrap();
    assert_eq!(again, text);

    let yaml = answer(snapshot, settings, &how(Format::Yaml, Detail::Everything)).unwrap();
    let from_yaml: Value = serde_yaml::from_str(&yaml).unwrap();
    assert_eq!(from_yaml, whole);
}

#[test]
fn what_is_not_accepted_is_named_with_file_path_and_remedy() {
    let sound = block("`fleet.yaml`:");
    let all = |snapshot: &str, settings: &str| {
        answer(snapshot, settings, &how(Format::Table, Detail::Decisions))
            .unwrap_err()
            .join("\n")
    };
    let broken = sound.replacen("kvUsage: 0.78", "kvUsage: 78", 1);
    let said = all(&broken, "");
    assert!(
        said.contains("fleet.yaml: variants[0].pods[0].signals.kvUsage: 78 is not a share"),
        "{said}"
    );
    let said = all(&sound.replacen("queueLength", "queuLength", 1), "");
    assert!(
        said.contains("unknown field `queuLength`") && said.contains("--schema"),
        "{said}"
    );
    let said = all(sound, "GLOBAL_OPT_INTERVL: 3s");
    assert!(
        said.contains("settings.yaml: ") && said.contains("did you mean"),
        "{said}"
    );
}

#[test]
fn arguments_are_read_in_every_form() {
    let plan = |arguments: &[&str]| match command(arguments) {
        Ok(Command::Plan(arguments)) => arguments,
        other => panic!("{other:?}"),
    };
    let short = plan(&["--snapshot", "a.yaml"]);
    assert_eq!((&*short.snapshot, short.settings), ("a.yaml", None));
    assert_eq!(
        (short.format, short.detail),
        (Format::Table, Detail::Decisions)
    );
    let long = plan(&[
        "--snapshot=a",
        "--settings=b",
        "--format",
        "yaml",
        "--explain",
    ]);
    assert_eq!(long.settings.as_deref(), Some("b"));
    assert_eq!(
        (long.format, long.detail),
        (Format::Yaml, Detail::Everything)
    );
    assert_eq!(command(&["--schema"]), Ok(Command::Schema));
    assert_eq!(command(&["--help", "--schema"]), Ok(Command::Help));
    for (arguments, said) in [
        (&[][..], "--snapshot is missing"),
        (&["--snapshot"], "needs a value"),
        (&["--snapshot=a", "--format=xml"], "table, json or yaml"),
        (&["--snapshot=a", "--explain=yes"], "takes no value"),
        (&["fleet.yaml"], "unknown argument \"fleet.yaml\""),
    ] {
        let errors = command(arguments).unwrap_err().join("\n");
        assert!(errors.contains(said), "{arguments:?}: {errors}");
    }
}

#[test]
fn the_schema_names_every_part_of_a_snapshot() {
    let schema: Value = serde_json::from_str(&schema().unwrap()).unwrap();
    for part in [
        "time",
        "collection",
        "variants",
        "models",
        "inventory",
        "learned",
    ] {
        assert!(schema["properties"].get(part).is_some(), "{part}");
    }
    assert_eq!(schema["additionalProperties"], false);
    let signals = &schema["$defs"]["SignalsDocument"]["properties"];
    assert!(signals.get("kvUsage").is_some() && signals.get("ranks").is_some());
}

use super::{Format, PlanFlags, answer, read, schema};
use crate::cli::PROGRAM;
use crate::cli::usage::{self, Given, Refused};
use crate::docs::check_block;
use crate::scratch::Folder;
use serde_json::Value;

const FILE: &str = "docs/user-guide/plan.md";
const PAGE: &str = include_str!("../../../docs/user-guide/plan.md");

fn command(arguments: &[&str]) -> Result<Given<PlanFlags>, Refused> {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    usage::read(&PROGRAM, arguments)
}

pub(super) fn how(format: Format, explain: bool) -> PlanFlags {
    PlanFlags {
        snapshot: Some("fleet.yaml".to_owned()),
        settings: Some("settings.yaml".to_owned()),
        format,
        explain,
        schema: false,
    }
}

/// The block of the page that follows a line.
pub(super) fn block(after: &str) -> &'static str {
    block_of(PAGE, after)
}

/// The block of a page that follows a line.
pub(super) fn block_of(page: &'static str, after: &str) -> &'static str {
    let rest = page.split_once(after).unwrap_or_else(|| panic!("{after}")).1;
    let (_, rest) = rest.split_once("```").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_worked_example_of_the_docs_gives_what_they_show() {
    let (snapshot, settings) = (block("`fleet.yaml`:"), block("`settings.yaml`:"));
    let shown = answer(snapshot, settings, &how(Format::Table, false)).unwrap();
    let explained = answer(snapshot, settings, &how(Format::Table, true)).unwrap();
    check_block(FILE, "prints the steps", &explained);
    assert!(shown.lines().all(|line| explained.contains(line)));
}

#[test]
fn settings_decide() {
    let snapshot = block("`fleet.yaml`:");
    let to = |settings: &str| {
        let text = answer(snapshot, settings, &how(Format::Json, false)).unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        answer["variants"]["serving/llama-l4"]["to"].as_u64().unwrap()
    };
    assert_eq!(to(block("`settings.yaml`:")), 3);
    assert_eq!(to(""), 2);
}

#[test]
fn an_explanation_holds_steps_figures_and_what_was_learned() {
    let (snapshot, settings) = (block("`fleet.yaml`:"), block("`settings.yaml`:"));
    let plain = answer(snapshot, settings, &how(Format::Json, false)).unwrap();
    let plain: Value = serde_json::from_str(&plain).unwrap();
    assert!(plain.get("learned").is_none() && plain.get("models").is_none());
    assert!(plain["variants"]["serving/llama-l4"]["steps"].as_array().unwrap().len() >= 3);

    let text = answer(snapshot, settings, &how(Format::Json, true)).unwrap();
    let whole: Value = serde_yaml::from_str(&text).unwrap();
    let figures = &whole["models"]["serving/meta-llama/Llama-3.1-8B"]["percentage"];
    assert_eq!(figures["replicas"], 3);
    assert_eq!(whole["variants"]["serving/llama-l4"]["figures"]["reporting"], 2);
    assert!(whole["learned"]["reporting"].is_object());

    // What was learned goes into the next snapshot as it is.
    let mut next: serde_yaml::Value = serde_yaml::from_str(snapshot).unwrap();
    let learned = serde_yaml::to_value(&whole["learned"]).unwrap();
    next.as_mapping_mut().unwrap().insert("learned".into(), learned);
    let next = serde_yaml::to_string(&next).unwrap();
    let again = answer(&next, settings, &how(Format::Json, true)).unwrap();
    assert_eq!(again, text);

    let yaml = answer(snapshot, settings, &how(Format::Yaml, true)).unwrap();
    let from_yaml: Value = serde_yaml::from_str(&yaml).unwrap();
    assert_eq!(from_yaml, whole);
}

#[test]
fn what_is_not_accepted_is_named_with_file_path_and_remedy() {
    let sound = block("`fleet.yaml`:");
    let all = |snapshot: &str, settings: &str| {
        answer(snapshot, settings, &how(Format::Table, false)).unwrap_err().join("\n")
    };
    let broken = sound.replacen("kvUsage: 0.78", "kvUsage: 78", 1);
    let said = all(&broken, "");
    assert!(
        said.contains("fleet.yaml: variants[0].pods[0].signals.kvUsage: 78 is not a share"),
        "{said}"
    );
    let said = all(&sound.replacen("queueLength", "queuLength", 1), "");
    assert!(said.contains("unknown field `queuLength`") && said.contains("--schema"), "{said}");
    // There is no plan, so nothing else is in force.
    for settings in ["GLOBAL_OPT_INTERVAL: 1500ms2", "saturation: {default: {kvCacheThreshold: 2}}"]
    {
        let said = all(sound, settings);
        assert!(said.starts_with("settings.yaml: "), "{said}");
        assert!(!said.contains("layers below"), "{said}");
    }
    let said = all(sound, "GLOBAL_OPT_INTERVL: 3s");
    assert!(said.contains("settings.yaml: ") && said.contains("did you mean"), "{said}");
}

/// The table is for a terminal; json and yaml hold names as they are.
#[test]
fn a_name_in_the_table_is_short_and_does_nothing_to_a_terminal() {
    let table = |model: &str| {
        let snapshot = format!(
            "version: 1\nvariants: [{{namespace: ns, name: a, model: \"{model}\", target: {{current: 1}}}}]"
        );
        answer(&snapshot, "", &how(Format::Table, false)).unwrap()
    };
    let long = "m".repeat(70_000);
    assert!(table(&long[..120]).contains(&format!(" {}  1 ", &long[..120])));
    let said = table(&long);
    assert!(said.contains(&format!(" {}…  1 ", &long[..120])), "{said}");
    let said = table("a\\e[31m");
    assert!(said.contains(" a\\u{1b}[31m  1 "), "{said}");
}

/// Two models that want more GPUs than there are; `more` is what the replica of the second one says
/// besides the share of its cache.
fn contended(more: &str) -> String {
    let settings = "saturation: {default: {analyzerName: saturation, enableLimiter: true, \
                    enableRescale: true}, b: {modelId: b, namespace: ns, priority: 3}}";
    let variant = |name: &str, count: u32, said: &str| {
        let pods: Vec<String> = (0..count)
            .map(|number| {
                format!("{{name: {name}-{number}, signals: {{kvUsage: 1, kvCapacity: 1250, inputTokens: 100, outputTokens: 0, {said}}}}}")
            })
            .collect();
        let pods = pods.join(", ");
        format!(
            "- {{namespace: ns, name: {name}, model: {name}, accelerator: A100, target: {{current: {count}}}, pods: [{pods}]}}\n"
        )
    };
    let snapshot = format!(
        "version: 1\ninventory: {{types: {{A100: {{total: 5, used: 5}}}}}}\nvariants:\n{}{}",
        variant("a", 4, "queueLength: 7"),
        variant("b", 1, more),
    );
    answer(&snapshot, settings, &how(Format::Table, true)).unwrap()
}

#[test]
fn a_contended_budget_is_explained_by_its_claims_or_by_what_withholds_it() {
    let shared = contended("queueLength: 80");
    let claims = "\nrescale\n    \
         ns/a  share 2 of 5 GPUs: held 4, wanted 8, floor 1, cap 5, weight 7800.000\n    \
         ns/b  share 3 of 5 GPUs: held 1, wanted 10, floor 1, cap 5, weight 27750.000\n";
    assert!(shared.ends_with(claims), "{shared}");
    assert!(!shared.contains("withheld"), "{shared}");
    let endless = contended("queueLength: 1e15");
    assert!(endless.contains("wanted 2147483647, "), "{endless}");
    let withheld = contended("");
    assert!(!withheld.contains("\nrescale\n"), "{withheld}");
    let said = "    limit        4 -> 4  rescale withheld, the demand of ns/b is not known: \
                missing: queue_length of b-0\n";
    assert!(withheld.contains(said), "{withheld}");
    let own = said.replace("4 -> 4", "1 -> 1");
    assert!(withheld.contains(&own), "{withheld}");
}

#[test]
fn an_argument_that_is_not_read_is_explained() {
    let snapshot = |arguments: &str| {
        let sound = block("`fleet.yaml`:");
        let containers =
            format!("bounds: {{min: 1, max: 4}}\n  containers: [{{args: [{arguments}]}}]");
        sound.replacen("bounds: {min: 1, max: 4}", &containers, 1)
    };
    let tokens = "saturation: {default: {analyzerName: saturation}}";
    let note = "argument --max-num-seqs has the value \"many\", which is not a whole number of at least \
                1; 256 is assumed, correct it in the pod template";
    let shown =
        |arguments: &str, format| answer(&snapshot(arguments), tokens, &how(format, true)).unwrap();
    assert!(!shown("--max-num-seqs=64", Format::Table).contains("argument"));
    let table = shown("--max-num-seqs=many", Format::Table);
    assert!(table.contains(&format!("\n    note         {note}\n")), "{table}");
    let arguments_of = |arguments: &str| -> Value {
        let whole: Value = serde_json::from_str(&shown(arguments, Format::Json)).unwrap();
        whole["models"]["serving/meta-llama/Llama-3.1-8B"]["arguments"].clone()
    };
    assert_eq!(arguments_of("--max-num-seqs=64"), Value::Null);
    assert_eq!(
        arguments_of("--max-num-seqs=many"),
        serde_json::json!({ "serving/llama-h100": [note] })
    );
    let many = vec!["--max-num-seqs=many"; 20].join(", ");
    let notes = arguments_of(&many);
    let notes = notes["serving/llama-h100"].as_array().unwrap();
    assert_eq!((notes.len(), &notes[8]), (9, &Value::from("and 12 more")));
}

#[test]
fn arguments_are_read_in_every_form() {
    let plan = |arguments: &[&str]| match command(arguments) {
        Ok(Given::Arguments(flags)) => flags,
        other => panic!("{other:?}"),
    };
    let short = plan(&["--snapshot", "a.yaml"]);
    assert_eq!((short.snapshot.as_deref(), short.settings), (Some("a.yaml"), None));
    assert_eq!((short.format, short.explain), (Format::Table, false));
    let long = plan(&["--snapshot=a", "--settings=b", "--format", "yaml", "--explain"]);
    assert_eq!(long.settings.as_deref(), Some("b"));
    assert_eq!((long.format, long.explain), (Format::Yaml, true));
    assert!(plan(&["--schema"]).schema);
    assert!(matches!(command(&["--help", "--schema"]), Ok(Given::Help(_))));
    let missing = read(&plan(&[])).unwrap_err();
    assert_eq!(missing, "--snapshot is missing; name the file, or --schema to see its form");
    for (arguments, said) in wva_base::cases! {
        (&["--snapshot"][..], "needs a value"),
        (&["--snapshot="], "--snapshot needs a value; write --snapshot=<FILE>"),
        (&["--snapshot=a", "--settings="], "needs a value"),
        (&["--print-config"], "unknown argument \"--print-config\", which belongs to wva controller; wva plan --help"),
        (&["--snapshot=a", "--format=xml"], "table, json or yaml"),
        (&["--snapshot=a", "--explain=yes"], "takes no value"),
        (&["fleet.yaml"], "unknown argument \"fleet.yaml\""),
        (&["--snapshot=a", "--snapshot=b"], "given more than once"),
        (&["--snapshot=a", "--schema"], "--schema excludes "),
        (&["--help", "extra"], "unknown argument \"extra\""),
        (&["--snapshto=a"], "unknown argument \"--snapshto\", did you mean \"--snapshot\"?; wva plan --help"),
    } {
        let errors = command(arguments).unwrap_err().to_string();
        assert!(errors.contains(said), "{arguments:?}: {errors}");
    }
}

#[test]
fn the_schema_names_every_part_of_a_snapshot() {
    let schema: Value = serde_json::from_str(&schema().unwrap()).unwrap();
    for part in ["time", "collection", "variants", "models", "inventory", "learned"] {
        assert!(schema["properties"].get(part).is_some(), "{part}");
    }
    assert_eq!(schema["additionalProperties"], false);
    let signals = &schema["$defs"]["SignalsDocument"]["properties"];
    assert!(signals.get("kvUsage").is_some() && signals.get("ranks").is_some());
}

/// What cannot be, each with a part of its message.
const REFUSED: [(&str, &str, &str); 23] = wva_base::cases! {
    ("- {namespace: ns, name: a, model: m, bounds: {min: 3, max: 2}, target: {current: 1}}", "",
     "variants[0].bounds: max 2 is below the minimum of 3 (minReplicas); raise max"),
    ("- {namespace: ns, name: a, model: m, bounds: {max: 0}, target: {current: 1}}", "",
     "variants[0].bounds: max 0 is below the minimum of 1"),
    ("- {namespace: ns, name: a, model: m, target: {current: 1}, pods: [{name: p}]}\n- {namespace: ns, name: b, \
     model: m, target: {current: 1}, pods: [{name: p}]}", "",
     "variants[1].pods: p is a pod of variants[0], too; leave it in one of them"),
    ("- {namespace: ns, name: a, model: m, target: {name: t, current: 1}}\n- {namespace: ns, name: b, model: m, \
     target: {name: t, current: 1}}", "", "variants[1].target: variants[0] scales it, too"),
    ("- {namespace: ns, name: a, model: m, target: {current: 1}, pods: [{name: p, age: 1m, readyFor: 2m}]}", "",
     "variants[0].pods[0].readyFor: it is longer than age"),
    ("- {namespace: ns, name: a, model: m, target: {current: 1}, pods: [{name: p, ready: false, age: 3m, readyFor: \
     2m}]}", "", "variants[0].pods[0].readyFor: a pod that is not ready"),
    ("- {namespace: Team_A, name: a, model: m, target: {current: 1}}", "",
     "variants[0].namespace: \"Team_A\" is not a namespace"),
    ("- {namespace: ns, name: A b, model: m, target: {current: 1}}", "",
     "variants[0].name: \"A b\" is not an object name"),
    ("- {namespace: ns, name: a, model: m, target: {current: 1}, pods: [{name: p, signals: {kvCapacity: 0.5}}]}", "",
     "variants[0].pods[0].signals.kvCapacity: 0.5 is no size of a KV cache; write a whole number"),
    ("- {namespace: ns, name: a, model: m, target: {current: 1, claimants: [ns/b]}}", "",
     "variants[0].target.claimants: only a contested target has claimants"),
    ("- {namespace: ns, name: a, model: m, target: {current: x}}", "",
     "variants[0].target.current: invalid type: string \"x\"; write a whole number from 0 to 2147483647 at line"),
    ("- {namespace: ns, name: a, model: m, cost: -1, target: {current: 1}}", "",
     "s.yaml: variants[0].cost: \"-1\" is no cost; write digits, optionally a point and more digits, like 10.0 at \
     line 3 column"),
    ("- {namespace: ns, name: a, model: m, cost: 1e30, target: {current: 1}}", "",
     "variants[0].cost: 1000000000000000000000000000000 is more than a cost can be; write at most 18446744073709"),
    ("- {namespace: ns, name: a, model: m, policy: {replicaStartSeconds: 0}, target: {current: 1}}", "",
     "variants[0].policy.replicaStartSeconds: 0 is out of range; write a whole number from 1 to 86400, or leave it \
     out"),
    ("collection: {state: never, ago: 5s}", "", "collection.ago: what was never collected did not end"),
    ("time: {now: yesterday}", "", "\"yesterday\" is no time; write one like 2026-03-01T12:00:00Z"),
    ("learned: {version: 2, activty: {}}", "", "learned.activty: unknown field; did you mean \"activity\"?"),
    ("learned: {version: 2, activity: {s/m: {monotonic: {secs: 8, nanos: 0}, wall: 0, clock: 1}}}", "",
     "learned.activity.s/m.clock: unknown field; remove it"),
    ("learned: {version: 2, activity: {s/m: {monotonic: {secs: 999999999, nanos: 0}, wall: 0}}}", "",
     "learned.activity.s/m.monotonic: 999999999 s after the start of the process is after now, which is 86400 s after \
     it; write less, or the right time.uptime"),
    ("learned: {version: 2, collected: {secs: 86401, nanos: 0}}", "", "learned.collected: 86401 s after"),
    ("learned: {version: 2, activity: {s/m: {monotonic: {secs: 8, nanos: 0}, wall: soon}}}", "",
     "learned.activity.s/m.wall: invalid type: string \"soon\""),
    ("learned: {version: 2, relapses: {s/m: {both: {fleet: {}, occupancy: -1}}}}", "",
     "learned.relapses.s/m.both.occupancy: -1 is below 0; copy it from where it was written"),
    ("foo: 1", "bar: {default: {}}", "unknown section \"bar\""),
};

#[test]
fn what_cannot_be_is_refused_with_path_and_remedy() {
    for (text, settings, said) in REFUSED {
        let snapshot = if text.starts_with('-') {
            format!("version: 1\nvariants:\n{text}\n")
        } else {
            format!("version: 1\nvariants: []\n{text}\n")
        };
        let arguments = PlanFlags {
            snapshot: Some("s.yaml".to_owned()),
            settings: None,
            ..how(Format::Table, false)
        };
        let errors = answer(&snapshot, settings, &arguments).expect_err(text);
        let errors = errors.join("\n");
        assert!(errors.contains(said), "{text}: {errors}");
        assert_eq!(
            errors.matches(" at line ").count(),
            usize::from(errors.contains(" at line ")),
            "{errors}"
        );
    }
}

#[test]
fn a_file_that_is_no_snapshot_is_named_with_its_first_fault_and_not_quoted() {
    let files = Folder::new();
    let secret = "do not quote this";
    let list = format!("[{secret:?}, {secret:?}]");
    let cut = [secret.as_bytes(), &[0xff, 0xfe]].concat();
    let text_and_zero = format!("{secret}\0");
    for (name, content, said) in wva_base::cases! {
        ("text", secret.as_bytes(), "it is a string and not a mapping"),
        ("list.json", list.as_bytes(), "it is a list and not a mapping"),
        ("elf", &b"\x7fELF\x02\x01\x01\x00\xff\xfe"[..], "the file is binary"),
        ("cut", &cut, "the file is binary"),
        ("zero", text_and_zero.as_bytes(), "the file is binary"),
        ("other.json", br#"{"kind": "Pod", "spec": "do not quote this"}"#, "unknown field `kind`, expected one of"),
    } {
        let path = files.write(name, content);
        let path = path.display().to_string();
        let how =
            PlanFlags { snapshot: Some(path.clone()), settings: None, ..how(Format::Table, false) };
        let read = read(&how).map_err(|error| vec![error]);
        let answered = read.and_then(|(snapshot, settings)| answer(&snapshot, &settings, &how));
        let errors = answered.unwrap_err().join("\n");
        assert!(errors.starts_with(&path), "{errors}");
        assert!(errors.contains(said), "{name}: {errors}");
        assert!(!errors.contains(secret), "{name}: {errors}");
    }
    let folder = std::env::temp_dir().display().to_string();
    let how =
        PlanFlags { snapshot: Some(folder.clone()), settings: None, ..how(Format::Table, false) };
    let errors = read(&how).unwrap_err();
    let said = format!("{folder}: Is a directory");
    assert!(errors.starts_with(&said), "{errors}");
}

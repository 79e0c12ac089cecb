//! Single values: durations, costs, selectors, names of roles, and every setting.

use wva::cli::args;
use wva::policy::params::LabelSelector;
use wva::policy::units::Cost;
use wva::roles::Role;
use wva::settings::schema;
use wva_base::duration::{format_duration, parse_duration};

use crate::campaign::{Campaign, Memory, Outcome};
use crate::mutate::Grammar;
use crate::seeds::owned;

const LONGEST_ERROR: usize = 2_000;

const SMALL: Memory = Memory::kib(16, 60);

fn bounded(error: &impl ToString) {
    let text = error.to_string();
    assert!(
        text.len() <= LONGEST_ERROR,
        "{} bytes: {text:.200}",
        text.len()
    );
}

#[test]
fn duration() {
    let seeds = owned([
        "90s",
        "1m30s",
        "1.5h",
        "2h45m",
        "300ms",
        ".5s",
        "+5s",
        "-5s",
        "0",
        "1000µs",
        "1 week",
        "1 hour 30 minutes",
        "5124095576030431h15s1000000000ns",
    ]);
    let words = owned(["ns", "us", "ms", "s", "m", "h", "d", "w", "weeks", "M", "y"]);
    let check = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        let read = parse_duration(&text);
        match &read {
            Ok(length) => {
                let shown = format_duration(*length);
                assert_eq!(parse_duration(&shown), Ok(*length), "{shown}");
            }
            Err(error) => bounded(error),
        }
        Outcome::from(&read)
    };
    Campaign::run(
        "values::duration",
        Grammar::new(seeds, words, 200),
        SMALL,
        &check,
    );
}

#[test]
fn cost() {
    let check = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        let read = Cost::parse(&text);
        match &read {
            Ok(cost) => assert_eq!(Cost::parse(&cost.to_string()).as_ref(), Ok(cost), "{cost}"),
            Err(error) => bounded(error),
        }
        Outcome::from(&read)
    };
    Campaign::run(
        "values::cost",
        Grammar::new(owned(["10.0", "40", "0.5", "00012.500"]), [], 400),
        SMALL,
        &check,
    );
}

#[test]
fn selector() {
    let seeds = owned([
        "",
        "wva.llmd.ai/shard=a",
        "a==b,c!=d",
        "tier in (x, y),zone notin (z), gpu, !spot",
        "a=",
    ]);
    let check = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        let read = LabelSelector::parse(&text);
        match &read {
            Ok(selector) => {
                let shown = selector.to_string();
                assert_eq!(
                    LabelSelector::parse(&shown).as_ref(),
                    Ok(selector),
                    "{shown}"
                );
                let _: bool = selector.matches(|label| (label.len() > 3).then_some("a"));
            }
            Err(error) => bounded(error),
        }
        Outcome::from(&read)
    };
    Campaign::run(
        "values::selector",
        Grammar::new(seeds, [], 1024),
        Memory::kib(16, 300),
        &check,
    );
}

#[test]
fn role() {
    let seeds = owned([
        "root",
        "optimizer",
        "watcher/Pod",
        "variant/ns-a/llama",
        "status-writer",
    ]);
    let check = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        let read = text.parse::<Role>();
        match &read {
            Ok(role) => assert_eq!(role.to_string().parse().as_ref(), Ok(role)),
            Err(error) => bounded(error),
        }
        Outcome::from(&read)
    };
    Campaign::run("values::role", Grammar::new(seeds, [], 400), SMALL, &check);
}

/// The text of every setting, whatever its kind: the name of the setting, and the text.
#[test]
fn setting() {
    let seeds = schema::all().map(|spec| format!("{}\n{}", spec.name, spec.default));
    let words = owned([
        "https://user:secret@prometheus.monitoring.svc:9090/prefix?a=b#c",
        "127.0.0.1:8443",
        ":8443",
        "[::1]:8443",
        "wva-system",
        "gpu=true",
        "inference.networking.k8s.io",
        "debug",
        "json",
        "90s",
    ]);
    let check = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        let (name, text) = text.split_once('\n').unwrap_or(("", &text));
        let spec = schema::all().find(|spec| spec.is_named(name));
        let Some(spec) = spec else {
            return Outcome::Refused;
        };
        let read = spec.parse(text);
        let shown = spec.show(text);
        assert!(shown.len() <= LONGEST_ERROR, "{shown:.200}");
        if let Err(refusal) = &read {
            let said = format!("{refusal:?}");
            assert!(said.len() <= LONGEST_ERROR, "{said:.200}");
        }
        Outcome::from(&read)
    };
    Campaign::run(
        "values::setting",
        Grammar::new(seeds, words, 512),
        Memory::kib(16, 300),
        &check,
    );
}

/// Command lines of the controller, one argument a line.
#[test]
fn arguments() {
    let flags = schema::all().flat_map(|spec| spec.flags.iter().copied());
    let seeds = flags
        .map(|flag| format!("--{flag}=1\n-{flag}\n1m"))
        .chain(owned([
            "--print-config=json\n--help",
            "-v\n2\n--leader-elect",
        ]));
    let check = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        let (parsed, errors) = args::parse(text.lines().map(str::to_owned));
        for error in &errors {
            assert!(error.to_string().len() <= LONGEST_ERROR + 8 * text.len());
        }
        let _: Option<&str> = parsed.config_file();
        Outcome::from(errors.is_empty())
    };
    Campaign::run(
        "values::arguments",
        Grammar::new(seeds, [], 1024),
        Memory {
            // An unknown flag is looked up in the flags of every command.
            base: 128 * 1024,
            per_byte: 400,
        },
        &check,
    );
}

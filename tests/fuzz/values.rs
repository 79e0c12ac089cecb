//! Single values: durations, costs, selectors, names of roles, and every setting.

use std::fmt::Debug;
use std::time::Duration;

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

/// Texts, whose values are shown as what reads the same.
fn round_trip<T: PartialEq + Debug, E: ToString>(
    name: &str,
    grammar: Grammar,
    memory: Memory,
    read: impl Fn(&str) -> Result<T, E>,
    show: impl Fn(&T) -> String,
) {
    let check = |input: &[u8]| {
        let made = read(&String::from_utf8_lossy(input));
        match &made {
            Ok(value) => {
                let shown = show(value);
                assert_eq!(read(&shown).ok().as_ref(), Some(value), "{shown}");
            }
            Err(error) => {
                let text = error.to_string();
                let length = text.len();
                assert!(length <= LONGEST_ERROR, "{length} bytes: {text:.200}");
            }
        }
        Outcome::from(&made)
    };
    Campaign::run(name, grammar, memory, &check);
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
    let grammar = Grammar::new(seeds, words, 200);
    let show = |length: &Duration| format_duration(*length);
    round_trip("values::duration", grammar, SMALL, parse_duration, show);
}

#[test]
fn cost() {
    let grammar = Grammar::new(owned(["10.0", "40", "0.5", "00012.500"]), [], 400);
    round_trip("values::cost", grammar, SMALL, Cost::parse, Cost::to_string);
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
    let show = |selector: &LabelSelector| {
        let _: bool = selector.matches(|label| (label.len() > 3).then_some("a"));
        selector.to_string()
    };
    round_trip(
        "values::selector",
        Grammar::new(seeds, [], 1024),
        Memory::kib(16, 300),
        LabelSelector::parse,
        show,
    );
}

#[test]
fn role() {
    let seeds = owned(["root", "optimizer", "watcher/Pod", "variant/ns-a/llama", "status-writer"]);
    let grammar = Grammar::new(seeds, [], 400);
    round_trip("values::role", grammar, SMALL, str::parse, Role::to_string);
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
    Campaign::run("values::setting", Grammar::new(seeds, words, 512), Memory::kib(16, 300), &check);
}

/// Command lines of the controller, one argument a line.
#[test]
fn arguments() {
    let flags = schema::all().flat_map(|spec| spec.flags.iter().copied());
    let seeds = flags
        .map(|flag| format!("--{flag}=1\n-{flag}\n1m"))
        .chain(owned(["--print-config=json\n--help", "-v\n2\n--leader-elect"]));
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
        // An unknown flag is looked up in the flags of every command.
        Memory::kib(128, 400),
        &check,
    );
}

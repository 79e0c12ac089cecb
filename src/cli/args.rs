//! Flags of the controller, in the forms that Go programs accept.

use crate::settings::help::dashed;
pub use crate::settings::help::help as help_text;
use crate::settings::schema::{self, Spec};
use crate::settings::value::ValueKind;
use crate::settings::{FlagValues, GivenFlag};

use super::usage;

/// Flags of AIBrix with a value that have no meaning here, and what to do.
const MEANINGLESS: [(&str, &str); 4] = [
    ("kube-api-burst", "requests have no rate limit; remove it"),
    ("kube-api-qps", "requests have no rate limit; remove it"),
    (
        "leader-election-namespace",
        "the Lease is in the namespace of the controller; remove it, or set POD_NAMESPACE",
    ),
    ("leader-election-resource-lock", "the lock is always a Lease; remove it"),
];

/// The command of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerArguments {
    /// Flags that are settings.
    pub flags: FlagValues,
    /// What to do with them.
    pub action: SettingsAction,
}

impl ControllerArguments {
    /// The file that `--config-file` names.
    pub fn config_file(&self) -> Option<&str> {
        self.flags
            .get(schema::CONFIG_FILE.name)
            .map(|given| given.text.as_str())
            .filter(|path| !path.is_empty())
    }
}

/// What to do with the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsAction {
    /// Run the controller.
    Run,
    /// Show every setting and exit.
    PrintConfig(PrintFormat),
    /// Show the help and exit.
    Help,
    /// Show the version and exit.
    Version,
}

/// The form of `--print-config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintFormat {
    /// A table.
    Text,
    /// One JSON document.
    Json,
}

/// An argument that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// It is no flag, has no meaning here, or has a value that is not accepted.
    #[error("{0}")]
    Refused(String),
    /// The flag needs a value and none follows.
    #[error("{flag} needs a value; write {flag}=<{kind}>")]
    MissingValue {
        /// The flag.
        flag: String,
        /// What it takes.
        kind: &'static str,
    },
}

/// Reads the arguments after the command. One dash is as good as two; a value follows after `=` or
/// as the next argument; switches take a value after `=` only. The last of several counts, as in Go: what
/// is appended to the arguments of a manifest overrides them.
///
/// What is accepted comes with every argument that is not: the rest of the settings is judged all
/// the same, so that all errors are seen at once.
pub fn parse<I>(arguments: I) -> (ControllerArguments, Vec<ArgumentError>)
where
    I: IntoIterator<Item = String>,
{
    let mut parser = Parser {
        parsed: ControllerArguments { flags: FlagValues::default(), action: SettingsAction::Run },
        errors: Vec::new(),
        switch: None,
    };
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        parser.take(&argument, &mut rest);
    }
    // As with the other commands, --help makes up for a value that is missing.
    if parser.parsed.action == SettingsAction::Help {
        let is_wrong = |error: &ArgumentError| !matches!(error, ArgumentError::MissingValue { .. });
        parser.errors.retain(is_wrong);
    }
    (parser.parsed, parser.errors)
}

struct Parser {
    parsed: ControllerArguments,
    errors: Vec<ArgumentError>,
    /// The switch that the argument before was, if it had no value.
    switch: Option<String>,
}

impl Parser {
    fn take(&mut self, argument: &str, rest: &mut impl Iterator<Item = String>) {
        let before = self.switch.take();
        let Some(body) = argument
            .strip_prefix("--")
            .or_else(|| argument.strip_prefix('-'))
            .filter(|body| !body.is_empty() && !body.starts_with(['-', '=']))
        else {
            let joined = before.map_or_else(String::new, |switch| {
                format!(", and a value is joined to its switch: {switch}={argument}")
            });
            let text = [unknown(argument), joined].concat();
            self.errors.push(ArgumentError::Refused(text));
            return;
        };
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (body, None),
        };
        match (name, find(name)) {
            ("h" | "help", _) => self.parsed.action = SettingsAction::Help,
            ("version", _) => self.version(),
            ("print-config", _) => self.print_config(value.as_deref()),
            (_, Some((spec, flag))) => self.setting(spec, flag, value, rest),
            (_, None) => self.unknown(name, value, rest),
        }
    }

    fn unknown(
        &mut self,
        name: &str,
        value: Option<String>,
        rest: &mut impl Iterator<Item = String>,
    ) {
        let flag = dashed(name);
        let known = MEANINGLESS.iter().find(|(flag, _)| *flag == name);
        let text = match known {
            Some((_, why)) => {
                // Its value is no argument of its own.
                drop(value.or_else(|| rest.next()));
                format!("{flag} is not accepted: {why}")
            }
            None => unknown(&flag),
        };
        self.errors.push(ArgumentError::Refused(text));
    }

    fn setting(
        &mut self,
        spec: &'static Spec,
        flag: &'static str,
        value: Option<String>,
        rest: &mut impl Iterator<Item = String>,
    ) {
        let text = match (value, spec.kind) {
            (Some(value), _) => Some(value),
            (None, ValueKind::Bool) => {
                self.switch = Some(dashed(flag));
                Some("true".to_owned())
            }
            (None, _) => rest.next(),
        };
        match text {
            Some(text) => {
                let given = GivenFlag { name: flag, text };
                self.parsed.flags.insert(spec.name, given);
            }
            None => self
                .errors
                .push(ArgumentError::MissingValue { flag: dashed(flag), kind: spec.kind.as_str() }),
        }
    }

    fn version(&mut self) {
        if self.parsed.action != SettingsAction::Help {
            self.parsed.action = SettingsAction::Version;
        }
    }

    fn print_config(&mut self, format: Option<&str>) {
        let format = match format {
            None | Some("text" | "true") => PrintFormat::Text,
            Some("json") => PrintFormat::Json,
            Some("false") => return,
            Some(other) => {
                let text = format!("--print-config is {other:?}; give one of text or json");
                self.errors.push(ArgumentError::Refused(text));
                return;
            }
        };
        if self.parsed.action == SettingsAction::Run {
            self.parsed.action = SettingsAction::PrintConfig(format);
        }
    }
}

fn find(name: &str) -> Option<(&'static Spec, &'static str)> {
    schema::all().find_map(|spec| {
        let flag = spec.flags.iter().copied().find(|flag| *flag == name)?;
        Some((spec, flag))
    })
}

/// What is wrong with an argument that is none of the flags.
fn unknown(argument: &str) -> String {
    let known = schema::all().flat_map(|spec| spec.flags.iter().copied());
    let known = known.chain(["help", "print-config", "version"]);
    usage::unknown(&super::PROGRAM, argument, known, "wva controller --help")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(arguments: &[&str]) -> Result<ControllerArguments, Vec<ArgumentError>> {
        let (parsed, errors) = parse(arguments.iter().map(|argument| (*argument).to_owned()));
        if errors.is_empty() { Ok(parsed) } else { Err(errors) }
    }

    fn texts(arguments: &[&str]) -> Vec<(&'static str, String)> {
        let flags = parsed(arguments).unwrap().flags;
        flags.into_iter().map(|(key, given)| (key, given.text)).collect()
    }

    #[test]
    fn every_go_form_gives_the_same_flag() {
        assert_eq!(texts(&[]), []);
        for form in [
            vec!["--leader-elect"],
            vec!["-leader-elect"],
            vec!["--leader-elect=true"],
            vec!["-leader-elect=true"],
            vec!["--leader-elect=false", "--leader-elect"],
            vec!["--enable-leader-election"],
        ] {
            assert_eq!(texts(&form), [("LEADER_ELECT", "true".to_owned())], "{form:?}");
        }
        for form in [
            vec!["--watch-namespace=a"],
            vec!["-watch-namespace=a"],
            vec!["--watch-namespace", "a"],
            vec!["-watch-namespace", "a"],
        ] {
            assert_eq!(texts(&form), [("WATCH_NAMESPACE", "a".to_owned())], "{form:?}");
        }
        assert_eq!(texts(&["-v=2"]), [("V", "2".to_owned())]);
        assert_eq!(texts(&["-v", "2"]), [("V", "2".to_owned())]);
        assert_eq!(texts(&["--watch-namespace="]), [("WATCH_NAMESPACE", String::new())]);
        assert_eq!(
            texts(&["--zap-devel", "--zap-encoder=console", "--zap-log-level", "debug"]),
            [
                ("LOG_FORMAT", "console".to_owned()),
                ("LOG_LEVEL", "debug".to_owned()),
                ("ZAP_DEVEL", "true".to_owned()),
            ]
        );
    }

    #[test]
    fn actions_are_recognised() {
        let action = |arguments: &[&str]| parsed(arguments).unwrap().action;
        assert_eq!(action(&[]), SettingsAction::Run);
        assert_eq!(action(&["--print-config"]), SettingsAction::PrintConfig(PrintFormat::Text));
        assert_eq!(
            action(&["--print-config=json"]),
            SettingsAction::PrintConfig(PrintFormat::Json)
        );
        assert_eq!(action(&["-h", "-v"]), SettingsAction::Help);
        assert_eq!(action(&["-h", "--version"]), SettingsAction::Help);
        assert_eq!(action(&["-version", "--print-config"]), SettingsAction::Version);
        let arguments = parsed(&["--config-file", "/etc/wva/config.yaml"]).unwrap();
        assert_eq!(arguments.config_file(), Some("/etc/wva/config.yaml"));
        assert_eq!(parsed(&["--config-file="]).unwrap().config_file(), None);
    }

    #[test]
    fn all_errors_are_named_at_once_with_their_remedy() {
        let errors =
            parsed(&["--leader-elct", "--leader-elect", "true", "--print-config=xml", "-v"])
                .unwrap_err();
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "unknown argument \"--leader-elct\", did you mean \"--leader-elect\"?; \
                 wva controller --help lists them",
                "unknown argument \"true\"; wva controller --help lists them, and a value is joined \
                 to its switch: --leader-elect=true",
                "--print-config is \"xml\"; give one of text or json",
                "-v needs a value; write -v=<number>",
            ]
        );
        for argument in ["-", "--", "---v=2", "--=x", "positional"] {
            assert!(parsed(&[argument]).is_err(), "{argument}");
            assert!(parsed(&["--help", argument]).is_err(), "{argument}");
            assert!(parsed(&["--version", argument]).is_err(), "{argument}");
        }
    }

    /// The stand-alone installation of AIBrix, flag by flag.
    #[test]
    fn flags_of_aibrix_are_taken_where_they_mean_something() {
        let standalone = [
            "--controllers=pod-autoscaler-controller",
            "--disable-webhook",
            "--leader-elect",
            "--leader-election-id=aibrix-pod-autoscaler-controller",
            "--metrics-bind-address=0",
            "--metrics-secure=false",
            "--health-probe-bind-address=:8081",
            "--enable-http2=false",
        ];
        assert_eq!(texts(&standalone).len(), standalone.len());
        let list = "*,-pod-autoscaler-controller".to_owned();
        assert_eq!(texts(&["--controllers", &list]), [("CONTROLLERS", list.clone())]);
        let errors = parsed(&[
            "--kube-api-qps=100",
            "--kube-api-burst",
            "100",
            "--leader-election-namespace",
            "aibrix-system",
            "--leader-elect",
            "--leader-election-resource-lock=leases",
        ]);
        let texts: Vec<String> = (errors.unwrap_err().iter()).map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "--kube-api-qps is not accepted: requests have no rate limit; remove it",
                "--kube-api-burst is not accepted: requests have no rate limit; remove it",
                "--leader-election-namespace is not accepted: the Lease is in the namespace of the \
                 controller; remove it, or set POD_NAMESPACE",
                "--leader-election-resource-lock is not accepted: the lock is always a Lease; remove it",
            ]
        );
        for (flag, _) in MEANINGLESS {
            assert!(find(flag).is_none(), "{flag} is a flag");
        }
    }

    #[test]
    fn every_flag_of_the_schema_is_found() {
        for spec in schema::all() {
            for flag in spec.flags {
                let flags = parsed(&[&format!("--{flag}=x")]).unwrap().flags;
                assert_eq!(flags.get(spec.name).map(|given| given.name), Some(*flag));
            }
        }
    }

    proptest! {
        #[test]
        fn no_arguments_make_the_parser_panic(arguments in prop::collection::vec("-{0,3}[a-z=-]{0,12}|\\PC{0,20}", 0..6)) {
            drop(parse(arguments));
        }
    }
}

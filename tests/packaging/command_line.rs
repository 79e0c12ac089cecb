//! The program as people call it: what it prints, and how it exits.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

fn wva(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut wva = Command::new(env!("CARGO_BIN_EXE_wva"));
    wva.args(arguments).env_remove("PROMETHEUS_BASE_URL");
    wva.envs(environment.iter().copied()).output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let ended = wva(arguments, &[]);
    assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {ended:?}");
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn every_command_refuses_its_arguments_alike() {
    for (arguments, meant) in [
        (&["paln"][..], "\"plan\""),
        (&["help", "crsd"], "\"crds\""),
        (&["controller", "--leader-elct"], "\"--leader-elect\""),
        (&["plan", "--snapshto", "x"], "\"--snapshot\""),
        (&["crds", "--hlep"], "\"--help\""),
        (&["completions", "tcsh"], "one of bash, zsh or fish"),
        (&["completions"], "is missing"),
        (&["crds", "all"], "wva crds --help"),
        (&["plan", "--snap", "x"], "\"--snapshot\""),
        (&["controller", "--watch-ns=x"], "\"--watch-namespace\""),
        (&["plan", "extra"], "unknown argument \"extra\"; wva plan "),
        (&["controller", "extra"], "unknown argument \"extra\"; wva "),
        (&["help", "plan", "extra"], "unknown argument \"extra\"; "),
        (&["help", "--hlep"], "\"--help\""),
        (&["plan", "--snapshot=x", "--snapshot=y"], "more than once"),
        (&["controller", "--leader-elect=mabye"], "true or false"),
        (&["--version", "extra"], "unknown argument \"extra\"; wva "),
        (&["--help", "extra"], "unknown argument \"extra\"; wva "),
        (&["crds", "--help", "extra"], "unknown argument \"extra\"; "),
        (&["plan", "--schema", "--snapshot=x"], "give it alone"),
        (&["--snapshot", "x"], "run wva plan --snapshot x"),
        (&["completions", "--shell"], "one of bash, zsh or fish"),
        (&["controller", "--help", "extra"], "\"extra\"; wva "),
        (&["controller", "--help", "--foo"], "\"--foo\"; wva "),
        (&["controller", "--snapshot=x"], "belongs to wva plan"),
        (&["--snapshto", "x"], "\"--snapshot\" of wva plan"),
        (&["--version=1"], "--version takes no value"),
        (&["complete"], "\"completions\""),
    ] {
        let ended = wva(arguments, &[]);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}");
        let error = String::from_utf8(ended.stderr).unwrap();
        assert!(error.starts_with("error: "), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
        assert!(error.contains(meant), "{arguments:?}: {error}");
    }
}

#[test]
fn version_and_help_are_printed() {
    let version = concat!("wva ", env!("CARGO_PKG_VERSION"));
    for arguments in [&["--version"][..], &["-V"], &["controller", "--version"]] {
        assert!(printed(arguments).starts_with(version), "{arguments:?}");
    }
    for command in
        ["controller", "status", "why", "plan", "replay", "bundle", "crds", "completions"]
    {
        let help = printed(&["help", command]);
        assert_eq!(help, printed(&[command, "--help"]));
        assert!(help.contains(&format!("wva {command}")), "{help}");
    }
    assert_eq!(printed(&["help"]), printed(&["--help"]));
}

#[test]
fn print_config_exits_as_the_start_would() {
    let address = |url| [("PROMETHEUS_BASE_URL", url)];
    let arguments = ["controller", "--print-config"];
    let accepted = wva(&arguments, &address("https://prom:9090"));
    assert_eq!(accepted.status.code(), Some(0), "{accepted:?}");
    let refused = wva(&arguments, &address("http://prom:9090"));
    assert_eq!(refused.status.code(), Some(1));
    let report = String::from_utf8(refused.stdout).unwrap();
    assert!(report.contains("HTTPS is required"), "{report}");
    let missing = wva(&arguments, &[]);
    assert_eq!(missing.status.code(), Some(1));
    let report = String::from_utf8(missing.stdout).unwrap();
    assert!(report.contains("configuration is required"), "{report}");
    for argument in ["--no-such", "extra", "--leader-elect=mabye"] {
        let misused = ["controller", "--print-config", argument];
        let misused = wva(&misused, &address("https://prom:9090"));
        assert_eq!(misused.status.code(), Some(2), "{argument}");
        assert!(misused.stdout.is_empty(), "{argument}");
        let error = String::from_utf8(misused.stderr).unwrap();
        assert!(error.starts_with("error: "), "{argument}: {error}");
    }
}

#[test]
fn a_wrong_value_outside_the_command_line_is_no_misuse() {
    let wrong = wva(&["controller"], &[("LEADER_ELECT", "mabye")]);
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    let unreadable = wva(&["controller", "--config-file=/none/file"], &[]);
    assert_eq!(unreadable.status.code(), Some(1), "{unreadable:?}");
}

#[test]
fn bash_reads_its_completions() {
    let script = printed(&["completions", "bash"]);
    let mut bash = Command::new("bash");
    let mut bash = bash.arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    let mut input = bash.stdin.take().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    drop(input);
    assert!(bash.wait().unwrap().success());
}

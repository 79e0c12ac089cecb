//! The arguments of `wva-sim demo`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use super::settings::{self, SettingsFile};
use crate::lab::{POLICIES, PolicyChoice, PolicyKind};
use crate::pace::{Play, Speed};
use crate::world::{Scenario, scenario, scenarios};
use wva::cli::usage::one_of;

/// Plays the controller in a simulated cluster, with model servers, users and autoscalers
#[derive(Debug, Parser)]
#[command(
    name = "demo",
    after_help = "A kubeconfig for the simulated API server is written to a temporary file, whose path is shown.\n\
                  Exit code: 0 after a play, 2 where the arguments are not accepted, 1 where it cannot be played."
)]
pub(in crate::cli) struct DemoFlags {
    /// What to play; --list names all
    #[arg(long, value_name = "NAME", default_value = "fleet", value_parser = to_scenario)]
    scenario: Scenario,
    /// Virtual time against real time, or max
    #[arg(long, value_name = "TIMES", default_value = "60", value_parser = to_speed)]
    speed: Speed,
    /// What chance comes from; the same seed plays the same way
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = to_seed, allow_negative_numbers = true)]
    seed: u64,
    /// How long to play, in virtual time, for example 2h or 90m; without it until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = to_duration)]
    duration: Option<Duration>,
    /// Virtual time that passes at once before the first picture
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = to_warm)]
    warm: Duration,
    /// Play the same load also under this policy of wva-sim lab; keda is llm-d's recipe, keda-epp
    #[arg(long, value_name = "POLICY", value_parser = to_policy)]
    against: Option<PolicyChoice>,
    /// A manifest of ConfigMaps that replace those of the demo with the same name
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = settings::read)]
    settings: Option<SettingsFile>,
    /// The port of the page on loopback; without it a free one
    #[arg(long, value_name = "NUMBER", value_parser = to_port)]
    port: Option<u16>,
    /// Replay requests from a trace for the first model of the scenario
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    trace: Option<PathBuf>,
    /// No page; without it, its address on loopback is shown
    #[arg(long)]
    no_page: bool,
    /// List the scenarios
    #[arg(long)]
    pub(super) list: bool,
}

#[derive(Debug)]
pub(super) struct DemoArguments {
    pub(super) play: Play,
    pub(super) against: Option<PolicyChoice>,
    /// Of the page on loopback, 0 for a free one; none without a page.
    pub(super) port: Option<u16>,
}

impl DemoFlags {
    pub(super) fn arguments(self) -> DemoArguments {
        let scenario = match self.trace {
            Some(trace) => self.scenario.replaying(trace),
            None => self.scenario,
        };
        let mut scenario = scenario.with_shipped_settings();
        let maps = self.settings.into_iter();
        for map in maps.flat_map(|SettingsFile(maps)| maps) {
            scenario.config.retain(|one| one.name != map.name);
            scenario.config.push(map);
        }
        DemoArguments {
            play: Play {
                scenario,
                seed: self.seed,
                date: super::this_hour(),
                speed: self.speed,
                duration: self.duration,
                warm: self.warm,
                policy: None,
            },
            against: self.against,
            port: (!self.no_page).then(|| self.port.unwrap_or(0)),
        }
    }
}

fn to_port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_error| "a port from 1 to 65535, or 0 for a free one")
}

fn to_scenario(name: &str) -> Result<Scenario, String> {
    scenario(name).ok_or_else(|| {
        let names: Vec<&str> = scenarios().iter().map(|one| one.name).collect();
        one_of(&names)
    })
}

fn to_policy(name: &str) -> Result<PolicyChoice, String> {
    let name = if name == "keda" { "keda-epp" } else { name };
    let peers = POLICIES.iter().filter(|one| one.kind == PolicyKind::Peer);
    let peers: Vec<&str> = peers.map(|one| one.name).collect();
    let choice = PolicyChoice::parse(name).ok();
    let choice = choice.filter(|one| one.family.kind == PolicyKind::Peer);
    choice.ok_or_else(|| format!("keda, {}", one_of(&peers)))
}

fn to_speed(value: &str) -> Result<Speed, &'static str> {
    if value == "max" {
        return Ok(Speed::Unbounded);
    }
    let speed: Option<f64> = value.parse().ok();
    let speed = speed.filter(|speed| (0.1..=100_000.0).contains(speed));
    let wanted = "a number from 0.1 to 100000, or max";
    speed.map(Speed::Times).ok_or(wanted)
}

fn to_seed(value: &str) -> Result<u64, &'static str> {
    value.parse().ok().ok_or("a whole number from 0")
}

fn to_duration(value: &str) -> Result<Duration, &'static str> {
    let duration = humantime::parse_duration(value).ok();
    let duration = duration.filter(|duration| !duration.is_zero());
    duration.ok_or("a time like 90s, 30m or 2h")
}

fn to_warm(value: &str) -> Result<Duration, &'static str> {
    let duration = humantime::parse_duration(value);
    duration.map_err(|_invalid| "a time like 5m, or 0s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wva::cli::usage::{Given, Refused, read};

    fn parsed(arguments: &str) -> Result<Given<DemoFlags>, Refused> {
        let words = arguments.split_whitespace().map(str::to_owned);
        read(&crate::cli::PROGRAM, words)
    }

    fn flags(arguments: &str) -> DemoFlags {
        match parsed(arguments) {
            Ok(Given::Arguments(flags)) => flags,
            other => panic!("{arguments}: {other:?}"),
        }
    }

    #[test]
    fn defaults_and_flags() {
        let arguments = flags("").arguments();
        assert!(arguments.against.is_none());
        assert_eq!(arguments.port, Some(0));
        let default = arguments.play;
        assert_eq!((default.scenario.name, default.seed), ("fleet", 1));
        assert_eq!(default.speed, Speed::Times(60.0));
        assert_eq!(default.duration, None);
        assert_eq!(default.warm, Duration::from_mins(5));
        let arguments = flags(
            "--scenario quiet --speed=max --seed 7 --duration 90m --trace f.csv --no-page --warm 0s --against keda",
        )
        .arguments();
        assert_eq!(arguments.against.unwrap().name, "keda-epp");
        assert_eq!(arguments.port, None);
        let other = arguments.play;
        assert_eq!((other.scenario.name, other.seed), ("quiet", 7));
        assert_eq!(other.speed, Speed::Unbounded);
        assert_eq!(other.duration, Some(Duration::from_mins(90)));
        assert_eq!(other.warm, Duration::ZERO);
        let load = &other.scenario.models[0].load;
        assert!(format!("{load:?}").contains("f.csv"), "{load:?}");
        assert!(flags("--list").list);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_remedy() {
        for (arguments, expected) in [
            ("--speed fast", "--speed is \"fast\"; give a number"),
            ("--speed 0", "--speed is \"0\"; give a number from 0.1"),
            ("--speed nan", "--speed is \"nan\""),
            ("--port 99999", "--port is \"99999\"; give a port"),
            ("--port foo", "--port is \"foo\"; give a port"),
            ("--seed -1", "--seed is \"-1\"; give a whole number"),
            ("--duration 0s", "--duration is \"0s\"; give a time"),
            ("--against nothing", "--against is \"nothing\"; give keda, one of "),
            ("--against wva-slo", "--against is \"wva-slo\"; give keda, one of "),
            (
                "--settings /nowhere.yaml",
                "--settings is \"/nowhere.yaml\"; give a manifest of ConfigMaps",
            ),
            ("--scenario x", "--scenario is \"x\"; give one of fleet, "),
        ] {
            let error = parsed(arguments).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{arguments}: {error}");
        }
    }
}

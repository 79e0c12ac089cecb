//! The arguments of `wva demo`.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::flags::{Flags, Unusable};
use crate::sim::world::pace::Speed;
use crate::sim::world::{Scenario, scenario, scenarios};

/// The help.
pub(super) const USAGE: &str = "\
wva demo: the controller in a simulated cluster, with model servers, users and autoscalers

  wva demo [FLAGS]

  --scenario NAME   what to play (default fleet); --list names all
  --speed TIMES     virtual time against real time (default 60), or max
  --seed NUMBER     what chance comes from (default 1); the same seed plays the same way
  --duration TIME   how long to play, in virtual time, such as 2h or 90m (default: until Ctrl-C)
  --trace FILE      replay requests from a trace for the first model of the scenario
  --no-page         no page; without it, its address on loopback is shown
  --list            list the scenarios

A kubeconfig for the simulated API server is written to a temporary file, whose path is shown.
Exit code: 0 after a play, 2 where the arguments are not accepted, 1 where it cannot be played.
";

/// What is asked for.
#[derive(Debug)]
pub(super) enum Command {
    /// Show the help.
    Help,
    /// List the scenarios.
    List,
    /// Play.
    Play(Box<Arguments>),
}

/// What to play, and how.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) scenario: Scenario,
    pub(super) speed: Speed,
    pub(super) seed: u64,
    pub(super) duration: Option<Duration>,
    pub(super) page: Page,
}

/// Whether a page shows the play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    /// On a free port of loopback.
    Shown,
    /// Nowhere.
    Off,
}

/// Reads the arguments.
pub(super) fn parse(rest: impl Iterator<Item = String>) -> Result<Command, Unusable> {
    let mut name = "fleet".to_owned();
    let mut trace: Option<PathBuf> = None;
    let (mut pace, mut seed, mut duration) = (Speed::Times(60.0), 1, None);
    let mut shown = Page::Shown;
    let mut flags = Flags::new("demo", rest);
    while let Some(flag) = flags.next()? {
        match &*flag {
            "--help" | "-h" => return Ok(Command::Help),
            "--no-page" => shown = Page::Off,
            "--list" => return Ok(Command::List),
            "--scenario" => name = flags.value("--scenario", "fleet")?,
            "--trace" => trace = Some(flags.value("--trace", "FILE")?.into()),
            "--speed" => pace = to_speed(flags.value("--speed", "60")?)?,
            "--seed" => seed = to_seed(flags.value("--seed", "1")?)?,
            "--duration" => duration = Some(to_duration(flags.value("--duration", "2h")?)?),
            _ => return Err(flags.unknown(flag)),
        }
    }
    let found = scenario(&name).ok_or_else(|| {
        let names: Vec<&str> = scenarios().iter().map(|one| one.name).collect();
        Unusable::Value {
            flag: "--scenario",
            value: name,
            wanted: format!("one of {}", names.join(", ")),
        }
    })?;
    let scenario = match trace {
        Some(trace) => found.replaying(trace),
        None => found,
    };
    Ok(Command::Play(Box::new(Arguments {
        scenario,
        speed: pace,
        seed,
        duration,
        page: shown,
    })))
}

fn to_speed(value: String) -> Result<Speed, Unusable> {
    if value == "max" {
        return Ok(Speed::Unbounded);
    }
    let speed: Option<f64> = value.parse().ok();
    let speed = speed.filter(|speed| (0.1..=100_000.0).contains(speed));
    speed.map(Speed::Times).ok_or_else(|| Unusable::Value {
        flag: "--speed",
        value,
        wanted: "a number from 0.1 to 100000, or max".to_owned(),
    })
}

fn to_seed(value: String) -> Result<u64, Unusable> {
    let seed = value.parse().ok();
    seed.ok_or_else(|| Unusable::Value {
        flag: "--seed",
        value,
        wanted: "a whole number from 0".to_owned(),
    })
}

fn to_duration(value: String) -> Result<Duration, Unusable> {
    let duration = humantime::parse_duration(&value).ok();
    let duration = duration.filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| Unusable::Value {
        flag: "--duration",
        value,
        wanted: "a time such as 90s, 30m or 2h".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &str) -> Result<Command, Unusable> {
        parse(arguments.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn defaults_and_flags() {
        let Ok(Command::Play(default)) = read("") else {
            panic!("plays");
        };
        assert_eq!((default.scenario.name, default.seed), ("fleet", 1));
        assert_eq!(default.speed, Speed::Times(60.0));
        assert_eq!((default.duration, default.page), (None, Page::Shown));
        let Ok(Command::Play(other)) =
            read("--scenario quiet --speed=max --seed 7 --duration 90m --trace f.csv --no-page")
        else {
            panic!("plays");
        };
        assert_eq!((other.scenario.name, other.seed), ("quiet", 7));
        assert_eq!(other.speed, Speed::Unbounded);
        assert_eq!(other.duration, Some(Duration::from_mins(90)));
        assert_eq!(other.page, Page::Off);
        let load = &other.scenario.models[0].load;
        assert!(format!("{load:?}").contains("f.csv"), "{load:?}");
        assert!(matches!(read("--list"), Ok(Command::List)));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_remedy() {
        for (arguments, expected) in [
            ("--sped 60", "unknown argument \"--sped\""),
            ("--speed", "--speed needs a value, such as --speed 60"),
            ("--speed fast", "--speed is \"fast\"; give a number"),
            ("--speed 0", "--speed is \"0\"; give a number from 0.1"),
            ("--speed nan", "--speed is \"nan\""),
            ("--seed -1", "--seed is \"-1\"; give a whole number"),
            ("--duration 0s", "--duration is \"0s\"; give a time"),
            (
                "--no-page=yes",
                "--no-page takes no value, and has \"yes\"; leave",
            ),
            ("--scenario x", "--scenario is \"x\"; give one of fleet, "),
        ] {
            let error = read(arguments).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{arguments}: {error}");
        }
    }
}

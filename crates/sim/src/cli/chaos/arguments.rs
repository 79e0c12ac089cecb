//! The arguments of `wva-sim chaos`.

use std::fmt::Debug;
use std::ops::Range;

use clap::{Parser, ValueEnum as _};

use crate::chaos::Mutation;
use crate::chaos::{ExhaustiveScenario, PLOTS, Point, Points};
use wva::cli::usage::{Given, Refused, one_of, read};

const AFTER: &str = "\
Each seed is a run in virtual time, and the same seed runs the same way. A run that breaks an invariant
is printed with the end of its trace and the command that plays it again.
Exit code: 0 where every invariant held, 1 where one was broken, 2 where the arguments are not accepted.
With --mutants and --mutant, 0 where every defect was found, 1 where one was not.";

/// Breaks everything around the controller in a simulated cluster, by seed
#[derive(Debug, Parser)]
#[command(name = "chaos", after_help = AFTER)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one field a flag; what they mean together is a Command"
)]
pub(in crate::cli) struct ChaosFlags {
    /// How many seeds to play [default: 10]
    #[arg(long, value_name = "NUMBER", value_parser = to_count)]
    seeds: Option<u64>,
    /// The first of them [default: 1]
    #[arg(long, value_name = "SEED", value_parser = to_seed, allow_negative_numbers = true)]
    from: Option<u64>,
    /// What to play; --list names all [default: storm]
    #[arg(long, value_name = "NAME", value_parser = to_scenario)]
    scenario: Option<&'static str>,
    /// How many at once, each on a thread of its own [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = to_jobs)]
    jobs: Option<usize>,
    /// Play one seed, and print everything that happens in it
    #[arg(long, value_name = "SEED", value_parser = to_seed, allow_negative_numbers = true)]
    replay: Option<u64>,
    /// With --replay: these faults of its schedule alone, as in 3,17, or none
    #[arg(long, value_name = "IDS", value_parser = to_ids, requires = "replay")]
    only: Option<Ids>,
    /// Plant one defect after another, and say how many seeds find it
    #[arg(long)]
    mutants: bool,
    /// Plant this defect alone, and show all about the run that finds it; also with --replay
    #[arg(long, value_name = "NAME", value_parser = to_defect)]
    mutant: Option<Mutation>,
    /// End every role at its first occasions and some later ones, and the process at its writes, one end in each run,
    /// in six scenes
    #[arg(long)]
    everywhere: bool,
    /// With --everywhere: at all occasions and writes, which takes long
    #[arg(long, requires = "everywhere")]
    every_occasion: bool,
    /// With --everywhere: in this scene alone, as in Autoscaled
    #[arg(long, value_name = "SCENE", value_parser = to_scene, requires = "everywhere")]
    scene: Option<ExhaustiveScenario>,
    /// With --everywhere: at this point alone, as a failure prints it, with everything that happens, as in
    /// Pair/before/7/collector or Zero/during-write/3
    #[arg(long, value_name = "POINT", value_parser = to_point, requires = "everywhere")]
    point: Option<Point>,
    /// List the scenarios
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Clone)]
struct Ids(Vec<usize>);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChaosCommand {
    Help(String),
    List,
    Play {
        scenario: &'static str,
        seeds: Range<u64>,
        jobs: usize,
    },
    Mutants {
        scenario: &'static str,
        mutations: Vec<Mutation>,
        seeds: Range<u64>,
        jobs: usize,
    },
    Everywhere {
        scene: Option<ExhaustiveScenario>,
        points: Points,
        jobs: usize,
    },
    At(Point),
    Replay {
        scenario: &'static str,
        seed: u64,
        only: Option<Vec<usize>>,
        mutation: Option<Mutation>,
    },
}

impl ChaosFlags {
    fn check_together(&self) -> Result<(), Refused> {
        let chooses_seeds = self.seeds.is_some() || self.from.is_some();
        let has_jobs = self.jobs.is_some();
        let has_replay = self.replay.is_some();
        let has_point = self.point.is_some();
        let is_played = chooses_seeds
            || has_replay
            || self.mutants
            || self.scenario.is_some()
            || self.only.is_some()
            || self.mutant.is_some();
        let has_another = is_played || has_jobs || has_point || self.everywhere;
        let rules = [
            (
                self.list && (has_another || self.every_occasion),
                "--list",
                "other flags",
            ),
            (
                self.everywhere && is_played,
                "--everywhere",
                "flags that choose seeds, scenarios or defects",
            ),
            (
                has_point && (self.every_occasion || self.scene.is_some() || has_jobs),
                "--point",
                "flags for several points",
            ),
            (
                has_replay && (chooses_seeds || has_jobs),
                "--replay",
                "flags for several seeds",
            ),
            (
                self.mutants && has_replay,
                "--mutants",
                "--replay; --mutant NAME plants one defect in a seed",
            ),
            (
                self.mutants && self.mutant.is_some(),
                "--mutants",
                "--mutant NAME, which plants one defect alone",
            ),
        ];
        match rules.into_iter().find(|(is_broken, ..)| *is_broken) {
            Some((_, one, other)) => {
                Err(Refused(format!("{one} does not go together with {other}")))
            }
            None => Ok(()),
        }
    }

    fn command(self) -> Result<ChaosCommand, Refused> {
        let seeds = range(self.from.unwrap_or(1), self.seeds.unwrap_or(10))?;
        let jobs = self.jobs.unwrap_or(1);
        let scenario = self.scenario.unwrap_or("storm");
        self.check_together()?;
        if self.list {
            return Ok(ChaosCommand::List);
        }
        if let Some(point) = self.point {
            return Ok(ChaosCommand::At(point));
        }
        if self.everywhere {
            let points = if self.every_occasion {
                Points::All
            } else {
                Points::Spread
            };
            return Ok(ChaosCommand::Everywhere {
                scene: self.scene,
                points,
                jobs,
            });
        }
        let mutations = match self.mutant {
            Some(mutation) => vec![mutation],
            None if self.mutants => Mutation::value_variants().to_vec(),
            None => Vec::new(),
        };
        Ok(match self.replay {
            Some(seed) => ChaosCommand::Replay {
                scenario,
                seed,
                only: self.only.map(|Ids(ids)| ids),
                mutation: self.mutant,
            },
            None if !mutations.is_empty() => ChaosCommand::Mutants {
                scenario,
                mutations,
                seeds,
                jobs,
            },
            None => ChaosCommand::Play {
                scenario,
                seeds,
                jobs,
            },
        })
    }
}

pub(super) fn parse(rest: impl Iterator<Item = String>) -> Result<ChaosCommand, Refused> {
    match read::<ChaosFlags>(&crate::cli::PROGRAM, rest)? {
        Given::Arguments(given) => given.command(),
        Given::Help(text) => Ok(ChaosCommand::Help(text)),
    }
}

fn range(from: u64, count: u64) -> Result<Range<u64>, Refused> {
    let end = from.checked_add(count);
    end.map(|end| from..end).ok_or_else(|| {
        let most = u64::MAX - count;
        let wanted = format!("a whole number up to {most}, so that there are {count} seeds");
        Refused::value("--from", &from.to_string(), &wanted)
    })
}

fn number(value: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = value.parse().ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("a whole number from {least} to {most}"))
}

fn to_count(value: &str) -> Result<u64, String> {
    number(value, 1, 10_000_000)
}

fn to_seed(value: &str) -> Result<u64, String> {
    number(value, 0, u64::MAX)
}

fn to_jobs(value: &str) -> Result<usize, String> {
    number(value, 1, 256).map(|jobs| usize::try_from(jobs).unwrap_or(1))
}

fn to_ids(value: &str) -> Result<Ids, &'static str> {
    if value == "none" {
        return Ok(Ids(Vec::new()));
    }
    let ids: Option<Vec<usize>> = value.split(',').map(|id| id.parse().ok()).collect();
    ids.map(Ids)
        .ok_or("numbers of faults with commas between them, as a failure prints them, or none")
}

fn to_point(value: &str) -> Result<Point, &'static str> {
    let wanted = "a point as a failure prints it, like Pair/before/7/collector";
    value.parse().ok().ok_or(wanted)
}

fn to_scenario(value: &str) -> Result<&'static str, String> {
    let names = PLOTS.map(|(name, _)| name);
    let known = names.into_iter().find(|name| *name == value);
    known.ok_or_else(|| one_of(&names))
}

fn to_scene(value: &str) -> Result<ExhaustiveScenario, String> {
    named(ExhaustiveScenario::value_variants(), value)
}

fn to_defect(value: &str) -> Result<Mutation, String> {
    named(Mutation::value_variants(), value)
}

fn named<T: Copy + Debug>(all: &[T], value: &str) -> Result<T, String> {
    let names: Vec<String> = all.iter().map(|one| format!("{one:?}")).collect();
    let found = names.iter().zip(all).find(|(name, _)| *name == value);
    found.map(|(_, one)| *one).ok_or_else(|| one_of(&names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &str) -> Result<ChaosCommand, Refused> {
        parse(arguments.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn defaults_and_flags() {
        assert_eq!(
            parsed(""),
            Ok(ChaosCommand::Play {
                scenario: "storm",
                seeds: 1..11,
                jobs: 1
            })
        );
        assert_eq!(
            parsed("--seeds=3 --from 100 --jobs 2 --scenario leaders"),
            Ok(ChaosCommand::Play {
                scenario: "leaders",
                seeds: 100..103,
                jobs: 2
            })
        );
        assert_eq!(
            parsed("--replay 9 --only 3,4"),
            Ok(ChaosCommand::Replay {
                scenario: "storm",
                seed: 9,
                only: Some(vec![3, 4]),
                mutation: None
            })
        );
        assert_eq!(
            parsed("--replay 9 --only none"),
            Ok(ChaosCommand::Replay {
                scenario: "storm",
                seed: 9,
                only: Some(Vec::new()),
                mutation: None
            })
        );
        assert_eq!(
            parsed("--mutant SeriesKept --seeds 2"),
            Ok(ChaosCommand::Mutants {
                scenario: "storm",
                mutations: vec![Mutation::SeriesKept],
                seeds: 1..3,
                jobs: 1
            })
        );
        assert_eq!(
            parsed("--everywhere --jobs 2"),
            Ok(ChaosCommand::Everywhere {
                scene: None,
                points: Points::Spread,
                jobs: 2
            })
        );
        assert_eq!(
            parsed("--everywhere --every-occasion --scene Autoscaled"),
            Ok(ChaosCommand::Everywhere {
                scene: Some(ExhaustiveScenario::Autoscaled),
                points: Points::All,
                jobs: 1
            })
        );
        assert_eq!(
            parsed("--everywhere --point Pair/during-write/9"),
            Ok(ChaosCommand::At("Pair/during-write/9".parse().unwrap()))
        );
        assert_eq!(parsed("--list"), Ok(ChaosCommand::List));
        assert!(matches!(parsed("-h"), Ok(ChaosCommand::Help(_))));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_remedy() {
        for (arguments, expected) in [
            (
                "--seeds 0",
                "--seeds is \"0\"; give a whole number from 1 to 10000000",
            ),
            (
                "--jobs many",
                "--jobs is \"many\"; give a whole number from 1 to 256",
            ),
            ("--from -1", "--from is \"-1\"; give a whole number from 0"),
            (
                "--from 18446744073709551615 --seeds 2",
                "--from is \"18446744073709551615\"; give a whole number up to 18446744073709551613",
            ),
            (
                "--replay 1 --from 2",
                "--replay does not go together with flags for several seeds",
            ),
            (
                "--scenario calm",
                "--scenario is \"calm\"; give one of storm, ",
            ),
            ("--every-occasion", "--everywhere is missing; give it"),
            ("--only 3", "--replay <SEED> is missing; give it"),
            (
                "--mutant Nothing",
                "--mutant is \"Nothing\"; give one of PermitUnasked, ",
            ),
            (
                "--everywhere --scene Nothing",
                "--scene is \"Nothing\"; give one of Percentages, ",
            ),
            ("--scene Pair", "--everywhere is missing; give it"),
            ("--everywhere --point 9", "--point is \"9\"; give a point"),
            (
                "--point Pair/after-write/9",
                "--everywhere is missing; give it",
            ),
            ("--replay 1 --only 3;4", "--only is \"3;4\"; give numbers"),
        ] {
            assert_refused(arguments, expected);
        }
    }

    #[test]
    fn commands_of_the_docs_are_accepted() {
        let page = include_str!("../../../../../docs/development/chaos.md");
        let commands = page
            .lines()
            .filter_map(|line| line.strip_prefix("wva-sim chaos "));
        let mut seen = 0;
        for command in commands {
            let arguments = command.split("  ").next().unwrap_or_default();
            assert!(parsed(arguments).is_ok(), "{arguments}");
            seen += 1;
        }
        assert!(seen > 8, "only {seen}");
    }

    #[test]
    fn what_does_not_go_together_is_named_with_its_remedy() {
        for (arguments, expected) in [
            (
                "--everywhere --replay 1",
                "--everywhere does not go together with flags that choose",
            ),
            (
                "--everywhere --scenario brief",
                "--everywhere does not go together with flags that choose",
            ),
            (
                "--everywhere --point Pair/during-write/9 --jobs 2",
                "--point does not go together with flags for several points",
            ),
            (
                "--everywhere --point Pair/during-write/9 --scene Pair",
                "--point does not go together with flags for several points",
            ),
            (
                "--mutants --replay 1",
                "--mutants does not go together with --replay; --mutant NAME",
            ),
            (
                "--mutants --mutant SeriesKept",
                "--mutants does not go together with --mutant NAME, which plants",
            ),
            (
                "--list --seeds 3",
                "--list does not go together with other flags",
            ),
            (
                "--everywhere --list",
                "--list does not go together with other flags",
            ),
        ] {
            assert_refused(arguments, expected);
        }
    }

    fn assert_refused(arguments: &str, expected: &str) {
        let error = parsed(arguments).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{arguments}: {error}");
    }
}

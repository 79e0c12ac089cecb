//! The arguments of `wva chaos`.

use std::ops::Range;

use crate::cli::flags::{Flags, Unusable};
use crate::env::Flaw;
use crate::sim::chaos::{PLOTS, Point, Points};

/// The help.
pub(super) const USAGE: &str = "\
wva chaos: the controller in a simulated cluster in which everything goes wrong

  wva chaos [FLAGS]

  --seeds NUMBER    how many seeds to play (default 10)
  --from SEED       the first of them (default 1)
  --scenario NAME   what to play (default storm); --list names all
  --jobs NUMBER     how many at once, each on a thread of its own (default 1)
  --replay SEED     play one seed, and print everything that happens in it
  --only IDS        with --replay: these faults of its schedule alone, as in 3,17, or none
  --mutants         plant one defect after another, and say how many seeds find it
  --mutant NAME     plant this defect alone, and tell all about the run that finds it; also with --replay
  --everywhere      end every role at its first occasions and some later ones, and the process at its
                    writes, one end in each run, in five scenes
  --every-occasion  with --everywhere: at all occasions and writes, which takes long
  --point POINT     with --everywhere: at this point alone, as a failure prints it, with everything that
                    happens, as in Pair/before/7/collector or Zero/during-write/3
  --list            list the scenarios

Each seed is a run in virtual time, and the same seed runs the same way. A run that breaks an invariant
is printed with the end of its trace and the fewest faults that still break it.
Whatever plays more than one run and is asked to end (Ctrl-C, SIGTERM) ends after the runs that are played then,
and prints what was played by then; asked once more, it ends at once.
Exit code: 0 where every invariant held, 1 where one was broken, 2 where the arguments are not accepted, 3 where
nothing was broken and something was left out for a signal. With --mutants and --mutant, 0 where every defect was
found, 1 where one was not.
";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Show the help.
    Help,
    /// List the scenarios.
    List,
    /// Play many seeds.
    Play {
        scenario: &'static str,
        seeds: Range<u64>,
        jobs: usize,
    },
    /// Plant defects, each for so many seeds at most.
    Mutants {
        scenario: &'static str,
        flaws: Vec<Flaw>,
        seeds: Range<u64>,
        jobs: usize,
    },
    /// End everything at every point.
    Everywhere { points: Points, jobs: usize },
    /// End something at one point, and show it.
    At(Point),
    /// Play one, and show it.
    Replay {
        scenario: &'static str,
        seed: u64,
        only: Option<Vec<usize>>,
        flaw: Option<Flaw>,
    },
}

/// Arguments that are not accepted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// One of them alone, or two of them together.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// Of two values one would be ignored.
    #[error("{0} is given more than once; give it once")]
    Twice(String),
}

/// Flags that say what is played.
const PLAYED: [&str; 7] = [
    "--seeds",
    "--from",
    "--scenario",
    "--replay",
    "--only",
    "--mutants",
    "--mutant",
];

/// Refuses flags of which one would be ignored.
fn together(given: &[String]) -> Result<(), Unusable> {
    let is_given = |flag: &str| given.iter().any(|known| known == flag);
    if is_given("--list") && given.len() > 1 {
        return Err(Unusable::Apart {
            one: "--list",
            other: "other flags",
        });
    }
    if is_given("--everywhere") && PLAYED.into_iter().any(is_given) {
        return Err(Unusable::Apart {
            one: "--everywhere",
            other: "flags that choose seeds, scenarios or defects",
        });
    }
    if is_given("--point") && ["--every-occasion", "--jobs"].into_iter().any(is_given) {
        return Err(Unusable::Apart {
            one: "--point",
            other: "flags for several points",
        });
    }
    if is_given("--replay") && ["--seeds", "--from", "--jobs"].into_iter().any(is_given) {
        return Err(Unusable::Apart {
            one: "--replay",
            other: "flags for several seeds",
        });
    }
    if is_given("--mutants") && is_given("--replay") {
        return Err(Unusable::Apart {
            one: "--mutants",
            other: "--replay; --mutant NAME plants one defect in a seed",
        });
    }
    if is_given("--mutants") && is_given("--mutant") {
        return Err(Unusable::Apart {
            one: "--mutants",
            other: "--mutant NAME, which plants one defect alone",
        });
    }
    Ok(())
}

/// What the flags say.
struct Said {
    given: Vec<String>,
    count: u64,
    from: u64,
    jobs: u64,
    scenario: &'static str,
    replay: Option<u64>,
    only: Option<Vec<usize>>,
    mutant: Option<Flaw>,
    point: Option<Point>,
}

impl Said {
    fn has(&self, flag: &str) -> bool {
        self.given.iter().any(|given| given == flag)
    }

    /// What is asked for with them.
    fn command(self) -> Result<Command, Unusable> {
        let seeds = range(self.from, self.count)?;
        let jobs = usize::try_from(self.jobs).unwrap_or(1);
        together(&self.given)?;
        if self.has("--list") {
            return Ok(Command::List);
        }
        let points = if self.has("--every-occasion") {
            Points::All
        } else {
            Points::Spread
        };
        match (self.has("--everywhere"), &self.point) {
            (true, Some(point)) => return Ok(Command::At(point.clone())),
            (true, None) => return Ok(Command::Everywhere { points, jobs }),
            (false, Some(_)) => {
                return Err(Unusable::Alone {
                    flag: "--point",
                    does: "says what is ended, and when",
                    needs: "--everywhere",
                });
            }
            (false, None) => {}
        }
        if points == Points::All {
            return Err(Unusable::Alone {
                flag: "--every-occasion",
                does: "says where roles are ended",
                needs: "--everywhere",
            });
        }
        let flaws = match self.mutant {
            Some(flaw) => vec![flaw],
            None if self.has("--mutants") => Flaw::ALL.to_vec(),
            None => Vec::new(),
        };
        let scenario = self.scenario;
        match (self.replay, self.only) {
            (Some(seed), only) => Ok(Command::Replay {
                scenario,
                seed,
                only,
                flaw: self.mutant,
            }),
            (None, Some(_)) => Err(Unusable::Alone {
                flag: "--only",
                does: "chooses faults of one seed",
                needs: "--replay",
            }),
            (None, None) if !flaws.is_empty() => Ok(Command::Mutants {
                scenario,
                flaws,
                seeds,
                jobs,
            }),
            (None, None) => Ok(Command::Play {
                scenario,
                seeds,
                jobs,
            }),
        }
    }
}

/// Reads the arguments.
pub(super) fn parse(rest: impl Iterator<Item = String>) -> Result<Command, Refused> {
    let mut said = Said {
        given: Vec::new(),
        count: 10,
        from: 1,
        jobs: 1,
        scenario: "storm",
        replay: None,
        only: None,
        mutant: None,
        point: None,
    };
    let mut flags = Flags::new("chaos", rest);
    while let Some(flag) = flags.next()? {
        if said.has(&flag) {
            return Err(Refused::Twice(flag));
        }
        let mut value = |flag, example| flags.value(flag, example);
        match &*flag {
            "--help" | "-h" => return Ok(Command::Help),
            "--list" | "--mutants" | "--everywhere" | "--every-occasion" => {}
            "--mutant" => said.mutant = Some(defect(value("--mutant", "SeriesKept")?)?),
            "--seeds" => said.count = number("--seeds", value("--seeds", "100")?, 1, 10_000_000)?,
            "--from" => said.from = number("--from", value("--from", "1")?, 0, u64::MAX)?,
            "--jobs" => said.jobs = number("--jobs", value("--jobs", "2")?, 1, 256)?,
            "--replay" => {
                said.replay = Some(number("--replay", value("--replay", "17")?, 0, u64::MAX)?);
            }
            "--point" => said.point = Some(point(value("--point", "Pair/before/7/collector")?)?),
            "--only" => said.only = Some(ids(value("--only", "3,17")?)?),
            "--scenario" => said.scenario = named(value("--scenario", "storm")?)?,
            _ => return Err(flags.unknown(flag).into()),
        }
        said.given.push(flag);
    }
    Ok(said.command()?)
}

/// So many seeds from this one on.
fn range(from: u64, count: u64) -> Result<Range<u64>, Unusable> {
    let end = from.checked_add(count);
    end.map(|end| from..end).ok_or_else(|| Unusable::Value {
        flag: "--from",
        value: from.to_string(),
        wanted: format!(
            "a whole number up to {}, so that there are {count} seeds",
            u64::MAX - count
        ),
    })
}

fn number(flag: &'static str, value: String, least: u64, most: u64) -> Result<u64, Unusable> {
    let number = value.parse().ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| Unusable::Value {
        flag,
        value,
        wanted: format!("a whole number from {least} to {most}"),
    })
}

fn ids(value: String) -> Result<Vec<usize>, Unusable> {
    if value == "none" {
        return Ok(Vec::new());
    }
    let numbers: Result<Vec<usize>, _> = value.split(',').map(str::parse).collect();
    numbers.map_err(|_parse| Unusable::Value {
        flag: "--only",
        value,
        wanted: "numbers of faults with commas between them, as a failure prints them, or none"
            .to_owned(),
    })
}

fn point(value: String) -> Result<Point, Unusable> {
    value.parse().map_err(|_none| Unusable::Value {
        flag: "--point",
        value,
        wanted: "a point as a failure prints it, such as Pair/before/7/collector".to_owned(),
    })
}

fn named(value: String) -> Result<&'static str, Unusable> {
    let known = PLOTS.iter().find(|(name, _)| *name == value);
    known.map(|(name, _)| *name).ok_or_else(|| {
        let names = PLOTS.map(|(name, _)| name);
        Unusable::Value {
            flag: "--scenario",
            value,
            wanted: format!("one of {}", names.join(", ")),
        }
    })
}

fn defect(value: String) -> Result<Flaw, Unusable> {
    let known = Flaw::ALL.into_iter();
    let names = || known.clone().map(|flaw| format!("{flaw:?}"));
    let found = known.clone().find(|flaw| format!("{flaw:?}") == value);
    found.ok_or_else(|| Unusable::Value {
        flag: "--mutant",
        value,
        wanted: format!("one of {}", names().collect::<Vec<_>>().join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &str) -> Result<Command, Refused> {
        parse(arguments.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn defaults_and_flags() {
        assert_eq!(
            read(""),
            Ok(Command::Play {
                scenario: "storm",
                seeds: 1..11,
                jobs: 1
            })
        );
        assert_eq!(
            read("--seeds=3 --from 100 --jobs 2 --scenario leaders"),
            Ok(Command::Play {
                scenario: "leaders",
                seeds: 100..103,
                jobs: 2
            })
        );
        assert_eq!(
            read("--replay 9 --only 3,4"),
            Ok(Command::Replay {
                scenario: "storm",
                seed: 9,
                only: Some(vec![3, 4]),
                flaw: None
            })
        );
        assert_eq!(
            read("--replay 9 --only none"),
            Ok(Command::Replay {
                scenario: "storm",
                seed: 9,
                only: Some(Vec::new()),
                flaw: None
            })
        );
        assert_eq!(
            read("--mutant SeriesKept --seeds 2"),
            Ok(Command::Mutants {
                scenario: "storm",
                flaws: vec![Flaw::SeriesKept],
                seeds: 1..3,
                jobs: 1
            })
        );
        assert_eq!(
            read("--everywhere --jobs 2"),
            Ok(Command::Everywhere {
                points: Points::Spread,
                jobs: 2
            })
        );
        assert_eq!(
            read("--everywhere --every-occasion"),
            Ok(Command::Everywhere {
                points: Points::All,
                jobs: 1
            })
        );
        assert_eq!(
            read("--everywhere --point Pair/during-write/9"),
            Ok(Command::At("Pair/during-write/9".parse().unwrap()))
        );
        assert_eq!(read("--list"), Ok(Command::List));
        assert_eq!(read("-h"), Ok(Command::Help));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_remedy() {
        for (arguments, expected) in [
            ("--sedes 3", "unknown argument \"--sedes\""),
            ("--seeds", "--seeds needs a value, such as --seeds 100"),
            (
                "--mutants=3",
                "--mutants takes no value, and has \"3\"; leave",
            ),
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
            (
                "--every-occasion",
                "--every-occasion says where roles are ended",
            ),
            ("--only 3", "--only chooses faults of one seed"),
            (
                "--mutant Nothing",
                "--mutant is \"Nothing\"; give one of PermitUnasked, ",
            ),
            ("--everywhere --point 9", "--point is \"9\"; give a point"),
            ("--point Pair/after-write/9", "--point says what is ended"),
            ("--replay 1 --only 3;4", "--only is \"3;4\"; give numbers"),
        ] {
            assert_refused(arguments, expected);
        }
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
                "--mutants --replay 1",
                "--mutants does not go together with --replay; --mutant NAME",
            ),
            (
                "--mutants --mutant SeriesKept",
                "--mutants does not go together with --mutant NAME, which plants",
            ),
            (
                "--seeds 1 --seeds=2",
                "--seeds is given more than once; give it once",
            ),
            ("--replay 1 --replay 1", "--replay is given more than once"),
            ("--mutants --jobs 2 --mutants", "--mutants is given more"),
            ("--list --list", "--list is given more than once"),
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
        let error = read(arguments).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{arguments}: {error}");
    }
}

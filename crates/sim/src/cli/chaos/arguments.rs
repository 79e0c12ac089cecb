//! The arguments of `wva-sim chaos`.

use std::fmt::Debug;
use std::ops::Range;

use clap::{Parser, ValueEnum};

use crate::chaos::Mutation;
use crate::chaos::{CrashPoint, ExhaustiveScenario, PLOTS};
use wva::cli::usage::one_of;

const AFTER: &str = "\
Each seed is a run in virtual time, and the same seed runs the same way. A run that breaks an invariant
is printed with the end of its trace and the command that plays it again.
Exit code: 0 where every invariant held, 1 where one was broken, 2 where the arguments are not accepted.
With --mutants and --mutant, 0 where every defect was found, 1 where one was not.";

/// Breaks everything around the controller in a simulated cluster, by seed
#[derive(Debug, Parser)]
#[command(name = "chaos", after_help = AFTER)]
#[expect(clippy::struct_excessive_bools, reason = "one field a flag")]
pub(in crate::cli) struct ChaosFlags {
    /// How many seeds to play
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = number::<u64, 1, SEEDS>)]
    pub(super) seeds: u64,
    /// The first of them
    #[arg(
        long,
        value_name = "SEED",
        default_value = "1",
        value_parser = number::<u64, 0, LAST>,
        allow_negative_numbers = true
    )]
    pub(super) from: u64,
    /// What to play; --list names all
    #[arg(long, value_name = "NAME", default_value = "storm", value_parser = to_scenario)]
    pub(super) scenario: &'static str,
    /// How many at once, each on a thread of its own
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = number::<usize, 1, 256>)]
    pub(super) jobs: usize,
    /// Play one seed, and print everything that happens in it
    #[arg(
        long,
        value_name = "SEED",
        value_parser = number::<u64, 0, { u64::MAX }>,
        allow_negative_numbers = true,
        conflicts_with_all = ["seeds", "from", "jobs"]
    )]
    pub(super) replay: Option<u64>,
    /// With --replay: these faults of its schedule alone, as in 3,17, or none
    #[arg(long, value_name = "IDS", value_parser = to_ids, requires = "replay")]
    pub(super) only: Option<Ids>,
    /// Plant one defect after another, and say how many seeds find it
    #[arg(long, conflicts_with_all = ["replay", "mutant"])]
    pub(super) mutants: bool,
    /// Plant this defect alone, and show all about the run that finds it; also with --replay
    #[arg(long, value_name = "NAME", value_parser = to_variant::<Mutation>)]
    pub(super) mutant: Option<Mutation>,
    /// End every role at its first occasions and some later ones, and the process at its writes, one end in each run,
    /// in six scenes
    #[arg(
        long,
        conflicts_with_all = ["seeds", "from", "scenario", "replay", "only", "mutants", "mutant"]
    )]
    pub(super) everywhere: bool,
    /// With --everywhere: at all occasions and writes, which takes long
    #[arg(long, requires = "everywhere")]
    pub(super) every_occasion: bool,
    /// With --everywhere: in this scene alone, as in Autoscaled
    #[arg(long, value_name = "SCENE", value_parser = to_variant::<ExhaustiveScenario>, requires = "everywhere")]
    pub(super) scene: Option<ExhaustiveScenario>,
    /// With --everywhere: at this point alone, as a failure prints it, with everything that happens, as in
    /// Pair/before/7/collector or Zero/during-write/3
    #[arg(
        long,
        value_name = "POINT",
        value_parser = to_point,
        requires = "everywhere",
        conflicts_with_all = ["every_occasion", "scene", "jobs"]
    )]
    pub(super) point: Option<CrashPoint>,
    /// List the scenarios
    #[arg(long, exclusive = true)]
    pub(super) list: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ids(pub(super) Vec<usize>);

/// The most seeds of a start.
const SEEDS: u64 = 10_000_000;
/// A first seed that leaves room for the others.
const LAST: u64 = u64::MAX - SEEDS;

impl ChaosFlags {
    pub(super) fn range(&self) -> Range<u64> {
        self.from..self.from + self.seeds
    }

    pub(super) fn mutations(&self) -> Vec<Mutation> {
        match self.mutant {
            Some(mutation) => vec![mutation],
            None if self.mutants => Mutation::value_variants().to_vec(),
            None => Vec::new(),
        }
    }
}

fn number<T: TryFrom<u64>, const LEAST: u64, const MOST: u64>(value: &str) -> Result<T, String> {
    let number: Option<u64> = value.parse().ok();
    let number = number.filter(|number| (LEAST..=MOST).contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("a whole number from {LEAST} to {MOST}"))
}

fn to_ids(value: &str) -> Result<Ids, &'static str> {
    if value == "none" {
        return Ok(Ids(Vec::new()));
    }
    let ids: Option<Vec<usize>> = value.split(',').map(|id| id.parse().ok()).collect();
    ids.map(Ids)
        .ok_or("numbers of faults with commas between them, as a failure prints them, or none")
}

fn to_point(value: &str) -> Result<CrashPoint, &'static str> {
    CrashPoint::named(value).ok_or("a point as a failure prints it, like Pair/before/7/collector")
}

fn to_scenario(value: &str) -> Result<&'static str, String> {
    let names = PLOTS.map(|(name, _)| name);
    let known = names.into_iter().find(|name| *name == value);
    known.ok_or_else(|| one_of(&names))
}

fn to_variant<T: ValueEnum + Debug>(value: &str) -> Result<T, String> {
    let all = T::value_variants();
    let names: Vec<String> = all.iter().map(|one| format!("{one:?}")).collect();
    let found = names.iter().zip(all).find(|(name, _)| *name == value);
    found.map(|(_, one)| one.clone()).ok_or_else(|| one_of(&names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wva::cli::usage::{Given, Refused, read};

    fn parsed(arguments: &str) -> Result<Given<ChaosFlags>, Refused> {
        let words = arguments.split_whitespace().map(str::to_owned);
        read(&crate::cli::PROGRAM, words)
    }

    #[test]
    fn defaults_and_flags() {
        let flags = |arguments: &str| match parsed(arguments) {
            Ok(Given::Arguments(flags)) => flags,
            other => panic!("{arguments}: {other:?}"),
        };
        let default = flags("");
        assert_eq!((default.range(), default.jobs), (1..11, 1));
        assert_eq!((default.scenario, default.mutations()), ("storm", vec![]));
        let many = flags("--seeds=3 --from 100 --jobs 2 --scenario leaders");
        assert_eq!((many.range(), many.jobs), (100..103, 2));
        assert_eq!(many.scenario, "leaders");
        let ids = |arguments| flags(arguments).only.map(|Ids(ids)| ids);
        assert_eq!(ids("--replay 9 --only 3,4"), Some(vec![3, 4]));
        assert_eq!(ids("--replay 9 --only none"), Some(Vec::new()));
        let one = flags("--mutant SeriesKept --seeds 2");
        assert_eq!(one.mutations(), [Mutation::SeriesKept]);
        assert_eq!(one.range(), 1..3);
        assert!(flags("--mutants").mutations().len() > 50);
        let scene = flags("--everywhere --every-occasion --scene Autoscaled --jobs 2").scene;
        assert_eq!(scene, Some(ExhaustiveScenario::Autoscaled));
        let point = flags("--everywhere --point Pair/during-write/9").point;
        assert_eq!(point.unwrap().to_string(), "Pair/during-write/9");
        assert!(flags("--list").list);
        assert!(matches!(parsed("-h"), Ok(Given::Help(_))));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_remedy() {
        for (arguments, expected) in [
            ("--seeds 0", "--seeds is \"0\"; give a whole number from 1 to 10000000"),
            ("--jobs many", "--jobs is \"many\"; give a whole number from 1 to 256"),
            ("--from -1", "--from is \"-1\"; give a whole number from 0"),
            (
                "--from 18446744073709551615",
                "--from is \"18446744073709551615\"; give a whole number from 0 to 18446744073699551615",
            ),
            ("--scenario calm", "--scenario is \"calm\"; give one of storm, "),
            ("--every-occasion", "--everywhere is missing; give it"),
            ("--only 3", "--replay <SEED> is missing; give it"),
            ("--mutant Nothing", "--mutant is \"Nothing\"; give one of PermitUnasked, "),
            ("--everywhere --scene Nothing", "--scene is \"Nothing\"; give one of Percentages, "),
            ("--scene Pair", "--everywhere is missing; give it"),
            ("--everywhere --point 9", "--point is \"9\"; give a point"),
            ("--point Pair/after-write/9", "--everywhere is missing; give it"),
            ("--replay 1 --only 3;4", "--only is \"3;4\"; give numbers"),
            ("--list --seeds 3", "--list excludes all other arguments"),
            ("--everywhere --list", "--list excludes all other arguments"),
        ] {
            let error = parsed(arguments).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{arguments}: {error}");
        }
    }

    #[test]
    fn commands_of_the_docs_are_accepted() {
        let page = include_str!("../../../../../docs/development/chaos.md");
        let commands = page.lines().filter_map(|line| line.strip_prefix("wva-sim chaos "));
        let mut seen = 0;
        for command in commands {
            let arguments = command.split("  ").next().unwrap_or_default();
            assert!(parsed(arguments).is_ok(), "{arguments}");
            seen += 1;
        }
        assert!(seen > 8, "only {seen}");
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for arguments in [
            "--replay 1 --from 2",
            "--everywhere --replay 1",
            "--everywhere --scenario brief",
            "--everywhere --point Pair/during-write/9 --jobs 2",
            "--everywhere --point Pair/during-write/9 --scene Pair",
            "--mutants --replay 1",
            "--mutants --mutant SeriesKept",
        ] {
            let error = parsed(arguments).unwrap_err().to_string();
            assert!(error.contains(" excludes "), "{arguments}: {error}");
        }
    }
}

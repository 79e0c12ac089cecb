//! The arguments of `wva-sim lab run`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Parser;

use crate::lab::{
    BUILT_IN, Campaign, LoadedScenario, PolicyChoice, ScenarioChange, load_changed, scenario_names,
};

const DEFAULT_POLICIES: [&str; 8] = [
    "static-best",
    "wva-default",
    "wva-tokens",
    "wva-queueing",
    "hpa-queue",
    "keda-epp",
    "knative-kpa",
    "aibrix-apa",
];

/// How the names of scenarios begin that are played by name alone.
const BY_NAME_ALONE: [&str; 3] = ["study-", "gate-", "sleepers"];

/// Compares two folders of runs, policy by policy
#[derive(Debug, Parser)]
#[command(name = "compare", bin_name = "wva-sim lab compare")]
pub(super) struct CompareFlags {
    /// The folder to compare with
    #[arg(value_name = "BEFORE")]
    pub(super) before: PathBuf,
    /// The folder to look at
    #[arg(value_name = "AFTER")]
    pub(super) after: PathBuf,
}

/// Shows one moment of a run, and the decisions before it
#[derive(Debug, Parser)]
#[command(name = "explain", bin_name = "wva-sim lab explain")]
pub(super) struct ExplainFlags {
    /// A file of the folder `runs`
    #[arg(value_name = "RUN")]
    pub(super) run: PathBuf,
    /// Seconds since the start of the run
    #[arg(long, value_name = "SECONDS")]
    pub(super) at: f64,
}

/// Plays a policy against short synthetic loads and fails where it does not keep to the gates
#[derive(Debug, Parser)]
#[command(
    name = "gates",
    bin_name = "wva-sim lab gates",
    after_help = "Exit code: 0 when every gate is passed, 1 where one is not, 2 where the arguments are not accepted."
)]
pub(super) struct GateFlags {
    /// The policy, or one with a value of its knob
    #[arg(long, value_name = "NAME", value_parser = PolicyChoice::parse, default_value = "wva-slo")]
    pub(super) policy: PolicyChoice,
    /// Runs at a time; 0 for as many as there are processors
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    pub(super) jobs: usize,
}

/// Plays policies against scenarios and scores every request
#[derive(Debug, Parser)]
#[command(
    name = "run",
    bin_name = "wva-sim lab run",
    after_help = "wva-sim lab list shows scenarios and policies. A second start plays only what is missing.\n\
                  Exit code: 0 when everything was played, 1 where something was not, 2 where the arguments are not accepted."
)]
pub(in crate::cli) struct LabRunFlags {
    /// Names of built-in scenarios, random-N for one drawn from the number N, random-1..24 for 24 of them, or files;
    /// without any all built-in ones but study-… and gate-…
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Change a field of every scenario, for example scrape=60s or models.*.variants.*.startUp.median=420s; can be repeated
    #[arg(long, value_name = "PATH=VALUE", action = clap::ArgAction::Append)]
    set: Vec<ScenarioChange>,
    /// A policy, or one with a value of its knob; can be repeated
    #[arg(long, value_name = "NAME", value_parser = PolicyChoice::parse, action = clap::ArgAction::Append)]
    policy: Vec<PolicyChoice>,
    /// Play three points of each policy's knob
    #[arg(long)]
    sweep: bool,
    /// Seeds, from 1 to this
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Runs at a time; 0 for as many as there are processors
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    jobs: usize,
    /// The folder of the results
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: PathBuf,
    /// The folder of the public traces; by default that of the environment variable WVA_TRACES
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    traces: Option<PathBuf>,
}

impl LabRunFlags {
    /// What is to be played; scenarios that cannot be used are left out, each with a message.
    pub(super) fn campaign(
        self,
        environment: &BTreeMap<String, String>,
    ) -> (Campaign, Vec<String>) {
        let mut names = self.scenarios;
        if names.is_empty() {
            let built_in = BUILT_IN.iter().map(|(name, _)| (*name).to_owned());
            names = built_in
                .filter(|name| !BY_NAME_ALONE.iter().any(|begin| name.starts_with(begin)))
                .collect();
        }
        let (mut scenarios, mut problems) = (Vec::new(), Vec::new());
        for name in names.iter().flat_map(|name| scenario_names(name)) {
            match load_changed(&name, &self.set) {
                Ok(scenario) => {
                    let is_known = |one: &LoadedScenario| one.name() == scenario.name();
                    if scenarios.iter().any(is_known) {
                        let known = scenario.name();
                        problems.push(format!(
                            "scenario {name}: its name {known} is taken; give each scenario a name of its own"
                        ));
                    } else {
                        scenarios.push(scenario);
                    }
                }
                Err(error) => problems.push(error),
            }
        }
        let mut policies = self.policy;
        if policies.is_empty() {
            let default = DEFAULT_POLICIES.iter();
            policies = default.filter_map(|name| PolicyChoice::parse(name).ok()).collect();
        }
        if self.sweep {
            policies = policies.iter().flat_map(PolicyChoice::sweep).collect();
        }
        let campaign = Campaign {
            scenarios,
            policies,
            seeds: self.seeds,
            jobs: jobs(self.jobs),
            out: self.out,
            traces: self.traces.or_else(|| environment.get("WVA_TRACES").map(PathBuf::from)),
        };
        (campaign, problems)
    }
}

pub(super) fn jobs(given: usize) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if given == 0 { processors } else { given }
}

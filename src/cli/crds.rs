//! `wva crds`: the custom resource definitions, ready for `kubectl apply`.

use std::process::ExitCode;

use clap::Parser;

use super::usage::{Given, read};
use super::{fail, misused, print};
use crate::api::variant_autoscaling;

/// Prints the custom resource definition
#[derive(Debug, Parser)]
#[command(name = "crds")]
pub(super) struct CrdsFlags;

/// Runs the command.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    match read::<CrdsFlags>(&super::PROGRAM, arguments).map(|given| (given, text())) {
        Ok((Given::Help(text), _) | (_, Ok(text))) => print(&text),
        Ok((_, Err(error))) => fail([error]),
        Err(error) => misused([error]),
    }
}

/// The YAML text of all definitions.
///
/// # Errors
/// Does not fail for the definitions that are compiled in; the error is the serialiser's.
pub fn text() -> Result<String, serde_yaml::Error> {
    serde_yaml::to_string(&variant_autoscaling::definition())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::text;

    /// Every place that ships the definitions. `UPDATE=1` writes them.
    const COPIES: [&str; 2] = [
        "charts/workload-variant-autoscaler/crds/llmd.ai_variantautoscalings.yaml",
        "config/crd/bases/llmd.ai_variantautoscalings.yaml",
    ];

    #[test]
    fn shipped_copies_are_what_the_command_prints() {
        let text = text().unwrap();
        let update = std::env::var_os("UPDATE").is_some();
        for copy in COPIES {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(copy);
            if update {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, &text).unwrap();
            }
            let shipped = fs::read_to_string(&path).unwrap_or_default();
            assert!(
                shipped == text,
                "{copy} is out of date; run this test with UPDATE=1"
            );
        }
    }
}

//! The arguments of `wva why`.

use clap::Parser;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::controller_api::{ControllerApi, ControllerFlags};
use crate::cli::usage::{Refused, to_time};
use crate::policy::key::ObjectKey;
use wva_base::moment::WallTime;

/// Shows the steps of a decision, expected against reported, and how far away each threshold of a variant is
#[derive(Debug, Parser)]
#[command(
    name = "why",
    after_help = "Without --recording, --snapshot and --address the status of the object answers.\n\
                  Exit code: 0 with an answer, 1 without one, 2 where arguments are not accepted."
)]
pub(in crate::cli) struct WhyFlags {
    /// The VariantAutoscaling or PodAutoscaler
    #[arg(value_name = "NAMESPACE/NAME", value_parser = NonEmptyStringValueParser::new())]
    object: String,
    /// A snapshot, as /debug/snapshot writes it
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    snapshot: Option<String>,
    /// A recording: DECISION_RECORD_FILE, or what /debug/recording writes
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    recording: Option<String>,
    /// The last decision up to this time, like 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = to_time)]
    at: Option<jiff::Timestamp>,
    /// Settings for --snapshot, as wva plan reads them
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    settings: Option<String>,
    #[command(flatten)]
    controller: ControllerFlags,
}

/// Which decision is asked about, and where it is read.
#[derive(Debug)]
pub(super) struct WhyQuestion {
    pub(super) object: ObjectKey,
    pub(super) source: DecisionSource,
}

#[derive(Debug)]
pub(super) enum DecisionSource {
    Snapshot {
        file: String,
        settings: Option<String>,
    },
    Recording {
        file: String,
        /// The last decision up to this time; without it the last of all.
        at: Option<WallTime>,
    },
    Controller {
        api: ControllerApi,
        /// The last decision up to this time; without it the last of all.
        at: Option<WallTime>,
    },
    /// The status of the object has a part of it.
    Status,
}

impl WhyFlags {
    /// Checks the flags together.
    ///
    /// # Errors
    /// The flag that has no effect, or the file that cannot be used.
    pub(super) fn question(self) -> Result<WhyQuestion, Refused> {
        let Some((namespace, name)) = self.object.split_once('/') else {
            return Err(Refused(format!(
                "{:?} names no object; write NAMESPACE/NAME",
                self.object
            )));
        };
        let object = ObjectKey::new(namespace, name);
        let controller = ControllerApi::of(&self.controller).map_err(Refused)?;
        let at = self.at.map(|at| WallTime(at.as_millisecond()));
        let given = [
            ("--recording", self.recording.is_some()),
            ("--snapshot", self.snapshot.is_some()),
            ("--address", controller.is_some()),
        ];
        let mut given = given.into_iter().filter(|(_, is_given)| *is_given);
        if let (Some((first, _)), Some((second, _))) = (given.next(), given.next()) {
            return Err(Refused(format!("{first} excludes {second}; give one")));
        }
        if self.settings.is_some() && self.snapshot.is_none() {
            return Err(Refused(
                "--settings has an effect with --snapshot only; name the snapshot".to_owned(),
            ));
        }
        let source = match (self.recording, self.snapshot, controller) {
            (Some(file), _, _) => DecisionSource::Recording { file, at },
            (None, None, Some(api)) => DecisionSource::Controller { api, at },
            _ if at.is_some() => {
                return Err(Refused(
                    "--at has an effect with --recording or --address only; name one".to_owned(),
                ));
            }
            (None, Some(file), _) => DecisionSource::Snapshot { file, settings: self.settings },
            (None, None, None) => DecisionSource::Status,
        };
        Ok(WhyQuestion { object, source })
    }
}

//! The arguments of `wva plan`.

/// The help.
pub(super) const USAGE: &str = "\
wva plan: what the controller would decide, from a file

  wva plan --snapshot FILE [--settings FILE] [--format table|json|yaml] [--explain]
  wva plan --schema

  --snapshot FILE   what is known of the fleet, as YAML or JSON; /debug/snapshot writes such a file
  --settings FILE   keys of --config-file, and the sections saturation, scaleToZero,
                    queueingModel, serviceClasses and namespaces; without it every default applies
  --format FORMAT   table (default), json or yaml
  --explain         every step with its numbers; as json or yaml also every intermediate figure
  --schema          print the JSON schema of a snapshot

Exit code: 0 with a plan, 2 where the input is not accepted.
";

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Show the help.
    Help,
    /// Print the schema.
    Schema,
    /// Plan.
    Plan(Arguments),
}

/// How to plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) snapshot: String,
    pub(super) settings: Option<String>,
    pub(super) format: Format,
    pub(super) detail: Detail,
}

/// The form of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Format {
    #[default]
    Table,
    Json,
    Yaml,
}

/// How much is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Detail {
    #[default]
    Decisions,
    Everything,
}

#[derive(Default)]
struct Given {
    snapshot: Option<String>,
    settings: Option<String>,
    format: Format,
    detail: Detail,
    schema: bool,
    help: bool,
}

/// Reads the arguments after the command. A value follows after `=` or as the next argument; the
/// last of several counts.
///
/// # Errors
/// Every argument that is not accepted, with the remedy.
pub(super) fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, Vec<String>> {
    let mut given = Given::default();
    let mut errors = Vec::new();
    let mut rest = arguments;
    while let Some(argument) = rest.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        if let Err(error) = take(&mut given, &name, value, &mut rest) {
            errors.push(error);
        }
    }
    if given.help {
        return Ok(Command::Help);
    }
    if !given.schema && given.snapshot.is_none() {
        errors.push("--snapshot is missing; name the file, or --schema to see its form".to_owned());
    }
    match given.snapshot {
        _ if !errors.is_empty() => Err(errors),
        Some(snapshot) if !given.schema => Ok(Command::Plan(Arguments {
            snapshot,
            settings: given.settings,
            format: given.format,
            detail: given.detail,
        })),
        _ => Ok(Command::Schema),
    }
}

fn take(
    given: &mut Given,
    name: &str,
    value: Option<String>,
    rest: &mut impl Iterator<Item = String>,
) -> Result<(), String> {
    let mut needed = |kind: &str| {
        value
            .clone()
            .or_else(|| rest.next())
            .ok_or_else(|| format!("flag {name} needs a value; write {name}={kind}"))
    };
    match name {
        "--snapshot" => given.snapshot = Some(needed("<file>")?),
        "--settings" => given.settings = Some(needed("<file>")?),
        "--format" => given.format = format(&needed("table|json|yaml")?)?,
        "--explain" | "--schema" | "--help" | "-h" => {
            if let Some(value) = value {
                return Err(format!(
                    "flag {name} takes no value, got {value:?}; drop it"
                ));
            }
            match name {
                "--explain" => given.detail = Detail::Everything,
                "--schema" => given.schema = true,
                _ => given.help = true,
            }
        }
        other => {
            return Err(format!(
                "unknown argument {other:?}; wva plan --help lists all flags"
            ));
        }
    }
    Ok(())
}

fn format(text: &str) -> Result<Format, String> {
    match text {
        "table" => Ok(Format::Table),
        "json" => Ok(Format::Json),
        "yaml" => Ok(Format::Yaml),
        other => Err(format!(
            "--format={other:?} is not a format; write table, json or yaml"
        )),
    }
}

//! `--help` of the controller, made from the schema.

use std::fmt::Write as _;

use super::schema::{self, Reach, SettingGroup, SettingState, Spec};
use super::value::ValueKind;

const INTRODUCTION: &str = "\
Usage: wva controller [flags]

Decides how many replicas each variant of a model needs and publishes it for autoscalers.

Every setting may be given as a flag where one is shown, as an environment variable, or as a key of
the main ConfigMap (or of the YAML file in its place); the first of these wins. Durations need a
unit: 90s, 1m30s, 1.5h. Settings marked (live) follow the ConfigMap while running.

  -h, --help
      Show this text.
  --print-config[=text|json]
      Show every setting with its value and source, and what a start refuses, and exit. Needs no cluster.
  --version
      Print the version.
";

/// The whole text.
pub fn help() -> String {
    let mut text = INTRODUCTION.to_owned();
    for group in SettingGroup::ALL {
        write!(text, "\n{}:\n", group.as_str()).unwrap_or_default();
        for spec in schema::all().filter(|spec| spec.group == group) {
            text.push_str(&entry(spec));
        }
    }
    text
}

fn entry(spec: &Spec) -> String {
    let mut names: Vec<String> = spec.flags.iter().map(|flag| dashed(flag)).collect();
    if let (Some(first), false) = (names.first_mut(), spec.kind == ValueKind::Bool) {
        *first = format!("{first} <{}>", spec.kind.as_str());
    }
    if spec.reach != Reach::Flag {
        names.extend(spec.names().map(str::to_owned));
    }
    let mut text = format!("  {}\n      {}", names.join(", "), spec.meaning);
    if !spec.default.is_empty() {
        write!(text, " Default {}.", spec.default).unwrap_or_default();
    }
    if spec.change == schema::Mutability::Live {
        text.push_str(" (live)");
    }
    if spec.state != SettingState::Active {
        write!(text, " ({})", spec.state).unwrap_or_default();
    }
    text.push('\n');
    text
}

/// A flag as people write it: one letter has one dash.
pub fn dashed(flag: &str) -> String {
    if flag.len() == 1 { format!("-{flag}") } else { format!("--{flag}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_and_flag_is_listed_once_under_its_group() {
        let text = help();
        for spec in schema::all() {
            assert!(text.contains(spec.meaning), "{}", spec.name);
            for flag in spec.flags {
                assert!(text.contains(&dashed(flag)), "{flag}");
            }
        }
        for group in SettingGroup::ALL {
            assert_eq!(text.matches(&format!("\n{}:\n", group.as_str())).count(), 1);
        }
        assert!(text.contains("  -v <number>, V\n"), "{text}");
        assert!(text.contains("  --leader-elect, --enable-leader-election, LEADER_ELECT\n"));
        assert!(text.contains("Default 60s. (live)"));
    }
}

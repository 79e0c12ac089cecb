//! The page `docs/user-guide/configuration.md`, made from the schema.

use std::fmt::Write as _;

use super::help::dashed;
use super::schema::{self, Mutability, Reach, SettingGroup, SettingState, Spec};
use super::{queueing_model, saturation, scale_to_zero, service_class};
use wva_base::yaml::DocumentField;

const INTRODUCTION: &str = "\
# Configuration

<!-- Made from the schema in crates/settings/src/schema. Do not edit: run the tests with UPDATE=1. -->

The first of these places that has a setting wins:

1. flags of `wva controller`; the last of a repeated flag counts
2. environment variables (an empty one counts as unset)
3. the main ConfigMap, or the YAML file that `--config-file` names in its place
4. the default

Names and booleans (`true`, `false`, `1`, `0`, `t`, `f`) match in any letter case. Durations need a unit: `90s`, `1m30s`, `1.5h`,
`2 min`; `M`, months and years are refused. `wva controller --print-config` shows every setting with its value, its source and
whether it acts, and what a start refuses, with its exit code. It reads no ConfigMap.

| wrong | effect |
|---|---|
| a flag | exit code 2 |
| a value in environment or file, or of a key of the ConfigMap that is not live | exit code 1 at start; the text names all |
| a live value in the ConfigMap | at start the layer below counts, later the previous value; reported |
| an edit of a key that is not live | rejected with the event `ImmutableConfigChangeRejected`; the rest of the edit is applied |

A row without a key is a flag alone. What is *live* follows the ConfigMap; a restart reads the rest.
";

const ENTRIES: &str = "
## Policy ConfigMaps

Each key of `data` holds a YAML document with these [fields](../saturation-scaling-config.md#fields). The entry `default` is for
every model, any other for the model that its body names, or, for saturation, a [tier](../saturation-scaling-config.md#tiers).
A model takes each field from the first of these that states it:

1. its namespace's entry for it
2. its tier
3. its namespace's `default`
4. the global entry for it
5. the global `default`
6. the built-in value

A global ConfigMap is in the system namespace. A namespace's own counts while a variant lives there or the namespace is
labelled `wva.llmd.ai/config-enabled: \"true\"`, and never when it is annotated `wva.llmd.ai/exclude: \"true\"`. Service
classes are global only.

| ConfigMap | Field | Other spellings |
|---|---|---|
";

/// The fields of each policy ConfigMap, by the title of its section.
const SECTIONS: [(&str, &[DocumentField]); 4] = [
    ("Saturation", saturation::FIELDS),
    ("Scale to zero", scale_to_zero::FIELDS),
    ("Queueing model", queueing_model::FIELDS),
    ("Service classes", service_class::FIELDS),
];

fn page() -> String {
    let mut text = INTRODUCTION.to_owned();
    for group in SettingGroup::ALL {
        write!(
            text,
            "\n## {}\n\n| Key, flags, other names | Default | Meaning |\n|---|---|---|\n",
            group.as_str()
        )
        .unwrap_or_default();
        for spec in schema::all().filter(|spec| spec.group == group) {
            text.push_str(&row(spec));
        }
    }
    text.push_str(ENTRIES);
    for (title, fields) in SECTIONS {
        push_spellings(&mut text, title, "", fields);
    }
    text
}

fn row(spec: &Spec) -> String {
    let key = match spec.reach {
        Reach::Everywhere => Some(code(spec.name)),
        Reach::Process => Some(format!("{} (environment only)", code(spec.name))),
        Reach::Flag => None,
    };
    let flags = spec.flags.iter().map(|flag| code(&dashed(flag)));
    let aliases = spec.aliases.iter().map(|alias| code(alias));
    let names: Vec<String> = key.into_iter().chain(flags).chain(aliases).collect();
    let default = match spec.default {
        "" => String::new(),
        default => code(default),
    };
    let live = match spec.change {
        Mutability::Live => " (live)",
        Mutability::Static => "",
    };
    let inert = match spec.state {
        SettingState::Active => "",
        SettingState::Inert => " (inert)",
    };
    let (names, meaning) = (names.join(", "), spec.meaning);
    format!("| {names} | {default} | {meaning}{live}{inert} |\n")
}

fn push_spellings(text: &mut String, title: &str, parent: &str, fields: &[DocumentField]) {
    for field in fields {
        let path = format!("{parent}{}", field.name);
        let also: Vec<String> = field.also.iter().map(|name| code(name)).collect();
        if !also.is_empty() {
            let also = also.join(", ");
            writeln!(text, "| {title} | {} | {also} |", code(&path)).unwrap_or_default();
        }
        push_spellings(text, title, &format!("{path}."), field.fields);
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_page_in_the_repository_is_the_one_made_from_the_schema() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/user-guide/configuration.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, page()).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == page(), "{} is out of date: run with UPDATE=1", path.display());
    }

    #[test]
    fn the_page_names_every_key_flag_and_spelling() {
        let page = page();
        for spec in schema::all() {
            if spec.reach != Reach::Flag {
                assert!(page.contains(&code(spec.name)), "{}", spec.name);
            }
            for flag in spec.flags {
                assert!(page.contains(&format!("-{flag}`")), "{flag}");
            }
        }
        assert!(page.contains("| Service classes | `data.slo-tpot` | `slo-itl` |"));
    }

    /// Paths of fields, in the order of the parser's table.
    fn paths(parent: &str, fields: &[DocumentField]) -> Vec<String> {
        let all = fields.iter().flat_map(|field| {
            let path = format!("{parent}{}", field.name);
            let below = paths(&format!("{path}."), field.fields);
            std::iter::once(path).chain(below)
        });
        all.collect()
    }

    #[test]
    fn the_page_of_thresholds_describes_every_field_that_the_parser_knows_and_no_other() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/saturation-scaling-config.md");
        let page = std::fs::read_to_string(file).unwrap();
        for (title, fields) in SECTIONS {
            let section = page.split(&format!("\n### {title}\n")).nth(1);
            let section = section.unwrap_or_else(|| panic!("no section {title}"));
            let section = section.split("\n### ").next().unwrap_or_default();
            let mut lines = section.lines().filter(|line| line.starts_with('|'));
            assert_eq!(lines.next(), Some("| Field | Type | Default | Meaning |"));
            let rows: Vec<Vec<&str>> =
                lines.skip(1).map(|line| line.split('|').map(str::trim).collect()).collect();
            for row in &rows {
                assert_eq!(row.len(), 6, "{title}: {row:?}");
                let is_complete = row[1..5].iter().all(|cell| !cell.is_empty());
                assert!(is_complete, "{title}: {row:?}");
            }
            let described: Vec<&str> = rows.iter().map(|row| row[1].trim_matches('`')).collect();
            assert_eq!(described, paths("", fields), "{title}");
        }
    }

    #[test]
    fn the_documented_defaults_are_the_built_in_ones() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/saturation-scaling-config.md");
        let page = std::fs::read_to_string(file).unwrap();
        let default = |field: &str| -> f64 {
            let start = format!("| `{field}` | ");
            let row = page.lines().find(|line| line.starts_with(&start)).unwrap();
            row.split('|').nth(3).unwrap().trim().trim_matches('`').parse().unwrap()
        };
        let built_in = wva_policy::params::SaturationThresholds::default();
        let band = wva_policy::params::UtilizationBand::default();
        for (field, value) in [
            ("kvCacheThreshold", built_in.kv_cache_threshold),
            ("queueLengthThreshold", built_in.queue_length_threshold),
            ("kvSpareTrigger", built_in.kv_spare_trigger),
            ("queueSpareTrigger", built_in.queue_spare_trigger),
            ("scaleUpThreshold", band.scale_up_threshold),
            ("scaleDownBoundary", band.scale_down_boundary),
            ("sloMultiplier", wva_policy::params::DEFAULT_SLO_MULTIPLIER),
        ] {
            assert_eq!(default(field).to_bits(), value.to_bits(), "{field}");
        }
    }
}

//! Edits that are drawn: any setting that may change while processes run, and any value.

use std::fmt::Write as _;
use std::time::Duration;

use super::SATURATION;
use crate::chaos::dice::Dice;
use crate::chaos::process_manager::MAIN;
use wva::settings::config_maps::ConfigMapNames;
use wva::settings::schema::{self, Mutability, Reach, Spec};
use wva::settings::value::ValueKind;
use wva_base::duration::format_duration;
use wva_supervise::SeedTree;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct EditTargets<'a> {
    pub(super) saturation: &'a str,
    pub(super) zero: Option<(&'a String, &'a String)>,
    pub(super) models: &'a [&'static str],
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) map: &'static str,
    pub(super) entry: String,
    pub(super) text: String,
    pub(super) words: String,
}

fn live() -> Vec<&'static Spec> {
    let may_change =
        |spec: &&Spec| spec.change == Mutability::Live && spec.reach == Reach::Everywhere;
    schema::all().filter(may_change).collect()
}

pub(super) fn draw(number: u64, ground: &EditTargets<'_>) -> Drawn {
    let mut dice = Dice::new(SeedTree::new(number).child("edit"));
    match dice.below(10) {
        0..=4 => {
            let specs = live();
            let spec = dice.pick(&specs).copied();
            let spec = spec.unwrap_or(&schema::GLOBAL_OPT_INTERVAL);
            let value = value_of(spec, &mut dice);
            drawn(MAIN, spec.name.to_owned(), value.clone(), spec.name, &value)
        }
        5..=8 => {
            let (field, value) = field(SATURATION_FIELDS, &mut dice);
            let model = dice.pick(ground.models).copied();
            let model = model.filter(|_| dice.chance(40));
            let (entry, before) = match model {
                Some(model) => ("random", format!("model_id: {model}\n")),
                None => ("default", ground.saturation.to_owned()),
            };
            let text = with(&before, field, &value);
            drawn(SATURATION, entry.to_owned(), text, field, &value)
        }
        _ => {
            let (field, value) = field(ZERO_FIELDS, &mut dice);
            let (entry, before) = match ground.zero {
                Some((entry, text)) if dice.chance(70) => (entry.as_str(), text.as_str()),
                _ => ("default", ""),
            };
            let text = with(before, field, &value);
            let map = ConfigMapNames::SCALE_TO_ZERO;
            drawn(map, entry.to_owned(), text, field, &value)
        }
    }
}

fn drawn(map: &'static str, entry: String, text: String, key: &str, value: &str) -> Drawn {
    let shown: String = value.chars().take(60).collect();
    let length = value.chars().count();
    let place = if key == entry { "" } else { &*format!("{entry} ") };
    let mut words = format!("{map} {place}{key}: {shown:?}");
    if length > 60 {
        // A string takes everything.
        let _done = write!(words, "... of {length} letters");
    }
    Drawn { map, entry, text, words }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worth {
    /// Within range: 60.
    Valid,
    /// The least, the most, or just beyond: 15.
    Edge,
    /// What is refused everywhere: 25.
    Odd,
}

fn worth(dice: &mut Dice) -> Worth {
    match dice.below(100) {
        0..=59 => Worth::Valid,
        60..=74 => Worth::Edge,
        _ => Worth::Odd,
    }
}

fn odd(dice: &mut Dice) -> String {
    let texts = [
        "soon",
        "-5s",
        "-1",
        "NaN",
        "-0.2",
        "1e999",
        "",
        " ",
        "[0.8",
        "{a: 1}",
        "null",
        "½ Stunde ⏱",
        "0x1F",
        "1 s",
    ];
    let place = dice.place(texts.len() + 1);
    let long = || "9".repeat(5_000);
    texts.get(place).map_or_else(long, |text| (*text).to_owned())
}

fn value_of(spec: &Spec, dice: &mut Dice) -> String {
    let worth = worth(dice);
    if worth == Worth::Odd {
        return odd(dice);
    }
    match spec.kind {
        ValueKind::Duration { least, most } => {
            let length = match worth {
                Worth::Valid => dice.time(least.max(SECOND), most),
                _ => dice
                    .pick(&[Duration::ZERO, least, most, most + SECOND])
                    .copied()
                    .unwrap_or(most),
            };
            format_duration(length)
        }
        ValueKind::Count { least, most } => {
            let drawn = dice.time(SECOND, Duration::from_secs(most.max(1)));
            let count = match worth {
                Worth::Valid => drawn.as_secs().clamp(least, most),
                _ => dice
                    .pick(&[least.saturating_sub(1), least, most, most + 1])
                    .copied()
                    .unwrap_or(most),
            };
            count.to_string()
        }
        ValueKind::LogLevel => choice(&["error", "warn", "info", "debug"], dice),
        _ => choice(&["true", "false"], dice),
    }
}

fn choice(of: &[&str], dice: &mut Dice) -> String {
    dice.pick(of).map_or_else(String::new, |text| (*text).to_owned())
}

/// A field of an entry, and values that it may have; of a share also any other between 0 and 1.
type Field = (&'static str, &'static [&'static str]);

const SHARES: &[&str] = &["", "0", "1", "1.01", "-0.01"];
const LENGTHS: &[&str] = &["0", "1", "5", "50", "1000000", "2.5"];

/// All fields that an entry of analyzers and limiters may have, but for those by which it is found.
const SATURATION_FIELDS: &[Field] = &[
    ("kvCacheThreshold", SHARES),
    ("queueLengthThreshold", LENGTHS),
    ("kvSpareTrigger", SHARES),
    ("queueSpareTrigger", LENGTHS),
    ("enableLimiter", &["true", "false"]),
    ("enableRescale", &["true", "false"]),
    ("analyzerName", &["saturation", "slo", "percentage", "\"\"", "saturatoin"]),
    ("scaleUpThreshold", SHARES),
    ("scaleDownBoundary", SHARES),
    ("burstReserve", &["none", "economical", "strict", "much"]),
    ("priority", &["0", "1", "1e6", "1e-6", "7.5", "1e7"]),
    (
        "analyzers",
        &[
            "[]",
            "[{type: saturation}]",
            "[{type: throughput}]",
            "[{type: saturation, score: 2}, {type: throughput}]",
            "[{type: queueing-model}]",
            "[{type: saturation}, {type: slo}]",
            "[{type: saturation, enabled: false}]",
            "[{type: saturation, scaleUpThreshold: 0.6, scaleDownBoundary: 0.3}]",
        ],
    ),
    (
        "limiters",
        &[
            "[]",
            "[{name: a, type: quota, scope: cluster, quotas: {H100: 3}}]",
            "[{name: a, type: quota, scope: cluster, quotas: {H100: 0, A100: 0}}]",
            "[{name: a, type: quota, scope: cluster, quotas: {H100: -1}}]",
            "[{name: a, type: quota, scope: moon}]",
        ],
    ),
    ("scaleToZero", &["{enabled: true}", "{enabled: false}", "{}"]),
];

const ZERO_FIELDS: &[Field] = &[
    ("enable_scale_to_zero", &["true", "false", "maybe"]),
    ("retention_period", &["1ms", "20s", "90s", "5m", "25h", "0s", "later"]),
];

fn field(of: &[Field], dice: &mut Dice) -> (&'static str, String) {
    let (name, values) = dice.pick(of).copied().unwrap_or(("priority", &["1"]));
    if worth(dice) == Worth::Odd {
        return (name, odd(dice));
    }
    match choice(values, dice) {
        drawn if drawn.is_empty() => (name, format!("0.{:02}", dice.below(100))),
        drawn => (name, drawn),
    }
}

fn with(before: &str, field: &str, value: &str) -> String {
    let mut text = String::new();
    let mut is_replaced = false;
    for line in before.lines() {
        let goes_on = line.starts_with([' ', '-']);
        is_replaced = if goes_on { is_replaced } else { line.split(':').next() == Some(field) };
        if !is_replaced {
            text.push_str(line);
            text.push('\n');
        }
    }
    text + field + ": " + value + "\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn one_field_takes_the_place_of_what_an_entry_said_of_it() {
        let before = "analyzerName: saturation\nlimiters:\n- {name: a}\npriority: 2\n";
        for (field, expected) in [
            ("limiters", "analyzerName: saturation\npriority: 2\nlimiters: x\n"),
            ("priority", "analyzerName: saturation\nlimiters:\n- {name: a}\npriority: x\n"),
            ("other", &*format!("{before}other: x\n")),
        ] {
            assert_eq!(with(before, field, "x"), expected);
        }
    }

    #[test]
    fn every_setting_that_may_change_is_drawn_with_values_that_hold_and_values_that_do_not() {
        let zero = ("a".to_owned(), "model_id: m\n".to_owned());
        let ground = EditTargets { saturation: "", zero: Some((&zero.0, &zero.1)), models: &["m"] };
        let mut keys = BTreeSet::new();
        let (mut accepted, mut refused) = (0, 0);
        for number in 0..3_000 {
            let drawn = draw(number, &ground);
            assert_eq!(drawn, draw(number, &ground), "{number}");
            let key = drawn.words.split(':').next().unwrap_or_default();
            keys.insert(key.rsplit(' ').next().unwrap_or_default().to_owned());
            let spec = live().into_iter().find(|spec| spec.name == drawn.entry);
            if let Some(spec) = spec {
                let is_accepted = spec.parse(&drawn.text).is_ok();
                *(if is_accepted { &mut accepted } else { &mut refused }) += 1;
            }
        }
        let fields = SATURATION_FIELDS.iter().chain(ZERO_FIELDS);
        let fields = fields.map(|(name, _)| (*name).to_owned());
        let specs = live().into_iter().map(|spec| spec.name.to_owned());
        assert_eq!(keys, specs.chain(fields).collect::<BTreeSet<String>>());
        assert!(accepted > refused && refused > 200, "{accepted} {refused}");
    }
}

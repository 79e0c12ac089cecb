//! E: what is shown at `/metrics`.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use crate::policy::key::VariantKey;

/// What a page shows about variants.
#[derive(Debug, Default, PartialEq)]
pub(in crate::sim::chaos) struct Shown {
    /// `wva_desired_replicas`.
    pub(in crate::sim::chaos) desired: BTreeMap<VariantKey, f64>,
    /// `wva_invariant_violations_total`, by number.
    pub(in crate::sim::chaos) counted: BTreeMap<String, f64>,
    /// The variants that any series names.
    pub(in crate::sim::chaos) named: BTreeSet<VariantKey>,
    /// What must not be on any page.
    pub(in crate::sim::chaos) broken: Vec<Violation>,
}

/// Series that tell of variants, and may be shown by a leader alone.
const PIPELINE: [&str; 3] = [
    "wva_desired_replicas",
    "wva_current_replicas",
    "wva_desired_ratio",
];

/// Reads a page: E3, and no variant twice.
pub(in crate::sim::chaos) fn read(text: &str) -> Shown {
    let mut shown = Shown::default();
    for line in text.lines().filter(|line| line.starts_with("wva_")) {
        let Some((series, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let value: f64 = value.parse().unwrap_or(f64::NAN);
        if !value.is_finite() || value < 0.0 {
            let text = format!("{line} is no count");
            shown.broken.push(Violation::new("E3", text));
        }
        if name == "wva_invariant_violations_total" {
            let number = label(labels, "invariant").unwrap_or_default();
            shown.counted.insert(number.to_owned(), value);
        }
        let part = |name| label(labels, name).unwrap_or_default();
        let key = VariantKey::new(part("namespace"), part("variant_name"));
        if !key.name.is_empty() {
            shown.named.insert(key.clone());
        }
        if !PIPELINE.contains(&name) {
            continue;
        }
        if name == "wva_desired_replicas" && shown.desired.insert(key.clone(), value).is_some() {
            let text = format!("{key} is shown twice");
            shown.broken.push(Violation::new("E1", text));
        }
    }
    shown
}

fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let start = labels.find(&format!("{name}=\""))? + name.len() + 2;
    let rest = labels.get(start..)?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_and_judged() {
        let page = "\
# TYPE wva_desired_replicas gauge
wva_desired_replicas{accelerator_type=\"A\",namespace=\"n\",variant_name=\"v\"} 2
wva_invariant_violations_total{invariant=\"D1\"} 3
wva_up 1
";
        let shown = read(page);
        assert_eq!(shown.desired[&VariantKey::new("n", "v")].to_string(), "2");
        assert_eq!(shown.named, BTreeSet::from([VariantKey::new("n", "v")]));
        assert_eq!(shown.counted["D1"].to_string(), "3");
        assert_eq!(shown.broken, []);
        let twice = page.to_owned()
            + "wva_desired_replicas{accelerator_type=\"B\",namespace=\"n\",variant_name=\"v\"} 1\n";
        assert_eq!(read(&twice).broken[0].to_string(), "E1: n/v is shown twice");
        for value in ["NaN", "-1", "+Inf"] {
            let odd = page.replace("} 2", &format!("}} {value}"));
            assert_eq!(read(&odd).broken[0].invariant, "E3", "{value}");
        }
    }
}

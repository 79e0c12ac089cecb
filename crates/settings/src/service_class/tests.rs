use std::time::Duration;

use super::*;
use crate::entries::ScopeChange;
use crate::fixtures::{data, texts};

fn read(pairs: &[(&str, &str)]) -> (ServiceClasses, Vec<String>) {
    let mut diagnostics = Diagnostics::default();
    let classes = super::read(Some(&data(pairs)), None, &mut diagnostics);
    (classes, texts(&diagnostics.problems))
}

const PREMIUM: &str = "
name: Premium
priority: 1
data:
- {model: default/default, slo-tpot: 24, slo-ttft: 500}
- {model: meta/llama0-70b, slo-tpot: 80, slo-ttft: 500}
";
const FREEMIUM: &str = "
name: Freemium
priority: 10
data:
- {model: ibm/granite-13b, slo-itl: 200, slo-ttw: 2000}
- {model: meta/llama0-70b, slo-tpot: 150, slo-ttft: 1500}
";
const FLAT: &str = "
- {name: Premium, priority: 1, model: default/default, slo-itl: 24, slo-ttw: 500}
- {name: Premium, priority: 1, model: meta/llama0-70b, slo-itl: 80, slo-ttw: 500}
- {name: Freemium, priority: 10, model: ibm/granite-13b, slo-itl: 200, slo-ttw: 2000}
- {name: Freemium, priority: 10, model: meta/llama0-70b, slo-itl: 150, slo-ttw: 1500}
";

#[test]
fn both_layouts_give_the_same_targets() {
    for layout in [
        vec![("premium.yaml", PREMIUM), ("freemium.yaml", FREEMIUM)],
        vec![("serviceClasses", FLAT)],
    ] {
        let (classes, problems) = read(&layout);
        assert_eq!(problems, Vec::<String>::new());
        for (model, label, class, ttft, itl) in [
            // The best priority that names the model.
            ("meta/llama0-70b", None, "Premium", 500, 80),
            ("ibm/granite-13b", None, "Freemium", 2000, 200),
            // No class names it.
            ("other", None, "Premium", 500, 24),
            // The label comes first, in any letter case.
            ("meta/llama0-70b", Some("freemium"), "Freemium", 1500, 150),
            ("ibm/granite-13b", Some("Premium"), "Premium", 500, 24),
            // A label without targets for the model, or without a class, says nothing.
            ("other", Some("Freemium"), "Premium", 500, 24),
            ("ibm/granite-13b", Some("Gold"), "Freemium", 2000, 200),
        ] {
            let found = classes.targets(model, label).unwrap();
            assert_eq!(found.class.name, class, "{model} {label:?}");
            let targets = LatencyTargets {
                time_to_first_token: Duration::from_millis(ttft),
                inter_token_latency: Duration::from_millis(itl),
            };
            assert_eq!(found.targets, targets, "{model} {label:?}");
        }
    }
    assert_eq!(ServiceClasses::default().targets("m", None), None);
}

#[test]
fn a_faulty_entry_is_refused_with_every_fault_and_leaves_the_others() {
    for (text, part) in [
        ("priority: 1", "a class needs a name"),
        ("name: A", "class \"A\" needs a priority"),
        ("name: A\npriority: -1", "priority: invalid type: integer `-1`"),
        ("name: A\npriority: 1\ndata: [{slo-tpot: 1, slo-ttft: 1}]", "a row names no model"),
        (
            "name: A\npriority: 1\ndata: [{model: m, slo-tpot: 1}]",
            "class \"A\", model \"m\": slo-ttft and slo-tpot must be set together, or neither",
        ),
        (
            "name: A\npriority: 1\ndata: [{model: m}]",
            "class \"A\", model \"m\": slo-ttft and slo-tpot must be positive",
        ),
        (
            "name: A\npriority: 1\ndata: [{model: m, slo-tpot: 1, slo-ttft: 1}, {model: m, slo-tpot: 2, slo-ttft: 2}]",
            "class \"A\" names model \"m\" twice",
        ),
        ("name: Premium\npriority: 1", "class \"Premium\" stands in an earlier entry as well"),
    ] {
        let (classes, problems) = read(&[("a", PREMIUM), ("b", text)]);
        assert_eq!(problems.len(), 1, "{text}");
        assert!(problems[0].contains(part), "{text}: {problems:?}");
        assert!(classes.named("premium").is_some(), "{text}");
    }
}

#[test]
fn an_entry_edited_into_nonsense_keeps_its_classes() {
    let (before, _) = read(&[("a", PREMIUM)]);
    let mut diagnostics = Diagnostics::default();
    let broken = data(&[("a", "name: ["), ("b", FREEMIUM)]);
    let after = super::read(Some(&broken), Some(&before), &mut diagnostics);
    assert_eq!(diagnostics.problems.len(), 1);
    assert!(after.named("Premium").is_some() && after.named("Freemium").is_some());
    let change = ScopeChange::between(None, &before.entries, &after.entries);
    assert_eq!(change.unwrap().entries, ["b (new)"]);
    let gone = super::read(None, Some(&after), &mut diagnostics);
    assert_eq!(gone, ServiceClasses::default());
}

#[test]
fn a_wrong_type_hides_no_other_one() {
    assert!(read(&[("premium.yaml", PREMIUM)]).1.is_empty());
    let faulty = PREMIUM
        .replace("priority: 1", "priority: first")
        .replace("slo-tpot: 80", "slo-tpot: short");
    let (_, problems) = read(&[("premium.yaml", &faulty)]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    for fault in [
        "priority: invalid type: string \"first\", expected a whole number from 0 to 4294967295 at line 3",
        "data[1].slo-tpot: invalid type: string \"short\", expected a number",
    ] {
        assert!(problems[0].contains(fault), "{problems:?}");
    }
}

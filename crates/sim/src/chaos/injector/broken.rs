//! Entries of ConfigMaps that cannot be read, and specifications that make no sense. The API server refuses most of
//! these, but may hold them from the time of an older schema.

use serde_json::{Value, json};

use crate::chaos::dice::Dice;
use wva_supervise::SeedTree;

pub(super) type Broken = (&'static str, String);

const BRACKETS: usize = 200_000;
const LINES: usize = 620;

/// Whether the entry is one of the analyzers and limiters, rather than one of scale to zero, and what it holds
/// from now on: drawn from a number.
pub(super) fn draw(number: u64) -> (bool, Broken) {
    let mut dice = Dice::new(SeedTree::new(number).child("broken"));
    let is_of_analyzers = dice.chance(60);
    let field = if is_of_analyzers { "kvCacheThreshold" } else { "retention_period" };
    let all = texts(field);
    let drawn = dice.pick(&all).cloned();
    (is_of_analyzers, drawn.unwrap_or_default())
}

fn texts(field: &str) -> [Broken; 8] {
    let blocks = (0..LINES).map(|depth| " ".repeat(depth) + "a:\n");
    [
        ("an open bracket", format!("{field}: [0.8")),
        ("a tab", format!("{field}:\n\t- 0.8\n")),
        ("a field twice", format!("{field}: 5m\n{field}: 5m\n")),
        ("one word", "nothing\n".to_owned()),
        ("a list", format!("- {field}\n- 0.8\n")),
        ("aliases of aliases", bomb()),
        ("200 kB of brackets", format!("{field}: {}", "[".repeat(BRACKETS))),
        ("200 kB of blocks", blocks.collect()),
    ]
}

/// Few lines that grow to a thousand million words.
fn bomb() -> String {
    let first = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    let lines = (1..9).map(|number| {
        let alias = format!("*a{}", number - 1);
        format!("a{number}: &a{number} [{}]\n", [&*alias; 10].join(", "))
    });
    first + &lines.collect::<String>()
}

pub(super) fn shape(number: u8, spec: &Value) -> Value {
    let all = shapes(spec.pointer("/scaleTargetRef/name"));
    let place = usize::from(number).checked_rem(all.len()).unwrap_or(0);
    all.into_iter().nth(place).unwrap_or_default()
}

fn shapes(name: Option<&Value>) -> Vec<Value> {
    let target = |target: Value| json!({"scaleTargetRef": target});
    vec![
        target(json!(7)),
        target(json!({})),
        target(json!({"kind": "Deployment"})),
        target(json!({"kind": "Deployment", "name": ""})),
        target(json!({"kind": ["Deployment"], "name": name})),
        // These two can be read: the one is a Deployment, whatever it was, the other nothing that is known.
        target(json!({"kind": "", "name": name})),
        target(json!({"kind": "Widget", "name": name})),
        json!({"modelID": ["a", "b"]}),
        json!({"modelID": ""}),
        json!({"modelID": "a\u{7}b"}),
        json!({"minReplicas": "2"}),
        json!({"maxReplicas": {"most": 3}}),
        json!({"minReplicas": -3}),
        json!({"maxReplicas": 0}),
        json!({"maxReplicas": 3_000_000_000_u32}),
        // This one can be read as well: the most holds.
        json!({"minReplicas": i32::MAX, "maxReplicas": 2}),
        json!({"variantCost": 7}),
        // Cost has a default, and what is not known is left alone.
        json!({"variantCost": "cheap"}),
        json!({"variantCost": "-1e400"}),
        json!({"replicas": {"wanted": [1, {"of": null}]}, "paused": true}),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::chaos::surroundings::is_read;
    use crate::workloads::object::Object;
    use crate::world::controller::environment;
    use wva::api::variant_autoscaling::VariantAutoscaling;
    use wva::cluster::project::{Interner, Projected};
    use wva::policy::variant::read;
    use wva::settings::problem::Problem;
    use wva::settings::purpose::Purpose;
    use wva::settings::{Sources, start};

    fn refused(is_of_analyzers: bool, text: &str) -> Vec<Purpose> {
        let mut sources = Sources {
            environment: environment("pod", Duration::from_secs(10)),
            ..Sources::default()
        };
        let policy =
            if is_of_analyzers { &mut sources.saturation } else { &mut sources.scale_to_zero };
        policy.global = Some([("default".to_owned(), text.to_owned())].into());
        let diagnostics = start(&sources).unwrap().diagnostics;
        let problems = diagnostics.problems.iter();
        problems.map(Problem::purpose).collect()
    }

    #[test]
    fn every_text_is_drawn_for_either_config_map_and_refused_in_it() {
        assert_eq!(refused(true, "kvCacheThreshold: 0.8\n"), []);
        assert_eq!(refused(false, "retention_period: 5m\n"), []);
        let mut drawn = BTreeSet::new();
        for number in 0..300 {
            let (is_of_analyzers, (what, text)) = draw(number);
            assert_eq!((is_of_analyzers, (what, text.clone())), draw(number));
            if !drawn.insert((is_of_analyzers, what)) {
                continue;
            }
            let purpose = if is_of_analyzers { Purpose::Saturation } else { Purpose::ScaleToZero };
            assert_eq!(refused(is_of_analyzers, &text), [purpose], "{what}");
        }
        assert_eq!(drawn.len(), 2 * texts("").len(), "{drawn:?}");
    }

    fn object(number: u8) -> Value {
        let mut spec = json!({
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "v"},
            "modelID": "m", "variantCost": "3.5", "minReplicas": 1, "maxReplicas": 5,
        });
        let bent = shape(number, &spec);
        for (field, value) in bent.as_object().unwrap() {
            spec[field] = value.clone();
        }
        json!({"metadata": {"namespace": "n", "name": "v", "uid": "u"}, "spec": spec})
    }

    fn makes_sense(object: &Value) -> bool {
        let variant: Result<VariantAutoscaling, _> = serde_json::from_value(object.clone());
        let view = variant.map(|variant| variant.project(&mut Interner::default()));
        view.is_ok_and(|view| read(&view.object).is_ok())
    }

    #[test]
    fn shapes_differ_and_the_judge_knows_which_of_them_can_be_read() {
        let count = u8::try_from(shapes(None).len()).unwrap();
        let usual = object(count);
        assert_eq!(usual, object(0), "they begin again");
        let all: Vec<Value> = (0..count).map(object).collect();
        for (place, one) in all.iter().enumerate() {
            assert!(!all[place + 1..].contains(one), "{one}");
            let known = is_read(&Object(Arc::new(one.clone())));
            assert_eq!(known, makes_sense(one), "{one}");
        }
        let readable = all.iter().filter(|one| makes_sense(one)).count();
        assert_eq!((readable, all.len() - readable), (6, 14));
    }
}

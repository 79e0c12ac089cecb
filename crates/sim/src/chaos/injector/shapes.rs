//! Specifications that make no sense. The API server refuses most of them, but may hold them from the
//! time of an older schema.

use serde_json::{Value, json};

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
    use std::sync::Arc;

    use super::*;
    use crate::chaos::surroundings::is_read;
    use crate::workloads::object::Object;
    use wva::api::variant_autoscaling::VariantAutoscaling;
    use wva::cluster::project::{Interner, Projected};
    use wva::policy::variant::read;

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

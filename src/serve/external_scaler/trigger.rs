//! Metadata of a trigger: what a ScaledObject states to the scaler.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::proto::ScaledObjectRef;
pub(super) use crate::cluster::project::scaler::EXTERNAL_VARIANT as VARIANT_NAME;
use crate::cluster::project::scaler::{MODEL_KEY, STATED, own_keys, unknown_keys};
use crate::policy::key::ObjectKey;
use wva_base::names::is_dns_subdomain;
use wva_base::text::shortened;

/// A trigger of a ScaledObject, as far as it concerns the scaler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScalerTrigger {
    pub(super) object: ObjectKey,
    /// `variantName`; `None` takes the VariantAutoscaling of the target.
    pub(super) variant: Option<Arc<str>>,
}

/// Why the scaler refuses the metadata of a trigger of a ScaledObject, if it does. `None` also where nothing shows that
/// the trigger is one of ours, as `is_needed` or a key of ours does.
pub fn refused(
    object: ObjectKey,
    metadata: &BTreeMap<String, String>,
    is_needed: bool,
) -> Option<String> {
    let why = ScalerTrigger::of(object, metadata).err()?;
    let is_own = |key: &String| own_keys().any(|own| own.eq_ignore_ascii_case(key));
    (is_needed || metadata.keys().any(is_own)).then_some(why)
}

impl ScalerTrigger {
    /// Reads the reference of a call.
    ///
    /// # Errors
    /// Why it is refused, with the remedy.
    pub(super) fn read(reference: &ScaledObjectRef) -> Result<Self, String> {
        for (field, text) in [("namespace", &reference.namespace), ("name", &reference.name)] {
            if text.is_empty() {
                return Err(format!("the reference names no ScaledObject: its {field} is empty"));
            }
        }
        let object = ObjectKey::new(&*reference.namespace, &*reference.name);
        Self::of(object, &reference.scaler_metadata)
    }

    fn of(object: ObjectKey, metadata: &BTreeMap<String, String>) -> Result<Self, String> {
        let refused = |why: &str| format!("trigger metadata of ScaledObject {object}: {why}");
        if let Some(why) = unknown_keys(metadata) {
            return Err(refused(&why));
        }
        let has_model = metadata.contains_key(MODEL_KEY);
        let stated = metadata.get(VARIANT_NAME);
        if let Some(value) = stated {
            let shown = shortened(value);
            if !is_dns_subdomain(value) {
                return Err(refused(&format!(
                    "{VARIANT_NAME}={shown:?} is no name of an object; write the name of a VariantAutoscaling in \
                     namespace {}, or remove the key to take that of the target",
                    object.namespace
                )));
            }
            if has_model {
                return Err(refused(&format!(
                    "{VARIANT_NAME}={shown:?} names a variant, and {MODEL_KEY} makes the ScaledObject one; remove one \
                     of the keys"
                )));
            }
        }
        for field in STATED {
            let Some(text) = metadata.get(field.key) else {
                continue;
            };
            let (key, value) = (field.key, shortened(text));
            if !has_model {
                return Err(refused(&format!(
                    "{key}={value:?} has no effect without {MODEL_KEY}; remove it, and state it where the model is \
                     stated"
                )));
            }
            if !field.takes(text) {
                let remedy = field.refusal(text);
                return Err(refused(&format!("{key}={value:?} {remedy}")));
            }
        }
        let variant = stated.map(|name| Arc::from(&**name));
        Ok(Self { object, variant })
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::ScaledObjectRef;
    use super::{ScalerTrigger, refused};
    use crate::policy::key::ObjectKey;

    fn read(
        namespace: &str,
        name: &str,
        metadata: &[(&str, &str)],
    ) -> Result<Option<String>, String> {
        let pairs = metadata.iter();
        let reference = ScaledObjectRef {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            scaler_metadata: pairs
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect(),
        };
        let trigger = ScalerTrigger::read(&reference)?;
        assert_eq!(trigger.object.to_string(), format!("{namespace}/{name}"));
        Ok(trigger.variant.map(|name| name.to_string()))
    }

    #[test]
    fn what_keda_reads_itself_is_left_alone() {
        let address = ("scalerAddress", "wva:50051");
        assert_eq!(read("ns", "a", &[]), Ok(None));
        assert_eq!(
            read("ns", "a", &[address, ("enableTLS", "true"), ("unsafeSsl", "x")]),
            Ok(None)
        );
        assert_eq!(read("ns", "a", &[("scalerAddressFromEnv", "wva:50051")]), Ok(None));
        let named = read("ns", "a", &[address, ("variantName", "llama-3.1")]);
        assert_eq!(named, Ok(Some("llama-3.1".to_owned())));
        let model = [
            address,
            ("modelID", "m"),
            ("variantCost", "1e1"),
            ("scalingPolicy", "gold"),
            ("defaultOutputTokens", "700"),
            ("replicaStartSeconds", "240"),
        ];
        assert_eq!(read("ns", "a", &model), Ok(None));
    }

    #[test]
    fn a_trigger_of_another_scaler_is_not_judged() {
        let judged = |metadata: &[(&str, &str)]| {
            let pairs = metadata.iter();
            let metadata = pairs.map(|(key, value)| (key.to_string(), value.to_string()));
            refused(ObjectKey::new("ns", "a"), &metadata.collect(), false)
        };
        assert_eq!(judged(&[("queue", "x")]), None);
        assert_eq!(judged(&[("variantName", "b")]), None);
        for metadata in [&[("queue", "x"), ("variantName", "b")][..], &[("variantname", "b")]] {
            assert!(judged(metadata).is_some(), "{metadata:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_key_and_value() {
        for (namespace, name, metadata, parts) in [
            ("", "a", vec![], vec!["namespace is empty"]),
            ("ns", "", vec![], vec!["name is empty"]),
            (
                "ns",
                "a",
                vec![("variantname", "b")],
                vec!["ScaledObject ns/a", "\"variantname\"=\"b\" is no key", "variantName"],
            ),
            ("ns", "a", vec![("variantNameFromEnv", "b")], vec!["\"variantNameFromEnv\""]),
            ("ns", "a", vec![("FromEnv", "b")], vec!["\"FromEnv\""]),
            (
                "ns",
                "a",
                vec![("variantName", "")],
                vec!["ScaledObject ns/a", "variantName=\"\"", "namespace ns"],
            ),
            ("ns", "a", vec![("variantName", "ns/b")], vec!["variantName=\"ns/b\""]),
            ("ns", "a", vec![("variantName", "B")], vec!["variantName=\"B\""]),
            (
                "ns",
                "a",
                vec![("variantName", "b"), ("modelID", "m")],
                vec!["variantName=\"b\"", "modelID", "remove one"],
            ),
        ] {
            let error = read(namespace, name, &metadata).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{error} lacks {part}");
            }
        }
    }

    #[test]
    fn a_model_is_named_and_a_cost_is_its_number() {
        for (metadata, parts) in [
            (&[("modelID", "")][..], ["modelID=\"\"", "ns/a"]),
            (&[("modelID", "a\nb")], ["modelID=\"a\\nb\"", "ns/a"]),
            (
                &[("modelID", "m"), ("variantCost", "cheap")],
                ["variantCost=\"cheap\"", "at least 0"],
            ),
            (&[("modelID", "m"), ("variantCost", "-1")], ["variantCost=\"-1\"", "at least 0"]),
            (&[("variantCost", "40")], ["variantCost=\"40\"", "without modelID"]),
            (&[("scalingPolicy", "gold")], ["scalingPolicy=\"gold\"", "without modelID"]),
            (
                &[("modelID", "m"), ("scalingPolicy", "default")],
                ["scalingPolicy=\"default\"", "is no key of a tier"],
            ),
            (
                &[("modelID", "m"), ("defaultOutputTokens", "-1")],
                ["defaultOutputTokens=\"-1\"", "from 1 to 1000000"],
            ),
            (
                &[("modelID", "m"), ("replicaStartSeconds", "2m")],
                ["replicaStartSeconds=\"2m\"", "from 1 to 86400"],
            ),
            (
                &[("variantName", "b"), ("variantCost", "40")],
                ["variantCost=\"40\"", "without modelID"],
            ),
        ] {
            let error = read("ns", "a", metadata).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{error} lacks {part}");
            }
        }
    }

    #[test]
    fn a_long_text_is_quoted_in_part() {
        let long = "x y".repeat(10_000);
        for metadata in [[("variantName", &*long)], [(&*long, "a")]] {
            let error = read("ns", "a", &metadata).unwrap_err();
            assert!(error.len() < 500, "{error}");
        }
    }
}

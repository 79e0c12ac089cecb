//! Files as other tools write and read them: merge keys, patches, templates, and what is no manifest.

use super::manifests::{VARIANT, lines};

#[test]
fn a_merge_key_takes_in_the_fields_of_other_mappings() {
    let model = |fields: &str| lines(&VARIANT.replace("  modelID: m\n", fields));
    let required = "WVA080 spec.modelID is required".to_owned();
    let minimum = "WVA080 spec.minReplicas is -1, and has to be at least 0".to_owned();
    for (fields, expected) in wva_base::cases! {
        ("", vec![required.clone()]),
        ("  <<: &common {modelID: m}\n", vec![]),
        ("  <<: [{modelID: m}, {modelID: \"\"}]\n", vec![]),
        // What stands in the mapping itself wins.
        ("  <<: {modelID: m, minReplicas: -1}\n", vec![]),
        ("  <<: {<<: {modelID: m}}\n", vec![]),
        ("  <<: m\n", vec!["WVA080 spec.<< is no field of this kind".to_owned(), required]),
    } {
        assert_eq!(model(fields), expected, "{fields}");
    }
    let merged = VARIANT.replace("minReplicas: 2\n", "<<: {minReplicas: -1}\n");
    assert_eq!(lines(&merged), [minimum]);
}

#[test]
fn a_metric_that_a_merge_key_brings_is_read() {
    let found = |metric: &str| {
        let external = "{type: External, external: {target: {type: AverageValue, averageValue: '1'}, \
                        metric: {name: wva_desired_replicas, \
                        selector: {matchLabels: {variant_name: a, exported_namespace: ns}}}}}";
        lines(&format!(
            "apiVersion: v1\nkind: List\nx-common: &external {external}\nitems:\n\
             - apiVersion: llmd.ai/v1alpha1\n  kind: VariantAutoscaling\n  metadata: {{name: a, namespace: ns}}\n  \
             spec: {{scaleTargetRef: {{name: a}}, modelID: m}}\n\
             - apiVersion: autoscaling/v2\n  kind: HorizontalPodAutoscaler\n  metadata: {{name: a, namespace: ns}}\n  \
             spec:\n    scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: a}}\n    maxReplicas: 5\n    \
             metrics: [{metric}]\n"
        ))
    };
    let other = found("{type: External}");
    assert!(
        other.len() == 1 && other[0].starts_with("WVA122"),
        "{other:?}"
    );
    assert_eq!(found("{<<: *external}"), Vec::<String>::new());
}

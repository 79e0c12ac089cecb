//! Which fields of entries are read.

use super::*;
use crate::bundle::read_bundle;

/// The fields that nothing reads, each behind the key of its entry.
fn unread(settings: &str) -> Vec<String> {
    let settings = read_bundle(settings).unwrap();
    let found = unread_fields(&settings).into_iter();
    let field = |text: String| text.split(": ").next().unwrap_or_default().to_owned();
    found.map(|(place, text)| format!("{} {}", place.entry, field(text))).collect()
}

/// Settings, and what is unread of them.
type Case<'a> = (&'a str, &'a [&'a str]);

#[test]
fn a_field_is_unread_where_no_model_of_its_entry_has_a_use_for_it() {
    let cases: [Case<'_>; 8] = [
        ("default: {kvSpareTrigger: 0.2, queueSpareTrigger: 2}", &[]),
        (
            "default: {analyzerName: saturation, kvSpareTrigger: 0.2, queueSpareTrigger: 2}",
            &["default kvSpareTrigger", "default queueSpareTrigger"],
        ),
        // Percentages stand in for `slo`, unless analyzers are listed.
        ("default: {analyzerName: slo, kvSpareTrigger: 0.2, scaleDownBoundary: 0.5}", &[]),
        (
            "default: {analyzerName: slo, analyzers: [{name: slo}], kvSpareTrigger: 0.2, scaleDownBoundary: 0.5}",
            &["default kvSpareTrigger", "default scaleDownBoundary"],
        ),
        // Every analyzer knows full replicas by these.
        (
            "default: {analyzerName: slo, kvCacheThreshold: 0.7, queueLengthThreshold: 4, burstReserve: strict}",
            &[],
        ),
        (
            "default: {scaleUpThreshold: 0.9, scaleDownBoundary: 0.5, burstReserve: strict}",
            &["default scaleUpThreshold", "default scaleDownBoundary", "default burstReserve"],
        ),
        ("default: {analyzerName: saturation, scaleUpThreshold: 0.9, scaleDownBoundary: 0.5}", &[]),
        (
            "default: {scaleUpThreshold: 0.9, scaleDownBoundary: 0.5, analyzers: [{name: saturation, \
             scaleUpThreshold: 0.8}]}",
            &["default scaleUpThreshold"],
        ),
    ];
    for (settings, expected) in cases {
        let settings = format!("saturation: {{{settings}}}");
        assert_eq!(unread(&settings), expected, "{settings}");
    }
}

#[test]
fn a_field_is_read_where_another_entry_selects_what_reads_it() {
    let cases: [Case<'_>; 5] = [
        ("gold: {kvSpareTrigger: 0.3}", &["gold kvSpareTrigger"]),
        ("m: {modelId: m, kvSpareTrigger: 0.3}", &["m kvSpareTrigger"]),
        ("m: {modelId: m, analyzerName: percentage, kvSpareTrigger: 0.3}", &[]),
        ("m: {modelId: m, kvSpareTrigger: 0.3}, gold: {analyzerName: percentage}", &[]),
        (
            "m: {modelId: m, kvSpareTrigger: 0.3}, n: {modelId: n, analyzerName: percentage}",
            &["m kvSpareTrigger"],
        ),
    ];
    for (entries, expected) in cases {
        let settings = format!("saturation: {{default: {{analyzerName: saturation}}, {entries}}}");
        assert_eq!(unread(&settings), expected, "{settings}");
    }
    let band = "saturation: {default: {scaleUpThreshold: 0.9}";
    let cases: [Case<'_>; 6] = [
        ("}", &["default scaleUpThreshold"]),
        (", m: {modelId: m, analyzerName: saturation}}", &[]),
        (
            ", m: {modelId: m, analyzerName: saturation, scaleUpThreshold: 0.8}}",
            &["default scaleUpThreshold"],
        ),
        ("}\nnamespaces: {a: {saturation: {default: {analyzerName: slo}}}}", &[]),
        ("}\nqueueingModel: {default: {}}", &[]),
        ("}\nEXPERIMENTAL_PROACTIVE_MODEL: true", &[]),
    ];
    for (more, expected) in cases {
        let settings = format!("{band}{more}");
        assert_eq!(unread(&settings), expected, "{settings}");
    }
}

#[test]
fn the_queueing_model_and_hybrid_mode_have_readers_of_their_own() {
    let entry =
        "saturation: {default: {analyzerName: slo, kvSpareTrigger: 0.2, burstReserve: strict";
    let cases: [Case<'_>; 4] = [
        ("}}", &[]),
        ("}}\nqueueingModel: {default: {}}", &["default kvSpareTrigger", "default burstReserve"]),
        (", analyzers: [{name: slo}]}}\nqueueingModel: {default: {}}", &["default kvSpareTrigger"]),
        ("}}\nEXPERIMENTAL_PROACTIVE_MODEL: true", &["default burstReserve"]),
    ];
    for (more, expected) in cases {
        let settings = format!("{entry}{more}");
        assert_eq!(unread(&settings), expected, "{settings}");
    }
}

fn title(one: &PlacedEntry<'_>) -> String {
    let scope = one.scope.map_or("", |scope| &**scope);
    format!("{scope}/{}", one.key)
}

#[test]
fn an_entry_meets_no_selector_of_another_model_or_namespace() {
    let settings = "saturation: {default: {analyzerName: saturation}, m: {modelId: m, analyzerName: slo}, \
                    n: {modelId: n, analyzerName: slo}, gold: {analyzerName: slo}, silent: {priority: 2}}\n\
                    namespaces: {a: {saturation: {default: {analyzerName: slo}}}, \
                    b: {saturation: {m: {modelId: m, namespace: b, analyzerName: slo}}}}";
    let settings = read_bundle(settings).unwrap();
    let mut all = placed(&settings.saturation.entries);
    all.sort_by_key(|one| one.rank);
    let selectors = Selectors::of(&all);
    let met = |wanted: &str| -> Vec<String> {
        let one = all.iter().find(|one| title(one) == wanted).unwrap();
        selectors.met_by(one).into_iter().map(title).collect()
    };
    assert_eq!(met("/m"), ["b/m", "/gold", "a/default", "/m", "/default"]);
    assert_eq!(met("/n"), ["/gold", "a/default", "/n", "/default"]);
    assert_eq!(met("b/m"), ["b/m", "/gold", "/m", "/default"]);
    assert_eq!(met("a/default"), ["/gold", "a/default", "/m", "/n", "/default"]);
}

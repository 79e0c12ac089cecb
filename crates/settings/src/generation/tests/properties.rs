//! What holds for every sequence of edits.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::sources::Data;

/// One edit of the cluster's ConfigMaps.
#[derive(Debug, Clone)]
enum Edit {
    Main(&'static str, Option<&'static str>),
    Saturation(Option<&'static str>, &'static str, Option<&'static str>),
    Zero(&'static str, Option<&'static str>),
    Queueing(Option<&'static str>),
    Classes(Option<&'static str>),
    DropMain,
    DropNamespace,
}

fn text(
    valid: &'static [&'static str],
    broken: &'static [&'static str],
) -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![
        4 => select(valid).prop_map(Some),
        2 => select(broken).prop_map(Some),
        1 => Just(None),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    let live = prop_oneof![
        (Just("GLOBAL_OPT_INTERVAL"), text(&["2s", "30s", "1m"], &["60", "-1s", "2h", "soon"])),
        (Just("PROMETHEUS_METRICS_CACHE_TTL"), text(&["0", "5s"], &["1M", "x"])),
        (Just("PROMETHEUS_METRICS_CACHE_MAX_SIZE"), text(&["0", "9"], &["-1", "many"])),
        (Just("LOG_LEVEL"), text(&["debug", "error"], &["loud"])),
        (Just("V"), text(&["0", "3"], &["-3"])),
        (Just("LEADER_ELECTION_ID"), text(&["a", "b"], &["A B"])),
        (Just("PROMETHEUS_BASE_URL"), text(&["https://a", "https://b"], &["a", ""])),
        (Just("METRICS_SECURE"), text(&["true", "false"], &["maybe"])),
    ];
    let scope = select(&[None, Some("ns")][..]);
    let saturation = text(
        &["priority: 2", "kvCacheThreshold: 0.5", "", "modelId: m\nkvCacheThreshold: 0.6"],
        &["[", "kvCacheThreshold: 5", "priority: high"],
    );
    let model = text(
        &["modelId: m\nqueueSpareTrigger: 0", "modelId: n\nkvSpareTrigger: 0.3"],
        &["kvCacheThreshold: 0.5", "modelId: [m]"],
    );
    prop_oneof![
        4 => live.prop_map(|(key, text)| Edit::Main(key, text)),
        2 => (scope.clone(), saturation).prop_map(|(scope, text)| Edit::Saturation(scope, "default", text)),
        2 => (scope, select(&["a", "b"][..]), model).prop_map(|(scope, key, text)| Edit::Saturation(scope, key, text)),
        2 => (
            select(&["default", "x"][..]),
            text(
                &["model_id: m\nenable_scale_to_zero: true", "model_id: m\nretention_period: 5m"],
                &["model_id: m\nretention_period: abc", "model_id: m\nenable_scale_to_zero: 3"],
            ),
        )
            .prop_map(|(key, text)| Edit::Zero(key, text)),
        1 => text(&["sloMultiplier: 2", "tuningEnabled: false"], &["sloMultiplier: 1"]).prop_map(Edit::Queueing),
        1 => text(
            &["name: A\npriority: 1\ndata: [{model: m, slo-tpot: 1, slo-ttft: 2}]", "name: B\npriority: 2"],
            &["name: A", "priority: 1"],
        )
        .prop_map(Edit::Classes),
        1 => Just(Edit::DropMain),
        1 => Just(Edit::DropNamespace),
    ]
}

fn set(data: &mut Data, key: &str, text: Option<&str>) {
    match text {
        Some(text) => data.insert(key.to_owned(), text.to_owned()),
        None => data.remove(key),
    };
}

fn apply(sources: &mut Sources, edit: &Edit) {
    let namespace = || Arc::<str>::from("ns");
    match edit {
        Edit::Main(key, text) => {
            let mut data = match std::mem::take(&mut sources.main) {
                MainConfigMap::Present(data) => data,
                _ => Data::new(),
            };
            set(&mut data, key, *text);
            sources.main = MainConfigMap::Present(data);
        }
        Edit::Saturation(None, key, text) => {
            set(sources.saturation.global.get_or_insert_default(), key, *text);
        }
        Edit::Saturation(Some(_), key, text) => {
            let local = sources.saturation.namespaces.entry(namespace()).or_default();
            set(local, key, *text);
        }
        Edit::Zero(key, text) => {
            set(sources.scale_to_zero.global.get_or_insert_default(), key, *text);
        }
        Edit::Queueing(text) => {
            set(sources.queueing_model.global.get_or_insert_default(), "default", *text);
        }
        Edit::Classes(text) => {
            set(sources.service_classes.get_or_insert_default(), "a", *text);
        }
        Edit::DropMain => sources.main = MainConfigMap::Absent,
        Edit::DropNamespace => sources.saturation.namespaces.clear(),
    }
}

/// Whether every live value and entry of the sources is accepted.
fn accepted(diagnostics: &Diagnostics) -> bool {
    diagnostics.problems.iter().all(|problem| match problem {
        Problem::Setting { error, .. } => {
            schema::all().any(|spec| spec.name == error.key && spec.change == Mutability::Static)
        }
        Problem::Entry(_) => false,
    })
}

/// The sources at a fresh start: the static settings of the main ConfigMap are left out, since
/// nonsense there ends a start.
fn live_only(sources: &Sources) -> Sources {
    let mut sources = sources.clone();
    if let MainConfigMap::Present(data) = &mut sources.main {
        data.retain(|key, _| {
            schema::all().any(|spec| spec.name == key && spec.change == Mutability::Live)
        });
    }
    sources
}

/// Replaces every text that is not accepted by leaving it out, so that what is left parses.
fn repaired(sources: &Sources) -> Sources {
    let mut sources = sources.clone();
    for _ in 0..20 {
        let diagnostics = start(&live_only(&sources)).unwrap().diagnostics;
        if accepted(&diagnostics) {
            break;
        }
        for problem in diagnostics.problems {
            match problem {
                Problem::Setting { error, .. } => {
                    apply(&mut sources, &Edit::Main(error.key, None));
                }
                Problem::Entry(problem) => remove(&mut sources, &problem.place),
            }
        }
    }
    sources
}

fn remove(sources: &mut Sources, place: &crate::problem::EntryPlace) {
    let policy = match place.purpose {
        Purpose::Saturation => &mut sources.saturation,
        Purpose::ScaleToZero => &mut sources.scale_to_zero,
        Purpose::QueueingModel => &mut sources.queueing_model,
        Purpose::ServiceClasses => {
            sources.service_classes.as_mut().unwrap().remove(&place.entry);
            return;
        }
        Purpose::Main => return,
    };
    match &place.namespace {
        None => policy.global.as_mut().unwrap().remove(&place.entry),
        Some(namespace) => policy.namespaces.get_mut(namespace).unwrap().remove(&place.entry),
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_way_to_a_state_that_parses_ends_like_a_fresh_start_in_it(edits in prop::collection::vec(edit(), 0..25)) {
        let mut state = sources(&[], &[]);
        let first = start(&state).unwrap().generation;
        let mut current = first.clone();
        let mut steps = 1;
        for edit in &edits {
            apply(&mut state, edit);
            let after = transition(&current, &state);
            prop_assert_eq!(after.next.is_some(), !after.changes.is_empty());
            if let Some(next) = after.next {
                steps += 1;
                current = next;
                prop_assert_eq!(current.number, steps);
            }
            // Immutable settings keep the value of the start.
            prop_assert_eq!(&current.statics, &first.statics);
            // Nothing is left to do for the same sources.
            let again = transition(&current, &state);
            prop_assert_eq!(again.next, None);
        }
        let state = repaired(&state);
        if let Some(next) = transition(&current, &state).next {
            current = next;
        }
        let fresh = start(&live_only(&state)).unwrap().generation;
        prop_assert_eq!(&current.dynamic, &fresh.dynamic);
        prop_assert_eq!(&current.statics, &fresh.statics);
    }

    #[test]
    fn no_sources_make_reading_panic(
        key in "[A-Za-z_.-]{0,12}|GLOBAL_OPT_INTERVAL|config.yaml|WVA_NODE_SELECTOR|PROMETHEUS_BASE_URL",
        text in "\\PC{0,60}",
        entry in "[-a-zA-Z:{}\\[\\] \n0-9.]{0,120}",
    ) {
        let mut random = sources(&[], &[(&key, &text)]);
        random.saturation.global = Some(data(&[(&key, &entry), ("default", &text)]));
        random.service_classes = Some(data(&[("serviceClasses", &entry), ("a", &text)]));
        random.scale_to_zero.global = Some(data(&[("default", &entry)]));
        random.queueing_model.global = Some(data(&[("default", &entry)]));
        drop(start(&random));
        let before = start(&sources(&[], &[])).unwrap().generation;
        drop(transition(&before, &random));
        random.config_file = Some(entry);
        drop(start(&random));
    }
}

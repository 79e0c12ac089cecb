//! A key without an effect fails here.

use super::*;
use crate::address::BindAddress;
use crate::schema::{Mutability, SettingState};
use crate::value::ValueKind;

/// Settings that only act together with others: those are set on both sides of the comparison.
const COMPANIONS: &[(&str, &str)] = &[
    ("EXTERNAL_METRICS_CERT_PATH", "/certificates"),
    ("EXTERNAL_SCALER_CERT_PATH", "/certificates"),
    ("METRICS_CERT_PATH", "/certificates"),
    ("PROMETHEUS_CLIENT_CERT_PATH", "/client.crt"),
    ("PROMETHEUS_CLIENT_KEY_PATH", "/client.key"),
    ("WEBHOOK_CERT_PATH", "/certificates"),
];

/// Static settings that decisions rest on as well.
const DECIDE: [&str; 4] =
    ["EXPERIMENTAL_PROACTIVE_MODEL", "WVA_LIMITED_MODE", "WVA_NODE_SELECTOR", "WVA_SCALE_TO_ZERO"];

fn sample(spec: &Spec) -> &'static str {
    match spec.kind {
        // Ages of samples keep their order.
        _ if spec.name == schema::CACHE_STALE_THRESHOLD.name => "90s",
        _ if spec.name == schema::CACHE_UNAVAILABLE_THRESHOLD.name => "3m",
        _ if spec.name == schema::DECISION_RECORD_FILE_BYTES.name => "7000000",
        ValueKind::Bool if spec.default == "true" => "false",
        ValueKind::Bool => "true",
        ValueKind::Duration { .. } => "7s",
        ValueKind::Count { .. } => "7",
        ValueKind::Url => "https://elsewhere",
        ValueKind::Address => ":7",
        ValueKind::Selector => "gpu=true",
        ValueKind::Hosts => "metrics.example",
        ValueKind::Controllers => "-pod-autoscaler-controller",
        ValueKind::PoolGroup => "inference.networking.k8s.io",
        ValueKind::LogLevel => "debug",
        ValueKind::LogFormat => "text",
        ValueKind::Path => "/elsewhere",
        ValueKind::Text
        | ValueKind::Secret
        | ValueKind::Namespace
        | ValueKind::ObjectName
        | ValueKind::LabelValue => "x",
    }
}

fn live(generation: &Generation) -> (&DynamicSettings, LogLevel) {
    (&generation.dynamic, generation.log_level())
}

#[test]
fn clients_of_the_external_scaler_prove_themselves_over_tls_alone() {
    let authorities = ("EXTERNAL_SCALER_CLIENT_CA_PATH", "/ca.crt");
    let plain = ("EXTERNAL_SCALER_SECURE", "false");
    for accepted in [authorities, plain] {
        assert!(start(&sources(&[accepted], &[])).is_ok(), "{accepted:?}");
    }
    let errors = start(&sources(&[authorities, plain], &[])).unwrap_err();
    let text = format!("{errors:?}");
    assert!(text.contains("EXTERNAL_SCALER_SECURE=true"), "{text}");
}

#[test]
fn the_switch_of_aibrix_leaves_no_webhooks() {
    let webhooks = |address: &str, switch: &str| {
        let mut sources = sources(&[("WEBHOOK_BIND_ADDRESS", address)], &[]);
        let given = GivenFlag { name: "disable-webhook", text: switch.to_owned() };
        sources.flags.insert("DISABLE_WEBHOOK", given);
        start(&sources).unwrap().generation.statics.serving.webhooks
    };
    assert_ne!(webhooks(":9443", "false"), BindAddress::Off);
    assert_eq!(webhooks(":9443", "true"), BindAddress::Off);
    assert_eq!(webhooks("0", "true"), BindAddress::Off);
}

#[test]
fn every_key_that_is_not_inert_changes_what_the_process_works_with() {
    let before = start(&sources(COMPANIONS, &[])).unwrap().generation;
    let mut checked = 0;
    for spec in schema::all().filter(|spec| spec.reach != Reach::Flag) {
        let mut environment: BTreeMap<&str, &str> = COMPANIONS.iter().copied().collect();
        environment.insert(spec.name, sample(spec));
        let environment: Vec<(&str, &str)> = environment.into_iter().collect();
        let after = start(&sources(&environment, &[]))
            .unwrap_or_else(|errors| panic!("{}: {errors:?}", spec.name))
            .generation;
        let statics = after.statics != before.statics;
        let dynamic = live(&after) != live(&before);
        let expected = match (spec.state, spec.change) {
            (SettingState::Inert, _) => (false, false),
            (_, Mutability::Static) if DECIDE.contains(&spec.name) => (true, true),
            (_, Mutability::Static) => (true, false),
            (_, Mutability::Live) => (false, true),
        };
        assert_eq!((statics, dynamic), expected, "{}", spec.name);
        checked += 1;
    }
    assert!(checked >= 54, "{checked}");
}

#[test]
fn every_live_key_follows_the_config_map_and_every_other_one_is_rejected() {
    let before = start(&sources(COMPANIONS, &[])).unwrap().generation;
    for spec in schema::all().filter(|spec| spec.reach == Reach::Everywhere) {
        let after = transition(&before, &sources(COMPANIONS, &[(spec.name, sample(spec))]));
        let rejected: Vec<&str> = after.rejected.iter().map(|one| one.key).collect();
        let changed: Vec<&str> = after.changes.iter().map(|change| change.key).collect();
        match spec.change {
            Mutability::Live => {
                assert_eq!(changed, [spec.name]);
                assert_eq!(rejected, Vec::<&str>::new(), "{}", spec.name);
                let next = after.next.unwrap();
                assert_eq!(next.statics, before.statics);
                assert_ne!(live(&next), live(&before), "{}", spec.name);
                let back = transition(&next, &sources(COMPANIONS, &[])).next.unwrap();
                assert_eq!(live(&back), live(&before), "{}", spec.name);
            }
            Mutability::Static => {
                assert_eq!(rejected, [spec.name]);
                assert_eq!(after.next, None, "{}", spec.name);
            }
        }
    }
}

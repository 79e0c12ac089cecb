//! Edits of settings that are read at start alone.

use std::time::Duration;

use crate::chaos::dice::Dice;
use crate::world::controller::environment;
use wva::settings::schema::{self, Mutability, Reach, Spec};
use wva::settings::value::ValueKind;
use wva_base::duration::format_duration;
use wva_supervise::SeedTree;

/// Keys that are not edited. A process that starts meanwhile follows the edit rightly, and keeps it for as long
/// as it lives.
const LEFT_OUT: [&str; 21] = [
    // Together with an address without TLS they forbid a start.
    schema::PROMETHEUS_BEARER_TOKEN.name,
    schema::PROMETHEUS_TOKEN_PATH.name,
    schema::PROMETHEUS_TLS_INSECURE_SKIP_VERIFY.name,
    schema::PROMETHEUS_CA_CERT_PATH.name,
    schema::PROMETHEUS_CLIENT_CERT_PATH.name,
    schema::PROMETHEUS_CLIENT_KEY_PATH.name,
    schema::PROMETHEUS_SERVER_NAME.name,
    // A file that is not there forbids a start.
    schema::POD_AUTOSCALER_CA_CERT_PATH.name,
    // It would see other objects than the judge.
    schema::WATCH_NAMESPACE.name,
    schema::CONTROLLER_INSTANCE.name,
    // It would lead next to the leader.
    schema::LEADER_ELECTION_ID.name,
    // It would leave objects alone that others decide on.
    schema::POD_AUTOSCALERS_ENABLED.name,
    schema::ANNOTATED_SCALERS_ENABLED.name,
    // It would add a role and a query.
    schema::POD_DELETION_COST_ENABLED.name,
    // It would decide by other rules than the judge.
    schema::SATURATION_CONFIG_MAP_NAME.name,
    schema::PROACTIVE_MODEL.name,
    schema::SCALE_TO_ZERO.name,
    // In plain text no client can prove itself, which forbids a start.
    schema::EXTERNAL_SCALER_CLIENT_CA_PATH.name,
    // They would open a port or write a file of this machine.
    schema::EXTERNAL_METRICS_BIND_ADDRESS.name,
    schema::EXTERNAL_SCALER_BIND_ADDRESS.name,
    schema::DECISION_RECORD_FILE.name,
];

fn fixed() -> Vec<&'static Spec> {
    let is_fixed = |spec: &&Spec| {
        spec.change == Mutability::Static
            && spec.reach == Reach::Everywhere
            && !LEFT_OUT.contains(&spec.name)
    };
    schema::all().filter(is_fixed).collect()
}

/// A key and what it holds from now on, drawn from a number: not what any process runs with.
pub(super) fn draw(number: u64) -> (&'static str, String) {
    let mut dice = Dice::new(SeedTree::new(number).child("fixed"));
    let specs = fixed();
    let spec = dice.pick(&specs).copied().unwrap_or(&schema::LIMITED_MODE);
    (spec.name, value_of(spec, &mut dice))
}

fn value_of(spec: &Spec, dice: &mut Dice) -> String {
    match spec.kind {
        ValueKind::Bool => {
            let environment = environment("", Duration::ZERO);
            let runs = environment.get(spec.name);
            let runs = runs.map_or(spec.default, String::as_str);
            (runs != "true").to_string()
        }
        ValueKind::Duration { least, most } => {
            // Longer than any request that is answered takes.
            let least = least.max(Duration::from_secs(21));
            format_duration(dice.time(least, most))
        }
        ValueKind::Count { most, .. } => most.to_string(),
        // All nodes with GPUs have it.
        ValueKind::Selector => "nvidia.com/gpu.product".to_owned(),
        // Pools of the other one are in no run.
        ValueKind::PoolGroup => "inference.networking.k8s.io".to_owned(),
        ValueKind::Hosts => "*".to_owned(),
        ValueKind::Controllers => "pod-autoscaler-controller".to_owned(),
        ValueKind::Url => "https://elsewhere:9090".to_owned(),
        ValueKind::Address => ":9443".to_owned(),
        ValueKind::LogFormat => "text".to_owned(),
        ValueKind::LogLevel => "debug".to_owned(),
        ValueKind::Text
        | ValueKind::Secret
        | ValueKind::Path
        | ValueKind::Namespace
        | ValueKind::ObjectName
        | ValueKind::LabelValue => {
            // Two ConfigMaps of one name forbid a start.
            let name = spec.name.to_lowercase().replace('_', "-");
            format!("elsewhere-{name}")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use wva::settings::generation::transition;
    use wva::settings::sources::MainConfigMap;
    use wva::settings::{Sources, start};

    fn sources(main: &BTreeMap<String, String>) -> Sources {
        let mut environment = environment("pod", Duration::from_secs(10));
        // As every process here is started.
        for name in ["LEASE_DURATION", "RENEW_DEADLINE", "RETRY_PERIOD"] {
            let spec = schema::all().find(|spec| spec.name.ends_with(name)).unwrap();
            environment.insert(spec.name.to_owned(), spec.default.to_owned());
        }
        Sources { environment, main: MainConfigMap::Present(main.clone()), ..Sources::default() }
    }

    #[test]
    fn every_fixed_key_is_edited_to_what_runs_nowhere_and_no_start_is_refused() {
        let first = start(&sources(&BTreeMap::new())).unwrap().generation;
        let mut all = BTreeMap::new();
        for number in 0..1_000 {
            let (key, value) = draw(number);
            assert_eq!((key, value.clone()), draw(number));
            all.insert(key.to_owned(), value);
        }
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        let mut expected: Vec<&str> = fixed().iter().map(|spec| spec.name).collect();
        expected.sort_unstable();
        assert_eq!(names, expected);
        assert!(names.len() > 20, "{names:?}");

        let nothing = transition(&first, &sources(&BTreeMap::new()));
        assert_eq!(nothing.rejected.len(), 0);
        for (key, value) in &all {
            let edited = [(key.clone(), value.clone())].into();
            let edited = transition(&first, &sources(&edited));
            let rejected: Vec<&str> = edited.rejected.iter().map(|one| one.key).collect();
            assert_eq!(rejected, [&**key], "{value}");
            assert!(edited.next.is_none(), "{key}");
        }
        // However many of them there are at a time.
        assert!(start(&sources(&all)).is_ok());
    }
}

//! What holds for every autoscaler.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::{Loop, READY, name, policy, signal};
use crate::pod_autoscaler::amounts::PodsPerReplica;
use crate::pod_autoscaler::decide::AutoscalerView;
use crate::pod_autoscaler::demand::{AutoscaledPod, SourceReading};
use crate::signal::{Failure, Signal};
use crate::units::Replicas;

/// A fleet whose ready pods share a constant load; the newest pods go first.
struct Fleet {
    load: f64,
    start_up: u64,
    /// When each pod was created.
    created: Vec<u64>,
}

impl Fleet {
    fn scale(&mut self, count: u32, now: u64) {
        self.created.resize(usize::try_from(count).unwrap(), now);
    }

    fn view(&self, now: u64) -> AutoscalerView {
        let ready_for = |created: u64| now.checked_sub(created + self.start_up);
        let ready: Vec<usize> = (0..self.created.len())
            .filter(|number| ready_for(self.created[*number]).is_some())
            .collect();
        // The first sample of a pod comes 10 s after it is ready.
        let each = self.load / f64::from(u32::try_from(ready.len().max(1)).unwrap());
        let pods = self.created.iter().enumerate().map(|(number, created)| {
            let state = ready_for(*created).map_or(AutoscaledPod::Pending, |seconds| {
                AutoscaledPod::Ready { ready_for: Duration::from_secs(seconds) }
            });
            (name(number), state)
        });
        let samples = ready
            .iter()
            .filter(|number| ready_for(self.created[**number]) >= Some(10))
            .map(|number| (name(*number), signal(each)));
        AutoscalerView {
            current: Replicas(u32::try_from(self.created.len()).unwrap()),
            pods_per_replica: PodsPerReplica::ONE,
            pods: pods.collect(),
            readings: vec![SourceReading::Pods(samples.collect())],
            held: None,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn constant_load_settles(
        start in 1_u32..40,
        load in 0_u32..600,
        window in 60_u64..600,
        start_up in 0_u64..600,
        strategy in prop_oneof![Just("APA"), Just("KPA")],
    ) {
        let spec = format!("scalingStrategy: {strategy}\nmaxReplicas: 100\nobserveWindowSeconds: {window}");
        let mut run = Loop::new(policy(&spec, &[]), start);
        let load = f64::from(load);
        let mut fleet = Fleet { load, start_up, created: vec![0; usize::try_from(start).unwrap()] };
        let mut counts = vec![start];
        for _ in 0..1_000 {
            let now = run.seconds;
            let decision = run.decide(&fleet.view(now));
            fleet.scale(decision.desired.0, now);
            counts.push(decision.desired.0);
        }
        // Within tolerance, in one direction, without passing the need by.
        let carried = f64::from(*counts.last().unwrap()) * 10.0;
        let needed = f64::from(start) * 10.0;
        prop_assert!(load <= carried * 1.1 + 1e-6, "{:?}", counts);
        prop_assert!(carried <= 10.0 || (carried - 10.0) < load / 0.9, "{:?}", counts);
        let settled = &counts[counts.len() - 500..];
        prop_assert!(settled.iter().all(|count| *count == settled[0]), "{:?}", counts);
        let is_up = load > needed;
        for pair in counts.windows(2) {
            prop_assert!(if is_up { pair[0] <= pair[1] } else { pair[0] >= pair[1] }, "{:?}", counts);
        }
    }

    #[test]
    fn any_history_stays_in_bounds_and_leaves_no_gap(
        cycles in prop::collection::vec((prop::collection::vec(any_pod(), 0..6), 0_u32..400), 1..40),
        start in 0_u32..12,
        strategy in prop_oneof![Just("APA"), Just("KPA")],
        zero in any::<bool>(),
    ) {
        let annotations = [("scale-to-zero", if zero { "true" } else { "false" })];
        let spec = format!("scalingStrategy: {strategy}\nminReplicas: 0\nmaxReplicas: 9");
        let mut run = Loop::new(policy(&spec, &annotations), start);
        for (pods, wait) in cycles {
            run.seconds += u64::from(wait);
            let current = run.current;
            let named = pods.iter().enumerate();
            let samples = named.clone().filter_map(|(number, (_, signal))| Some((name(number), (*signal)?)));
            let view = AutoscalerView {
                current: Replicas(current),
                pods_per_replica: PodsPerReplica::ONE,
                pods: named.map(|(number, (pod, _))| (name(number), *pod)).collect(),
                readings: vec![SourceReading::Pods(samples.collect::<BTreeMap<_, _>>())],
                held: None,
            };
            let usable = pods.iter().any(|(_, signal)| signal.and_then(Signal::value).is_some());
            let decision = run.decide(&view);
            prop_assert!(decision.desired <= Replicas(9));
            prop_assert!(current > 9 || usable || decision.desired == decision.current);
            prop_assert!(zero || current == 0 || decision.desired > Replicas::ZERO);
            let chain: Vec<_> = decision.steps.iter()
                .filter(|step| step.stage != crate::pod_autoscaler::reason::AutoscalerStage::Metric)
                .collect();
            prop_assert_eq!(chain[0].from, decision.current);
            prop_assert!(chain.windows(2).all(|pair| pair[0].to == pair[1].from), "{:?}", decision);
            prop_assert_eq!(chain[chain.len() - 1].to, decision.desired);
            let text = serde_json::to_string(&run.state).unwrap();
            prop_assert_eq!(serde_json::from_str::<crate::pod_autoscaler::AutoscalerState>(&text).unwrap(), run.state.clone());
        }
    }
}

fn any_pod() -> impl Strategy<Value = (AutoscaledPod, Option<Signal>)> {
    let state = prop_oneof![
        4 => Just(READY),
        1 => Just(AutoscaledPod::Pending),
        1 => Just(AutoscaledPod::Gated),
        1 => Just(AutoscaledPod::Draining),
        1 => Just(AutoscaledPod::Resharding),
    ];
    let failed = Signal::Failed { why: Failure::QueryFailed };
    let sample = prop_oneof![
        4 => (0_u32..50).prop_map(|value| Some(signal(f64::from(value)))),
        1 => Just(None),
        1 => Just(Some(failed)),
    ];
    (state, sample)
}

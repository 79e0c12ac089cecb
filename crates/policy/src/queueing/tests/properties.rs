//! What holds whatever the numbers are.

use proptest::prelude::*;

use super::answers::parameters;
use crate::queueing::chain::BirthDeathQueue;
use crate::queueing::observation::ReplicaObservation;
use crate::queueing::performance::ReplicaModel;
use crate::queueing::quantity::{Millis, RequestRate};
use crate::queueing::service::{ReplicaRoom, Workload};
use crate::queueing::sizing::{Latency, SizingError, Targets};
use crate::queueing::tuner::{TunerSettings, tune};

prop_compose! {
    fn models()(
        alpha in 0.1_f64..50.0,
        beta in 0.0_f64..0.5,
        gamma in 0.0_f64..0.005,
        input in 0.0_f64..4000.0,
        output in 1.0_f64..1000.0,
        batch in 1_u32..128,
        queue in 0_u32..200,
    ) -> ReplicaModel {
        let workload = Workload { input_tokens: input, output_tokens: output };
        let shape = ReplicaRoom { batch, queue };
        ReplicaModel::new(parameters([alpha, beta, gamma]), workload, shape).unwrap()
    }
}

fn between(model: &ReplicaModel, share: f64) -> RequestRate {
    let range = model.range();
    RequestRate(range.min.0 + share * (range.max.0 - range.min.0))
}

proptest! {
    #[test]
    fn latencies_rise_with_the_rate(model in models(), one in 0.0_f64..1.0, other in 0.0_f64..1.0) {
        let slow = model.analyze(between(&model, one.min(other))).unwrap();
        let fast = model.analyze(between(&model, one.max(other))).unwrap();
        let rises = |low: f64, high: f64| low <= high * (1.0 + 1e-9) + 1e-9;
        prop_assert!(rises(slow.time_to_first_token.0, fast.time_to_first_token.0));
        prop_assert!(rises(slow.response_time.0, fast.response_time.0));
        prop_assert!(rises(slow.in_service, fast.in_service));
        prop_assert!(rises(slow.wait_time.0, fast.wait_time.0));
        prop_assert!(rises(slow.utilisation, fast.utilisation));
    }

    /// QMA-35.
    #[test]
    fn throughput_is_positive_and_at_most_the_rate(model in models(), share in 0.0_f64..=1.0) {
        let rate = between(&model, share);
        let performance = model.analyze(RequestRate(rate.0.min(model.range().max.0))).unwrap();
        prop_assert!(performance.throughput.0 > 0.0);
        prop_assert!(performance.throughput.0 <= rate.0 * (1.0 + 1e-9));
    }

    /// QMZ-17, and that no target is missed by being too careful.
    #[test]
    fn a_sized_rate_meets_its_targets_and_no_much_higher_one_does(
        model in models(), first in 1.0_f64..20_000.0, step in 0.1_f64..500.0,
    ) {
        let targets = Targets {
            time_to_first_token: Some(Millis(first)),
            inter_token_latency: Some(Millis(step)),
            tokens_per_second: None,
        };
        match model.size(&targets) {
            Ok(sizing) => {
                let reached = model.analyze(sizing.rate).unwrap();
                prop_assert!(reached.time_to_first_token.0 <= first * 1.0001);
                prop_assert!(reached.inter_token_latency.0 <= step * 1.0001);
                let higher = RequestRate(sizing.rate.0 * 1.05);
                if let Ok(beyond) = model.analyze(higher) {
                    prop_assert!(
                        beyond.time_to_first_token.0 > first * 0.9999
                            || beyond.inter_token_latency.0 > step * 0.9999
                    );
                }
            }
            Err(SizingError::Unreachable { latency, target, least }) => {
                let idle = model.analyze(model.range().min).unwrap();
                let reached = match latency {
                    Latency::TimeToFirstToken => idle.time_to_first_token,
                    Latency::InterTokenLatency => idle.inter_token_latency,
                };
                prop_assert_eq!(reached, least);
                prop_assert!(least > target);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn probabilities_add_up_and_flows_balance(
        rates in prop::collection::vec(0.01_f64..100.0, 1..40), room in 1_u32..400, load in 0.0_f64..3.0,
    ) {
        let queue = BirthDeathQueue::new(rates.clone(), room).unwrap();
        let arrivals = (load * queue.full_rate()).min(f64::from(room) * queue.full_rate() * 0.99);
        let probabilities = queue.probabilities(arrivals).unwrap();
        let sum: f64 = probabilities.iter().sum();
        prop_assert!((sum - 1.0).abs() < 1e-9);
        let found = queue.solve(arrivals).unwrap();
        let served: f64 = probabilities
            .iter()
            .skip(1)
            .enumerate()
            .map(|(index, probability)| probability * rates[index.min(rates.len() - 1)])
            .sum();
        prop_assert!((served - found.throughput).abs() <= 1e-9 * served.max(1e-9));
    }

    #[test]
    fn any_number_gives_an_answer_or_an_error(
        numbers in prop::array::uniform8(prop::num::f64::ANY), batch in 0_u32..300, queue in 0_u32..300,
    ) {
        let [alpha, beta, gamma, input, output, rate, first, step] = numbers;
        let workload = Workload { input_tokens: input, output_tokens: output };
        let made = ReplicaModel::new(
            parameters([alpha, beta, gamma]), workload, ReplicaRoom { batch, queue },
        );
        if let Ok(model) = made {
            let targets = Targets {
                time_to_first_token: Some(Millis(first)),
                inter_token_latency: Some(Millis(step)),
                tokens_per_second: Some(rate),
            };
            if let Ok(sizing) = model.size(&targets) {
                prop_assert!(sizing.rate.0.is_finite() && sizing.performance.throughput.0.is_finite());
            }
            if let Ok(performance) = model.analyze(RequestRate(rate)) {
                prop_assert!(performance.response_time.0.is_finite());
            }
        }
        let observation = ReplicaObservation {
            rate: RequestRate(rate),
            workload,
            batch,
            time_to_first_token: Millis(first),
            inter_token_latency: Millis(step),
        };
        let tuned = tune(None, &[observation; 3], &TunerSettings::default());
        prop_assert_eq!(tuned.is_some(), observation.is_usable());
    }
}

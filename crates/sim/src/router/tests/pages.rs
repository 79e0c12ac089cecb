use super::{SECOND, arrival, engine, pool};
use crate::router::{FlowControl, RouterMetricNames};

const ALL: [RouterMetricNames; 4] = [
    RouterMetricNames::Model,
    RouterMetricNames::Objective,
    RouterMetricNames::RouterEpp,
    RouterMetricNames::Epp,
];

fn text(generation: RouterMetricNames) -> String {
    let mut pool = pool(Some(FlowControl::default()));
    pool.submit(arrival(100, 10), SECOND);
    pool.add("a", engine(SECOND), SECOND);
    pool.set_ready("a", true, SECOND);
    pool.advance(SECOND * 10);
    pool.set_ready("a", false, SECOND * 10);
    pool.submit(arrival(50, 10), SECOND * 10);
    pool.page(generation).to_string()
}

#[test]
fn every_generation_has_its_names_and_labels() {
    let cases: [(RouterMetricNames, &[&str]); 4] = [
        (
            RouterMetricNames::Model,
            &[
                "inference_model_request_total{model_name=\"chat\",target_model_name=\"Qwen/Qwen3-8B\"} 2",
                "inference_extension_scheduler_attempts_total{status=\"success\",target_model_name=\"Qwen/Qwen3-8B\",pod_name=\"a\",namespace=\"ns\",port=\"8000\"} 1",
            ],
        ),
        (
            RouterMetricNames::Objective,
            &[
                "inference_objective_running_requests{model_name=\"chat\"} 0",
                "inference_extension_flow_control_queue_size{fairness_id=\"default-flow\",priority=\"0\",inference_pool=\"pool\",model_name=\"chat\",target_model_name=\"Qwen/Qwen3-8B\"} 1",
            ],
        ),
        (
            RouterMetricNames::RouterEpp,
            &[
                "llm_d_router_epp_flow_control_queue_bytes{fairness_id=\"default-flow\",priority=\"0\",inference_pool=\"pool\",model_name=\"chat\",target_model_name=\"Qwen/Qwen3-8B\"} 200",
                "llm_d_router_epp_scheduler_attempts_total{status=\"success\",target_model_name=\"Qwen/Qwen3-8B\",pod_name=\"a\",namespace=\"ns\",port=\"8000\"} 1",
            ],
        ),
        (
            RouterMetricNames::Epp,
            &[
                "llm_d_epp_request_total{model_name=\"chat\",target_model_name=\"Qwen/Qwen3-8B\",fairness_id=\"default-flow\",priority=\"0\"} 2",
                "llm_d_epp_flow_control_queue_size{fairness_id=\"default-flow\",priority=\"0\",inference_pool=\"pool\",model_name=\"chat\",target_model_name=\"Qwen/Qwen3-8B\"} 1",
                "inference_extension_flow_control_queue_size{fairness_id=\"default-flow\",priority=\"0\",inference_pool=\"pool\",model_name=\"chat\",target_model_name=\"Qwen/Qwen3-8B\"} 1",
                "llm_d_epp_scheduler_attempts_total{status=\"success\",target_model_name=\"Qwen/Qwen3-8B\",endpoint_name=\"a\",namespace=\"ns\",port=\"8000\"} 1",
            ],
        ),
    ];
    for (generation, lines) in cases {
        let text = text(generation);
        for line in lines {
            assert!(
                text.lines().any(|shown| shown == *line),
                "{line} is not in\n{text}"
            );
        }
    }
}

#[test]
fn the_gate_has_series_only_where_it_holds() {
    for generation in ALL {
        assert!(text(generation).contains("flow_control_queue_size"));
        let none = pool(None).page(generation).to_string();
        assert!(!none.contains("flow_control"), "{none}");
    }
}

#[test]
fn the_page_of_the_queue_is_a_part_of_the_whole() {
    for generation in ALL {
        let mut pool = pool(Some(FlowControl::default()));
        pool.submit(arrival(100, 10), SECOND);
        let whole = pool.page(generation).to_string();
        let queue = whole.lines();
        let queue = queue.filter(|line| line.contains("flow_control_queue_size"));
        let queue: Vec<&str> = queue.collect();
        assert!(queue.len() >= 3, "{whole}");
        let part = pool.queue_page(generation).to_string();
        assert_eq!(part.lines().collect::<Vec<_>>(), queue);
    }
    let none = pool(None).queue_page(RouterMetricNames::Epp);
    assert!(none.families.is_empty(), "{none:?}");
}

use super::{SECOND, arrival, engine, pool};
use crate::router::FlowControl;

fn text() -> String {
    let mut pool = pool(Some(FlowControl::default()));
    pool.submit(arrival(100, 10), SECOND);
    pool.add("a", engine(SECOND), SECOND);
    pool.set_ready("a", true, SECOND);
    pool.advance(SECOND * 10);
    pool.set_ready("a", false, SECOND * 10);
    pool.submit(arrival(50, 10), SECOND * 10);
    pool.page().to_string()
}

#[test]
fn series_have_their_names_and_labels() {
    let text = text();
    for line in [
        "llm_d_epp_request_total{model_name=\"chat\",target_model_name=\"Qwen/Qwen3-8B\",fairness_id=\"default-flow\",priority=\"0\"} 2",
        "llm_d_epp_flow_control_queue_size{fairness_id=\"default-flow\",priority=\"0\",inference_pool=\"pool\",model_name=\"chat\",target_model_name=\"Qwen/Qwen3-8B\"} 1",
        "inference_extension_flow_control_queue_size{fairness_id=\"default-flow\",priority=\"0\",inference_pool=\"pool\",model_name=\"chat\",target_model_name=\"Qwen/Qwen3-8B\"} 1",
        "llm_d_epp_scheduler_attempts_total{status=\"success\",target_model_name=\"Qwen/Qwen3-8B\",endpoint_name=\"a\",namespace=\"ns\",port=\"8000\"} 1",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
    }
}

#[test]
fn the_gate_has_series_only_where_it_holds() {
    assert!(text().contains("flow_control_queue_size"));
    let none = pool(None);
    assert!(!none.page().to_string().contains("flow_control"));
    assert!(none.queue_page().families.is_empty());
}

#[test]
fn the_page_of_the_queue_is_a_part_of_the_whole() {
    let mut pool = pool(Some(FlowControl::default()));
    pool.submit(arrival(100, 10), SECOND);
    let whole = pool.page().to_string();
    let queue = whole.lines();
    let queue = queue.filter(|line| line.contains("flow_control_queue_size"));
    let queue: Vec<&str> = queue.collect();
    assert!(queue.len() >= 3, "{whole}");
    let part = pool.queue_page().to_string();
    assert_eq!(part.lines().collect::<Vec<_>>(), queue);
}

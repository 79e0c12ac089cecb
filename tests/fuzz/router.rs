//! Metrics pages of routers.

use wva::signals::HeldRequests;
use wva::signals::router_page::{PageError, PageReader};

use crate::campaign::{Campaign, Memory, Outcome};
use crate::mutate::Grammar;
use crate::seeds::owned;

const LONGEST_ERROR: usize = 1_000;

fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<HeldRequests, PageError> {
    let mut reader = PageReader::default();
    for chunk in chunks {
        reader.feed(chunk)?;
    }
    reader.finish()
}

fn grammar() -> Grammar {
    let seeds = owned([
        "# HELP llm_d_epp_flow_control_queue_size [ALPHA] Requests in the queue.\n# TYPE llm_d_epp_flow_control_queue_size gauge\nllm_d_epp_flow_control_queue_size{fairness_id=\"default\",inference_pool=\"p\",model_name=\"m\",priority=\"0\",target_model_name=\"m\"} 3\nllm_d_epp_flow_control_queue_size{fairness_id=\"b\",model_name=\"alias\",target_model_name=\"m\"} 1.5e+01 1789999990000\n",
        "inference_extension_flow_control_queue_size{model_name=\"a\\\"b\\\\c\\n\",target_model_name=\"\"} 0\ninference_pool_ready_pods{name=\"p\"} 2\ninference_objective_request_duration_seconds_bucket{model_name=\"m\",le=\"+Inf\"} 12\n",
        "llm_d_router_epp_flow_control_queue_size {model_name = \"m\", target_model_name=\"m\",} NaN\ngo_goroutines 42\nprocess_start_time_seconds 1.7e9\n",
    ]);
    let words = owned([
        "llm_d_epp_flow_control_queue_size",
        "llm_d_router_epp_flow_control_queue_size",
        "inference_extension_flow_control_queue_size",
        "{",
        "}",
        "{model_name=\"m\"}",
        "model_name=\"",
        "target_model_name=\"\"",
        ",",
        "\\\"",
        "\\",
        "+Inf",
        "-1",
        "NaN",
        "# TYPE",
        "\r\n",
        "\t",
    ]);
    Grammar::new(seeds, words, 4 * 1024)
}

#[test]
fn router_page() {
    let check = |input: &[u8]| {
        let whole = read([input]);
        let size = 1 + input.len() % 13;
        let parts = read(input.chunks(size));
        // As text, so that NaN equals itself.
        assert_eq!(format!("{whole:?}"), format!("{parts:?}"), "in chunks of {size}");
        if let Err(error) = &whole {
            let length = error.to_string().len();
            assert!(length < LONGEST_ERROR, "an error of {length} bytes");
        }
        Outcome::from(&whole)
    };
    Campaign::run("router_page", grammar(), Memory::kib(64, 40), &check);
}

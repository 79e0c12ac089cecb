//! Command lines of inference servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use wva::policy::engine_args::{ContainerCommand, parse};

use crate::campaign::{Campaign, Memory, Outcome};
use crate::mutate::Grammar;
use crate::seeds::{all, owned, vectors};

/// A pod template as lines: `image I`, `env N=V`, `run WORD` of the command, `next` for another
/// container; any other line is a word of the arguments.
fn lines(containers: &[ContainerCommand]) -> String {
    let mut lines = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        if index > 0 {
            lines.push("next".to_owned());
        }
        lines.push(format!("image {}", container.image));
        lines.extend(container.env.iter().map(|(name, value)| format!("env {name}={value}")));
        lines.extend(container.command.iter().map(|word| format!("run {word}")));
        lines.extend(container.args.iter().map(ToString::to_string));
    }
    lines.join("\n")
}

fn containers(text: &str) -> Vec<ContainerCommand> {
    let container = |lines: &str| {
        let mut container = ContainerCommand::default();
        for line in lines.split('\n') {
            if let Some(image) = line.strip_prefix("image ") {
                container.image = Arc::from(image);
            } else if let Some((name, value)) =
                line.strip_prefix("env ").and_then(|pair| pair.split_once('='))
            {
                container.env.insert(Arc::from(name), Arc::from(value));
            } else if let Some(word) = line.strip_prefix("run ") {
                container.command.push(Arc::from(word));
            } else {
                container.args.push(Arc::from(line));
            }
        }
        container
    };
    text.split("\nnext\n").map(container).collect()
}

#[test]
fn server_arguments() {
    let vectors = vectors(include_str!("../vectors/engine-args.yaml"));
    let mut seeds: Vec<String> = all(&vectors, "given")
        .into_iter()
        .map(|given| lines(&serde_yaml::from_value::<Vec<_>>(given.clone()).unwrap()))
        .collect();
    seeds.push(lines(&[ContainerCommand {
        image: Arc::from("vllm/vllm-openai:v0.9"),
        command: vec![Arc::from("/bin/sh"), Arc::from("-c")],
        args: vec![Arc::from(
            "exec vllm serve \"meta-llama/Llama-3.1-8B\" --max-num-seqs 64 \\\n --tensor-parallel-size='2' --block-size=32 # the rest; --kv-cache-dtype fp8 && true",
        )],
        env: BTreeMap::from([(Arc::from("VLLM_USE_V1"), Arc::from("0"))]),
    }]));
    let words = owned([
        "\nnext\n",
        "image sglang",
        "env VLLM_USE_V1=0",
        "run sh\nrun -c\n",
        "--max-num-seqs",
        "--max-num-batched-tokens",
        "--max-model-len",
        "--num-gpu-blocks-override",
        "--block-size",
        "--mem-fraction-static",
        "--max-total-tokens",
        "--page-size",
        "--dp-size",
        "-tp",
        "8k",
        "8K",
    ]);
    let check = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        let containers = containers(&text);
        let parsed = parse(&containers);
        assert_eq!(parsed, parse(&containers), "the same text reads the same");
        for fault in &parsed.faults {
            assert!(fault.to_string().len() <= 1_000, "{fault}");
        }
        let args = &parsed.args;
        assert!(args.gpu_memory_utilization > 0.0 && args.gpu_memory_utilization <= 1.0);
        assert!(args.kv_capacity().is_none_or(|tokens| tokens.0 >= 0.0 && tokens.0.is_finite()));
        assert!(args.step_budget().0 > 0 && args.max_num_seqs > 0 && args.block_size > 0);
        assert!(args.fingerprint().to_string().len() <= 2_000);
        Outcome::from(parsed.faults.is_empty())
    };
    Campaign::run(
        "engine::server_arguments",
        Grammar::new(seeds, words, 2 * 1024),
        Memory::kib(32, 250),
        &check,
    );
}

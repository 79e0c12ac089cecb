//! Published cases, the forms of a command line, and what no command line does.

mod variables;

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::command::ContainerCommand;
use super::parse::parse;
use super::words::split;
use super::{EngineArgs, EngineKind, KvTokens, Prefill, StepTokens};
use crate::tests::vectors::{Tally, run};

/// The arguments as a map, with what is derived from them.
fn shown(args: &EngineArgs) -> Map<String, Value> {
    let Value::Object(mut map) = serde_json::to_value(args).unwrap() else {
        panic!("arguments are a map");
    };
    map.insert("step_budget".to_owned(), serde_json::to_value(args.step_budget()).unwrap());
    map.insert("kv_capacity".to_owned(), serde_json::to_value(args.kv_capacity()).unwrap());
    map
}

#[test]
fn the_published_cases() {
    let tally = run(
        include_str!("../../../../tests/vectors/engine-args.yaml"),
        |id, given: Vec<ContainerCommand>, mut expect: BTreeMap<String, Value>| {
            let parsed = parse(&given);
            let faults = expect.remove("faults").unwrap_or_else(|| Value::from(0));
            assert_eq!(Value::from(parsed.faults.len()), faults, "{id}: {:?}", parsed.faults);
            let is_sglang = expect.get("engine") == Some(&Value::from("sglang"));
            let engine = if is_sglang { EngineKind::Sglang } else { EngineKind::Vllm };
            let mut expected = shown(&EngineArgs::defaults(engine));
            for derived in ["step_budget", "kv_capacity"] {
                if !expect.contains_key(derived) {
                    expected.insert(derived.to_owned(), shown(&parsed.args)[derived].clone());
                }
            }
            for (field, value) in expect {
                let value = value
                    .as_u64()
                    .filter(|_| field == "max_total_tokens" || field == "kv_capacity")
                    .map_or(value, |tokens| Value::from(f64::from(u32::try_from(tokens).unwrap())));
                assert!(expected.insert(field.clone(), value).is_some(), "{id}: no field {field}");
            }
            assert_eq!(shown(&parsed.args), expected, "{id}");
        },
    );
    assert_eq!(tally, Tally::of(12, 0, 0));
}

fn container(words: &[&str]) -> ContainerCommand {
    ContainerCommand {
        args: words.iter().copied().map(Arc::from).collect(),
        ..ContainerCommand::default()
    }
}

fn read(words: &[&str]) -> EngineArgs {
    let parsed = parse(&[container(words)]);
    assert_eq!(parsed.faults, [], "{words:?}");
    parsed.args
}

#[test]
fn a_flag_is_the_same_in_every_form() {
    let expected = read(&["--max-num-seqs=64", "--block-size=32"]);
    assert_eq!((expected.max_num_seqs, expected.block_size), (64, 32));
    for words in wva_base::cases! {
        &["--max-num-seqs", "64", "--block-size", "32"][..],
        &["--max_num_seqs=64", "--block_size", "32"],
        &["serve", "m", "--max-num_seqs", "64", "--block-size=32"],
        &["sh", "-c", "vllm serve m --max-num-seqs 64 --block-size=32"],
        &["/bin/bash", "-lc", "exec vllm serve m --max-num-seqs=64   --block-size '32'"],
        &["bash", "-e", "-c", "vllm serve \\\n  --max-num-seqs=64 \\\n  --block-size=32\n"],
        &["sh", "-c", "cd /models && vllm serve \"a b\" --max-num-seqs=64 --block-size=\"32\"; echo done"],
        &["sh", "-c", "# --max-num-seqs=1\nvllm serve m --max-num-seqs=64 --block-size=32 | tee log"],
        &["sh", "-c", "vllm serve m --max-num-seqs=64 --block-size=32", "--max-num-seqs=1"],
    } {
        assert_eq!(read(words), expected, "{words:?}");
    }
}

#[test]
fn the_generation_can_be_chosen_in_a_shell_text() {
    let args = read(&["sh", "-c", "export VLLM_USE_V1=0; vllm serve m"]);
    assert_eq!((args.prefill, args.step_budget()), (Prefill::Whole, StepTokens(2048)));
    let args = read(&["sh", "-c", "VLLM_USE_V1=0 vllm serve m --max-model-len 1000"]);
    assert_eq!(args.step_budget(), StepTokens(2048));
}

#[test]
fn switches_can_be_turned_off() {
    for words in [
        &["--no-enable-chunked-prefill"][..],
        &["--enable-chunked-prefill=False"],
        &["--enable-chunked-prefill", "false"],
    ] {
        let args = read(&[words, &["--max-model-len", "32k"]].concat());
        assert_eq!(args.prefill, Prefill::Whole, "{words:?}");
        assert_eq!(args.step_budget(), StepTokens(32_000), "{words:?}");
    }
    // A switch takes the word behind it, and is on all the same.
    let args = read(&["--enable-chunked-prefill", "model", "--max-num-batched-tokens=4K"]);
    assert_eq!((args.prefill, args.step_budget()), (Prefill::Chunked, StepTokens(4096)));
}

#[test]
fn parallel_engines_have_short_flags() {
    let args = read(&["-tp", "4", "-pp=2", "--enforce-eager", "-dp", "8"]);
    let sizes = (args.tensor_parallel_size, args.pipeline_parallel_size, args.data_parallel_size);
    assert_eq!(sizes, (4, 2, 8));
    let args =
        read(&["sglang", "serve", "--tp", "4", "--dp-size", "2", "--mem-fraction-static=0.8"]);
    assert_eq!(args.engine, EngineKind::Sglang);
    assert_eq!((args.tensor_parallel_size, args.data_parallel_size), (4, 2));
    assert!((args.gpu_memory_utilization - 0.8).abs() < 1e-12);
}

#[test]
fn sglang_has_its_own_names() {
    let start = ["python3", "-m", "sglang.launch_server"];
    let with = |words: &[&str]| read(&[&start, words].concat());
    assert_eq!(with(&["--max-running-requests", "64"]).max_num_seqs, 64);
    assert_eq!(with(&["--max-num-seqs", "64"]).max_num_seqs, 256);
    assert_eq!(with(&["--chunked-prefill-size", "4096"]).step_budget(), StepTokens(4096));
    assert_eq!(with(&["--max-prefill-tokens", "16384"]).step_budget(), StepTokens(16_384));
    let both = with(&["--max-prefill-tokens=16384", "--chunked-prefill-size=4096"]);
    assert_eq!(both.step_budget(), StepTokens(4096));
    let whole = with(&["--chunked-prefill-size=-1", "--max-prefill-tokens=16384"]);
    assert_eq!((whole.prefill, whole.step_budget()), (Prefill::Whole, StepTokens(16_384)));
}

#[test]
fn what_is_no_value_is_named_and_changes_nothing() {
    for (words, named) in wva_base::cases! {
        (&["--max-num-seqs=64", "--max-num-seqs=many"][..], "--max-num-seqs has the value \"many\""),
        (&["--max-num-seqs=64", "--max-num-seqs=0"], "at least 1"),
        (&["--max-num-seqs=64", "--max-num-seqs=-3"], "at least 1"),
        (&["--max-num-seqs=64", "--max-num-seqs=99999999999999999999"], "--max-num-seqs"),
        (&["--max-num-seqs=64", "--max-num-seqs"], "--max-num-seqs has no value"),
        (&["--max-num-seqs=64", "--gpu-memory-utilization=NaN"], "a share above 0"),
        (&["--max-num-seqs=64", "--gpu-memory-utilization=90"], "a share above 0"),
        (&["--max-num-seqs=64", "--kv-cache-dtype="], "a name"),
        (&["--max-num-seqs=64", "--max-model-len=1.5K"], "--max-model-len"),
    } {
        let parsed = parse(&[container(words)]);
        assert_eq!(parsed.args, read(&["--max-num-seqs=64"]), "{words:?}");
        let [fault] = parsed.faults.as_slice() else {
            panic!("{words:?}: {:?}", parsed.faults);
        };
        assert!(fault.to_string().contains(named), "{words:?}: {fault}");
    }
}

#[test]
fn numbers_have_units() {
    for (text, tokens) in
        [("8192", 8192), ("8k", 8000), ("8K", 8192), ("25.6k", 25_600), ("1m", 1_000_000)]
    {
        assert_eq!(read(&["--max-model-len", text]).max_model_len, Some(tokens), "{text}");
    }
    assert_eq!(read(&["--max-model-len=auto"]).max_model_len, None);
}

#[test]
fn what_is_too_long_is_not_read() {
    let long = "x".repeat(70_000);
    let parsed = parse(&[container(&["--max-num-seqs=64", &long, "--max-num-seqs=32"])]);
    assert_eq!(parsed.args.max_num_seqs, 64);
    assert!(parsed.faults[0].to_string().contains("65536 bytes"));
    let many = vec!["--max-num-seqs=x"; 10_000];
    assert_eq!(parse(&[container(&many)]).faults.len(), 32);
}

#[test]
fn every_argument_that_shapes_capacity_is_in_the_fingerprint() {
    let plain = read(&[]).fingerprint();
    assert_eq!(plain, read(&["--model", "m", "--port=8000"]).fingerprint());
    for word in [
        "--gpu-memory-utilization=0.85",
        "--block-size=32",
        "--kv-cache-dtype=fp8",
        "--dtype=float16",
        "--quantization=awq",
        "--tensor-parallel-size=4",
        "--pipeline-parallel-size=2",
        "--data-parallel-size=2",
        "--num-gpu-blocks-override=5000",
        "--max-num-batched-tokens=4096",
        "--max-num-seqs=64",
        "--max-model-len=8192",
        "--enforce-eager",
        "--no-enable-chunked-prefill",
    ] {
        assert_ne!(plain, read(&[word]).fingerprint(), "{word}");
    }
    assert_ne!(plain, EngineArgs::defaults(EngineKind::Sglang).fingerprint());
    assert_eq!(read(&["--num-gpu-blocks-override=5000"]).kv_capacity(), Some(KvTokens(80_000.0)));
}

#[test]
fn an_amount_of_tokens_is_a_number() {
    let stored =
        |text: &str| serde_yaml::from_str::<KvTokens>(text).map_err(|error| error.to_string());
    assert_eq!(stored("16000"), Ok(KvTokens(16_000.0)));
    for text in ["-1", ".nan", ".inf"] {
        assert!(stored(text).unwrap_err().contains("is no amount of KV tokens"), "{text}");
    }
}

#[test]
fn words_are_split_as_a_shell_does() {
    for (script, words) in [
        ("a  b\tc\nd", &["a", "b", "c", "d"][..]),
        ("'a b' \"c d\"e", &["a b", "c de"]),
        (r#"a\ b "c\"d" 'e\f' "g\h""#, &["a b", "c\"d", r"e\f", r"g\h"]),
        ("a;b&&c|d", &["a", "b", "c", "d"]),
        ("'' x#y #z", &["", "x#y"]),
        ("'open", &["open"]),
        ("", &[]),
    ] {
        assert_eq!(split(script, &BTreeMap::new(), &[]), words, "{script:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read(words in prop::collection::vec(".{0,40}", 0..12), script in ".{0,200}") {
        let mut command: Vec<&str> = words.iter().map(String::as_str).collect();
        command.extend(["sh", "-c", &script]);
        let parsed = parse(&[container(&command)]);
        prop_assert!(parsed.args.max_num_seqs > 0 && parsed.args.block_size > 0);
        prop_assert!(parsed.args.gpu_memory_utilization > 0.0);
        prop_assert!(parsed.args.fingerprint().to_string().len() < 2048);
    }

    #[test]
    fn any_value_is_read_or_named(
        flag in prop::sample::select(vec![
            "max-num-seqs", "block-size", "gpu-memory-utilization", "max-model-len", "dtype",
            "num-gpu-blocks-override", "max-num-batched-tokens", "tensor-parallel-size",
        ]),
        value in "[-0-9.kKmMgGeE]{0,24}",
    ) {
        let parsed = parse(&[container(&[&format!("--{flag}={value}")])]);
        if !parsed.faults.is_empty() {
            prop_assert_eq!(parsed.args, EngineArgs::defaults(EngineKind::Vllm));
        }
    }
}

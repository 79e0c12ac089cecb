//! Variables in command lines, and what is told where one is not known.

use super::container;
use crate::policy::engine_args::{ContainerCommand, Engine, EngineArgs, ParsedArgs, parse};

#[test]
fn what_is_assumed_instead_is_told_as_it_is_in_the_end() {
    let told = |words: &[&str]| -> Vec<String> {
        let parsed = parse(&[container(words)]);
        parsed.faults.iter().map(ToString::to_string).collect()
    };
    assert_eq!(told(&["--max-num-seqs=64"]), [""; 0]);
    let mend = "correct it in the pod template";
    assert_eq!(
        told(&["--max-num-seqs=many", "--max-num-seqs=32"]),
        [format!(
            "argument --max-num-seqs has the value \"many\", which is not a whole number of at least \
             1; 32 is assumed, {mend}"
        )]
    );
    assert_eq!(
        told(&[
            "--max-num-seqs",
            "--max-model-len=x",
            "--max-num-batched-tokens="
        ]),
        [
            format!("argument --max-num-seqs has no value; 256 is assumed, {mend}"),
            format!(
                "argument --max-model-len has the value \"x\", which is not a whole number of at least \
                 0; none is assumed, {mend}"
            ),
            format!(
                "argument --max-num-batched-tokens has the value \"\", which is not a whole number of \
                 at least 0; 8192 is assumed, {mend}"
            ),
        ]
    );
}

fn with(script: &str, env: &[(&str, &str)]) -> ParsedArgs {
    let values = env
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    parse(&[ContainerCommand {
        env: values.collect(),
        ..container(&["bash", "-c", script])
    }])
}

#[test]
fn variables_of_a_shell_are_read_where_their_values_are_written() {
    let sequences = |script: &str| {
        let parsed = with(
            script,
            &[
                ("N", "64"),
                ("EMPTY", ""),
                ("ALL", "--max-num-seqs 64 -tp 2"),
            ],
        );
        assert_eq!(parsed.faults, [], "{script}");
        parsed.args.max_num_seqs
    };
    assert_eq!(sequences("vllm serve m"), 256);
    for script in [
        "vllm serve m --max-num-seqs $N",
        "vllm serve m --max-num-seqs=${N} --block-size 16",
        "vllm serve m --max-num-seqs=\"$N\"",
        "vllm serve m --max-num-seqs ${OTHER:-64}",
        "vllm serve m --max-num-seqs ${EMPTY:-64}",
        "vllm serve m --max-num-seqs ${N:-32}",
        "vllm serve m $ALL",
        "M=64; vllm serve m --max-num-seqs $M",
        "export N=32; N=64 && vllm serve m --max-num-seqs $N$EMPTY",
    ] {
        assert_eq!(sequences(script), 64, "{script}");
    }
    assert_eq!(
        with("vllm serve m $ALL", &[("ALL", "-tp 2")])
            .args
            .tensor_parallel_size,
        2
    );
}

#[test]
fn a_variable_that_nobody_knows_leaves_its_argument_unread() {
    for (script, value) in [
        (
            "vllm serve m --max-num-seqs $UNKNOWN --block-size 32",
            "$UNKNOWN",
        ),
        (
            "vllm serve m --max-num-seqs=${UNKNOWN} --block-size 32",
            "${UNKNOWN}",
        ),
        ("vllm serve m --max-num-seqs='$N' --block-size 32", "$N"),
        ("vllm serve m --max-num-seqs=\\$N --block-size 32", "$N"),
        (
            "vllm serve m --max-num-seqs=$(nproc) --block-size 32",
            "$(nproc)",
        ),
    ] {
        let parsed = with(script, &[("N", "64")]);
        assert_eq!(
            (parsed.args.max_num_seqs, parsed.args.block_size),
            (256, 32),
            "{script}"
        );
        let told: Vec<String> = parsed.faults.iter().map(ToString::to_string).collect();
        let expected = format!(
            "argument --max-num-seqs has the value {value:?} of a variable that the pod template does \
             not spell out; 256 is assumed, write the value there, or in env of the container"
        );
        assert_eq!(told, [expected], "{script}");
    }
    // Names and switches are no texts to guess from.
    for word in [
        "--dtype=$(DTYPE)",
        "--kv-cache-dtype=$KV",
        "--enforce-eager=$EAGER",
    ] {
        let parsed = parse(&[container(&[word])]);
        assert_eq!(parsed.args, EngineArgs::defaults(Engine::Vllm), "{word}");
        assert_eq!(parsed.faults.len(), 1, "{word}");
    }
    // What variables add is bounded.
    let long = "x ".repeat(30_000);
    let parsed = with("vllm $L $L $L $L --max-num-seqs 64", &[("L", &long)]);
    assert_eq!(parsed.args.max_num_seqs, 64);
}

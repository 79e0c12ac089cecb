//! Variables in command lines, and the message where one is not known.

use super::container;
use crate::engine_args::{ContainerCommand, EngineArgs, EngineKind, ParsedArgs, parse};

#[test]
fn what_is_assumed_instead_is_named_as_it_is_in_the_end() {
    let messages = |words: &[&str]| -> Vec<String> {
        let parsed = parse(&[container(words)]);
        parsed.faults.iter().map(ToString::to_string).collect()
    };
    assert_eq!(messages(&["--max-num-seqs=64"]), [""; 0]);
    let mend = "correct it in the pod template";
    assert_eq!(
        messages(&["--max-num-seqs=many", "--max-num-seqs=32"]),
        [format!(
            "argument --max-num-seqs has the value \"many\", which is not a whole number of at least \
             1; 32 is assumed, {mend}"
        )]
    );
    assert_eq!(
        messages(&["--max-num-seqs", "--max-model-len=x", "--max-num-batched-tokens="]),
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
    let values = env.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    parse(&[ContainerCommand { env: values.collect(), ..container(&["bash", "-c", script]) }])
}

#[test]
fn variables_of_a_shell_are_read_where_their_values_are_written() {
    let sequences = |script: &str| {
        let parsed =
            with(script, &[("N", "64"), ("EMPTY", ""), ("ALL", "--max-num-seqs 64 -tp 2")]);
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
    assert_eq!(with("vllm serve m $ALL", &[("ALL", "-tp 2")]).args.tensor_parallel_size, 2);
}

#[test]
fn an_unknown_variable_leaves_its_argument_unread() {
    for (script, value) in wva_base::cases! {
        ("vllm serve m --max-num-seqs $UNKNOWN --block-size 32", "$UNKNOWN"),
        ("vllm serve m --max-num-seqs=${UNKNOWN} --block-size 32", "${UNKNOWN}"),
        ("vllm serve m --max-num-seqs='$N' --block-size 32", "$N"),
        ("vllm serve m --max-num-seqs=\\$N --block-size 32", "$N"),
        ("vllm serve m --max-num-seqs=$(nproc) --block-size 32", "$(nproc)"),
    } {
        let parsed = with(script, &[("N", "64")]);
        assert_eq!((parsed.args.max_num_seqs, parsed.args.block_size), (256, 32), "{script}");
        let messages: Vec<String> = parsed.faults.iter().map(ToString::to_string).collect();
        let expected = format!(
            "argument --max-num-seqs has the literal text {value:?} as its value: the dollar sign is \
             escaped, or the pod template does not spell out the variable; 256 is assumed, write the \
             value there, or in env of the container"
        );
        assert_eq!(messages, [expected], "{script}");
    }
    // Names and switches are no texts to guess from.
    for word in ["--dtype=$(DTYPE)", "--kv-cache-dtype=$KV", "--enforce-eager=$EAGER"] {
        let parsed = parse(&[container(&[word])]);
        assert_eq!(parsed.args, EngineArgs::defaults(EngineKind::Vllm), "{word}");
        assert_eq!(parsed.faults.len(), 1, "{word}");
    }
    // What variables add is bounded.
    let long = "x ".repeat(30_000);
    let parsed = with("vllm $L $L $L $L --max-num-seqs 64", &[("L", &long)]);
    assert_eq!(parsed.args.max_num_seqs, 64);
}

#[test]
fn variables_name_variables_and_an_escaped_one_is_text() {
    let parsed = |word: &str, env: &[(&str, &str)]| {
        let env = env.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        parse(&[ContainerCommand { env: env.collect(), ..container(&[word]) }])
    };
    let sequences = |env: &[(&str, &str)]| {
        let parsed = parsed("--max-num-seqs=$(SEQS)", env);
        (parsed.args.max_num_seqs, parsed.faults.len())
    };
    assert_eq!(sequences(&[("SEQS", "80")]), (80, 0));
    assert_eq!(sequences(&[("A", "81"), ("SEQS", "$(A)")]), (81, 0));
    assert_eq!(sequences(&[("A", "8"), ("B", "$(A)2"), ("SEQS", "$(B)")]), (82, 0));
    // A circle, an unknown name and an escaped one are texts.
    for value in ["$(SEQS)", "$(A)", "$$(B)"] {
        assert_eq!(sequences(&[("B", "81"), ("SEQS", value)]), (256, 1), "{value}");
    }
    let escaped = parsed("--max-num-seqs=$$(SEQS)", &[("SEQS", "80")]);
    assert_eq!(escaped.args.max_num_seqs, 256);
    assert!(
        escaped.faults[0]
            .to_string()
            .contains("the literal text \"$(SEQS)\" as its value: the dollar sign is escaped"),
        "{}",
        escaped.faults[0]
    );
    assert_eq!(
        with("vllm serve --max-num-seqs $N", &[("A", "81"), ("N", "$(A)")]).args.max_num_seqs,
        81
    );
}

#[test]
fn words_behind_the_text_of_a_shell_are_its_parameters() {
    let sequences = |words: &[&str]| {
        let parsed = parse(&[container(words)]);
        assert_eq!(parsed.faults, [], "{words:?}");
        (parsed.args.max_num_seqs, parsed.args.block_size)
    };
    for (script, expected) in [
        ("vllm serve", (256, 16)),
        ("vllm serve \"$@\"", (6, 32)),
        ("vllm serve $@", (6, 32)),
        ("vllm serve ${@}", (6, 32)),
        ("vllm serve $*", (6, 32)),
        ("vllm serve --max-num-seqs $2", (6, 16)),
        ("vllm serve --max-num-seqs \"${2}\"", (6, 16)),
        ("vllm serve --block-size=8 $1=7", (7, 8)),
    ] {
        let words = ["sh", "-c", script, "--", "--max-num-seqs", "6", "--block-size=32"];
        assert_eq!(sequences(&words), expected, "{script}");
    }
    // `$0` is none of all, and no parameters are no words.
    assert_eq!(sequences(&["sh", "-c", "vllm \"$@\"", "--max-num-seqs=6"]), (256, 16));
    assert_eq!(sequences(&["sh", "-c", "vllm --enforce-eager \"$@\""]), (256, 16));
}

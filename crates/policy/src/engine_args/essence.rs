//! What of a container is kept for the argument parser. A command line may hold secrets, so that only
//! what the parser understands is copied.

use std::borrow::Cow;
use std::sync::Arc;

use super::EngineKind;
use super::command::ContainerCommand;
use super::expand::expanded;
use super::field::Field;
use super::parse::{GENERATION, engine_of, flag, readable};

/// The containers without the words that the parser does not read: what it reads is joined with its
/// value, and the program is left out unless it chooses the engine. The parser answers the same to
/// them as to the whole.
pub fn essence(containers: &[ContainerCommand]) -> Vec<ContainerCommand> {
    match expanded(containers) {
        Some(containers) => essence_of_words(&containers),
        None => essence_of_words(containers),
    }
}

fn essence_of_words(containers: &[ContainerCommand]) -> Vec<ContainerCommand> {
    let (words, _) = readable(containers);
    let engine = engine_of(containers, &words);
    let program: &[&str] = match engine {
        EngineKind::Sglang => &["sglang", "serve"],
        EngineKind::Vllm => &[],
    };
    let kept = |(container, words): (&ContainerCommand, &Vec<Cow<'_, str>>)| {
        let generation = container.env.get_key_value(GENERATION);
        ContainerCommand {
            image: Arc::clone(&container.image),
            command: program.iter().map(|word| Arc::from(*word)).collect(),
            args: arguments(engine, words),
            env: generation
                .map(|(name, value)| (Arc::clone(name), Arc::clone(value)))
                .into_iter()
                .collect(),
        }
    };
    containers.iter().zip(&words).map(kept).collect()
}

fn arguments(engine: EngineKind, words: &[Cow<'_, str>]) -> Vec<Arc<str>> {
    let mut generations: Vec<Arc<str>> = Vec::new();
    let mut args: Vec<Arc<str>> = Vec::new();
    let mut rest = words.iter().map(|word| &**word).peekable();
    while let Some(word) = rest.next() {
        if word.split_once('=').is_some_and(|(name, _)| name == GENERATION) {
            generations.push(Arc::from(word));
        }
        let Some((name, joined)) = flag(word) else {
            continue;
        };
        let value = joined.or_else(|| rest.next_if(|next| flag(next).is_none()));
        if Field::of(engine, &name).is_some() {
            args.push(match value {
                Some(value) => format!("--{name}={value}").into(),
                None => format!("--{name}").into(),
            });
        }
    }
    // First, so that an argument that lacks its value does not find one in them.
    generations.extend(args);
    generations
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine_args::parse;

    fn container(image: &str, command: &[&str], args: &[&str]) -> ContainerCommand {
        let words = |words: &[&str]| words.iter().map(|word| Arc::from(*word)).collect();
        ContainerCommand {
            image: image.into(),
            command: words(command),
            args: words(args),
            env: [("VLLM_USE_V1", "0"), ("HF_TOKEN", "hf_secret")]
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
        }
    }

    #[test]
    fn secrets_are_left_behind() {
        let script =
            "export HF_TOKEN=hf_secret; vllm serve m --api-key hf_secret -tp 2 --dtype auto";
        for container in [
            container("vllm", &["sh", "-c", script], &[]),
            container(
                "vllm",
                &["vllm", "serve", "m"],
                &["--api-key=hf_secret", "-tp", "2", "--dtype", "auto"],
            ),
        ] {
            assert!(format!("{container:?}").contains("hf_secret"));
            let kept = essence(&[container]).remove(0);
            assert!(!format!("{kept:?}").contains("hf_secret"), "{kept:?}");
            assert_eq!(kept.args, ["--tp=2", "--dtype=auto"].map(Arc::<str>::from), "{kept:?}");
            assert_eq!(kept.env.len(), 1);
        }
    }

    proptest! {
        #[test]
        fn the_parser_sees_no_difference(
            image in "(vllm|lmsys/sglang:v1|)",
            words in proptest::collection::vec(
                "(sh|-c|vllm|serve|sglang|-m|sglang\\.launch_server|VLLM_USE_V1=[01]|--(api-key|max-num-seqs|tp-size|mem_fraction_static|dtype|enforce-eager|no-enable-chunked-prefill|chunked-prefill-size)|-tp|-q|=|8|0\\.5|x y|--max-model-len=[0-9a-z]{1,3}|'--block-size 8')",
                0..12,
            ),
        ) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let whole = container(&image, &[], &words);
            prop_assert_eq!(
                parse(&essence(std::slice::from_ref(&whole))),
                parse(&[whole])
            );
        }
    }
}

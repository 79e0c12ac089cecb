//! From the containers of a pod template to the arguments of its engine.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::command::ContainerCommand;
use super::expand::expanded;
use super::fault::ArgumentFault;
use super::field::{ArgumentsDraft, Field};
use super::words::of_command;
use super::{EngineArgs, EngineGeneration, EngineKind};

/// Most bytes of all commands that are read.
const MAX_BYTES: usize = 64 * 1024;

const MAX_WORDS: usize = 4096;

const MAX_FAULTS: usize = 32;

/// Chooses the generation of vLLM's engine: 0 is the first one.
pub(super) const GENERATION: &str = "VLLM_USE_V1";

/// The arguments of an engine, and what could not be read of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParsedArgs {
    pub args: EngineArgs,
    /// What was not used, at most 32.
    pub faults: Vec<ArgumentFault>,
}

/// Reads the containers of a pod template in their order; what comes later counts. Nothing at all
/// is an engine with default arguments.
pub fn parse(containers: &[ContainerCommand]) -> ParsedArgs {
    match expanded(containers) {
        Some(containers) => parse_words(&containers),
        None => parse_words(containers),
    }
}

fn parse_words(containers: &[ContainerCommand]) -> ParsedArgs {
    let (words, is_whole) = readable(containers);
    let mut draft = ArgumentsDraft::new(engine_of(containers, &words));
    let mut unread = Vec::new();
    for container in containers {
        if let Some(value) = container.env.get(GENERATION) {
            choose_generation(&mut draft, value);
        }
    }
    for command in &words {
        read(command, &mut draft, &mut unread);
    }
    let args = draft.finish();
    let too_long =
        (!is_whole).then_some(ArgumentFault::TooLong { bytes: MAX_BYTES, words: MAX_WORDS });
    let unread = unread.into_iter();
    let unread = unread.map(|(field, fault)| fault.assuming(field.shown(&args)));
    let faults = too_long.into_iter().chain(unread).take(MAX_FAULTS).collect();
    ParsedArgs { args, faults }
}

pub(super) fn readable(containers: &[ContainerCommand]) -> (Vec<Vec<Cow<'_, str>>>, bool) {
    let (mut bytes, mut words) = (0, 0);
    let mut is_whole = true;
    let commands = containers.iter().map(|container| {
        let command = container.command.iter().chain(&container.args);
        let read = command.map(|word| &**word).take_while(|word| {
            bytes += word.len();
            words += 1;
            let fits = bytes <= MAX_BYTES && words <= MAX_WORDS;
            is_whole &= fits;
            fits
        });
        let read: Vec<&str> = read.collect();
        of_command(&read, &container.env)
    });
    let commands = commands.collect();
    (commands, is_whole)
}

/// SGLang where an image or a command names it.
pub(super) fn engine_of(
    containers: &[ContainerCommand],
    words: &[Vec<Cow<'_, str>>],
) -> EngineKind {
    let in_image =
        containers.iter().any(|container| container.image.to_ascii_lowercase().contains("sglang"));
    let starts = |pair: &[Cow<'_, str>]| matches!(pair, [program, verb] if &**verb == "serve" && program.rsplit('/').next() == Some("sglang"));
    let in_command = words.iter().any(|command| {
        let is_module = |word: &Cow<'_, str>| word.contains("sglang.launch_server");
        command.iter().any(is_module) || command.windows(2).any(starts)
    });
    if in_image || in_command { EngineKind::Sglang } else { EngineKind::Vllm }
}

fn choose_generation(draft: &mut ArgumentsDraft, value: &str) {
    if draft.args.engine == EngineKind::Vllm {
        draft.args.generation =
            if value.trim() == "0" { EngineGeneration::V0 } else { EngineGeneration::V1 };
    }
}

fn read(
    words: &[Cow<'_, str>],
    draft: &mut ArgumentsDraft,
    unread: &mut Vec<(Field, ArgumentFault)>,
) {
    let mut rest = words.iter().map(|word| &**word).peekable();
    while let Some(word) = rest.next() {
        if let Some((GENERATION, value)) = word.split_once('=') {
            choose_generation(draft, value);
        }
        let Some((flag, joined)) = flag(word) else {
            continue;
        };
        let value = joined.or_else(|| rest.next_if(|next| self::flag(next).is_none()));
        let Some(field) = Field::of(draft.args.engine, &flag) else {
            continue;
        };
        if let Err(fault) = draft.set(field, flag, value)
            && unread.len() < MAX_FAULTS
        {
            unread.push((field, fault));
        }
    }
}

/// The name of a flag, spelled with `-`, and the value that is joined to it by `=`. The few short
/// flags that matter begin with one dash.
pub(super) fn flag(word: &str) -> Option<(String, Option<&str>)> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let short = matches!(name, "-tp" | "-pp" | "-dp" | "-q");
    let name = match name.strip_prefix("--") {
        Some(name) => name,
        None => name.strip_prefix('-').filter(|_| short)?,
    };
    Some((name.replace('_', "-"), value))
}

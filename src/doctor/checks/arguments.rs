//! What the command lines of containers state about the models that they load and serve.

use std::collections::BTreeSet;

use serde_json::Value;

use super::targets::templates;
use crate::doctor::object::{LiveObject, list};

/// Arguments that state the model to load.
const MODELS: [&str; 4] = ["--model", "--model-path", "--model_path", "serve"];
/// Arguments that state the names to serve it under.
const NAMES: [&str; 2] = ["--served-model-name", "--served_model_name"];
/// Signs of a shell or a template that end a word, or make another word of it.
const SIGNS: [char; 12] = ['$', ';', '&', '|', '(', ')', '\\', '`', '{', '}', '<', '>'];
const QUOTES: [char; 2] = ['"', '\''];

/// Whether a word becomes another one before a program reads it.
pub(super) fn is_unfilled(word: &str) -> bool {
    word.contains(SIGNS)
}

/// The words of the command line of a container, without comments and the ends of continued lines.
fn words(container: &Value) -> impl Iterator<Item = &str> {
    let command = list(container, "/command").iter();
    let parts = command.chain(list(container, "/args"));
    let lines = parts.filter_map(Value::as_str).flat_map(str::lines);
    let words = lines.flat_map(|line| {
        let words = line.split_whitespace();
        words.take_while(|word| !word.starts_with('#'))
    });
    words.filter(|word| *word != "\\")
}

/// Whether a container has one of these arguments, with a value or without.
fn has_argument(container: &Value, arguments: &[&str]) -> bool {
    words(container).any(|word| {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        arguments.contains(&name)
    })
}

/// The value of these arguments of a container. `None` also where they state several: a shell may choose one of them.
fn one_value<'a>(container: &'a Value, arguments: &[&str]) -> Option<&'a str> {
    let mut words = words(container).peekable();
    let mut stated: BTreeSet<&str> = BTreeSet::new();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if arguments.contains(&name) {
            let next = || words.next_if(|next| !next.starts_with('-'));
            let value = value.or_else(next);
            stated.extend(value.map(|value| value.trim_matches(QUOTES)));
        }
    }
    let mut stated = stated.into_iter();
    stated.next().filter(|_| stated.next().is_none())
}

/// The model that a container loads. `None` also of a path or a variable, which do not show what is loaded.
pub(super) fn loaded_by(container: &Value) -> Option<&str> {
    let model = one_value(container, &MODELS)?;
    let is_path = model.starts_with(['/', '.', '~']) || model.contains(':');
    (!is_path && !is_unfilled(model)).then_some(model)
}

/// The `model_name` of the series of a container: the first name that is given, else the model by its place on a hub.
/// A variable or a file of options may give the name, and a word without `/` after `serve` may be of another program.
fn served_by(container: &Value) -> Option<&str> {
    if has_argument(container, &NAMES) {
        return one_value(container, &NAMES).filter(|name| !is_unfilled(name));
    }
    let model = loaded_by(container).filter(|model| model.contains('/'))?;
    let has_variable =
        words(container).any(|word| word.trim_start_matches(QUOTES).starts_with('$'));
    let is_open = has_variable || has_argument(container, &["--config"]);
    (!is_open).then_some(model)
}

/// Whether a container holds devices, a resource with a domain or a claim, and has no command line: its image or its
/// environment may state a model.
fn is_bare_engine(container: &Value) -> bool {
    let limits = container.pointer("/resources/limits");
    let limits = limits.and_then(Value::as_object).into_iter().flatten();
    let has_devices = limits.map(|(name, _)| name).any(|name| name.contains('/'))
        || !list(container, "/resources/claims").is_empty();
    has_devices && words(container).next().is_none()
}

/// What is read of each container of a target that states a model. `None` where one of them does not show it, or none
/// states a model.
pub(super) fn of_engines<'a>(
    target: &'a LiveObject,
    read: impl Fn(&'a Value) -> Option<&'a str>,
) -> Option<Vec<&'a str>> {
    let containers = templates(target).flat_map(|template| list(template, "/spec/containers"));
    let engines = containers.filter(|one| {
        has_argument(one, &MODELS) || has_argument(one, &NAMES) || is_bare_engine(one)
    });
    let shown: BTreeSet<&str> = engines.map(read).collect::<Option<_>>()?;
    (!shown.is_empty()).then(|| shown.into_iter().collect())
}

/// The names under which the containers of a target serve, where all of them show theirs.
pub(super) fn served(target: &LiveObject) -> Option<Vec<&str>> {
    of_engines(target, served_by)
}

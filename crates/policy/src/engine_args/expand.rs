//! Variables in the words of a command, as Kubernetes expands them before a container starts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::command::ContainerCommand;

/// Longest word that is built; a longer one stays as it is written.
const MAX_WORD: usize = 4096;

/// Longest chain of variables that name each other.
const MAX_DEPTH: usize = 8;

/// `$(NAME)` is the value of a variable, `$$` is a dollar sign; a variable that is not set stays as it
/// is written.
pub fn expand<'w, 'v>(word: &'w str, value: impl Fn(&str) -> Option<&'v str>) -> Cow<'w, str> {
    if !word.contains('$') {
        return Cow::Borrowed(word);
    }
    let mut expanded = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        rest = after;
        if let Some(more) = after.strip_prefix('$') {
            expanded.push('$');
            rest = more;
            continue;
        }
        let reference = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        match reference.and_then(|(name, more)| Some((value(name)?, more))) {
            Some((text, more)) => {
                expanded.push_str(text);
                rest = more;
            }
            None => expanded.push('$'),
        }
        if expanded.len() > MAX_WORD {
            return Cow::Borrowed(word);
        }
    }
    expanded.push_str(rest);
    Cow::Owned(expanded)
}

/// Variables with the variables that their own values name. Which of them was defined first is not
/// known any more; Kubernetes leaves a reference to a later one as it is written.
fn settled(env: &BTreeMap<Arc<str>, Arc<str>>) -> BTreeMap<Arc<str>, Arc<str>> {
    let mut settled = env.clone();
    for _ in 0..MAX_DEPTH {
        let value = |name: &str| settled.get(name).map(|value| &**value);
        let next = env
            .iter()
            .map(|(name, written)| (Arc::clone(name), Arc::from(&*expand(written, value))))
            .collect();
        if next == settled {
            break;
        }
        settled = next;
    }
    settled
}

/// The containers with their variables expanded; none where no word has one.
pub(super) fn expanded(containers: &[ContainerCommand]) -> Option<Vec<ContainerCommand>> {
    let mut words =
        containers.iter().flat_map(|container| container.command.iter().chain(&container.args));
    let mut values = containers.iter().flat_map(|container| container.env.values());
    if !words.any(|word| word.contains("$(")) && !values.any(|value| value.contains("$(")) {
        return None;
    }
    let one = |container: &ContainerCommand| {
        let env = settled(&container.env);
        let value = |name: &str| env.get(name).map(|value| &**value);
        let all = |words: &[Arc<str>]| {
            words.iter().map(|word| Arc::from(&*expand(word, value))).collect()
        };
        ContainerCommand {
            command: all(&container.command),
            args: all(&container.args),
            image: Arc::clone(&container.image),
            env,
        }
    };
    Some(containers.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn variables_are_expanded_as_by_the_kubelet() {
        let value = |name: &str| match name {
            "SEQS" => Some("64"),
            "EMPTY" => Some(""),
            _ => None,
        };
        for (word, expected) in [
            ("--max-num-seqs=$(SEQS)", "--max-num-seqs=64"),
            ("$(SEQS)$(SEQS)", "6464"),
            ("$(OTHER)", "$(OTHER)"),
            ("$$(SEQS)", "$(SEQS)"),
            ("$SEQS", "$SEQS"),
            ("$(SEQS", "$(SEQS"),
            ("a$(EMPTY)b", "ab"),
            ("plain", "plain"),
        ] {
            assert_eq!(expand(word, value), expected, "{word}");
        }
    }
}

//! Variables in the words of a command, as Kubernetes expands them before a container starts.

use std::borrow::Cow;
use std::sync::Arc;

use super::parse::ContainerCommand;

/// Longest word that is built; a longer one stays as it is written.
const MAX_WORD: usize = 4096;

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
        let reference = after
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'));
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

/// The containers with their variables expanded; none where no word has one.
pub(super) fn expanded(containers: &[ContainerCommand]) -> Option<Vec<ContainerCommand>> {
    let mut words = containers
        .iter()
        .flat_map(|container| container.command.iter().chain(&container.args));
    if !words.any(|word| word.contains("$(")) {
        return None;
    }
    let one = |container: &ContainerCommand| {
        let value = |name: &str| container.env.get(name).map(|value| &**value);
        let all = |words: &[Arc<str>]| {
            words
                .iter()
                .map(|word| Arc::from(&*expand(word, value)))
                .collect()
        };
        ContainerCommand {
            command: all(&container.command),
            args: all(&container.args),
            ..container.clone()
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

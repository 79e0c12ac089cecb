//! The commit of this program.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the variable `WVA_COMMIT` says; where it is unset or empty, what git says now of the tree that this was
/// built in, with `-dirty` where that differs from it, and a word where the commit is younger than the program.
pub(super) fn of_this() -> String {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = || {
        std::env::current_exe()
            .ok()?
            .metadata()
            .ok()?
            .modified()
            .ok()
    };
    let told = || Some(told(of_tree(tree)?, time_of(tree), made()));
    given()
        .or_else(told)
        .unwrap_or_else(|| "unknown".to_owned())
}

/// A commit with its time, as what a program of this time is told to be of.
fn told(commit: String, at: Option<SystemTime>, made: Option<SystemTime>) -> String {
    if at.zip(made).is_some_and(|(at, made)| at > made) {
        commit + " (younger than this program)"
    } else {
        commit
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it changes what is printed and nothing else"
)]
fn given() -> Option<String> {
    let given = std::env::var("WVA_COMMIT").ok();
    given.filter(|given| !given.is_empty())
}

/// The commit of a tree; `None` without git, or where it knows none.
fn of_tree(tree: &Path) -> Option<String> {
    // No tag is to stand for a commit.
    let described = ["describe", "--always", "--dirty", "--abbrev=12"];
    asked(tree, &[&described[..], &["--exclude", "*"]].concat())
}

/// When it was made, to a second.
fn time_of(tree: &Path) -> Option<SystemTime> {
    let seconds = asked(tree, &["log", "-1", "--format=%ct"])?;
    Some(UNIX_EPOCH + Duration::from_secs(seconds.parse().ok()?))
}

fn asked(tree: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    let told = git.args(arguments).current_dir(tree).output().ok()?;
    let text = String::from_utf8(told.stdout).ok()?.trim().to_owned();
    (told.status.success() && !text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets git do something in a tree; whether there is a git that did.
    fn git(tree: &Path, arguments: &[&str]) -> bool {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let mut git = Command::new("git");
        let git = git.args(identity).args(arguments).current_dir(tree);
        git.output().is_ok_and(|told| told.status.success())
    }

    #[test]
    fn a_commit_that_was_made_after_the_program_is_told_as_such() {
        let at = |second| Some(UNIX_EPOCH + Duration::from_secs(second));
        let told = |commit, made| told("abc".to_owned(), commit, made);
        assert_eq!(told(at(7), at(7)), "abc");
        assert_eq!(told(at(8), at(7)), "abc (younger than this program)");
        assert_eq!(told(None, at(7)), "abc");
        assert_eq!(told(at(7), None), "abc");
    }

    #[test]
    fn a_tree_tells_its_commit_and_whether_it_differs_from_it() {
        let name = format!("wva-commit-of-{}", std::process::id());
        let tree = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&tree).unwrap();
        let is_there = git(&tree, &["init", "--quiet"]);
        // Before the first commit there is none.
        assert_eq!(of_tree(&tree), None);
        let file = tree.join("file");
        let mut told = Vec::new();
        for content in ["one", "two"] {
            std::fs::write(&file, content).unwrap();
            let is_kept = content == "one"
                && git(&tree, &["add", "file"])
                && git(&tree, &["commit", "--quiet", "--message", "first"]);
            assert_eq!(is_kept, is_there && content == "one");
            told.push(of_tree(&tree));
        }
        let time = time_of(&tree);
        std::fs::remove_dir_all(&tree).unwrap();
        assert_eq!(time.is_some_and(|at| at > UNIX_EPOCH), is_there);
        let [clean, dirty] = told.as_slice() else {
            panic!("{told:?}");
        };
        let is_commit = |text: &String| {
            text.len() == 12 && text.chars().all(|letter| letter.is_ascii_hexdigit())
        };
        assert_eq!(clean.as_ref().is_some_and(is_commit), is_there, "{clean:?}");
        let expected = clean.as_ref().map(|clean| format!("{clean}-dirty"));
        assert_eq!(*dirty, expected);
    }
}

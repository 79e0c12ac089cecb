//! The commit of this program.

use std::process::Command;

/// What the variable `WVA_COMMIT` says; where it is unset or empty, what git says now of the tree that this was
/// built in, with `-dirty` where that differs from it.
#[expect(clippy::disallowed_methods, reason = "it changes what is printed and nothing else")]
pub(super) fn of_this() -> String {
    let given = std::env::var("WVA_COMMIT").ok();
    let given = given.filter(|given| !given.is_empty());
    given.or_else(of_tree).unwrap_or_else(|| "unknown".to_owned())
}

fn of_tree() -> Option<String> {
    let mut git = Command::new("git");
    // No tag is to stand for a commit.
    git.args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*"]);
    let printed = git.current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    let text = String::from_utf8(printed.stdout).ok()?.trim().to_owned();
    (printed.status.success() && !text.is_empty()).then_some(text)
}

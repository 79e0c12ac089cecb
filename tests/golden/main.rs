//! Goldens: decisions, metrics, statuses and printed settings as text files in this folder. A change of
//! behaviour changes a file, and the diff of the file shows it.
//!
//! `UPDATE=1 cargo test -p wva-sim --test golden` writes these files anew. Without it a difference fails the test
//! and prints an excerpt. The files of `recordings` belong to the package `wva-recording`.
//!
//! | file | holds |
//! |---|---|
//! | `vectors.txt` | the plan of each whole snapshot of `tests/vectors` |
//! | `fleets.txt` | decisions of generated fleets, with their reasons |
//! | `targets.txt` | targets of the same fleets under every settings text |
//! | `settings.txt` | `wva controller --print-config` |
//! | `scene-*.txt` | metrics and statuses of scenes of the embedded world |
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

mod decisions;
mod fleets;
mod page;
mod scenes;
mod settings;
mod vectors;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The command that writes the files.
const UPDATE: &str = "UPDATE=1 cargo test -p wva-sim --test golden";

/// Lines of an excerpt.
const SHOWN: usize = 60;

/// Compares a file of this folder with a text, or writes it.
fn is_golden(name: &str, text: &str) {
    is_golden_with(name, text, String::new);
}

/// The same with a hint below the excerpt of a difference.
fn is_golden_with(name: &str, text: &str, hint: impl FnOnce() -> String) {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/golden");
    let path = folder.join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, text).unwrap();
        return;
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == text,
        "tests/golden/{name} differs; if the change is meant, `{UPDATE}` writes it\n{}\n{}",
        excerpt(&path, text).unwrap_or_else(|error| format!("diff: {error}")),
        hint()
    );
}

/// The lines that differ, with those around them.
fn excerpt(stored: &Path, found: &str) -> std::io::Result<String> {
    let mut diff = Command::new("diff")
        .args(["--new-file", "--unified=2", "--label=stored", "--label=found"])
        .arg(stored)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    // The pipe closes here, at which the text ends.
    diff.stdin.take().unwrap().write_all(found.as_bytes())?;
    let output = diff.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let left = text.lines().skip(SHOWN).count();
    let mut lines: Vec<String> = text.lines().take(SHOWN).map(str::to_owned).collect();
    lines.extend((left > 0).then(|| format!("... and {left} lines more")));
    Ok(lines.join("\n"))
}

//! The first differences of two texts, line by line, in the form of a unified diff.

/// Lines of an excerpt.
const SHOWN: usize = 60;
/// Equal lines around a difference.
const CONTEXT: usize = 2;

#[derive(Clone, Copy, PartialEq)]
enum Edit<'a> {
    Keep(&'a str),
    Remove(&'a str),
    Add(&'a str),
}

/// Returns the lines that differ, with those around them; at most [`SHOWN`].
pub(crate) fn excerpt(stored: &str, found: &str) -> String {
    let edits = edits(
        &stored.lines().collect::<Vec<_>>(),
        &found.lines().collect::<Vec<_>>(),
    );
    let is_near = |place: usize| {
        let from = place.saturating_sub(CONTEXT);
        let near = edits.iter().skip(from).take(place - from + CONTEXT + 1);
        near.into_iter().any(|edit| !matches!(edit, Edit::Keep(_)))
    };
    let mut lines = vec!["--- stored".to_owned(), "+++ found".to_owned()];
    let (mut number, mut last, mut left) = (0, None, 0);
    for (place, edit) in edits.iter().enumerate() {
        if !matches!(edit, Edit::Add(_)) {
            number += 1;
        }
        if !is_near(place) {
            continue;
        }
        if lines.len() >= SHOWN {
            left += usize::from(!matches!(edit, Edit::Keep(_)));
            continue;
        }
        if place == 0 || last != Some(place - 1) {
            lines.push(format!("@@ line {number} @@"));
        }
        last = Some(place);
        lines.push(match edit {
            Edit::Keep(line) => format!(" {line}"),
            Edit::Remove(line) => format!("-{line}"),
            Edit::Add(line) => format!("+{line}"),
        });
    }
    if left > 0 {
        lines.push(format!("... and {left} changed lines more"));
    }
    lines.join("\n")
}

/// The shortest edits from one text to another: those of a longest common subsequence.
fn edits<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Edit<'a>> {
    let equal = |(one, other): &(&&str, &&str)| one == other;
    let head = old.iter().zip(new).take_while(equal).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let turned = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = turned.take_while(equal).count();
    let (before, after) = (
        &old_rest[..old_rest.len() - tail],
        &new_rest[..new_rest.len() - tail],
    );
    let mut lengths = vec![vec![0_u32; after.len() + 1]; before.len() + 1];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            lengths[i][j] = if before[i] == after[j] {
                lengths[i + 1][j + 1] + 1
            } else {
                lengths[i + 1][j].max(lengths[i][j + 1])
            };
        }
    }
    let mut edits: Vec<Edit<'a>> = old[..head].iter().map(|line| Edit::Keep(line)).collect();
    let (mut i, mut j) = (0, 0);
    while i < before.len() || j < after.len() {
        let keeps = i < before.len() && j < after.len() && before[i] == after[j];
        let removes =
            j == after.len() || (i < before.len() && lengths[i + 1][j] >= lengths[i][j + 1]);
        if keeps {
            edits.push(Edit::Keep(before[i]));
            (i, j) = (i + 1, j + 1);
        } else if removes {
            edits.push(Edit::Remove(before[i]));
            i += 1;
        } else {
            edits.push(Edit::Add(after[j]));
            j += 1;
        }
    }
    edits.extend(old[old.len() - tail..].iter().map(|line| Edit::Keep(line)));
    edits
}

#[test]
fn a_changed_line_is_shown_with_its_neighbours() {
    let stored = "a\nb\nc\nd\ne\nf\ng\n";
    let found = "a\nb\nc\nD\ne\nf\ng\nh\n";
    assert_eq!(
        excerpt(stored, found),
        "--- stored\n+++ found\n@@ line 2 @@\n b\n c\n-d\n+D\n e\n f\n g\n+h"
    );
}

#[test]
fn many_changed_lines_are_counted() {
    let text = |letter: &str| vec![letter; 100].join("\n");
    let shown = excerpt(&text("a"), &text("b"));
    assert!(shown.ends_with("... and 143 changed lines more"), "{shown}");
}

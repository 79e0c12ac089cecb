//! Figures of the repository itself that docs/development/measures.md states.

use std::fs;

use super::names::product_sources;
use super::root;

/// A figure of the page is written anew once it is off by one in so many.
const TOLERANCE: usize = 50;

/// The second figure of the row that begins with a name: what was measured last.
fn stated(page: &str, name: &str) -> usize {
    let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")));
    let row = row.unwrap_or_else(|| panic!("measures.md has no row {name:?}"));
    let cell = row.split('|').nth(3).unwrap();
    let digits: String = cell.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{cell:?} of {name:?} is no figure"))
}

fn words_below(folder: &str) -> usize {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let counts = entries.map(|path| match path.extension() {
        _ if path.is_dir() => words_below(path.to_str().unwrap()),
        Some(extension) if extension == "md" => words_of(path.to_str().unwrap()),
        _ => 0,
    });
    counts.sum()
}

fn words_of(file: &str) -> usize {
    fs::read_to_string(root().join(file)).unwrap().split_whitespace().count()
}

#[test]
fn the_measures_of_the_repository_are_those_of_the_page() {
    let page = fs::read_to_string(root().join("docs/development/measures.md")).unwrap();
    let lines: usize = product_sources().iter().map(|(_, text)| text.lines().count()).sum();
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "actors.md"];
    let words = words_below("docs") + pages.into_iter().map(words_of).sum::<usize>();
    let chaos = words_of("docs/development/chaos.md");
    for (name, counted) in [
        ("lines of Rust without tests", lines),
        ("words of documentation", words),
        ("words of chaos.md", chaos),
    ] {
        let stated = stated(&page, name);
        let is_true = stated.abs_diff(counted) * TOLERANCE <= counted;
        assert!(is_true, "{name}: {counted} and not {stated}; write it anew");
    }
}

/// Scenarios that are summed up, and by policy of the first table of the laboratory the mean percentage of requests
/// within their objectives with the sum of GPU-hours: ours, KEDA, KEDA SLO, percentages, best fixed.
fn sums() -> (f64, [(f64, f64); 5]) {
    let page = fs::read_to_string(root().join("docs/development/laboratory.md")).unwrap();
    let (_, table) = page.split_once("| scenario | `slo` | KEDA |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| "));
    let (mut count, mut sums) = (0.0, [(0.0, 0.0); 5]);
    for row in rows.filter(|row| !row.starts_with("| prefill-decode |")) {
        count += 1.0;
        for (cell, sum) in row.split('|').skip(2).zip(&mut sums) {
            let (served, hours) = cell.trim().split_once(" @ ").unwrap();
            let hours = hours.split(',').next().unwrap();
            sum.0 += served.parse::<f64>().unwrap();
            sum.1 += hours.parse::<f64>().unwrap();
        }
    }
    (count, sums.map(|(served, hours)| (served / count, hours)))
}

#[test]
fn sums_of_the_laboratory_are_those_that_pages_show() {
    let (count, sums) = sums();
    let [ours, keda, keda_slo, _, fixed] = sums;
    let read = |page: &str| {
        let text = fs::read_to_string(root().join(page)).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let choice = read("docs/user-guide/policies.md");
    for (served, hours) in sums {
        let share = format!("{:.2}", hours / ours.1);
        let share = if share == "1.00" { "1" } else { &share };
        let cells = format!("| {served:.1} % | {share} |");
        assert!(choice.contains(&cells), "policies.md lacks {cells}");
    }
    let readme = read("README.md");
    let share = |hours: f64| hours / keda.1;
    for text in [
        format!("{count} scenarios: {:.1} % of the requests", ours.0),
        format!("for {:.2} of the GPU-hours", share(ours.1)),
        format!("KEDA recipe serves {:.1} %", keda.0),
        format!("serves {:.1} % for {:.2}, and", keda_slo.0, share(keda_slo.1)),
        format!("serves {:.1} % for {:.2}.", fixed.0, share(fixed.1)),
    ] {
        assert!(readme.contains(&text), "README.md lacks {text:?}");
    }
}

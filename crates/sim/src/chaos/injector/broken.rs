//! Unreadable entries of ConfigMaps.

use crate::chaos::dice::Dice;
use wva_supervise::SeedTree;

pub(super) type Broken = (&'static str, String);

const BRACKETS: usize = 200_000;
const LINES: usize = 620;

/// Whether the entry is one of the analyzers and limiters, rather than one of scale to zero, and what it holds
/// from now on: drawn from a number.
pub(super) fn draw(number: u64) -> (bool, Broken) {
    let mut dice = Dice::new(SeedTree::new(number).child("broken"));
    let is_of_analyzers = dice.chance(60);
    let field = if is_of_analyzers { "kvCacheThreshold" } else { "retention_period" };
    let all = texts(field);
    let drawn = dice.pick(&all).cloned();
    (is_of_analyzers, drawn.unwrap_or_default())
}

fn texts(field: &str) -> [Broken; 8] {
    let blocks = (0..LINES).map(|depth| " ".repeat(depth) + "a:\n");
    [
        ("an open bracket", format!("{field}: [0.8")),
        ("a tab", format!("{field}:\n\t- 0.8\n")),
        ("a field twice", format!("{field}: 5m\n{field}: 5m\n")),
        ("one word", "nothing\n".to_owned()),
        ("a list", format!("- {field}\n- 0.8\n")),
        ("aliases of aliases", bomb()),
        ("200 kB of brackets", format!("{field}: {}", "[".repeat(BRACKETS))),
        ("200 kB of blocks", blocks.collect()),
    ]
}

/// Few lines that grow to a thousand million words.
fn bomb() -> String {
    let first = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    let lines = (1..9).map(|number| {
        let alias = format!("*a{}", number - 1);
        format!("a{number}: &a{number} [{}]\n", [&*alias; 10].join(", "))
    });
    first + &lines.collect::<String>()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::world::controller::environment;
    use wva::settings::config_maps::Purpose;
    use wva::settings::problem::Problem;
    use wva::settings::{Sources, start};

    fn refused(is_of_analyzers: bool, text: &str) -> Vec<Purpose> {
        let mut sources = Sources {
            environment: environment("pod", Duration::from_secs(10)),
            ..Sources::default()
        };
        let policy =
            if is_of_analyzers { &mut sources.saturation } else { &mut sources.scale_to_zero };
        policy.global = Some([("default".to_owned(), text.to_owned())].into());
        let diagnostics = start(&sources).unwrap().diagnostics;
        let problems = diagnostics.problems.iter();
        problems.map(Problem::purpose).collect()
    }

    #[test]
    fn every_text_is_drawn_for_either_config_map_and_refused_in_it() {
        assert_eq!(refused(true, "kvCacheThreshold: 0.8\n"), []);
        assert_eq!(refused(false, "retention_period: 5m\n"), []);
        let mut drawn = BTreeSet::new();
        for number in 0..300 {
            let (is_of_analyzers, (what, text)) = draw(number);
            assert_eq!((is_of_analyzers, (what, text.clone())), draw(number));
            if !drawn.insert((is_of_analyzers, what)) {
                continue;
            }
            let purpose = if is_of_analyzers { Purpose::Saturation } else { Purpose::ScaleToZero };
            assert_eq!(refused(is_of_analyzers, &text), [purpose], "{what}");
        }
        assert_eq!(drawn.len(), 2 * texts("").len(), "{drawn:?}");
    }
}

//! A: what is written of targets that PodAutoscalers scale.

use std::time::Duration;

use super::InvariantViolation;

/// How old a page may be that a release rests on: fresh for a minute, a decision for 20 s, and three requests of it.
const READ: Duration = Duration::from_secs(90);
/// A look once a second is that late.
const LOOK: Duration = Duration::from_secs(2);
const HISTORY: usize = 5;

#[derive(Debug, Clone)]
pub(crate) struct ScaleWritten<'a> {
    pub(crate) name: &'a str,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) bounds: (u32, u32),
    pub(crate) window: Duration,
    pub(crate) leads_for: Option<Duration>,
    pub(crate) read_ago: Option<Duration>,
}

/// A1: a written count is within the bounds. A2: none is lowered without a page read. A3: none is lowered before a
/// long window has passed since the process leads. Counts above the maximum are lowered in any case.
pub(crate) fn written(place: usize, scale: &ScaleWritten<'_>) -> Vec<InvariantViolation> {
    let ScaleWritten { name, from, to, .. } = scale;
    let (min, max) = scale.bounds;
    let mut found = Vec::new();
    let mut add = |invariant, why: String| {
        let text = format!("c{place} scales {name} from {from} to {to} {why}");
        found.push(InvariantViolation::new(invariant, text));
    };
    if !(min..=max).contains(to) {
        add("A1", format!("beyond {min} to {max}"));
    }
    if to >= from || *from > max {
        return found;
    }
    if scale.read_ago.is_none_or(|ago| ago > READ) {
        let limit = READ.as_secs();
        add("A2", format!("without a page read for {limit} s"));
    }
    let leads_for = scale.leads_for.unwrap_or_default();
    if leads_for + LOOK < scale.window {
        let (leads, window) = (leads_for.as_secs(), scale.window.as_secs());
        add("A3", format!("after leading for {leads} s, less than its window of {window} s"));
    }
    found
}

/// A target that is to carry more than this share of what its replicas take grows, whatever the tolerance and the
/// noise of a page.
const OVERLOAD: f64 = 1.25;

/// How soon after its long window a target has grown: two ticks, a round of pages, and the write.
pub(crate) const GROWN: Duration = Duration::from_secs(45);

/// A6: what is wrong with a target for a while at most: its pods show more than its replicas take, and more of them are
/// allowed.
pub(crate) fn overloaded(
    name: &str,
    (replicas, most): (u32, u32),
    (shown, per_replica): (f64, f64),
) -> Option<String> {
    let carried = f64::from(replicas) * per_replica;
    let is_overloaded = replicas > 0 && replicas < most && shown > carried * OVERLOAD;
    is_overloaded.then(|| {
        format!("{name} keeps {replicas} replicas of at most {most} for more than they take")
    })
}

pub(crate) fn history(name: &str, entries: usize) -> Option<InvariantViolation> {
    let text = || format!("{name} has {entries} entries of history, more than {HISTORY}");
    (entries > HISTORY).then(|| InvariantViolation::new("A4", text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_needs_a_page_and_a_window_and_every_count_its_bounds() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let judged = |(from, to), leads_for, read_ago| {
            let scale = ScaleWritten {
                name: "v",
                from,
                to,
                bounds: (1, 4),
                window: Duration::from_mins(2),
                leads_for,
                read_ago,
            };
            let found = written(0, &scale);
            found.iter().map(|one| one.invariant).collect::<Vec<_>>()
        };
        assert_eq!(judged((3, 2), seconds(120), seconds(90)), Vec::<&str>::new());
        assert_eq!(judged((3, 2), seconds(120), seconds(91)), ["A2"]);
        assert_eq!(judged((3, 2), seconds(120), None), ["A2"]);
        assert_eq!(judged((3, 2), seconds(117), seconds(1)), ["A3"]);
        assert_eq!(judged((3, 2), None, None), ["A2", "A3"]);
        assert_eq!(judged((2, 3), None, None), Vec::<&str>::new());
        assert_eq!(judged((6, 4), None, None), Vec::<&str>::new());
        assert_eq!(judged((3, 5), seconds(300), seconds(1)), ["A1"]);
        assert_eq!(judged((1, 0), seconds(300), seconds(1)), ["A1"]);
    }

    #[test]
    fn a_target_that_carries_too_much_grows_up_to_its_maximum() {
        let found = |replicas, shown| overloaded("v", (replicas, 4), (shown, 8.0)).is_some();
        assert!(!found(2, 20.0));
        assert!(found(2, 20.1));
        assert!(found(3, 900.0));
        assert!(!found(4, 900.0));
        assert!(!found(0, 900.0), "nothing shows a page there");
    }

    #[test]
    fn a_history_has_five_entries() {
        assert_eq!(history("v", 5), None);
        assert_eq!(history("v", 6).unwrap().invariant, "A4");
    }
}

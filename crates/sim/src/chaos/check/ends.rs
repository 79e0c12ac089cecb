//! T1, T4: how roles and processes end.

use std::collections::BTreeMap;
use std::time::Duration;

use super::InvariantViolation;
use wva::roles::Role;
use wva_supervise::{Aliveness, ChildrenPolicy, ExitReason, RoleReport, TreeRole as _};

/// In which life each role was last seen with a handler that never ends, since that was asked for.
#[derive(Debug, Default)]
pub(crate) struct Hangs(BTreeMap<Role, u64>);

impl Hangs {
    pub(crate) fn note(&mut self, report: &[RoleReport<Role>], hanging: &[Role]) {
        for role in hanging {
            let of_role = report.iter().find(|one| one.role == *role);
            if let Some(one) = of_role {
                self.0.insert(role.clone(), one.incarnation);
            }
        }
    }

    fn holds(&self, role: &Role, life: u64) -> bool {
        self.0.get(role) == Some(&life)
    }
}

/// T1: a life was ended between two looks since it stood still, and nobody had asked for that. It lasts for
/// several looks until it is.
pub(crate) fn hung(
    (before, now): (&[RoleReport<Role>], &[RoleReport<Role>]),
    hangs: &Hangs,
) -> Option<InvariantViolation> {
    let has_hung = |one: &&RoleReport<Role>| {
        let why = one.last_failure.as_deref();
        why.is_some_and(|why| why.starts_with("hung: "))
    };
    let mut hung = now.iter().filter(has_hung).peekable();
    hung.peek()?;
    let known: BTreeMap<&Role, &RoleReport<Role>> =
        before.iter().map(|one| (&one.role, one)).collect();
    let one = hung.find(|one| {
        let was = known.get(&one.role);
        was.is_some_and(|was| {
            was.last_failure != one.last_failure && !hangs.holds(&one.role, was.incarnation)
        })
    })?;
    let why = one.last_failure.as_deref().unwrap_or_default();
    let text = format!("{} stood still by itself: {why}", one.role);
    Some(InvariantViolation::new("T1", text))
}

/// What is wrong with the end of a process that nobody asked to end. It ends with its root, to which something may
/// have been done, and may give up when a role below it has ended too often, each time since something was done to
/// that: how often so to the root, and to any role.
pub(crate) fn unasked(
    why: &Result<ExitReason, String>,
    (of_root, of_any): (u64, u64),
) -> Option<String> {
    let budget = match Role::Root.policy().children {
        Some(ChildrenPolicy::Restart(policy)) => policy.max_restarts,
        Some(ChildrenPolicy::Quarantine(_)) | None => 0,
    };
    let is_spent = usize::try_from(of_any).is_ok_and(|harmed| harmed > budget);
    match why {
        Ok(ExitReason::Failed(_)) if of_root > 0 => None,
        Ok(ExitReason::Failed(why)) if is_spent && why.contains(" ended more than ") => None,
        Ok(reason) => Some(format!("has ended by itself: {reason:?}")),
        Err(why) => Some(format!("has ended by itself: {why}")),
    }
}

/// What is wrong with a process that says for long that it is not alive: who hangs as was asked for is a reason.
pub(crate) fn stuck(said: &Aliveness<Role>, hanging: &[Role]) -> Option<String> {
    match said {
        Aliveness::Alive => None,
        Aliveness::Stuck(roles) if roles.iter().any(|role| hanging.contains(role)) => None,
        Aliveness::Stuck(roles) => {
            let names: Vec<String> = roles.iter().map(ToString::to_string).collect();
            Some(format!("is stuck by itself: {}", names.join(", ")))
        }
        Aliveness::NoRoot => Some("has no root and does not end".to_owned()),
    }
}

/// What was true of a process when it was asked to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Since when nothing had disturbed it, if nothing did nor was to.
    pub(crate) calm: Option<Duration>,
    /// Who had the lease, if it led.
    pub(crate) held: Option<String>,
}

impl Ending {
    /// Whether nothing had disturbed it for so long.
    pub(crate) fn was_calm(&self, now: Duration, long: Duration) -> bool {
        self.calm.is_some_and(|since| since + long <= now)
    }

    /// What it has not done when it has ended: so many roles were `overdue`, and the lease is that of `holder`.
    pub(crate) fn undone(&self, overdue: u64, holder: Option<&str>) -> Option<String> {
        if overdue > 0 {
            return Some(format!(
                "had {overdue} roles that did not end within their grace"
            ));
        }
        let is_kept = self.held.is_some() && self.held.as_deref() == holder;
        is_kept.then(|| "led, and has ended without giving its lease back".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wva_supervise::RoleState;

    fn one(role: Role, incarnation: u64, why: Option<&str>) -> RoleReport<Role> {
        RoleReport {
            parent: role.parent(),
            role,
            incarnation,
            restarts: 0,
            told: 0,
            handled: 0,
            lost: 0,
            state: RoleState::Running,
            last_progress: None,
            last_failure: why.map(ToOwned::to_owned),
        }
    }

    #[test]
    fn who_is_ended_for_standing_still_was_made_to_or_has_a_reason() {
        let why = "hung: 1 messages waited for 61 s";
        let role = Role::StatusWriter;
        let told = |before: Option<&str>, now: &str, hangs: &Hangs| {
            let before = [one(role.clone(), 4, before)];
            let now = [one(role.clone(), 5, Some(now))];
            hung((&before, &now), hangs).map(|found| found.to_string())
        };
        let mut hangs = Hangs::default();
        assert_eq!(told(None, "killed", &hangs), None);
        let text = format!("T1: status-writer stood still by itself: {why}");
        assert_eq!(told(None, why, &hangs), Some(text.clone()));
        assert_eq!(told(Some("killed"), why, &hangs), Some(text.clone()));
        assert_eq!(told(Some(why), why, &hangs), None, "told before");
        hangs.note(&[one(role.clone(), 3, None)], std::slice::from_ref(&role));
        assert_eq!(told(None, why, &hangs), Some(text), "another life");
        hangs.note(
            &[one(role.clone(), 4, None)],
            &[Role::Optimizer, role.clone()],
        );
        assert_eq!(told(None, why, &hangs), None);
    }

    #[test]
    fn a_process_ends_unasked_only_when_so_much_was_done_to_it() {
        let spent = || {
            let why = "engine ended more than 3 times within 600 s, at last: killed";
            Ok(ExitReason::Failed(why.to_owned()))
        };
        assert_eq!(unasked(&spent(), (0, 4)), None);
        let text = unasked(&spent(), (0, 3)).unwrap();
        assert!(
            text.starts_with("has ended by itself: Failed(\"engine"),
            "{text}"
        );
        let killed = Ok(ExitReason::Failed("the root was killed".to_owned()));
        assert!(unasked(&killed, (0, 9)).is_some());
        assert_eq!(unasked(&killed, (1, 1)), None);
        let shutdown = unasked(&Ok(ExitReason::Shutdown), (1, 9));
        assert_eq!(shutdown.as_deref(), Some("has ended by itself: Shutdown"));
        let panic = unasked(&Err("task 1 panicked".to_owned()), (1, 9));
        assert_eq!(
            panic.as_deref(),
            Some("has ended by itself: task 1 panicked")
        );
    }

    #[test]
    fn a_process_is_stuck_by_itself_where_nobody_hangs_as_was_asked_for() {
        let said = Aliveness::Stuck(vec![Role::Egress, Role::Emitter]);
        assert_eq!(stuck(&Aliveness::Alive, &[]), None);
        assert_eq!(stuck(&said, &[Role::Egress]), None);
        let text = "is stuck by itself: egress, emitter";
        assert_eq!(stuck(&said, &[Role::Engine]).as_deref(), Some(text));
        assert_eq!(stuck(&said, &[]).as_deref(), Some(text));
        assert!(stuck(&Aliveness::NoRoot, &[]).is_some());
    }

    #[test]
    fn who_ends_in_order_gives_its_lease_back() {
        let seconds = Duration::from_secs;
        let ending = |held: Option<&str>| Ending {
            calm: Some(seconds(50)),
            held: held.map(ToOwned::to_owned),
        };
        let (led, followed) = (ending(Some("a")), ending(None));
        assert!(!led.was_calm(seconds(59), seconds(10)));
        assert!(led.was_calm(seconds(60), seconds(10)));
        let calm = None;
        assert!(
            !Ending {
                calm,
                ..led.clone()
            }
            .was_calm(seconds(60), seconds(10))
        );
        for (holder, kept) in [(None, false), (Some("b"), false), (Some("a"), true)] {
            let text = kept.then(|| "led, and has ended without giving its lease back".to_owned());
            assert_eq!(led.undone(0, holder), text);
            assert_eq!(followed.undone(0, holder), None);
        }
        let text = "had 2 roles that did not end within their grace";
        assert_eq!(followed.undone(2, None).as_deref(), Some(text));
    }
}

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
}

/// T1: a life was ended between two looks since it stood still, and nothing had demanded that. It lasts for
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
            was.last_failure != one.last_failure && hangs.0.get(&one.role) != Some(&was.incarnation)
        })
    })?;
    let why = one.last_failure.as_deref().unwrap_or_default();
    let text = format!("{} stood still by itself: {why}", one.role);
    Some(InvariantViolation::new("T1", text))
}

/// What is wrong with the unasked end of a process. It ends with its root, to which something may
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Since when nothing had disturbed it, if nothing did nor was to.
    pub(crate) calm: Option<Duration>,
    pub(crate) held: Option<String>,
}

impl Ending {
    pub(crate) fn was_calm(&self, now: Duration, long: Duration) -> bool {
        self.calm.is_some_and(|since| since + long <= now)
    }

    /// What it has not done when it has ended: so many roles were `overdue`, and the lease is that of `holder`.
    pub(crate) fn undone(&self, overdue: u64, holder: Option<&str>) -> Option<String> {
        if overdue > 0 {
            return Some(format!("had {overdue} roles that did not end within their grace"));
        }
        let is_kept = self.held.is_some() && self.held.as_deref() == holder;
        is_kept.then(|| "led, and has ended without giving its lease back".to_owned())
    }
}

//! Whether the process is ready, and what is blind.

use std::fmt::Write as _;

/// One named reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadinessReason {
    /// What it is about, e.g. `mirror/Pod`.
    pub name: String,
    /// Its state.
    pub state: ReadinessState,
    /// Details for people.
    pub detail: String,
}

/// State of one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadinessState {
    /// Fine.
    Ok,
    /// Worth knowing; does not make the process unready.
    Degraded,
    /// The process is not ready.
    NotReady,
}

/// Ready unless a reason says otherwise.
pub fn is_ready(reasons: &[ReadinessReason]) -> bool {
    reasons.iter().all(|reason| reason.state != ReadinessState::NotReady)
}

/// One line per reason.
pub fn render(reasons: &[ReadinessReason]) -> String {
    let mut text = String::new();
    for ReadinessReason { name, state, detail } in reasons {
        let mark = match state {
            ReadinessState::Ok => "[+]",
            ReadinessState::Degraded => "[!]",
            ReadinessState::NotReady => "[-]",
        };
        // Writing to a string does not fail.
        writeln!(text, "{mark} {name}: {detail}").unwrap_or_default();
    }
    text.push_str(if is_ready(reasons) { "ready" } else { "not ready" });
    text
}

#[cfg(test)]
mod tests {
    use super::{ReadinessReason, ReadinessState, is_ready, render};

    #[test]
    fn a_degraded_reason_is_shown_and_does_not_make_the_process_unready() {
        let reason = |name: &str, state| ReadinessReason {
            name: name.to_owned(),
            state,
            detail: "x".to_owned(),
        };
        let degraded =
            [reason("config", ReadinessState::Ok), reason("prometheus", ReadinessState::Degraded)];
        assert!(is_ready(&degraded));
        assert_eq!(render(&degraded), "[+] config: x\n[!] prometheus: x\nready");
        let blind = [reason("mirror/Pod", ReadinessState::NotReady)];
        assert!(!is_ready(&blind));
        assert_eq!(render(&blind), "[-] mirror/Pod: x\nnot ready");
    }
}

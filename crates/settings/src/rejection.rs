//! Edits of static settings, and the documented words about them.

/// What is logged with every rejection.
pub const REJECTION_LOG: &str = "Attempted to change immutable parameters";

/// Longest message of an event that the API server stores.
const MAX_EVENT: usize = 1024;

/// An edit of a static setting that is not followed. Secrets and credentials are masked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rejected {
    /// Key of the setting.
    pub key: &'static str,
    /// Its documented name.
    pub display: &'static str,
    /// The value that runs and stays.
    pub old: String,
    /// The value that was written.
    pub new: String,
}

wva_base::display_of! { Rejected: Self { display, old, new, .. } => "{display} (old: \"{old}\", new: \"{new}\")"; }

/// The documented error text; empty without a rejection.
pub fn rejection_error(rejected: &[Rejected]) -> String {
    if rejected.is_empty() {
        return String::new();
    }
    format!(
        "attempted to change immutable parameters that require controller restart: {}. \
         Please restart the controller to apply these changes",
        joined(rejected, ToString::to_string)
    )
}

/// The documented message of the event on ConfigMap `namespace/name`. When it would grow beyond what
/// the API server stores, values are left out, then names.
pub fn rejection_event(namespace: &str, name: &str, rejected: &[Rejected]) -> String {
    let message = |list: &str| {
        format!(
            "ConfigMap {namespace}/{name} attempted to change immutable parameters that require \
             controller restart: [{list}]. These changes were rejected. Mutable parameter updates \
             were still applied."
        )
    };
    let full = message(&joined(rejected, ToString::to_string));
    if full.len() <= MAX_EVENT {
        return full;
    }
    for named in (0..=rejected.len()).rev() {
        let (listed, rest) = rejected.split_at_checked(named).unwrap_or((rejected, &[]));
        let names = joined(listed, |rejected| rejected.display.to_owned());
        let list = match rest.len() {
            0 => names,
            more => format!("{names}; and {more} more"),
        };
        let short = message(&list);
        if short.len() <= MAX_EVENT {
            return short;
        }
    }
    message("")
}

fn joined(rejected: &[Rejected], show: impl Fn(&Rejected) -> String) -> String {
    rejected.iter().map(show).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(display: &'static str, old: &str, new: &str) -> Rejected {
        Rejected { key: "KEY", display, old: old.to_owned(), new: new.to_owned() }
    }

    #[test]
    fn the_texts_are_the_documented_ones() {
        assert_eq!(rejection_error(&[]), "");
        let two =
            [rejected("Prometheus BaseURL", "a", "b"), rejected("Leader election ID", "x", "")];
        assert_eq!(
            rejection_error(&two),
            "attempted to change immutable parameters that require controller restart: \
             Prometheus BaseURL (old: \"a\", new: \"b\"); Leader election ID (old: \"x\", new: \
             \"\"). Please restart the controller to apply these changes"
        );
        assert_eq!(
            rejection_event("sys", "main", &two[..1]),
            "ConfigMap sys/main attempted to change immutable parameters that require controller \
             restart: [Prometheus BaseURL (old: \"a\", new: \"b\")]. These changes were rejected. \
             Mutable parameter updates were still applied."
        );
    }

    #[test]
    fn a_long_event_keeps_the_names_and_fits() {
        let long = "v".repeat(110);
        let ten = vec![rejected("Metrics bind address", &long, &long); 10];
        let message = rejection_event("sys", "main", &ten);
        assert!(message.len() <= MAX_EVENT);
        assert_eq!(message.matches("Metrics bind address").count(), 10);
        assert!(!message.contains("vvv"));
        let hundred = vec![rejected("Metrics bind address", "a", "b"); 100];
        let message = rejection_event("sys", "main", &hundred);
        assert!(message.len() <= MAX_EVENT);
        assert!(message.contains("more]"), "{message}");
    }
}

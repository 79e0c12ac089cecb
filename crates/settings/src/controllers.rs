//! Which kinds of object are decided on: the flag `--controllers` of AIBrix, and a switch.

use super::problem::InvalidValue;

/// The controller of AIBrix that has its place here.
const POD_AUTOSCALER: &str = "pod-autoscaler-controller";

/// Every controller that is not named.
const ALL: &str = "*";

/// Whether a part of the controller is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureSwitch {
    /// It works.
    Enabled,
    /// It reads and writes nothing.
    Disabled,
}

impl From<bool> for FeatureSwitch {
    fn from(enabled: bool) -> Self {
        if enabled { Self::Enabled } else { Self::Disabled }
    }
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

pub(super) fn check_controllers(text: &str) -> Result<(), InvalidValue> {
    let is_known =
        |entry: &&str| *entry == ALL || entry.strip_prefix('-').unwrap_or(entry) == POD_AUTOSCALER;
    match entries(text).find(|entry| !is_known(entry)) {
        None => Ok(()),
        Some(entry) => Err(InvalidValue::new(
            format!("{entry:?} is no controller of this program"),
            format!("write {ALL}, {POD_AUTOSCALER} or -{POD_AUTOSCALER}"),
        )),
    }
}

/// Whether a list has the controller of `PodAutoscaler`s: its first entry about it counts, before any `*`.
pub(super) fn has_pod_autoscalers(text: &str) -> bool {
    let named = entries(text).find(|entry| entry.ends_with(POD_AUTOSCALER));
    match named {
        Some(entry) => !entry.starts_with('-'),
        None => entries(text).any(|entry| entry == ALL),
    }
}

#[cfg(test)]
mod tests {
    use super::{check_controllers, has_pod_autoscalers};

    #[test]
    fn a_list_switches_the_controller_as_the_original_does() {
        for (text, expected) in [
            ("*", true),
            ("pod-autoscaler-controller", true),
            ("-pod-autoscaler-controller", false),
            ("*,-pod-autoscaler-controller", false),
            ("-pod-autoscaler-controller, *", false),
            ("*, pod-autoscaler-controller", true),
            ("pod-autoscaler-controller,-pod-autoscaler-controller", true),
        ] {
            assert_eq!(check_controllers(text), Ok(()), "{text}");
            assert_eq!(has_pod_autoscalers(text), expected, "{text}");
        }
    }

    #[test]
    fn a_controller_of_another_program_is_refused_by_name() {
        for (text, named) in [
            ("model-adapter-controller", "model-adapter-controller"),
            ("*,-model-adapter-controller", "-model-adapter-controller"),
            ("--pod-autoscaler-controller", "--pod-autoscaler-controller"),
            ("-*", "-*"),
            ("*,", ""),
            ("", ""),
        ] {
            let refused = check_controllers(text).unwrap_err();
            let why = format!("{named:?} is no controller of this program");
            assert_eq!(refused.why, why, "{text}");
            assert_eq!(
                refused.remedy,
                "write *, pod-autoscaler-controller or -pod-autoscaler-controller"
            );
        }
    }
}

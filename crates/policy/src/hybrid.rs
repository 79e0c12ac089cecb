//! Hybrid mode: which of two opinions on a variant counts, that of the saturation analysis or that
//! of the queueing model. Saturation may veto a decrease; otherwise the model decides.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::plan::Action;
use super::reason::{Basis, Shrinking};
use super::units::Replicas;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VariantOpinions {
    pub current: Replicas,
    pub saturation: Replicas,
    pub model: Replicas,
    pub shrinking: Shrinking,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Arbitration {
    pub action: Action,
    pub target: Replicas,
    pub basis: Basis,
    pub reason: String,
}

pub(crate) fn arbitrate(opinions: VariantOpinions) -> Arbitration {
    let VariantOpinions { current, saturation, model, shrinking } = opinions;
    let must_grow = saturation > current;
    let (target, basis) = match model.cmp(&current) {
        Ordering::Less if must_grow || shrinking == Shrinking::Unsafe => {
            (current, Basis::SafetyOverride)
        }
        Ordering::Equal if must_grow => (saturation, Basis::Saturation),
        Ordering::Equal => (current, Basis::Neither),
        Ordering::Less | Ordering::Greater => (model, Basis::Model),
    };
    let action = match target.cmp(&current) {
        Ordering::Greater => Action::ScaleUp,
        Ordering::Less => Action::ScaleDown,
        Ordering::Equal => Action::NoChange,
    };
    let reason = match basis {
        Basis::SafetyOverride if must_grow => format!(
            "Saturation veto: Saturation needs scale-up (Saturation={saturation}, \
             model-based={model})"
        ),
        Basis::SafetyOverride => {
            format!("saturation safety block: scale-down unsafe (model-based wants {model})")
        }
        Basis::Saturation => format!("Saturation-driven scale-up to {saturation}"),
        Basis::Model => {
            format!("model-based recommendation: {action} to {model} (Saturation allows)")
        }
        Basis::Neither => "no action needed".to_owned(),
    };
    Arbitration { action, target, basis, reason }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::{VariantOpinions, arbitrate};
    use crate::plan::Action;
    use crate::reason::{Basis, Shrinking};
    use crate::units::Replicas;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Case {
        id: String,
        /// Current, saturation's, the model's.
        given: (u32, u32, u32),
        shrinking: Shrinking,
        target: u32,
        basis: Basis,
        reason: String,
    }

    #[test]
    fn the_published_cases() {
        let table = include_str!("../../../tests/vectors/hybrid.yaml");
        let cases: Vec<Case> = serde_yaml::from_str(table).unwrap();
        assert!(cases.iter().filter(|case| case.id.starts_with("HYB-")).count() == 4);
        for case in cases {
            let (current, saturation, model) = case.given;
            let decided = arbitrate(VariantOpinions {
                current: Replicas(current),
                saturation: Replicas(saturation),
                model: Replicas(model),
                shrinking: case.shrinking,
            });
            assert_eq!(decided.target, Replicas(case.target), "{}", case.id);
            assert_eq!(decided.basis, case.basis, "{}", case.id);
            assert_eq!(decided.reason, case.reason, "{}", case.id);
        }
    }

    proptest! {
        #[test]
        fn nothing_shrinks_against_the_saturation_analysis(
            current in 0_u32..9, saturation in 0_u32..9, model in 0_u32..9, safe: bool,
        ) {
            let decided = arbitrate(VariantOpinions {
                current: Replicas(current),
                saturation: Replicas(saturation),
                model: Replicas(model),
                shrinking: if safe { Shrinking::Safe } else { Shrinking::Unsafe },
            });
            if decided.action == Action::ScaleDown {
                prop_assert!(safe && saturation <= current && decided.target == Replicas(model));
            }
            if decided.basis == Basis::Neither {
                prop_assert!(saturation <= current && decided.target == Replicas(current));
            }
        }
    }
}

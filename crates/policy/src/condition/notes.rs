//! Remarks on the fields of an object, which its owner should know.

use crate::plan::Decision;
use crate::snapshot::{DeclaredBounds, VariantView};
use crate::units::Replicas;

/// What the owner of the object should know about its fields.
pub(super) fn of(view: &VariantView, decision: Option<&Decision>) -> Vec<String> {
    let mut notes: Vec<String> = view.notes.iter().map(ToString::to_string).collect();
    match view.bounds {
        LEGACY_BOUNDS => notes.push(
            "minReplicas 1 and maxReplicas 2 are the original's schema defaults, which it stored in objects that set neither; remove maxReplicas or set the one that you want"
                .to_owned(),
        ),
        DeclaredBounds {
            min: Some(min),
            max: Some(max),
        } if min > max => {
            notes.push(format!(
                "minReplicas {min} is above maxReplicas {max}: the maximum holds until one of them is changed"
            ));
        }
        _ => {}
    }
    notes.extend(
        decision
            .into_iter()
            .flat_map(|decision| decision.notes.iter().cloned()),
    );
    notes
}

/// What the original's schema wrote into every object that left its bounds out.
const LEGACY_BOUNDS: DeclaredBounds = DeclaredBounds {
    min: Some(Replicas(1)),
    max: Some(Replicas(2)),
};

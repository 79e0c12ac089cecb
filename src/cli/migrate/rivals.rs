//! Of two variants with one target or name neither is scaled: a form that would be one of two is left out.

use serde_json::Value;

use crate::cli::status::{TargetPlace, identity, target_place, title};

/// A variant that is there, or would be.
struct VariantIdentity<'a> {
    title: String,
    name: (&'a str, &'a str),
    target: TargetPlace<'a>,
}

impl<'a> VariantIdentity<'a> {
    fn of(object: &'a Value) -> Self {
        Self { title: title(object), name: identity(object), target: target_place(object) }
    }

    fn is_rival(&self, other: &VariantIdentity<'_>) -> bool {
        let (_, _, target) = self.target;
        let has_target = !target.is_empty() && self.target == other.target;
        has_target || self.name == other.name
    }
}

/// Why a form is left out, for each that is: the other variant with its target or name. Each form has the title of the
/// object that it is made from, which it replaces. `declared` are the variants of scalers.
pub(super) fn rivals(
    forms: &[(String, Result<Value, String>)],
    variants: &[Value],
    declared: &[Value],
) -> Vec<Option<String>> {
    let variants: Vec<VariantIdentity<'_>> = variants.iter().map(VariantIdentity::of).collect();
    let declared: Vec<VariantIdentity<'_>> = declared.iter().map(VariantIdentity::of).collect();
    let printed = forms.iter();
    let printed: Vec<Option<VariantIdentity<'_>>> =
        printed.map(|(_, form)| form.as_ref().ok().map(VariantIdentity::of)).collect();
    let whys = forms.iter().zip(&printed).enumerate();
    let whys = whys.map(|(at, ((source, _), own))| {
        let own = own.as_ref()?;
        // A scaler that is annotated already is printed again.
        let there = declared.iter().filter(|other| other.title != own.title);
        let there = there.chain(&variants);
        let there = there.filter(|other| other.title != *source);
        let others = printed.iter().enumerate();
        let others = others.filter(|(other, _)| *other != at);
        let others = others.filter_map(|(_, other)| other.as_ref());
        let rival = there.chain(others).find(|other| own.is_rival(other))?;
        Some(format!(
            "{source}: {} is a variant with its target or name, or becomes one; remove one of the two, or rename it",
            rival.title
        ))
    });
    whys.collect()
}

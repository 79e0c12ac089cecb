//! Remedies of findings.

use serde_json::Value;

use super::{EDIT, Finding, FindingCode};
use crate::policy::scaler::ScalerKind;

impl Finding {
    /// The command that mends it, or leads to what does.
    pub fn remedy(&self) -> String {
        if let Some(file) = &self.object.file {
            return format!("edit {file}");
        }
        let remedy = self.of_scaler().unwrap_or_else(|| self.code.spec().remedy);
        let rests = self.target.as_ref().is_some_and(|target| target.rests);
        let remedy = if rests {
            remedy.replace("/hpa.yaml", "/scaledobject.yaml")
        } else {
            remedy.to_owned()
        };
        let scope = (self.object.namespace.is_empty()).then_some(" --namespace {namespace}");
        let remedy = scope.map_or_else(|| remedy.clone(), |scope| remedy.replace(scope, ""));
        let kind = self.object.kind.to_lowercase();
        let places = [
            ("{kind}", kind.as_str()),
            ("{name}", &self.object.name),
            ("{namespace}", &self.object.namespace),
            ("{value}", &self.value),
        ];
        let of_target = self.target.iter().flat_map(|target| {
            [
                ("{target}", target.name.as_str()),
                ("{target_kind}", &target.kind),
                ("{target_version}", &target.api_version),
            ]
        });
        let places: Vec<(&str, &str)> = places.into_iter().chain(of_target).collect();
        filled(&remedy, &places)
    }

    /// The command where a scaler is the variant, and no VariantAutoscaling has its name.
    fn of_scaler(&self) -> Option<&'static str> {
        let kinds = [ScalerKind::HorizontalPodAutoscaler, ScalerKind::ScaledObject];
        let is_scaler = kinds.iter().any(|kind| kind.as_str() == self.object.kind);
        match self.code {
            _ if !is_scaler => None,
            FindingCode::TargetContested if self.value.is_empty() => {
                Some("kubectl annotate {kind} {name} --namespace {namespace} llm-d.ai/managed-")
            }
            FindingCode::TargetContested => Some(
                "kubectl annotate {kind} {name} --namespace {namespace} llm-d.ai/managed={value}",
            ),
            FindingCode::ModelNameDiffers
            | FindingCode::ModelNameSpelledOtherwise
            | FindingCode::CostsEqual => Some(EDIT),
            _ => None,
        }
    }
}

/// A command with words in their places. It is meant to be pasted, and anyone who may name a model chooses a word: none
/// ends its quotes or begins another command.
fn filled(command: &str, places: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    let mut is_quoted = false;
    let mut rest = command;
    while let Some(letter) = rest.chars().next() {
        let place = places.iter().find(|(place, _)| rest.starts_with(place));
        let length = if let Some((place, word)) = place {
            filled.push_str(&if is_quoted { quoted(word) } else { plain(word) });
            place.len()
        } else {
            is_quoted ^= letter == '\'';
            filled.push(letter);
            letter.len_utf8()
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    filled
}

/// A word inside of JSON in single quotes.
fn quoted(word: &str) -> String {
    let text = Value::from(word).to_string();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    text.unwrap_or_default().replace('\'', r"'\''")
}

/// A word without quotes.
fn plain(word: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "._/:@-".contains(*letter);
    word.chars().filter(is_plain).collect()
}

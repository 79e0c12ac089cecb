//! Remedies of findings.

use super::{Finding, FindingCode};
use crate::doctor::command::filled;
use crate::policy::actuation::ScalerKind;

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
            | FindingCode::CostsEqual => Some("kubectl edit {kind} {name} --namespace {namespace}"),
            _ => None,
        }
    }
}

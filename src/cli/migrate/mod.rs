//! `wva migrate`: variants in their other form.

mod forms;
mod rename;
mod rivals;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use serde_json::Value;

pub(super) use self::forms::{StoredScaler, declared};
use super::namespace_flags::NamespaceFlags;
use super::status::{FleetObjects, title};
use super::{fail, print};
use wva_base::text::printable;

/// What variants become.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum VariantForm {
    /// Annotations of the HPA or ScaledObject that scales them.
    #[default]
    Annotations,
    /// VariantAutoscalings.
    Objects,
}

/// Prints variants in their other form, for kubectl apply
#[derive(Debug, Parser)]
#[command(
    name = "migrate",
    after_help = "Reads the objects with the kubeconfig and changes none. Prints annotated HPAs and ScaledObjects for \
                  VariantAutoscalings, or VariantAutoscalings for annotated ones.\n\
                  Exit code: 0 with every variant printed, 1 where one is left out, a server may refuse one, or the \
                  cluster cannot be read, 2 where arguments are not accepted."
)]
pub(super) struct MigrateFlags {
    #[command(flatten)]
    namespaces: NamespaceFlags,
    /// What variants become
    #[arg(long, value_name = "FORM", value_enum, default_value = "annotations")]
    to: VariantForm,
}

pub(super) fn run(flags: &MigrateFlags) -> ExitCode {
    let objects = super::block_on(async {
        let (client, namespace) = flags.namespaces.connect().await?;
        FleetObjects::read(&client, namespace.as_deref()).await
    });
    match objects.map(|objects| migrated(&objects, flags.to)) {
        Ok((text, said)) => match print(&text) {
            ExitCode::SUCCESS if said.is_empty() => ExitCode::SUCCESS,
            _ => fail(said.iter().map(|line| printable(line))),
        },
        Err(error) => fail([error]),
    }
}

/// One document for each variant, and what is to be said: why others have none, and which may be refused.
fn migrated(objects: &FleetObjects, to: VariantForm) -> (String, Vec<String>) {
    let scalers = objects.scalers();
    let mut said = objects.notes.clone();
    if to == VariantForm::Objects {
        let still = scalers.iter();
        said.extend(still.filter_map(|scaler| forms::declares_still(*scaler)));
    }
    let mut text = String::new();
    for form in forms_of(&objects.variants, &scalers, to) {
        let printed = form.and_then(|form| {
            let document = serde_yaml::to_string(&form).map_err(|error| error.to_string())?;
            Ok((document, forms::refusal(&form)))
        });
        match printed {
            Ok((document, refusal)) => {
                text.push_str("---\n");
                text.push_str(&document);
                said.extend(refusal);
            }
            Err(why) => said.push(why),
        }
    }
    (text, said)
}

/// The other form of each variant, or why it has none.
fn forms_of(
    variants: &[Value],
    scalers: &[StoredScaler<'_>],
    to: VariantForm,
) -> Vec<Result<Value, String>> {
    let forms: Vec<(String, Result<Value, String>)> = match to {
        VariantForm::Annotations => {
            let forms = variants.iter();
            let forms = forms.map(|object| (title(object), forms::as_annotations(object, scalers)));
            forms.collect()
        }
        VariantForm::Objects => {
            let forms = scalers.iter().filter_map(|scaler| {
                let source = title(&declared(*scaler)?);
                let form = forms::as_object(*scaler)?;
                Some((source, form.map_err(|why| why.to_string())))
            });
            forms.collect()
        }
    };
    let declared: Vec<Value> = scalers.iter().copied().filter_map(declared).collect();
    let rivals = rivals::rivals(&forms, variants, &declared);
    let forms = forms.into_iter().zip(rivals);
    let forms = forms.map(|((_, form), rival)| match rival {
        Some(why) => Err(why),
        None => form,
    });
    forms.collect()
}

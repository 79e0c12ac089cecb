//! The arguments of `wva migrate`.

use clap::{Parser, ValueEnum};

use crate::cli::namespace_flags::NamespaceFlags;

/// What variants become.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum VariantForm {
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
pub(in crate::cli) struct MigrateFlags {
    #[command(flatten)]
    pub(super) namespaces: NamespaceFlags,
    /// What variants become
    #[arg(long, value_name = "FORM", value_enum, default_value = "annotations")]
    pub(super) to: VariantForm,
}

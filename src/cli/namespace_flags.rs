//! Which namespaces a command looks at, and the cluster that they are in.

use clap::Args;
use kube::Client;

use crate::cluster::client::{KubeconfigSource, connect};

/// Flags that name namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(super) struct NamespaceFlags {
    /// The namespace; without it that of the kubeconfig
    #[arg(short = 'n', long, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// All namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
}

impl NamespaceFlags {
    /// A client for the cluster of the kubeconfig, and the namespace; `None` for all.
    ///
    /// # Errors
    /// Why there is no client, with the remedy.
    pub(super) async fn connect(&self) -> Result<(Client, Option<String>), String> {
        let client = connect(&KubeconfigSource::Infer).await;
        let client = client.map_err(|error| error.to_string())?;
        let own = client.default_namespace().to_owned();
        let named = self.namespace.clone().unwrap_or(own);
        Ok((client, (!self.all_namespaces).then_some(named)))
    }
}

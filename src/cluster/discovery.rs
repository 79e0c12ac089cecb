//! Which kinds does the API server serve?

use std::time::Duration;

use kube::{Client, Resource};

use super::client::{RequestError, within};

/// Whether the server lists the resource in its group and version right now.
///
/// # Errors
/// Whatever kept the server from answering; a missing group is an answer.
pub async fn serves<K: Resource<DynamicType = ()>>(
    client: &Client,
    deadline: Duration,
) -> Result<bool, RequestError> {
    let version = K::version(&());
    let list = if K::group(&()).is_empty() {
        within(deadline, client.list_core_api_resources(&version)).await
    } else {
        let group_version = K::api_version(&());
        within(deadline, client.list_api_group_resources(&group_version)).await
    };
    match list {
        Ok(list) => {
            let plural = K::plural(&());
            Ok(list
                .resources
                .iter()
                .any(|resource| resource.name == plural))
        }
        Err(error) if error.code() == Some(404) => Ok(false),
        Err(error) => Err(error),
    }
}

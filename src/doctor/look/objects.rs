//! Lists objects, page by page, bounded in number and bytes.

use futures::AsyncReadExt as _;
use http::Request;
use kube::Client;
use serde_json::{Value, json};

use super::DEADLINE;
use crate::cluster::client::within;
use crate::doctor::facts::{LiveKind, Reading};
use crate::doctor::object::{LiveObject, list as values, text};

/// Objects of one page.
const PAGE: usize = 250;
const MOST_OBJECTS: usize = 20_000;
/// Most bytes of one page.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In all namespaces, or outside of any.
    Everywhere,
    Namespace(String),
    /// The one object of this name, outside of any namespace.
    Object(String),
}

/// Lists the objects of a kind in all the places.
pub(super) async fn list(
    client: &Client,
    kind: LiveKind,
    places: &[Place],
    selector: &str,
) -> Reading<Vec<LiveObject>> {
    list_at(client, kind, kind.path(), places, selector).await.into()
}

/// Lists the objects of a kind at the path of another group and version; `None` where the server does not have it.
async fn list_at(
    client: &Client,
    kind: LiveKind,
    base: &str,
    places: &[Place],
    selector: &str,
) -> Result<Option<Vec<LiveObject>>, String> {
    let mut all = Vec::new();
    for place in places {
        let mut token = String::new();
        loop {
            let path = path(base, kind.resource(), place, selector, &token);
            let Some(mut page) = get(client, &path).await? else {
                return Ok(None);
            };
            let items = match page.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) => items,
                Some(_) => Vec::new(),
                None => vec![page.clone()],
            };
            for mut item in items {
                // Items of a list do not repeat their kind.
                if let Some(fields) = item.as_object_mut() {
                    fields.insert("kind".to_owned(), json!(kind.as_str()));
                }
                all.push(LiveObject::new(item));
            }
            if all.len() > MOST_OBJECTS {
                return Err(format!(
                    "there are more than {MOST_OBJECTS}; name one namespace with --namespace"
                ));
            }
            text(&page, "/metadata/continue").clone_into(&mut token);
            if token.is_empty() {
                break;
            }
        }
    }
    Ok(Some(all))
}

/// Lists InferencePools of a group that publishes no version of them, in the first version that serves any.
pub(super) async fn list_pools(
    client: &Client,
    group: &str,
    place: &Place,
) -> Result<Option<Vec<LiveObject>>, String> {
    let Some(group) = get(client, &format!("/apis/{group}")).await? else {
        return Ok(None);
    };
    for served in values(&group, "/versions") {
        let base = format!("/apis/{}", text(served, "/groupVersion"));
        let places = std::slice::from_ref(place);
        let found = list_at(client, LiveKind::InferencePool, &base, places, "").await?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn path(base: &str, resource: &str, place: &Place, selector: &str, token: &str) -> String {
    let query: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("limit", &PAGE.to_string())
        .append_pair("labelSelector", selector)
        .append_pair("continue", token)
        .finish();
    match place {
        Place::Everywhere => format!("{base}/{resource}?{query}"),
        Place::Namespace(name) => format!("{base}/namespaces/{name}/{resource}?{query}"),
        Place::Object(name) => format!("{base}/{resource}/{name}"),
    }
}

/// The document at a path; `None` where the server does not have it.
pub(super) async fn get(client: &Client, path: &str) -> Result<Option<Value>, String> {
    match within(DEADLINE, fetch(client, path)).await {
        Ok(text) => {
            let document = serde_json::from_slice(&text);
            document.map(Some).map_err(|error| format!("the answer is no JSON: {error}"))
        }
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// The body at a path of the API server, up to a limit.
pub(super) async fn fetch(client: &Client, path: &str) -> kube::Result<Vec<u8>> {
    let request = Request::get(path).body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    let body = client.request_stream(request).await?;
    let mut bytes = Vec::new();
    let mut body = Box::pin(body.take(MOST_BYTES));
    body.read_to_end(&mut bytes).await.map_err(kube::Error::ReadEvents)?;
    Ok(bytes)
}

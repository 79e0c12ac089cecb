//! Getting and listing objects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::refusal::ApiRefusal;
use super::request::{Ask, RequestTarget, ResponseForm};
use super::selector::Selector;
use super::state::State;
use super::store::Key;
use super::{scale, table, view};

impl State {
    pub(super) fn get(&self, target: &RequestTarget, ask: &Ask) -> Result<Arc<Value>, ApiRefusal> {
        let kind = &*target.kind;
        let key = target.key()?;
        let stored = self.store.get(&key);
        let stored = stored.ok_or_else(|| ApiRefusal::not_found(kind, &key.name))?;
        let object = view::shared(kind, stored);
        if target.subresource == "scale" {
            return Ok(Arc::new(scale::shown(kind, &object)));
        }
        Ok(self.in_shape(target, ask.shape(), object))
    }

    pub(super) fn in_shape(
        &self,
        target: &RequestTarget,
        shape: ResponseForm,
        object: Arc<Value>,
    ) -> Arc<Value> {
        match shape {
            ResponseForm::Full => object,
            ResponseForm::Metadata => Arc::new(view::metadata_only(&object)),
            ResponseForm::Table => {
                let version = &object["metadata"]["resourceVersion"];
                let objects = std::slice::from_ref(&*object);
                Arc::new(table::of(&target.kind, objects, version, self.seconds()))
            }
        }
    }

    pub(super) fn list(&self, target: &RequestTarget, ask: &Ask) -> Result<Value, ApiRefusal> {
        let kind = &*target.kind;
        let selector = selector(ask)?;
        let limit = ask.number("limit")?.filter(|limit| *limit > 0);
        let start = ask.parameter("continue").map(ContinueToken::read).transpose()?;
        let revision = start.as_ref().map(|token| token.revision);
        let namespace = target.namespace.as_deref();
        let objects = match revision {
            Some(revision) => self.store.list_at(&kind.stored_as, namespace, revision),
            None => Some(self.store.list(&kind.stored_as, namespace)),
        };
        let objects = objects.ok_or_else(|| {
            ApiRefusal::expired(
                "The provided continue parameter is too old to display a consistent list result. \
                 You must start a new list without the continue parameter.",
            )
        })?;
        let revision = revision.unwrap_or_else(|| self.store.revision());
        let mut found = objects
            .iter()
            .filter(|(key, _)| start.as_ref().is_none_or(|token| token.is_before(key)))
            .map(|(key, object)| (key, view::shared(kind, object)))
            .filter(|(_, object)| selector.matches(object));
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        let page: Vec<_> = found.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
        let rest = found.count();
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if let Some((last, _)) = page.last().filter(|_| rest > 0) {
            metadata["continue"] = ContinueToken::after(revision, last).into();
            if selector.is_empty() {
                metadata["remainingItemCount"] = json!(rest);
            }
        }
        let items = page.into_iter();
        let items = items.map(|(_, object)| Arc::unwrap_or_clone(object));
        Ok(self.list_in_shape(target, ask.shape(), metadata, items.collect()))
    }

    fn list_in_shape(
        &self,
        target: &RequestTarget,
        shape: ResponseForm,
        metadata: Value,
        items: Vec<Value>,
    ) -> Value {
        let kind = &*target.kind;
        match shape {
            ResponseForm::Full => {
                let mut list = json!({
                    "kind": kind.list_kind, "apiVersion": kind.api_version(), "metadata": metadata,
                });
                list["items"] = items.into();
                list
            }
            ResponseForm::Metadata => json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": items.iter().map(view::metadata_only).collect::<Vec<_>>(),
            }),
            ResponseForm::Table => {
                let version = metadata["resourceVersion"].clone();
                let mut table = table::of(kind, &items, &version, self.seconds());
                table["metadata"] = metadata;
                table
            }
        }
    }
}

pub(super) fn selector(ask: &Ask) -> Result<Selector, ApiRefusal> {
    let text = |name: &str| ask.parameter(name).unwrap_or_default();
    Selector::read(text("labelSelector"), text("fieldSelector"))
}

struct ContinueToken {
    revision: u64,
    last: (String, String),
}

impl ContinueToken {
    fn after(revision: u64, last: &Key) -> String {
        format!("{revision}:{}:{}", last.namespace, last.name)
    }

    fn read(text: &str) -> Result<Self, ApiRefusal> {
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().map(str::to_owned);
        let revision: Option<u64> = part().and_then(|part| part.parse().ok());
        let token = revision.zip(part().zip(part()));
        let why = "continue key is not valid: it is not one of this server";
        token
            .map(|(revision, last)| Self { revision, last })
            .ok_or_else(|| ApiRefusal::bad_request(why))
    }

    fn is_before(&self, key: &Key) -> bool {
        let (namespace, name) = &self.last;
        (namespace, name) < (&key.namespace, &key.name)
    }
}

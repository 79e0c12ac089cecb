//! Objects as the controllers read them, and what they write.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::apiserver::list;
use wva_base::moment::WallTime;

/// A stored object. What is absent reads as empty or zero.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object(pub(crate) Arc<Value>);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Write {
    Create(String, Value),
    Spawn(Object, Value),
    Merge(String, Value),
    Delete(String, Value),
}

impl Object {
    /// The value at a path like `/spec/replicas`, whose steps are taken as they are: by
    /// [`Value::pointer`] each of them would be copied twice.
    pub(crate) fn at(&self, path: &str) -> &Value {
        let mut steps = path.split('/').skip(1);
        let found = steps.try_fold(&*self.0, |value, step| match value {
            Value::Array(list) => list.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        });
        found.unwrap_or(&Value::Null)
    }

    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    pub(crate) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or_default()
    }

    pub(crate) fn count(&self, pointer: &str) -> Option<u32> {
        u32::try_from(self.at(pointer).as_u64()?).ok()
    }

    pub(crate) fn list(&self, pointer: &str) -> &[Value] {
        list(self.at(pointer))
    }

    pub(crate) fn time(&self, pointer: &str) -> Option<WallTime> {
        wall_time(self.at(pointer))
    }

    pub(crate) fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    pub(crate) fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    pub(crate) fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    pub(super) fn created(&self) -> WallTime {
        self.time("/metadata/creationTimestamp").unwrap_or(WallTime(0))
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.at("/metadata/deletionTimestamp").is_string()
    }

    pub(crate) fn controller(&self) -> Option<&str> {
        let mut owners = self.list("/metadata/ownerReferences").iter();
        let owner = owners.find(|owner| owner["controller"] == true)?;
        owner["uid"].as_str()
    }

    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        let annotations = self.at("/metadata/annotations");
        annotations.get(name)?.as_str()
    }

    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.at("/metadata/labels").get(name)?.as_str()
    }

    pub(crate) fn condition(&self, kind: &str) -> Option<&Value> {
        let mut conditions = self.list("/status/conditions").iter();
        conditions.find(|one| one["type"] == kind)
    }

    pub(crate) fn holds(&self, condition: &str) -> bool {
        self.condition(condition).is_some_and(|one| one["status"] == "True")
    }

    pub(super) fn restarts(&self) -> i64 {
        self.number("/status/containerStatuses/0/restartCount")
    }

    /// The conditions with these among them; the time of one moves when its status does.
    pub(crate) fn having(&self, news: impl IntoIterator<Item = Value>, now: WallTime) -> Value {
        let mut conditions = self.list("/status/conditions").to_vec();
        for mut condition in news {
            let present = conditions.iter_mut().find(|one| one["type"] == condition["type"]);
            condition["lastTransitionTime"] = match &present {
                Some(present) if present["status"] == condition["status"] => {
                    present["lastTransitionTime"].clone()
                }
                _ => stamp(now).into(),
            };
            match present {
                Some(place) => *place = condition,
                None => conditions.push(condition),
            }
        }
        conditions.into()
    }

    pub(super) fn as_owner(&self, api_version: &str, kind: &str) -> Value {
        json!([{
            "apiVersion": api_version, "kind": kind, "name": self.name(), "uid": self.uid(),
            "controller": true, "blockOwnerDeletion": true,
        }])
    }
}

/// The path of a namespaced object or, without a name, of its collection.
pub(crate) fn path(group_version: &str, namespace: &str, plural: &str, name: &str) -> String {
    let root = if group_version.contains('/') { "apis" } else { "api" };
    let mut path = format!("/{root}/{group_version}/namespaces/{namespace}/{plural}");
    if !name.is_empty() {
        path.push('/');
        path.push_str(name);
    }
    path
}

pub(crate) fn pod_path(pod: &Object) -> String {
    path("v1", pod.namespace(), "pods", pod.name())
}

pub(crate) fn stamp(at: WallTime) -> String {
    jiff::Timestamp::from_second(at.0.div_euclid(1000)).unwrap_or_default().to_string()
}

pub(crate) fn wall_time(value: &Value) -> Option<WallTime> {
    let time: jiff::Timestamp = value.as_str()?.parse().ok()?;
    Some(WallTime(time.as_millisecond()))
}

pub(super) fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

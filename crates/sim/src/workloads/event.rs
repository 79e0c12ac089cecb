//! Events about objects.

use serde_json::{Value, json};

use super::object::{Object, Write, path, stamp};
use wva_base::moment::WallTime;

wva_base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Volume {
        Normal,
        /// Someone should look.
        Warning,
    }
}

pub(crate) fn document(
    (api_version, kind, object): (&str, &str, &Object),
    component: &str,
    (volume, reason): (Volume, &str),
    message: &str,
    now: WallTime,
) -> (String, Value) {
    let namespace = match object.namespace() {
        "" => "default",
        namespace => namespace,
    };
    let event = json!({
        "metadata": {"generateName": format!("{}.", object.name())},
        "involvedObject": {
            "apiVersion": api_version, "kind": kind, "namespace": object.namespace(),
            "name": object.name(), "uid": object.text("/metadata/uid"),
        },
        "type": volume.as_str(), "reason": reason, "message": message, "count": 1,
        "firstTimestamp": stamp(now), "lastTimestamp": stamp(now),
        "source": {"component": component}, "reportingComponent": component,
        "reportingInstance": "",
    });
    (path("v1", namespace, "events", ""), event)
}

pub(super) fn event(
    about: (&str, &str, &Object),
    component: &str,
    what: (Volume, &str),
    message: &str,
    now: WallTime,
) -> Write {
    let (collection, event) = document(about, component, what, message, now);
    Write::Create(collection, event)
}

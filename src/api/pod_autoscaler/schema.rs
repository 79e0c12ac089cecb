//! The schema of `PodAutoscaler`, field by field as AIBrix has it.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray,
};

const TIME_OF_DAY: &str = "^([01][0-9]|2[0-3]):[0-5][0-9]$";

const LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// Seconds of the longest window and of the furthest horizon.
const LONGEST_SECONDS: f64 = 3600.0;

/// Entries of `status.scalingHistory`.
const HISTORY_LENGTH: i64 = 5;

type Field = (&'static str, JSONSchemaProps);

fn typed(kind: &str, description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        type_: Some(kind.to_owned()),
        description: (!description.is_empty()).then(|| description.to_owned()),
        ..JSONSchemaProps::default()
    }
}

fn text(description: &str) -> JSONSchemaProps {
    typed("string", description)
}

fn formatted(kind: &str, format: &str, description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        format: Some(format.to_owned()),
        ..typed(kind, description)
    }
}

fn count(description: &str) -> JSONSchemaProps {
    formatted("integer", "int32", description)
}

fn time(description: &str) -> JSONSchemaProps {
    formatted("string", "date-time", description)
}

/// Seconds from 1 to an hour.
fn seconds(description: &str) -> JSONSchemaProps {
    nullable(JSONSchemaProps {
        minimum: Some(1.0),
        maximum: Some(LONGEST_SECONDS),
        ..formatted("integer", "int64", description)
    })
}

fn nullable(field: JSONSchemaProps) -> JSONSchemaProps {
    JSONSchemaProps {
        nullable: Some(true),
        ..field
    }
}

fn choice(values: &[&str], description: &str) -> JSONSchemaProps {
    let values = values.iter().map(|value| JSON((*value).into()));
    JSONSchemaProps {
        enum_: Some(values.collect()),
        ..text(description)
    }
}

fn pattern(pattern: &str, description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        pattern: Some(pattern.to_owned()),
        ..text(description)
    }
}

fn list(items: JSONSchemaProps, description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        items: Some(JSONSchemaPropsOrArray::Schema(Box::new(items))),
        ..typed("array", description)
    }
}

/// A list that has an entry where it is there.
fn filled(items: JSONSchemaProps, description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        min_items: Some(1),
        ..list(items, description)
    }
}

fn object(
    required: &[&str],
    fields: impl IntoIterator<Item = Field>,
    description: &str,
) -> JSONSchemaProps {
    let fields = fields.into_iter();
    let fields: BTreeMap<String, JSONSchemaProps> = fields
        .map(|(name, field)| (name.to_owned(), field))
        .collect();
    let required = required.iter().map(|name| (*name).to_owned()).collect();
    JSONSchemaProps {
        properties: Some(fields),
        required: Some(required).filter(|required: &Vec<String>| !required.is_empty()),
        ..typed("object", description)
    }
}

/// Fields by name.
macro_rules! fields {
    ($($name:literal: $schema:expr;)*) => { [$(($name, $schema)),*] };
}

pub(super) fn object_schema() -> JSONSchemaProps {
    let fields = fields! {
        "apiVersion": text("");
        "kind": text("");
        "metadata": typed("object", "");
        "spec": spec();
        "status": status();
    };
    let meaning = "Scales one object between bounds, by metrics and by the time of day.";
    object(&[], fields, meaning)
}

fn spec() -> JSONSchemaProps {
    let role = fields! { "roleName": text("Name of the role."); };
    let predictive = fields! {
        "mode": mode("Whether a forecast is shown or acts.");
        "horizonSeconds": seconds("How far ahead demand is forecast. Left out: 120.");
    };
    let fields = fields! {
        "scaleTargetRef": target();
        "subTargetSelector": object(&[], role, "A role inside a StormService.");
        "minReplicas": nullable(count("Fewest replicas. Left out: 1."));
        "maxReplicas": count("Most replicas.");
        "schedules": filled(schedule(), "Bounds at certain times of the week.");
        "metricsSources": filled(source(), "What is measured. The source that needs most replicas counts.");
        "observeWindowSeconds": seconds("Length of the long (stable) window. Left out: 180.");
        "panicWindowSeconds": seconds("Length of the short (panic) window. Left out: 60.");
        "predictive": object(&[], predictive, "A forecast of demand, for KPA and APA.");
        "scalingStrategy": choice(&["HPA", "KPA", "APA"], "How replicas are decided.");
    };
    let required = ["maxReplicas", "scaleTargetRef", "scalingStrategy"];
    object(&required, fields, "What is to be scaled, and how.")
}

fn mode(description: &str) -> JSONSchemaProps {
    choice(&["Preview", "Auto"], description)
}

fn target() -> JSONSchemaProps {
    let fields = fields! {
        "apiVersion": text("Group and version of its kind.");
        "fieldPath": text("Decides nothing.");
        "kind": text("Its kind.");
        "name": text("Its name.");
        "namespace": text("Its namespace, which is that of this object.");
        "resourceVersion": text("Decides nothing.");
        "uid": text("Decides nothing.");
    };
    JSONSchemaProps {
        x_kubernetes_map_type: Some("atomic".to_owned()),
        ..object(&[], fields, "The object whose replicas are decided.")
    }
}

fn schedule() -> JSONSchemaProps {
    let name = JSONSchemaProps {
        min_length: Some(1),
        ..pattern(LABEL, "Its name, unique in the list.")
    };
    let fields = fields! {
        "name": name;
        "timezone": text("IANA time zone, the same in all entries. Left out: UTC.");
        "daysOfWeek": filled(text(""), "Days from Mon to Sun. Left out: every day.");
        "startTime": pattern(TIME_OF_DAY, "HH:MM from which on it is in force.");
        "endTime": pattern(TIME_OF_DAY, "HH:MM of the same day from which on it is not.");
        "minReplicas": nullable(count("Fewest replicas while it is in force."));
        "maxReplicas": nullable(count("Most replicas while it is in force."));
    };
    object(&["endTime", "name", "startTime"], fields, "")
}

fn source() -> JSONSchemaProps {
    let kinds = ["pod", "resource", "custom", "external", "domain"];
    let fields = fields! {
        "metricSourceType": choice(&kinds, "Where values come from. domain is an old name of external.");
        "protocolType": choice(&["http", "https"], "How a metrics page is read.");
        "endpoint": text("Host and port of a service with a total.");
        "path": text("Path of the metrics page.");
        "port": text("Port of the pods.");
        "targetMetric": text("Name of the metric.");
        "targetValue": text("What one replica is to carry, a decimal number above 0.");
    };
    let required = ["metricSourceType", "targetMetric", "targetValue"];
    object(&required, fields, "")
}

fn status() -> JSONSchemaProps {
    let bounds = fields! {
        "activeSchedule": text("The schedule in force. Left out: none.");
        "effectiveMinReplicas": count("Fewest replicas now.");
        "effectiveMaxReplicas": count("Most replicas now.");
    };
    let required = ["effectiveMaxReplicas", "effectiveMinReplicas"];
    let history = JSONSchemaProps {
        max_items: Some(HISTORY_LENGTH),
        ..list(history(), "The last decisions, oldest first.")
    };
    let fields = fields! {
        "lastScaleTime": nullable(time("Time of the last entry of the history."));
        "desiredScale": count("Replicas that were decided last.");
        "actualScale": count("Replicas that were read before the last write.");
        "conditions": list(condition(), "One entry for each type.");
        "scalingHistory": history;
        "scheduledBounds": nullable(object(&required, bounds, "The bounds in force."));
        "predictive": forecast();
    };
    object(&[], fields, "What was found and decided.")
}

fn history() -> JSONSchemaProps {
    let fields = fields! {
        "timestamp": time("When.");
        "previousScale": count("Replicas before.");
        "newScale": count("Replicas decided.");
        "reason": text("Why.");
        "success": typed("boolean", "Whether it succeeded.");
        "error": text("What failed.");
    };
    let required = [
        "newScale",
        "previousScale",
        "reason",
        "success",
        "timestamp",
    ];
    object(&required, fields, "")
}

fn forecast() -> JSONSchemaProps {
    let fields = fields! {
        "mode": mode("Whether the forecast acts.");
        "metric": text("targetMetric of the source that it is made from.");
        "observedValue": text("Mean of the long window that it starts from.");
        "predictedValue": text("Value at the horizon.");
        "predictedReplicas": count("Replicas that the forecast alone needs.");
        "reactiveReplicas": count("Replicas that are decided without it.");
        "wouldBeReplicas": count("Replicas that mode Auto decides, within all limits.");
        "lastUpdated": nullable(time("When it was made."));
    };
    object(&[], fields, "The last forecast.")
}

/// The standard condition with the limits of Kubernetes. The list has no key, as in AIBrix: one writer owns it.
fn condition() -> JSONSchemaProps {
    let reason = JSONSchemaProps {
        min_length: Some(1),
        max_length: Some(1024),
        ..pattern(
            "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            "Why, in one word.",
        )
    };
    let kind = JSONSchemaProps {
        max_length: Some(316),
        ..pattern(
            "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            "What is judged.",
        )
    };
    let message = JSONSchemaProps {
        max_length: Some(32_768),
        ..text("Why, in words.")
    };
    let generation = JSONSchemaProps {
        minimum: Some(0.0),
        ..formatted("integer", "int64", "Generation that was judged.")
    };
    let fields = [
        ("lastTransitionTime", time("When the status last changed.")),
        ("message", message),
        ("observedGeneration", generation),
        ("reason", reason),
        ("status", choice(&["True", "False", "Unknown"], "")),
        ("type", kind),
    ];
    let required = ["lastTransitionTime", "message", "reason", "status", "type"];
    object(&required, fields, "")
}

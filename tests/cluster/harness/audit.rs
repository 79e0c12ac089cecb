//! What the controllers of a world asked of its API server, by the server's own audit log.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use super::controller::ACCOUNT;
use super::fault::Result;
use super::site::Site;

/// Service accounts alone, without the cluster's own.
const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
"#;

/// Something that may be done: API group, resource with its subresource, verb.
pub(crate) type Right = (String, String, String);

/// Where the API server writes; older parts lie in the same folder.
pub(crate) fn log(site: &Site) -> PathBuf {
    site.logs().join("audit.log")
}

/// Writes the rules for what is logged.
pub(crate) fn write_policy(site: &Site) -> Result<PathBuf> {
    site.write("audit-policy.yaml", POLICY)
}

/// What controllers did, and what they were not allowed to do.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub(crate) allowed: BTreeSet<Right>,
    pub(crate) refused: BTreeSet<(String, Right)>,
    granted: BTreeSet<(String, Right)>,
}

/// Reads everything that the API server of one world has logged so far.
pub(crate) fn uses(logs: &Path) -> Result<Uses> {
    let mut uses = Uses::default();
    events(logs, |event| uses.add(&event))?;
    Ok(uses)
}

/// The same of all worlds of a run, those that are gone included.
pub(crate) fn uses_of_run(run: &Path) -> Result<Uses> {
    let mut uses = Uses::default();
    for world in fs::read_dir(run)? {
        let logs = world?.path().join("log");
        if logs.is_dir() {
            events(&logs, |event| uses.add(&event))?;
        }
    }
    Ok(uses)
}

fn events(logs: &Path, mut read: impl FnMut(Value)) -> Result {
    for entry in fs::read_dir(logs)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("audit") {
            let text = fs::read_to_string(&path)?;
            // The last line may be half written.
            let events = text.lines().filter_map(|line| serde_json::from_str(line).ok());
            events.for_each(&mut read);
        }
    }
    Ok(())
}

/// A request that changes something, by one of the tokens of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// The token, by its id.
    pub(crate) token: String,
    /// When the API server got it.
    pub(crate) at: Timestamp,
    /// Verb and resource.
    pub(crate) what: String,
}

/// What the controllers in a namespace have asked to change. Questions about readers change nothing.
pub(crate) fn changes(logs: &Path, namespace: &str) -> Result<Vec<Change>> {
    let user = format!("system:serviceaccount:{namespace}:{ACCOUNT}");
    let mut changes = Vec::new();
    events(logs, |event| {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
        let token = "/user/extra/authentication.kubernetes.io~1credential-id/0";
        let verb = text("/verb").unwrap_or_default();
        let resource = text("/objectRef/resource").unwrap_or_default();
        let changes_something = matches!(verb, "create" | "update" | "patch" | "delete");
        if text("/user/username") == Some(&user)
            && changes_something
            && !resource.ends_with("reviews")
            && let (Some(token), Some(at)) = (text(token), text("/requestReceivedTimestamp"))
            && let Ok(at) = at.parse()
        {
            changes.push(Change {
                token: token.to_owned(),
                at,
                what: format!("{verb} {resource}"),
            });
        }
    })?;
    Ok(changes)
}

impl Uses {
    /// What an account never got. An API server that has just started refuses what it grants as soon as
    /// it has read its roles.
    pub(crate) fn never_granted(&self) -> impl Iterator<Item = &(String, Right)> {
        self.refused.difference(&self.granted)
    }

    fn add(&mut self, event: &Value) {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
        let user = text("/user/username").unwrap_or_default();
        let Some(resource) = text("/objectRef/resource") else {
            return;
        };
        let is_controller = user.ends_with(&format!(":{ACCOUNT}"))
            // As the chart and kustomize name it.
            || user.ends_with("-controller-manager");
        if !is_controller {
            return;
        }
        let resource = match text("/objectRef/subresource") {
            Some(subresource) => format!("{resource}/{subresource}"),
            None => resource.to_owned(),
        };
        let right = (
            text("/objectRef/apiGroup").unwrap_or_default().to_owned(),
            resource,
            text("/verb").unwrap_or_default().to_owned(),
        );
        // Admission refuses with 403 too, as in a namespace that is going away.
        match event["annotations"]["authorization.k8s.io/decision"].as_str() {
            Some("forbid") => {
                self.refused.insert((user.to_owned(), right));
            }
            Some("allow") => {
                self.granted.insert((user.to_owned(), right.clone()));
                self.allowed.insert(right);
            }
            _ => {}
        }
    }
}

/// Whether a right that is granted covers one that was used. `*/scale` is that subresource of any
/// resource.
pub(crate) fn covers(granted: &Right, used: &Right) -> bool {
    let (group, resource, verb) = granted;
    let (used_group, used_resource, used_verb) = used;
    let is_any_scale = resource == "*/scale" && used_resource.ends_with("/scale");
    (group == "*" || group == used_group)
        && (is_any_scale || resource == "*" || resource == used_resource)
        && verb == used_verb
}

/// The rights that roles grant.
pub(crate) fn granted(roles: &[Value]) -> BTreeSet<Right> {
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        let list = rule[field].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut rights = BTreeSet::new();
    for rule in roles.iter().filter_map(|role| role["rules"].as_array()).flatten() {
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                for verb in texts(rule, "verbs") {
                    rights.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    rights
}

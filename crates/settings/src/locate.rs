//! Where the main ConfigMap is: what must be known before the other layers can be read.

use std::time::Duration;

use super::layers::resolve;
use super::problem::{Layer, SettingError};
use super::schema;
use super::sources::Sources;

/// Where the main ConfigMap is, and how long to wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MainLocation {
    /// The system namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `REST_CLIENT_TIMEOUT`, as far as flags and environment say.
    pub request_timeout: Duration,
}

/// Finds the main ConfigMap from flags and environment alone.
///
/// # Errors
/// When one of the settings that say where it is is not accepted: then everything that is known to be
/// wrong. Other errors wait for [`super::start`], so that they are reported all at once.
pub fn locate_main(sources: &Sources) -> Result<MainLocation, Vec<SettingError>> {
    let resolution = resolve(sources, None);
    let needed = [
        schema::POD_NAMESPACE.name,
        schema::CONFIG_MAP_NAME.name,
        schema::REST_CLIENT_TIMEOUT.name,
    ];
    let errors: Vec<SettingError> =
        resolution.fatal.into_iter().filter(|error| error.origin.layer != Layer::Default).collect();
    if errors.iter().any(|error| needed.contains(&error.key)) {
        return Err(errors);
    }
    let values = resolution.values;
    Ok(MainLocation {
        namespace: values.name(&schema::POD_NAMESPACE),
        name: values.name(&schema::CONFIG_MAP_NAME),
        request_timeout: values.duration(&schema::REST_CLIENT_TIMEOUT),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_environment_say_where_the_config_map_is() {
        let mut sources = Sources::default();
        let location = locate_main(&sources).unwrap();
        assert_eq!(location.namespace, "workload-variant-autoscaler-system");
        assert_eq!(location.name, "wva-variantautoscaling-config");
        assert_eq!(location.request_timeout, Duration::from_mins(1));
        for (name, text) in [
            ("POD_NAMESPACE", "sys"),
            ("CONFIG_MAP_NAME", "main"),
            ("GLOBAL_OPT_INTERVAL", "never"),
        ] {
            sources.environment.insert(name.to_owned(), text.to_owned());
        }
        let location = locate_main(&sources).unwrap();
        assert_eq!((location.namespace.as_str(), location.name.as_str()), ("sys", "main"));
        sources.environment.insert("POD_NAMESPACE".to_owned(), "Not A Namespace".to_owned());
        let keys: Vec<_> =
            locate_main(&sources).unwrap_err().iter().map(|error| error.key).collect();
        assert_eq!(keys, ["GLOBAL_OPT_INTERVAL", "POD_NAMESPACE"]);
    }
}

//! The chart, the kustomize bases and the install script, on the real API server.

mod arrival;
mod documents;
mod effects;
mod kustomize;
mod observability;
mod openshift;
mod release;
mod rendering;
mod running;
mod scoped;
mod script;
mod series;
mod wrong;

use std::time::Duration;

use crate::harness::shipping::{chart, set};
use crate::harness::suite::{Case, Cx, case};
use crate::harness::world::Setup;

/// The name of releases, as people choose it.
const RELEASE: &str = "wva";
const SOON: Duration = Duration::from_secs(30);

pub(crate) fn cases() -> Vec<Case> {
    // The longest first: the others run meanwhile.
    [installed(), rendered(), kustomized(), announced()].into_iter().flatten().collect()
}

/// Releases of the chart, and controllers of them.
fn installed() -> Vec<Case> {
    vec![
        Case::shared(
            "install::a_scoped_chart_asks_for_its_namespace_alone",
            scoped::asks_for_its_namespace_alone,
        ),
        case!(shared, install, release::every_set_installs),
        case!(shared, install, release::upgrade_rollback_uninstall),
        case!(shared, install, release::an_immutable_config_map_stays_honest),
        case!(shared, install, running::chart_scales_its_sample_through_keda),
        case!(shared, install, running::chart_settings_change_live),
        Case::shared("install::openshift_chart_asks_thanos", openshift::chart_asks_thanos),
        case!(
            with_own_servers(Setup::Whole),
            install,
            running::chart_scales_its_sample_through_its_hpa
        ),
    ]
}

/// What the chart renders.
fn rendered() -> Vec<Case> {
    vec![
        case!(shared, install, rendering::every_set_of_values_is_accepted),
        case!(shared, install, wrong::wrong_values_are_refused_by_name),
        case!(shared, install, effects::every_value_acts),
        Case::shared("install::chart_renders_bare", rendering::bare),
        Case::shared("install::chart_renders_defaults", rendering::defaults),
        Case::shared("install::chart_renders_the_minimum", rendering::minimum),
        Case::shared("install::chart_renders_client_only", rendering::client_only),
        Case::shared("install::chart_renders_an_instance", rendering::instance),
        Case::shared("install::chart_renders_choices", rendering::choices),
        case!(shared, install, arrival::what_pods_mount_is_there),
        case!(shared, install, arrival::long_names_fit),
        case!(shared, install, arrival::original_values_arrive),
        case!(shared, install, arrival::monitors_are_labelled),
        case!(shared, install, arrival::routers_are_asked_by_one_token),
        case!(shared, install, arrival::development_values_act),
    ]
}

/// The kustomize bases and overlays.
fn kustomized() -> Vec<Case> {
    vec![
        Case::shared("install::kustomize_is_accepted", kustomize::every_folder_is_accepted),
        Case::shared(
            "install::kustomize_grants_what_the_chart_grants",
            kustomize::grants_what_the_chart_grants,
        ),
        Case::shared(
            "install::one_namespace_reads_the_cluster_for_limits_alone",
            kustomize::grants_the_cluster_to_limits_alone,
        ),
        Case::shared(
            "install::kustomize_reads_what_is_deployed",
            kustomize::reads_what_is_deployed,
        ),
        Case::shared("install::kustomize_scales_the_samples", kustomize::scales_the_samples),
        Case::shared(
            "install::openshift_overlay_scales_the_samples",
            openshift::overlay_scales_the_samples,
        ),
    ]
}

/// Documentation, expressions, and the install script.
fn announced() -> Vec<Case> {
    vec![
        Case::shared("install::documentation_can_be_followed", documents::can_be_followed),
        case!(shared, install, observability::alerts_do_as_their_tests_say),
        case!(shared, install, observability::every_expression_is_understood),
        Case::shared("install::script_installs", script::installs),
        Case::shared("install::script_refuses_by_name", script::refuses_by_name),
        Case::shared("install::script_prints_and_runs_nothing", script::prints_and_runs_nothing),
        Case::shared("install::script_ranks_the_given_variants", script::ranks_the_given_variants),
    ]
}

/// A file of values that the chart brings.
fn values_file(name: &str) -> Vec<String> {
    vec!["-f".to_owned(), chart().join(name).display().to_string()]
}

/// The switches of the chart's sample.
const SAMPLE: [(&str, &str); 3] =
    [("va.enabled", "true"), ("hpa.enabled", "true"), ("vllmService.enabled", "true")];

/// What every release of a test needs: the sample in the namespace of the case, and no objects in
/// namespaces that are not there.
fn at_home(cx: &Cx) -> Vec<String> {
    let namespace = cx.namespace.name.as_str();
    let mut values = set(&SAMPLE);
    values.extend(set(&[
        ("llmd.namespace", namespace),
        ("wva.prometheus.monitoringNamespace", namespace),
    ]));
    values
}

/// The Prometheus of the world, which knows no TLS.
fn our_prometheus(cx: &Cx) -> Vec<String> {
    set(&[
        ("wva.prometheus.baseURL", &cx.world.prometheus.url),
        ("wva.prometheus.allowHTTP", "true"),
        ("wva.prometheus.clusterMonitoringView", "false"),
    ])
}

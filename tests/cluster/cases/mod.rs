//! The cases, in files by subject.

mod actuation;
mod annotations;
mod closed_loop;
mod contract;
mod definition;
mod demo;
mod doctor;
mod external_metrics_door;
mod external_scaler;
mod fallbacks;
mod filters;
mod from_zero;
mod hpa;
mod install;
mod inventory;
mod keys;
mod leader_deaths;
mod leadership;
mod lifecycle;
mod offline;
mod outages;
mod pod_autoscalers;
mod prometheus;
mod restarts;
pub(crate) mod rights;
mod rivals;
mod role_deaths;
mod scaled_kinds;
mod servers;
mod serving;
mod settings;
mod signals;
mod status_writes;
mod storm_services;
mod targets;
mod webhooks;

use crate::harness::suite::Case;

pub(crate) fn all() -> Vec<Case> {
    [
        // The longest first: the others run meanwhile.
        leader_deaths::cases(),
        leadership::cases(),
        role_deaths::cases(),
        settings::cases(),
        keys::cases(),
        install::cases(),
        closed_loop::cases(),
        signals::cases(),
        servers::cases(),
        targets::cases(),
        from_zero::cases(),
        offline::cases(),
        inventory::cases(),
        hpa::cases(),
        definition::cases(),
        status_writes::cases(),
        lifecycle::cases(),
        filters::cases(),
        actuation::cases(),
        rivals::cases(),
        outages::cases(),
        restarts::cases(),
        contract::cases(),
        demo::cases(),
        doctor::cases(),
        prometheus::cases(),
        serving::cases(),
        external_metrics_door::cases(),
        external_scaler::cases(),
        fallbacks::cases(),
        annotations::cases(),
        webhooks::cases(),
        pod_autoscalers::cases(),
        storm_services::cases(),
        scaled_kinds::cases(),
        // One of them judges all others, so they come last.
        rights::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

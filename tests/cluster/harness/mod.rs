//! The harness: real servers on loopback, started once, ended by process id whatever happens.

pub(crate) mod controller;
mod dump;
pub(crate) mod engine;
pub(crate) mod exporter;
pub(crate) mod fault;
pub(crate) mod history;
pub(crate) mod journal;
pub(crate) mod manifest;
mod metrics_text;
pub(crate) mod namespace;
mod pki;
mod ports;
mod process;
mod run;
pub(crate) mod scaled_object;
pub(crate) mod scaling_loop;
pub(crate) mod servers;
mod site;
pub(crate) mod suite;
mod tools;
pub(crate) mod variants;
pub(crate) mod wait;
pub(crate) mod web;
pub(crate) mod world;

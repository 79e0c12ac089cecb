//! Autoscaler for LLM inference on Kubernetes. See `actors.md` for the structure.

pub mod policy;
pub mod settings;

//! The real servers, one file each: the flags that make them work together on loopback.

pub(crate) mod apiserver;
pub(crate) mod controller_manager;
pub(crate) mod etcd;
pub(crate) mod keda;
pub(crate) mod kwok;
pub(crate) mod prometheus;
pub(crate) mod scheduler;

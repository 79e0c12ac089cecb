//! The embedded world: what surrounds a controller, in virtual or real time.

pub mod apiserver;

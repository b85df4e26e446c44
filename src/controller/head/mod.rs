//! The head of a cluster: [where](address) its GCS is, [what it wants to see](credentials), and what it means that it
//! [does not answer](blind).

pub mod address;
pub mod blind;
pub mod credentials;

//! The head of a cluster: the [address](address) of its GCS, the [credentials](credentials) that
//! the GCS requires, and the [reasons](blind) why the cluster cannot be observed.

pub mod address;
pub mod blind;
pub mod credentials;

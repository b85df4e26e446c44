//! What one tenant, object or fault could do to the others, played out: each test is an attack or an
//! accident, and asserts that the neighbour is served as if it was alone. `docs/security.md` names
//! the test of each threat.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod webhook;

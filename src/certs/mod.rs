//! Certificates without cert-manager: Rayfit makes and rotates its own authority and serving
//! certificate.

pub mod access;

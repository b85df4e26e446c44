//! The objects for the serving certificate.

use serde_json::{Value, json};

use super::ManifestOptions;
use super::names::{Component, ISSUED_SECRET, OWN_SECRET, service_host};

const SELF_SIGNED: &str = "rayfit-selfsigned";
/// cert-manager's Certificate, Issuer and Secret of Rayfit's authority.
pub const AUTHORITY: &str = "rayfit-ca";

/// The Secret that Rayfit fills. Because it is applied, Rayfit's account needs no permission to
/// create Secrets, which Kubernetes cannot limit to one name.
pub fn empty_secret(options: &ManifestOptions) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": Component::Admission.metadata(OWN_SECRET, &options.namespace),
        // Without `data`, so that applying it again keeps its content.
        "type": "Opaque"
    })
}

/// The certificates that cert-manager issues: a self-signed authority, and the serving certificate
/// that it signs.
pub fn issued(options: &ManifestOptions) -> Vec<Value> {
    let object = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": kind,
            "metadata": Component::Admission.metadata(name, &options.namespace),
            "spec": spec
        })
    };
    let host = service_host(&options.namespace);
    let authority = json!({
        "isCA": true,
        "commonName": "rayfit-webhook-ca",
        "secretName": AUTHORITY,
        "duration": "17520h",
        // Two lifetimes of the leaf, so that the authority outlives what it has signed.
        "renewBefore": "4320h",
        // Because the key is kept, certificates from before the renewal stay valid, also where
        // cainjector replaces the bundle instead of merging it (before cert-manager 1.19).
        "privateKey": { "algorithm": "ECDSA", "size": 256, "rotationPolicy": "Never" },
        "issuerRef": { "group": "cert-manager.io", "kind": "Issuer", "name": SELF_SIGNED }
    });
    let leaf = json!({
        "secretName": ISSUED_SECRET,
        "dnsNames": [host, format!("{host}.cluster.local")],
        "duration": "2160h",
        "renewBefore": "720h",
        "usages": ["digital signature", "server auth"],
        // Before cert-manager 1.18 the default kept one key for ever.
        "privateKey": { "algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always" },
        "issuerRef": { "group": "cert-manager.io", "kind": "Issuer", "name": AUTHORITY }
    });
    vec![
        // A self-signed serving certificate would be a new authority at each renewal, and each
        // renewal an outage.
        object("Issuer", SELF_SIGNED, json!({ "selfSigned": {} })),
        object("Certificate", AUTHORITY, authority),
        object(
            "Issuer",
            AUTHORITY,
            json!({ "ca": { "secretName": AUTHORITY } }),
        ),
        object("Certificate", "rayfit-webhook", leaf),
    ]
}

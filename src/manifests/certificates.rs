//! The objects for the serving certificate.

use serde_json::{Value, json};

use super::ManifestOptions;
use super::names::{self, ISSUED_SECRET, OWN_SECRET};

const SELF_SIGNED: &str = "rayfit-selfsigned";
/// cert-manager's Certificate, Issuer and Secret of Rayfit's authority.
pub const AUTHORITY: &str = "rayfit-ca";

/// The Secret that Rayfit fills. Because it is applied, Rayfit's account needs no permission to
/// create Secrets, which Kubernetes cannot limit to one name.
pub fn empty_secret(options: &ManifestOptions) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": names::metadata(OWN_SECRET, &options.namespace),
        // Without `data`, so that applying it again keeps its content.
        "type": "Opaque"
    })
}

/// The certificates that cert-manager issues: a self-signed authority, and the serving certificate
/// that it signs.
pub fn issued(options: &ManifestOptions) -> Vec<Value> {
    vec![
        // A self-signed serving certificate would be a new authority at each renewal, and each
        // renewal an outage.
        issuer(options, SELF_SIGNED, &json!({ "selfSigned": {} })),
        authority(options),
        issuer(
            options,
            AUTHORITY,
            &json!({ "ca": { "secretName": AUTHORITY } }),
        ),
        leaf(options),
    ]
}

fn issuer(options: &ManifestOptions, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": names::metadata(name, &options.namespace),
        "spec": spec
    })
}

fn authority(options: &ManifestOptions) -> Value {
    certificate(
        options,
        AUTHORITY,
        &json!({
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
        }),
    )
}

fn leaf(options: &ManifestOptions) -> Value {
    let host = names::service_host(&options.namespace);
    certificate(
        options,
        "rayfit-webhook",
        &json!({
            "secretName": ISSUED_SECRET,
            "dnsNames": [host, format!("{host}.cluster.local")],
            "duration": "2160h",
            "renewBefore": "720h",
            "usages": ["digital signature", "server auth"],
            // Before cert-manager 1.18 the default kept one key for ever.
            "privateKey": { "algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always" },
            "issuerRef": { "group": "cert-manager.io", "kind": "Issuer", "name": AUTHORITY }
        }),
    )
}

fn certificate(options: &ManifestOptions, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": names::metadata(name, &options.namespace),
        "spec": spec
    })
}

//! The least that a webhook costs, for `make bench`: the product's listener before handlers that check nothing. Each
//! answers "allowed": `/allowed` when the body has arrived, `/walked` when it has also been walked through as JSON once,
//! of which nothing is kept. `floor ADDRESS FOLDER`, with `tls.crt` and `tls.key` in the folder.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use rayfit::server::{Listener, Shutdown};
use rayfit::tls::{CertificateStore, server_config_for};
use rustls::server::WebPkiClientVerifier;
use serde::de::IgnoredAny;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let [address, folder] = [1, 2].map(|at| std::env::args().nth(at).unwrap());
    let file = |name| std::fs::read(format!("{folder}/{name}")).unwrap();
    let certificates = Arc::new(CertificateStore::default());
    certificates
        .install(&file("tls.crt"), &file("tls.key"))
        .unwrap();
    let mut listener = Listener::bind(address.parse().unwrap(), 64).await.unwrap();
    listener.tls =
        Some(server_config_for(certificates, WebPkiClientVerifier::no_client_auth()).unwrap());
    let router = Router::new()
        .route("/allowed", post(allowed))
        .route("/walked", post(walked))
        .layer(DefaultBodyLimit::disable());
    listener.serve(router, Arc::new(Shutdown::default())).await;
}

async fn walked(body: Bytes) -> impl IntoResponse {
    serde_json::from_slice::<IgnoredAny>(&body).unwrap();
    allowed(body).await
}

async fn allowed(_: Bytes) -> impl IntoResponse {
    let body = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}"#;
    ([(CONTENT_TYPE, "application/json")], body)
}

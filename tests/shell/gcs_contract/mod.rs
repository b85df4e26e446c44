//! What a GCS must do, played or real.

use rayfit::gcs::Client;

/// Where drivers look for what is wrong.
const KEY: &str = "__autoscaling_error";

/// Lines for drivers are taken, whether or not there are any drivers.
pub(crate) async fn lines_are_taken(client: &Client) {
    let lines = vec!["{}".to_owned(), "a line".to_owned()];
    let printed = client.print_in_drivers("10.0.0.1".to_owned(), lines);
    printed.await.unwrap();
}

/// Keys are deleted, there or not, and written over. In the end `two` is left.
pub(crate) async fn keys_are_kept(client: &Client) {
    client.kv_put("", KEY, b"zero").await.unwrap();
    for _ in ["there", "gone already"] {
        client.kv_del("", KEY).await.unwrap();
        assert_eq!(client.kv_get("", KEY).await, Ok(None));
    }
    for text in ["one", "two"] {
        client.kv_put("", KEY, text.as_bytes()).await.unwrap();
        let got = client.kv_get("", KEY).await.unwrap();
        assert_eq!(got.as_deref(), Some(text.as_bytes()));
    }
}

//! The CA bundles of a webhook configuration, and the patch that changes them.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::contents::Anchor;
use super::inspect;
use super::next::CaBundle;
use super::secret::pem;

/// Reads a webhook configuration; `None` if it has no webhooks.
pub(super) fn read(configuration: &Value) -> Option<CaBundle> {
    let webhooks = configuration["webhooks"]
        .as_array()
        // Without webhooks, no API server calls any.
        .filter(|list| !list.is_empty())?;
    let mut bundle = CaBundle {
        uniform: true,
        ..CaBundle::default()
    };
    for (position, webhook) in webhooks.iter().enumerate() {
        let text = &webhook["clientConfig"]["caBundle"];
        // A bundle that cannot be read counts as not uniform, so it is rewritten, like a missing one.
        let decoded = STANDARD.decode(text.as_str().unwrap_or_default());
        let (anchors, clean) = decoded.map_or((Vec::new(), false), |pem| inspect::anchors(&pem));
        let ids: BTreeSet<String> = anchors.iter().map(|anchor| anchor.id.clone()).collect();
        if position == 0 {
            bundle.everywhere.clone_from(&ids);
        }
        bundle.uniform &= clean && bundle.everywhere == ids;
        bundle.everywhere.retain(|id| ids.contains(id));
        for anchor in anchors {
            if bundle.anchors.iter().all(|other| other.id != anchor.id) {
                bundle.anchors.push(anchor);
            }
        }
    }
    Some(bundle)
}

/// A JSON patch that gives `anchors` to every webhook of `configuration`.
pub(super) fn patch(configuration: &Value, anchors: &[Anchor]) -> Value {
    let bundle = STANDARD.encode(pem(anchors));
    let webhooks = configuration["webhooks"].as_array().map_or(0, Vec::len);
    // The API server answers 409 if the object has another resource version than this one.
    let version = json!({
        "op": "replace",
        "path": "/metadata/resourceVersion",
        "value": configuration["metadata"]["resourceVersion"]
    });
    let add = |index| {
        let path = format!("/webhooks/{index}/clientConfig/caBundle");
        json!({ "op": "add", "path": path, "value": bundle })
    };
    std::iter::once(version)
        .chain((0..webhooks).map(add))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::super::issue;
    use super::*;

    fn anchor() -> Anchor {
        let start = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        issue::authority(start).unwrap().anchor
    }

    fn configuration(bundles: &[&str]) -> Value {
        let webhook =
            |bundle: &&str| json!({ "clientConfig": { "caBundle": STANDARD.encode(bundle) } });
        json!({
            "metadata": { "resourceVersion": "7" },
            "webhooks": bundles.iter().map(webhook).collect::<Vec<_>>()
        })
    }

    #[test]
    fn a_patched_configuration_reads_as_what_was_wanted() {
        let wanted = [anchor(), anchor()];
        let mut object = configuration(&["", "\n"]);
        let patch: json_patch::Patch = serde_json::from_value(patch(&object, &wanted)).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
        let bundle = read(&object).unwrap();
        assert!(bundle.uniform);
        assert_eq!(bundle.anchors, wanted);
        assert_eq!(bundle.everywhere.len(), 2);
    }

    #[test]
    fn webhooks_that_differ_are_seen() {
        let (one, other) = (anchor(), anchor());
        let both = pem(&[one.clone(), other.clone()]);
        let bundle = read(&configuration(&[&both, &one.pem])).unwrap();
        assert!(!bundle.uniform);
        assert_eq!(bundle.anchors, [one.clone(), other]);
        assert_eq!(bundle.everywhere, [one.id].into());
    }

    #[test]
    fn rubbish_is_no_authority_and_no_webhooks_are_no_bundle() {
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let bundle = read(&configuration(&[broken])).unwrap();
        assert!(!bundle.uniform && bundle.anchors.is_empty());
        assert_eq!(read(&configuration(&[])), None);
    }
}

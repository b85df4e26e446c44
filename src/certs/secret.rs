//! Translates [`Contents`] to the data of a Secret, and back.

use std::collections::BTreeMap;

use super::contents::{Anchor, Authority, Contents, Id};
use super::inspect;

/// The data of a Secret.
pub(super) type Data = BTreeMap<String, Vec<u8>>;

const CURRENT: [&str; 2] = ["ca.crt", "ca.key"];
const NEXT: [&str; 2] = ["next-ca.crt", "next-ca.key"];
const OLD: &str = "old-ca.crt";
const LEAF: [&str; 2] = ["tls.crt", "tls.key"];
const SERVED: &str = "served.json";
const ALL: [&str; 8] = [
    CURRENT[0], CURRENT[1], NEXT[0], NEXT[1], OLD, LEAF[0], LEAF[1], SERVED,
];

/// Reads what can be read; the rest counts as absent. `hosts` are the names that a leaf must have.
pub(super) fn decode(data: &Data, hosts: &[String]) -> Contents {
    let part = |key: &str| data.get(key).map(Vec::as_slice).unwrap_or_default();
    let authority =
        |[certificate, key]: [&str; 2]| inspect::authority(part(certificate), part(key));
    let current = authority(CURRENT);
    // An authority without its key can never sign, and this one has signed nothing yet.
    let next = authority(NEXT).filter(|next| next.key.is_some());
    let (old, _) = inspect::anchors(part(OLD));
    let anchor = |authority: &Authority| authority.anchor.clone();
    let known: Vec<Anchor> = current
        .iter()
        .chain(&next)
        .map(anchor)
        .chain(old.iter().cloned())
        .collect();
    let known: Vec<&Anchor> = known.iter().collect();
    Contents {
        leaf: inspect::leaf(part(LEAF[0]), part(LEAF[1]), &known, hosts),
        current,
        next,
        old,
        served: decode_served(part(SERVED)),
    }
}

/// Writes `contents` into `data`; keys of others stay.
pub(super) fn encode(contents: &Contents, mut data: Data) -> Data {
    data.retain(|key, _| !ALL.contains(&key.as_str()));
    let mut put = |key: &str, text: &str| data.insert(key.to_owned(), text.as_bytes().to_vec());
    for (keys, authority) in [(CURRENT, &contents.current), (NEXT, &contents.next)] {
        let Some(authority) = authority else { continue };
        put(keys[0], &authority.anchor.pem);
        if let Some(key) = &authority.key {
            put(keys[1], &key.0);
        }
    }
    if !contents.old.is_empty() {
        put(OLD, &pem(&contents.old));
    }
    if let Some(leaf) = &contents.leaf {
        put(LEAF[0], &leaf.chain);
        put(LEAF[1], &leaf.key.0);
    }
    put(SERVED, &encode_served(&contents.served));
    data
}

/// The authorities as a bundle in PEM.
pub(super) fn pem(anchors: &[Anchor]) -> String {
    anchors.iter().map(|anchor| anchor.pem.as_str()).collect()
}

fn decode_served(json: &[u8]) -> BTreeMap<String, Id> {
    let served: BTreeMap<String, String> = serde_json::from_slice(json).unwrap_or_default();
    served
        .into_iter()
        .map(|(pod, leaf)| (pod, Id(leaf)))
        .collect()
}

fn encode_served(served: &BTreeMap<String, Id>) -> String {
    let served: BTreeMap<&String, &String> = served.iter().map(|(pod, id)| (pod, &id.0)).collect();
    serde_json::json!(served).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::super::issue;
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn start() -> SystemTime {
        SystemTime::UNIX_EPOCH + 500_000 * HOUR
    }

    fn hosts() -> Vec<String> {
        ["rayfit.ray.svc", "rayfit.ray.svc.cluster.local"]
            .map(str::to_owned)
            .to_vec()
    }

    fn rotating() -> Contents {
        let authority = || issue::authority(90 * HOUR, start()).unwrap();
        let leaf = issue::leaf(&authority(), &hosts(), HOUR, start()).unwrap();
        let first = Contents::default()
            .introduce(authority(), start())
            .promote(leaf);
        let second = first.introduce(authority(), start());
        let signer = second.next.clone().unwrap();
        let leaf = issue::leaf(&signer, &hosts(), HOUR, start()).unwrap();
        let id = leaf.id.clone();
        let promoted = second.promote(leaf).introduce(authority(), start());
        promoted.acknowledge("pod-1", id, None)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let contents = rotating();
        let data = encode(&contents, Data::new());
        assert_eq!(decode(&data, &hosts()), contents);
        assert_eq!(encode(&decode(&data, &hosts()), data.clone()), data);
    }

    #[test]
    fn what_is_not_ours_stays() {
        let foreign: Data = [("note".to_owned(), b"mine".to_vec())].into();
        assert_eq!(encode(&rotating(), foreign)["note"], b"mine");
    }

    #[test]
    fn broken_parts_count_as_absent() {
        let whole = encode(&rotating(), Data::new());
        let without = |key: &str| {
            let mut data = whole.clone();
            data.insert(
                key.to_owned(),
                b"-----BEGIN CERTIFICATE-----\nAAAA\n".to_vec(),
            );
            decode(&data, &hosts())
        };
        assert!(without("ca.crt").current.is_none());
        assert!(without("ca.key").current.unwrap().key.is_none());
        assert!(without("next-ca.key").next.is_none());
        assert!(without("tls.key").leaf.is_none());
        assert!(without("served.json").served.is_empty());
        assert_eq!(without("ca.crt").leaf.unwrap().issuer, None);
        assert_eq!(decode(&Data::new(), &hosts()), Contents::default());
    }

    #[test]
    fn a_leaf_must_have_every_name_and_the_right_authority() {
        let mut contents = rotating();
        let data = encode(&contents, Data::new());
        assert_eq!(
            decode(&data, &["elsewhere.svc".to_owned()])
                .leaf
                .unwrap()
                .issuer,
            None
        );
        let other = issue::authority(90 * HOUR, start()).unwrap();
        contents.leaf = Some(issue::leaf(&other, &hosts(), HOUR, start()).unwrap());
        let data = encode(&contents, Data::new());
        assert_eq!(decode(&data, &hosts()).leaf.unwrap().issuer, None);
    }

    #[test]
    fn keys_are_never_shown() {
        let shown = format!("{:?}", rotating());
        assert!(!shown.contains("PRIVATE"), "{shown}");
    }
}

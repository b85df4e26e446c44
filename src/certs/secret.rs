//! Translates [`Contents`] to the data of a Secret, and back.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;

use super::contents::{Anchor, Contents};
use super::inspect;

/// The data of a Secret.
pub(super) type Data = BTreeMap<String, ByteString>;

const AUTHORITY: [&str; 2] = ["ca.crt", "ca.key"];
const FORMER: &str = "former-ca.crt";
const LEAF: [&str; 2] = ["tls.crt", "tls.key"];
const ALL: [&str; 5] = [AUTHORITY[0], AUTHORITY[1], FORMER, LEAF[0], LEAF[1]];

/// Reads what can be read; the rest counts as absent. `hosts` are the names that a leaf must have.
pub(super) fn decode(data: &Data, hosts: &[String]) -> Contents {
    let part = |key: &str| data.get(key).map_or(&[][..], |part| part.0.as_slice());
    let authority = inspect::authority(part(AUTHORITY[0]), part(AUTHORITY[1]));
    let (former, _) = inspect::anchors(part(FORMER));
    let authorities: Vec<&Anchor> = (authority.iter().map(|authority| &authority.anchor))
        .chain(&former)
        .collect();
    Contents {
        leaf: inspect::leaf(part(LEAF[0]), part(LEAF[1]), &authorities, hosts),
        authority,
        former,
    }
}

/// Writes `contents` into `data`; leaves keys it does not own untouched.
pub(super) fn encode(contents: &Contents, mut data: Data) -> Data {
    data.retain(|key, _| !ALL.contains(&key.as_str()));
    let mut put = |key: &str, text: &str| data.insert(key.to_owned(), ByteString(text.into()));
    if let Some(authority) = &contents.authority {
        put(AUTHORITY[0], &authority.anchor.pem);
        if let Some(key) = &authority.key {
            put(AUTHORITY[1], &key.0);
        }
    }
    if !contents.former.is_empty() {
        put(FORMER, &pem(&contents.former));
    }
    if let Some(leaf) = &contents.leaf {
        put(LEAF[0], &leaf.chain);
        put(LEAF[1], &leaf.key.0);
    }
    data
}

/// The authorities as a bundle in PEM.
pub(super) fn pem(anchors: &[Anchor]) -> String {
    anchors.iter().map(|anchor| anchor.pem.as_str()).collect()
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

    /// While an authority replaces another one: the leaf is signed by the new one.
    fn replacing() -> Contents {
        let authority = issue::authority(start()).unwrap();
        Contents {
            leaf: Some(issue::leaf(&authority, &hosts(), HOUR, start()).unwrap()),
            authority: Some(authority),
            former: vec![issue::authority(start()).unwrap().anchor],
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let contents = replacing();
        let data = encode(&contents, Data::new());
        assert_eq!(decode(&data, &hosts()), contents);
        assert_eq!(encode(&decode(&data, &hosts()), data.clone()), data);
    }

    #[test]
    fn what_is_not_ours_stays() {
        let mine = || ByteString(b"mine".to_vec());
        let foreign: Data = [("note".to_owned(), mine())].into();
        assert_eq!(encode(&replacing(), foreign)["note"], mine());
    }

    #[test]
    fn broken_parts_count_as_absent() {
        let whole = encode(&replacing(), Data::new());
        let without = |key: &str| {
            let mut data = whole.clone();
            data.insert(
                key.to_owned(),
                ByteString(b"-----BEGIN CERTIFICATE-----\nAAAA\n".to_vec()),
            );
            decode(&data, &hosts())
        };
        assert!(without("ca.crt").authority.is_none());
        assert!(without("ca.key").authority.unwrap().key.is_none());
        assert!(without("former-ca.crt").former.is_empty());
        assert!(without("tls.key").leaf.is_none());
        assert_eq!(without("ca.crt").leaf.unwrap().issuer, None);
        assert_eq!(decode(&Data::new(), &hosts()), Contents::default());
    }

    #[test]
    fn a_leaf_must_have_every_name_and_the_right_authority() {
        let mut contents = replacing();
        let data = encode(&contents, Data::new());
        assert_eq!(
            decode(&data, &["elsewhere.svc".to_owned()])
                .leaf
                .unwrap()
                .issuer,
            None
        );
        let other = issue::authority(start()).unwrap();
        contents.leaf = Some(issue::leaf(&other, &hosts(), HOUR, start()).unwrap());
        let data = encode(&contents, Data::new());
        assert_eq!(decode(&data, &hosts()).leaf.unwrap().issuer, None);
    }

    #[test]
    fn keys_are_never_shown() {
        let shown = format!("{:?}", replacing());
        assert!(!shown.contains("PRIVATE"), "{shown}");
    }
}

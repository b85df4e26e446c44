//! The record of a budget as a Lease: the one kind of object that all replicas may write already.

use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;

use crate::budget::record::Grants;
use crate::controller::lease::stored::LABEL;
use crate::raypolicy::budget::RECORD;

/// The value of the label of Rayfit's Leases for the records of budgets.
pub const KIND: &str = "budget";

/// The annotation with the grants.
const GRANTS: &str = "rayfit.dev/budget";

/// A record as it is stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredRecord {
    /// The version of the Lease; empty if there is none.
    pub version: String,
    /// The grants.
    pub grants: Grants,
}

/// The policy of a record, by the name of its Lease.
pub fn policy_of(lease: &str) -> Option<&str> {
    lease.strip_prefix(RECORD)
}

/// The name of the Lease with the record of a policy's budget.
pub fn name_of(policy: &str) -> String {
    format!("{RECORD}{policy}")
}

/// Reads a record. One that cannot be read is an error: what clusters were granted is not known then.
pub fn read(lease: &Lease) -> Result<StoredRecord, serde_json::Error> {
    let grants = lease.annotations().get(GRANTS);
    let grants = grants.map(|text| serde_json::from_str(text));
    Ok(StoredRecord {
        version: lease.resource_version().unwrap_or_default(),
        grants: grants.transpose()?.unwrap_or_default(),
    })
}

/// The Lease to be stored.
pub fn lease(policy: &str, namespace: &str, record: &StoredRecord) -> Lease {
    let grants = serde_json::to_string(&record.grants).unwrap_or_default();
    let version = Some(record.version.clone()).filter(|version| !version.is_empty());
    Lease {
        metadata: ObjectMeta {
            name: Some(name_of(policy)),
            namespace: Some(namespace.to_owned()),
            labels: Some([(LABEL.to_owned(), KIND.to_owned())].into()),
            annotations: Some([(GRANTS.to_owned(), grants)].into()),
            resource_version: version,
            ..ObjectMeta::default()
        },
        spec: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::record::Grant;

    #[test]
    fn a_record_is_read_as_it_was_stored() {
        let record = StoredRecord {
            version: "12".to_owned(),
            grants: Grants {
                revision: 3,
                clusters: [("a".to_owned(), Grant::default())].into(),
                ..Grants::default()
            },
        };
        let mut stored = lease("team", "rayfit-system", &record);
        assert_eq!(policy_of(&stored.name_any()), Some("team"));
        assert_eq!(read(&stored).unwrap(), record);
        assert_eq!(read(&Lease::default()).unwrap(), StoredRecord::default());
        let broken = [(GRANTS.to_owned(), "{".to_owned())];
        stored.metadata.annotations = Some(broken.into());
        assert!(read(&stored).is_err());
    }
}

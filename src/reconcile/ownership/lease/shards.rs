//! Which shard a cluster belongs to, and which replica should hold which shard. Pure.

use std::collections::BTreeSet;

/// The shard of a cluster. It depends on nothing but the cluster's UID, in every version of Rayfit,
/// because two replicas that disagreed about it would both write.
pub fn shard_of(uid: &str, shards: u32) -> u32 {
    // FNV-1a, because the standard library's hash may change from one release to the next.
    let hash = uid.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The low bits of FNV depend only on the low bits of the bytes, so the high bits are mixed in.
    let mixed = hash ^ (hash >> 32);
    u32::try_from(mixed % u64::from(shards.max(1))).unwrap_or_default()
}

/// The replica that should hold `shard`. Every replica that sees the same members computes the
/// same, and no replica gets two shards more than another.
pub fn preferred(members: &BTreeSet<String>, shard: u32) -> Option<&str> {
    let count = u32::try_from(members.len())
        .ok()
        .filter(|count| *count > 0)?;
    let at = usize::try_from(shard % count).ok()?;
    members.iter().nth(at).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shard_of_a_cluster_never_changes() {
        assert_eq!(shard_of("6f1c1e0e-6c1f-4f62-9d1f-0d8f6f8a3c11", 6), 3);
        assert_eq!(shard_of("", 6), shard_of("", 6));
        assert_eq!(shard_of("anything", 1), 0);
        assert_eq!(shard_of("anything", 0), 0);
    }

    #[test]
    fn clusters_spread_over_shards() {
        let mut counts = [0_u32; 6];
        for number in 0..6000 {
            let uid = format!("6f1c1e0e-6c1f-4f62-9d1f-{number:012x}");
            counts[shard_of(&uid, 6) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1200).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn replicas_share_alike() {
        let members: BTreeSet<String> = ["a", "b", "c"].map(str::to_owned).into();
        let share = |me: &str| {
            (0..8)
                .filter(|shard| preferred(&members, *shard) == Some(me))
                .count()
        };
        assert_eq!([share("a"), share("b"), share("c")], [3, 3, 2]);
        assert_eq!(preferred(&BTreeSet::new(), 1), None);
    }
}

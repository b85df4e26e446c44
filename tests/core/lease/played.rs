//! The Lease as a played API server keeps it, for simulations.

use std::time::Duration;

use rayfit_core::reconcile::ownership::lease::leader::LeaseRequest;
use rayfit_core::reconcile::ownership::lease::record::LeaseRecord;

/// The Lease, if it was created, and what is needed to number its versions.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlayedLease {
    /// The Lease as it is stored.
    pub(crate) stored: Option<LeaseRecord>,
    version: u64,
}

impl PlayedLease {
    /// Carries out a request of a replica by compare-and-swap; a Lease that is written lasts for `duration`.
    ///
    /// # Errors
    ///
    /// Nothing was written, because the Lease was only read, or is not as the replica knew it. The error is the
    /// Lease as it is.
    pub(crate) fn serve(
        &mut self,
        replica: &str,
        request: &LeaseRequest,
        duration: Duration,
    ) -> Result<LeaseRecord, Option<LeaseRecord>> {
        let version = |lease: &LeaseRecord| lease.version.clone();
        let stored = self.stored.as_ref().map(version);
        let write = request.write(replica);
        let Some((_, holder)) = write.filter(|(current, _)| current.map(version) == stored) else {
            return Err(self.stored.clone());
        };
        self.version += 1;
        let record = LeaseRecord {
            holder: holder.map(str::to_owned),
            version: self.version.to_string(),
            duration,
            acquired: None,
        };
        self.stored = Some(record.clone());
        Ok(record)
    }
}

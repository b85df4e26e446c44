//! `rayfit record --trace`: the workload of a live cluster, while it runs.

use std::time::Duration;

use rayfit_core::simulate::trace::{self, Recording, Trace};

use super::live::{self, LiveArgs};
use super::shared::outcome;
use super::shared::progress::Progress;
use crate::apiserver::server_time::own_now;
use crate::certs::parse_lifetime;
use crate::controller::observe::Key;
use crate::gcs::{Client, GcsLimits};

/// Limits of the GCS's answer about all tasks that it knows, a hundred thousand attempts.
const LIMITS: GcsLimits = GcsLimits {
    deadline: Duration::from_mins(1),
    answer: 256 << 20,
};

/// Flags of a recording.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Traces")]
pub(super) struct RecordingArgs {
    /// The time for which to record, such as 90s, 30m or 1h; Ctrl-C ends it before
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = duration, requires = "trace")]
    length: Duration,

    /// The time between two requests to the GCS: it keeps only its last hundred thousand tasks
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, requires = "trace")]
    interval: Duration,
}

/// Reads `90s`, `30m` or `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let time = parse_lifetime(text).ok();
    let time = time.filter(|time| !text.ends_with('d') && *time <= Duration::from_hours(168));
    time.ok_or_else(|| "write a number and s, m or h, such as 90s or 1h, up to 168h".to_owned())
}

/// The trace of what a cluster runs from now on, and of what its GCS still knows. What was left out is
/// told on standard error.
pub(super) fn record(
    cluster: &Key,
    live: &LiveArgs,
    args: &RecordingArgs,
) -> anyhow::Result<Trace> {
    let recording = live::block_on(async {
        let endpoint = live.gcs(cluster).await?.endpoint;
        follow(&Client::new(endpoint.as_ref().clone(), LIMITS), args).await
    })?;
    // Actors that live now have lived until now.
    let (trace, losses) = recording.finish(&cluster.name, own_now())?;
    for loss in losses {
        outcome::warn(loss);
    }
    Ok(trace)
}

/// Asks a GCS again and again, until the time is over, somebody ends it, or there is no room. A GCS
/// that cannot be asked for a while is asked again.
async fn follow(gcs: &Client, args: &RecordingArgs) -> anyhow::Result<Recording> {
    let mut recording = Recording::default();
    // A person who named the wrong cluster learns it at once; later failures may pass.
    recording.add(gcs.history().await?);
    let mut progress = Progress::new("recorded");
    let start = tokio::time::Instant::now();
    let mut failed = None;
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    while !recording.is_full() {
        let past = start.elapsed();
        let (count, past_s, all_s) = (recording.attempts(), past.as_secs(), args.length.as_secs());
        progress.show(format_args!(
            "{count} tasks and calls in {past_s} of {all_s} s; Ctrl-C ends it and writes them"
        ));
        let Some(rest) = args.length.checked_sub(past) else {
            break;
        };
        // The GCS is asked once more at the very end, so that what ended since the last time is in
        // the trace.
        let is_last = rest <= args.interval;
        tokio::select! {
            _ = &mut interrupt => break,
            () = tokio::time::sleep(rest.min(args.interval)) => {}
        }
        match gcs.history().await {
            Ok(history) => recording.add(history),
            Err(error) => failed = Some(error),
        }
        if is_last {
            break;
        }
    }
    // Its line is erased before the warnings below are written to the same terminal.
    drop(progress);
    if let Some(error) = failed {
        outcome::warn(format_args!(
            "the GCS could not be asked all the time: {error}"
        ));
    }
    if recording.is_full() {
        let most = trace::MOST_RUNS;
        outcome::warn(format_args!(
            "the recording ended early: {most} tasks are as many as are kept"
        ));
    }
    Ok(recording)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        for wrong in [
            "",
            "s",
            "90",
            "0s",
            "-1s",
            "1d",
            "169h",
            "1.5h",
            "ä",
            "9999999999999999999h",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}

//! The amounts that a node said it can give, read from the message of a resize that it refused.
//! (Ray, `ippr_provider.py`, `_apply_resize_suggestion`; the kubelet writes the message.)

use crate::plan::growth::container::ContainerAmounts;
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::growth::size::{bytes, cores};
use crate::plan::outcome::problem_reason::ResizeError;
use crate::quantity::Quantity;
use crate::seconds::Retry;
use crate::snapshot::history::ResizeMemory;

/// A resource that can be resized in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResizedResource {
    Cpu,
    Memory,
}

/// The amounts that the message reports, in thousandths of cores or in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CapacityReport {
    resource: ResizedResource,
    used: i64,
    capacity: i64,
}

/// Lowers the limit to the size that the node can give, and asks for that size. Returns false if
/// the message does not say how much that is.
pub(crate) fn follow(
    resize: &mut Resize,
    container: &ContainerAmounts,
) -> Result<bool, ResizeError> {
    let message = resize.message.as_deref().unwrap_or_default();
    let report = match &resize.progress {
        ResizeProgress::Pending(reason) if reason == "deferred" => deferred(message),
        ResizeProgress::Pending(reason) if reason == "infeasible" => infeasible(message),
        _ => None,
    };
    let Some(report) = report else {
        return Ok(false);
    };
    let limit = limit(report, container)?;
    match report.resource {
        ResizedResource::Cpu => {
            resize.suggested_cpu = Some(cores(limit));
            resize.ask(resize.suggested_cpu, None);
        }
        ResizedResource::Memory => {
            resize.suggested_memory = Some(bytes(limit));
            resize.ask(None, resize.suggested_memory);
        }
    }
    Ok(true)
}

/// Whether a suggestion no longer holds, because other pods may have left the node since. The first
/// one holds for a minute, each further one in a row for twice as long.
pub(crate) fn is_old(memory: ResizeMemory, now: f64) -> bool {
    let lifetime = Retry::UP_TO_TEN_MINUTES.wait_s(memory.suggestions);
    memory.suggested_at.is_some_and(|at| now - at > lifetime)
}

/// The largest limit that fits: what the node has left, plus the container's own gap between limit
/// and request, minus what the pod's other containers hold.
fn limit(report: CapacityReport, container: &ContainerAmounts) -> Result<Quantity, ResizeError> {
    // The kubelet does not count the pod itself as used.
    let left = report.capacity.saturating_sub(report.used);
    let (name, left) = match report.resource {
        ResizedResource::Cpu => ("cpu", Quantity::from_milli(left)),
        ResizedResource::Memory => ("memory", Quantity::from_units(left)),
    };
    let request = container
        .given_requests
        .get(name)
        .ok_or(ResizeError::NoRequest(name))?;
    let limit = container.given_limits.get(name).unwrap_or(request);
    let others = container
        .others
        .iter()
        .filter_map(|requests| requests.get(name));
    let gap = limit.nanos() - request.nanos();
    let others: i128 = others.map(Quantity::nanos).sum();
    Ok(Quantity::from_nanos(left.nanos() + gap - others))
}

/// Reads a message such as `Node didn't have enough resource: cpu, requested: 8000, used: 5000,
/// capacity: 9000`.
fn deferred(message: &str) -> Option<CapacityReport> {
    find(
        message,
        "Node didn't have enough resource: ",
        &[", requested: ", ", used: ", ", capacity: "],
    )
}

/// Reads a message such as `Node didn't have enough capacity: cpu, requested: 8000, capacity:
/// 4000`.
fn infeasible(message: &str) -> Option<CapacityReport> {
    find(
        message,
        "Node didn't have enough capacity: ",
        &[", requested: ", ", capacity: "],
    )
}

fn find(message: &str, start: &str, keys: &[&str]) -> Option<CapacityReport> {
    message
        // Anywhere in the message, as Ray's regular expressions are searched for.
        .match_indices(start)
        .find_map(|(at, _)| read(message.get(at + start.len()..)?, keys))
}

fn read(text: &str, keys: &[&str]) -> Option<CapacityReport> {
    let (resource, mut rest) = match text.strip_prefix("cpu") {
        Some(rest) => (ResizedResource::Cpu, rest),
        None => (ResizedResource::Memory, text.strip_prefix("memory")?),
    };
    let mut numbers = Vec::new();
    for key in keys {
        rest = rest.strip_prefix(key)?;
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        numbers.push(rest.get(..end)?.parse().ok()?);
        rest = rest.get(end..)?;
    }
    match numbers[..] {
        [_, used, capacity] => Some(CapacityReport {
            resource,
            used,
            capacity,
        }),
        // The message of an infeasible resize names the capacity of the whole node, and not what is
        // used of it.
        [_, capacity] => Some(CapacityReport {
            resource,
            used: 0,
            capacity,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::growth::suggestion::*;

    #[test]
    fn reads_the_kubelets_messages() {
        let told =
            "x Node didn't have enough resource: cpu, requested: 8000, used: 5000, capacity: 9000.";
        let report = CapacityReport {
            resource: ResizedResource::Cpu,
            used: 5000,
            capacity: 9000,
        };
        assert_eq!(deferred(told), Some(report));
        let told = "Node didn't have enough capacity: memory, requested: 8, capacity: 4";
        let report = CapacityReport {
            resource: ResizedResource::Memory,
            used: 0,
            capacity: 4,
        };
        assert_eq!(infeasible(told), Some(report));
        assert_eq!(deferred(told), None);
        assert_eq!(
            deferred("Node didn't have enough resource: gpu, requested: 1"),
            None
        );
    }
}

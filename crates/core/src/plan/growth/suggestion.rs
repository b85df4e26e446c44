//! The amounts that a node said it can give, read from the message of a resize that it refused.
//! (Ray, `ippr_provider.py`, `_apply_resize_suggestion`; the kubelet writes the message.)

use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::growth::size::{ContainerAmounts, bytes, cores};
use crate::plan::outcome::problem::ProblemReason;
use crate::quantity::Quantity;

/// Lowers the limit to the size that the node can give, and asks for that size. Returns false if
/// the message does not say how much that is.
pub(crate) fn follow(
    resize: &mut Resize,
    message: &str,
    container: &ContainerAmounts,
) -> Result<bool, ProblemReason> {
    let report = match &resize.progress {
        ResizeProgress::Pending(reason) => free(reason, message),
        _ => None,
    };
    let Some((name, free)) = report else {
        return Ok(false);
    };
    // The largest limit that fits: what the node has left, plus the container's own gap between limit
    // and request, minus what the pod's other containers hold.
    let free = if name == "cpu" {
        Quantity::from_milli(free)
    } else {
        Quantity::from_units(free)
    };
    let request = container.given.requests.get(name);
    let request = request.ok_or(ProblemReason::NoRequest(name))?;
    let limit = container.given.limits.get(name).unwrap_or(request);
    let others = container.others.iter();
    let others = others.filter_map(|requests| requests.get(name));
    let gap = limit.nanos() - request.nanos();
    let others: i128 = others.map(Quantity::nanos).sum();
    let most = Quantity::from_nanos(free.nanos() + gap - others);
    if name == "cpu" {
        resize.note.suggested_max_cpu = Some(cores(most));
        resize.ask(resize.note.suggested_max_cpu, None);
    } else {
        resize.note.suggested_max_memory = Some(bytes(most));
        resize.ask(None, resize.note.suggested_max_memory);
    }
    Ok(true)
}

/// The resource that a node lacks by the message, and how much it has left of it, in thousandths of cores
/// or in bytes. The messages are such as `Node didn't have enough resource: cpu, requested: 8000, used:
/// 5000, capacity: 9000`, and `Node didn't have enough capacity: cpu, requested: 8000, capacity: 4000`.
fn free(reason: &str, message: &str) -> Option<(&'static str, i64)> {
    let (start, keys): (&str, &[&str]) = match reason {
        "deferred" => (
            "Node didn't have enough resource: ",
            &[", requested: ", ", used: ", ", capacity: "],
        ),
        "infeasible" => (
            "Node didn't have enough capacity: ",
            &[", requested: ", ", capacity: "],
        ),
        _ => return None,
    };
    let read = |text: &str| {
        let (resource, mut rest) = match text.strip_prefix("cpu") {
            Some(rest) => ("cpu", rest),
            None => ("memory", text.strip_prefix("memory")?),
        };
        let mut numbers: Vec<i64> = Vec::new();
        for key in keys {
            rest = rest.strip_prefix(key)?;
            let end = rest.find(|c: char| !c.is_ascii_digit());
            let (number, tail) = rest.split_at(end.unwrap_or(rest.len()));
            numbers.push(number.parse().ok()?);
            rest = tail;
        }
        match numbers[..] {
            // The kubelet does not count the pod itself as used.
            [_, used, capacity] => Some((resource, capacity.saturating_sub(used))),
            // The message of an infeasible resize names the capacity of the whole node, and not what is
            // used of it.
            [_, capacity] => Some((resource, capacity)),
            _ => None,
        }
    };
    // Anywhere in the message, as Ray's regular expressions are searched for.
    let mut places = message.match_indices(start);
    places.find_map(|(at, _)| read(message.get(at + start.len()..)?))
}

#[cfg(test)]
mod tests {
    use crate::plan::growth::suggestion::*;

    #[test]
    fn reads_the_kubelets_messages() {
        let message =
            "x Node didn't have enough resource: cpu, requested: 8000, used: 5000, capacity: 9000.";
        assert_eq!(free("deferred", message), Some(("cpu", 4000)));
        let message = "Node didn't have enough capacity: memory, requested: 8, capacity: 4";
        assert_eq!(free("infeasible", message), Some(("memory", 4)));
        assert_eq!(free("deferred", message), None);
        let message = "Node didn't have enough resource: gpu, requested: 1";
        assert_eq!(free("deferred", message), None);
    }
}

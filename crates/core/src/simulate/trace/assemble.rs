//! Assembly of a trace from descriptions: parents found, many alike told apart, all in order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::draft::{JobDraft, NAME_BYTES};
use super::error::{Place, TraceError};
use super::job::{Job, Trace};
use crate::text::shown_text;

/// Most jobs of a trace.
const JOBS: usize = 1_000_000;

/// Most pairs of a job and one that it waits for.
const EDGES: usize = 10_000_000;

/// The most ids that are looked at for one that may have been meant.
const LOOKED_AT: usize = 10_000;

/// Makes a trace of descriptions in any order.
///
/// Jobs come out by the time at which they were submitted, then as they stood. Nobody can wait for
/// what was not submitted yet, so a job counts as submitted no earlier than its parents.
pub(super) fn assemble(name: String, mut drafts: Vec<JobDraft>) -> Result<Trace, TraceError> {
    let mut jobs = 0_usize;
    for draft in &mut drafts {
        draft.check()?;
        jobs = jobs.saturating_add(draft.count);
        if jobs > JOBS {
            let remedy = "cut the trace, or lower count";
            return Err(draft.place.many(JOBS, "jobs", remedy));
        }
    }
    let parents = parents(&drafts)?;
    let mut edges = 0_usize;
    for (draft, parents) in drafts.iter().zip(&parents) {
        let copies = |named: &ParentJobs| named.copy.map_or(drafts[named.draft].count, |_| 1);
        // Neither is above a million, nor are there more parents than fit into a line.
        let each = parents.iter().map(copies).fold(0, usize::saturating_add);
        edges = edges.saturating_add(each.saturating_mul(draft.count));
        if edges > EDGES {
            let what = "pairs of a job and one that it waits for";
            let remedy = "let many jobs wait for one that waits for many";
            return Err(draft.place.many(EDGES, what, remedy));
        }
    }
    let order = order(&mut drafts, &parents)?;
    Ok(Trace {
        name,
        jobs: expand(drafts, &parents, &order, jobs),
    })
}

/// The jobs of a description that another one names: all of them, or one, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ParentJobs {
    draft: usize,
    copy: Option<usize>,
}

/// The positions of descriptions by their ids, which are unique.
fn ids(drafts: &[JobDraft]) -> Result<HashMap<&str, usize>, TraceError> {
    let mut ids = HashMap::with_capacity(drafts.len());
    let duplicate = |draft: &JobDraft| {
        let id = shown_text(&draft.job.id);
        draft
            .place
            .fault(format!("there is a job {id} before; ids are unique"))
    };
    for (index, draft) in drafts.iter().enumerate() {
        if copy_id(&draft.job.id, draft.count, draft.count - 1).len() > NAME_BYTES {
            let expected = "with the # and the number it has more than 256 bytes";
            let id = shown_text(&draft.job.id);
            return Err(draft.place.wrong("the id", &id, expected));
        }
        if ids.insert(&*draft.job.id, index).is_some() {
            return Err(duplicate(draft));
        }
    }
    // An id such as `t#3` may stand in a line of its own and be the third of a line `t` with a
    // count, which may come later: that shows only once all ids are known.
    let mut alike = drafts.iter();
    match alike.find(|draft| copy(&ids, drafts, &draft.job.id).is_some()) {
        Some(draft) => Err(duplicate(draft)),
        None => Ok(ids),
    }
}

/// One of several equal jobs, such as `t#3`.
fn copy(ids: &HashMap<&str, usize>, drafts: &[JobDraft], id: &str) -> Option<ParentJobs> {
    let (base, number) = id.rsplit_once('#')?;
    let draft = *ids.get(base)?;
    let count = drafts[draft].count;
    let copy = number.parse::<usize>().ok()?.checked_sub(1)?;
    let is_one = count > 1 && copy < count && copy_id(base, count, copy) == id;
    is_one.then_some(ParentJobs {
        draft,
        copy: Some(copy),
    })
}

/// The jobs that each description waits for, in order, each once.
fn parents(drafts: &[JobDraft]) -> Result<Vec<Vec<ParentJobs>>, TraceError> {
    let ids = ids(drafts)?;
    let find = |draft: &JobDraft, id: &str| {
        let all = ids.get(id).map(|draft| ParentJobs {
            draft: *draft,
            copy: None,
        });
        all.or_else(|| copy(&ids, drafts, id)).ok_or_else(|| {
            let known = drafts
                .iter()
                .take(LOOKED_AT)
                .map(|draft| draft.job.id.as_str());
            let otherwise = || "after has ids of jobs of the same trace".to_owned();
            draft.place.unknown("job", id, known, otherwise)
        })
    };
    let parents = drafts.iter().map(|draft| {
        let named = draft.after.iter().map(|id| find(draft, id));
        let mut named = named.collect::<Result<Vec<ParentJobs>, TraceError>>()?;
        named.sort_unstable();
        // The entry for all jobs of a description comes first, and one that names a single one
        // of them adds nothing.
        named.dedup_by(|next, kept| {
            next.draft == kept.draft && (kept.copy.is_none() || next.copy == kept.copy)
        });
        Ok(named)
    });
    parents.collect()
}

fn copy_id(id: &str, count: usize, copy: usize) -> String {
    match count {
        1 => id.to_owned(),
        _ => format!("{id}#{}", copy + 1),
    }
}

/// The order of the trace. Sets when each was submitted, which is not before its parents.
fn order(drafts: &mut [JobDraft], parents: &[Vec<ParentJobs>]) -> Result<Vec<usize>, TraceError> {
    let mut children = vec![Vec::new(); drafts.len()];
    let mut missing = vec![0_usize; drafts.len()];
    for (index, parents) in parents.iter().enumerate() {
        for parent in parents {
            children[parent.draft].push(index);
            missing[index] += 1;
        }
    }
    // Times are not negative, so that their bits have their order.
    let due = |drafts: &[JobDraft], index: usize| Reverse((drafts[index].job.at.to_bits(), index));
    let first = (0..drafts.len()).filter(|index| missing[*index] == 0);
    let mut ready: BinaryHeap<_> = first.map(|index| due(drafts, index)).collect();
    let mut order = Vec::with_capacity(drafts.len());
    while let Some(Reverse((_, index))) = ready.pop() {
        order.push(index);
        let at = drafts[index].job.at;
        for child in &children[index] {
            drafts[*child].job.at = drafts[*child].job.at.max(at);
            missing[*child] -= 1;
            if missing[*child] == 0 {
                ready.push(due(drafts, *child));
            }
        }
    }
    // Jobs that are left over wait for themselves, or for such ones. People have to be shown one in the circle:
    // going from a job to a parent that is left too, again and again, leads there.
    let mut at = missing.iter().position(|missing| *missing > 0);
    let mut visited = vec![false; parents.len()];
    while let Some(index) = at {
        if std::mem::replace(&mut visited[index], true) {
            return Err(drafts[index].place.fault(
                "it waits for itself through after; take out one of the jobs in the circle",
            ));
        }
        let mut above = parents[index].iter().map(|parent| parent.draft);
        at = above.find(|parent| missing[*parent] > 0);
    }
    Ok(order)
}

fn expand(
    drafts: Vec<JobDraft>,
    parents: &[Vec<ParentJobs>],
    order: &[usize],
    count: usize,
) -> Vec<Job> {
    let mut firsts = vec![0; drafts.len()];
    let mut next = 0;
    for index in order {
        firsts[*index] = next;
        next += drafts[*index].count;
    }
    let mut slots: Vec<Option<JobDraft>> = drafts.into_iter().map(Some).collect();
    let counts: Vec<usize> = slots.iter().flatten().map(|draft| draft.count).collect();
    let mut jobs = Vec::with_capacity(count);
    for index in order {
        let Some(draft) = slots[*index].take() else {
            continue;
        };
        let mut after: Vec<usize> = Vec::new();
        for parent in &parents[*index] {
            let first = firsts[parent.draft];
            match parent.copy {
                Some(copy) => after.push(first + copy),
                None => after.extend(first..first + counts[parent.draft]),
            }
        }
        after.sort_unstable();
        let job = Job { after, ..draft.job };
        // The usual case, without a second copy of `after`: a job may wait for thousands of others.
        if draft.count == 1 {
            jobs.push(job);
            continue;
        }
        jobs.extend((0..draft.count).map(|copy| Job {
            id: copy_id(&job.id, draft.count, copy),
            ..job.clone()
        }));
    }
    jobs
}

/// A trace of nothing is a mistake; `hint` says where to look.
pub(super) fn some(drafts: &[JobDraft], hint: &str) -> Result<(), TraceError> {
    if drafts.is_empty() {
        return Err(Place::Whole.fault(format!("there is no job in it{hint}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::trace::job::{JobDemand, JobShape};

    fn draft(id: &str, at: f64, after: &[&str], count: usize) -> JobDraft {
        let task = JobDemand::Task(JobShape::new());
        let mut draft = JobDraft::new(Place::Task(id.to_owned()), id.to_owned(), task);
        draft.job.at = at;
        draft.after = after.iter().map(|id| (*id).to_owned()).collect();
        draft.count = count;
        draft
    }

    fn assembled(drafts: &[JobDraft]) -> Result<Vec<(String, Vec<usize>)>, String> {
        let trace = assemble("t".to_owned(), drafts.to_vec()).map_err(|error| error.to_string())?;
        let jobs = trace.jobs.into_iter();
        Ok(jobs.map(|job| (job.id, job.after)).collect())
    }

    fn ids(drafts: &[JobDraft]) -> Vec<String> {
        let jobs = assembled(drafts).unwrap().into_iter();
        jobs.map(|(id, _)| id).collect()
    }

    #[test]
    fn parents_come_first_and_then_who_was_submitted_first() {
        let drafts = [
            draft("child", 0.0, &["late", "soon"], 1),
            draft("late", 5.0, &[], 1),
            draft("soon", 1.0, &[], 1),
            draft("later", 6.0, &[], 1),
        ];
        assert_eq!(ids(&drafts), ["soon", "late", "child", "later"]);
        let trace = assemble("t".to_owned(), drafts.to_vec()).unwrap();
        assert_eq!(trace.jobs[2].after, [0, 1]);
        assert!((trace.jobs[2].at - 5.0).abs() < f64::EPSILON);
    }

    #[test]
    fn many_alike_are_named_together_or_one_by_one() {
        let drafts = [
            draft("a", 0.0, &[], 2),
            draft("all", 0.0, &["a", "a#2"], 1),
            draft("one", 0.0, &["a#2"], 2),
        ];
        let jobs = assembled(&drafts).unwrap();
        let expected: [(&str, &[usize]); 5] = [
            ("a#1", &[]),
            ("a#2", &[]),
            ("all", &[0, 1]),
            ("one#1", &[1]),
            ("one#2", &[1]),
        ];
        let expected = expected.map(|(id, after)| (id.to_owned(), after.to_vec()));
        assert_eq!(jobs, expected);
    }

    #[test]
    fn what_cannot_be_is_refused_where_it_stands() {
        let errors = |drafts: &[JobDraft]| assembled(drafts).unwrap_err();
        let twice = [draft("a", 0.0, &[], 1), draft("a", 0.0, &[], 1)];
        assert!(errors(&twice).contains("a job \"a\" before"));
        let copy = [draft("a#2", 0.0, &[], 1), draft("a", 0.0, &[], 3)];
        assert!(errors(&copy).starts_with("task \"a#2\": there is a job"));
        let typo = [draft("first", 0.0, &[], 1), draft("b", 0.0, &["frist"], 1)];
        assert_eq!(
            errors(&typo),
            "task \"b\": there is no job \"frist\"; did you mean \"first\"?"
        );
        let beyond = [draft("a", 0.0, &[], 2), draft("b", 0.0, &["a#3"], 1)];
        assert!(errors(&beyond).contains("no job \"a#3\""));
    }

    #[test]
    fn a_circle_is_found_and_not_what_waits_for_it() {
        let drafts = [
            draft("waits", 0.0, &["x"], 1),
            draft("x", 0.0, &["y"], 1),
            draft("y", 0.0, &["x"], 1),
        ];
        let error = assembled(&drafts).unwrap_err();
        assert!(
            error.starts_with("task \"x\": it waits for itself"),
            "{error}"
        );
        let own = assembled(&[draft("x", 0.0, &["x"], 1)]).unwrap_err();
        assert!(own.contains("it waits for itself"), "{own}");
    }

    #[test]
    fn there_is_an_end_to_jobs_and_edges() {
        let many = [draft("a", 0.0, &[], JOBS), draft("b", 0.0, &[], 1)];
        let error = assembled(&many).unwrap_err();
        assert!(
            error.starts_with("task \"b\": there are more than 1000000 jobs"),
            "{error}"
        );
        let square = [draft("a", 0.0, &[], 5_000), draft("b", 0.0, &["a"], 5_000)];
        let error = assembled(&square).unwrap_err();
        assert!(error.contains("more than 10000000 pairs"), "{error}");
    }
}

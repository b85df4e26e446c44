//! Findings in an API server's answer: what `kubectl apply` shows.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::finding::Finding;
use crate::raypolicy::PolicyFault;

/// The longest warning that Kubernetes recommends, in characters. The path to a field in a template
/// takes half of that, so the fix becomes a second warning where it does not fit.
pub const WARNING_CHARS: usize = 120;

/// The characters that API servers allow for all warnings of one response. They truncate and drop
/// the rest.
pub const WARNINGS_CHARS: usize = 4096;

/// The longest denial, in bytes: about 800 findings. Nobody reads more.
const DENIAL_BYTES: usize = 256 * 1024;

/// The length that is reserved for the line that counts the findings left out.
const MORE_BYTES: usize = 80;

/// One finding in one line: rule, place, problem, reason and fix.
pub fn line(finding: &Finding) -> String {
    let policy = finding.decided.as_ref();
    let policy = policy.map_or_else(String::new, |decided| format!(" ({decided})"));
    format!(
        "{}. {} {}{policy}",
        headline(finding),
        finding.why,
        finding.fix
    )
}

/// One finding without its place, which kubectl prints before it among the causes of a denial.
pub fn cause(finding: &Finding) -> String {
    let Finding {
        rule,
        path,
        problem,
        why,
        fix,
        ..
    } = finding;
    let group = path
        .group()
        .map_or_else(String::new, |name| format!("group {}; ", printable(name)));
    let policy = finding
        .decided
        .as_ref()
        .map_or_else(String::new, |decided| {
            format!("{}; ", printable(&decided.to_string()))
        });
    // kubectl shows neither the webhook nor the message of the denial there, so this names the
    // command that explains the rule.
    format!("{problem}. {why} {fix} ({group}{policy}rayfit explain {rule})")
}

/// Rule, place and problem.
fn headline(finding: &Finding) -> String {
    let Finding {
        rule,
        path,
        problem,
        ..
    } = finding;
    format!("{rule} {path}: {problem}")
}

/// The message of a denial: every finding, and the command that explains more. Findings that do not
/// fit are counted.
pub fn denial(findings: &[Finding]) -> String {
    let (fitting, left_out) = within(findings.iter().map(line), DENIAL_BYTES, String::len);
    let mut message = String::new();
    if let [only] = fitting.as_slice() {
        message.push_str(only);
    } else {
        let _ = write!(message, "{} problems:", findings.len());
        for line in &fitting {
            let _ = write!(message, "\n- {line}");
        }
    }
    if left_out > 0 {
        let _ = write!(message, "\n+{left_out} more");
    }
    if let Some(first) = findings.first() {
        let _ = write!(message, "\n(rayfit explain {} explains more)", first.rule);
    }
    message
}

/// The warnings of a response, within the lengths that API servers pass on; the last one counts
/// those left out. A fix that several findings share is included once.
pub fn warnings(findings: &[Finding]) -> Vec<String> {
    let mut fixes = HashSet::new();
    let pairs = findings.iter().map(|finding| {
        let mut lines = warning(finding);
        // API servers drop repeated warnings, so a second copy would only use up the length of
        // others.
        if lines.get(1).is_some_and(|fix| !fixes.insert(fix.clone())) {
            lines.truncate(1);
        }
        lines.join("\n")
    });
    let (fitting, left_out) = within(pairs, WARNINGS_CHARS, |text| text.chars().count());
    let mut warnings: Vec<String> = fitting
        .iter()
        .flat_map(|pair| pair.lines().map(str::to_owned))
        .collect();
    if left_out > 0 {
        warnings.push(format!("+{left_out} more (rayfit check shows all)"));
    }
    warnings
}

/// Warnings about a policy, within what API servers pass on.
pub fn remarks(faults: &[PolicyFault]) -> Vec<String> {
    let texts = faults.iter().map(|fault| {
        let text = printable(&fault.to_string());
        text.chars().take(REMARK_CHARS).collect()
    });
    within(texts, WARNINGS_CHARS, |text: &String| text.chars().count()).0
}

/// The longest warning about a policy. It is longer than others, so that admins get whole
/// sentences.
const REMARK_CHARS: usize = 250;

/// The longest name of a policy in a warning.
const POLICY_CHARS: usize = 30;

/// One finding as one warning, or as two where the problem and the fix do not fit into one.
fn warning(finding: &Finding) -> Vec<String> {
    let headline = match &finding.decided {
        None => headline(finding),
        Some(decided) => {
            let policy: String = decided.policy.chars().take(POLICY_CHARS).collect();
            let Finding { path, problem, .. } = finding;
            format!("{} [{policy}] {path}: {problem}", finding.rule)
        }
    };
    let headline = printable(&headline);
    let fix = printable(&finding.fix);
    let whole = format!("{headline}. {fix}");
    if whole.chars().count() <= WARNING_CHARS {
        return vec![whole];
    }
    vec![cut(&headline), cut(&format!("{} fix: {fix}", finding.rule))]
}

/// A text without what would be obeyed.
fn printable(text: &str) -> String {
    // API servers drop a warning that contains one.
    text.replace(crate::text::is_obeyed, " ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(WARNING_CHARS) {
        None => text.to_owned(),
        Some(_) => text.chars().take(WARNING_CHARS - 1).chain(['…']).collect(),
    }
}

/// The texts that fit into `budget`, measured by `size`, with space for a last line if some do not
/// fit; and the number of those that do not.
fn within(
    texts: impl ExactSizeIterator<Item = String>,
    budget: usize,
    size: impl Fn(&String) -> usize,
) -> (Vec<String>, usize) {
    let all = texts.len();
    let mut room = budget - MORE_BYTES;
    let fitting: Vec<String> = texts
        .map_while(|text| {
            room = room.checked_sub(size(&text))?;
            Some(text)
        })
        .collect();
    let left_out = all - fitting.len();
    (fitting, left_out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::path::FieldPath;
    use crate::policy::Mode;
    use crate::rule_id::RuleId;

    fn finding(rule: u16, problem: &str) -> Finding {
        Finding {
            rule: RuleId(rule),
            mode: Mode::Enforce,
            path: FieldPath::of(&["spec", "rayVersion"]),
            value: None,
            problem: problem.to_owned(),
            why: "Ray stops.".to_owned(),
            fix: "Write 2.60.0.".to_owned(),
            amount: None,
            mend: None,
            decided: None,
        }
    }

    #[test]
    fn a_denial_lists_every_finding_with_reason_and_remedy() {
        let one = denial(&[finding(101, "\"x\" is no version")]);
        assert_eq!(
            one,
            "RF101 spec.rayVersion: \"x\" is no version. Ray stops. Write 2.60.0.\n\
             (rayfit explain RF101 explains more)"
        );
        let two = denial(&[finding(101, "a"), finding(203, "b")]);
        assert_eq!(
            two,
            "2 problems:\n- RF101 spec.rayVersion: a. Ray stops. Write 2.60.0.\n\
             - RF203 spec.rayVersion: b. Ray stops. Write 2.60.0.\n\
             (rayfit explain RF101 explains more)"
        );
    }

    #[test]
    fn a_cause_leaves_the_place_to_its_field_and_names_the_group() {
        let mut finding = finding(101, "\"x\" is no version");
        assert_eq!(
            cause(&finding),
            "\"x\" is no version. Ray stops. Write 2.60.0. (rayfit explain RF101)"
        );
        finding.path = FieldPath::of(&["spec", "workerGroupSpecs"]).item(1, "gpu");
        assert!(cause(&finding).ends_with(" (group gpu; rayfit explain RF101)"));
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let many: Vec<Finding> = (0..5000).map(|_| finding(101, &"x".repeat(100))).collect();
        let text = denial(&many);
        let listed = text.matches("\n- RF101").count();
        assert!(listed > 500 && text.len() < DENIAL_BYTES + 8 * listed);
        assert!(text.contains(&format!("+{} more", 5000 - listed)));
    }

    #[test]
    fn fifty_long_findings_stay_within_the_budget_of_warnings() {
        let many: Vec<Finding> = (0..50).map(|_| finding(213, &"é".repeat(300))).collect();
        let texts = warnings(&many);
        assert_eq!(texts.len(), 35);
        assert_eq!(texts[34], "+17 more (rayfit check shows all)");
        assert!(texts[0].starts_with("RF213 spec.rayVersion: é") && texts[0].ends_with('…'));
        assert_eq!(texts[1], "RF213 fix: Write 2.60.0.");
        assert!(texts[2].starts_with("RF213 spec.rayVersion: é"));
    }

    #[test]
    fn no_findings_make_no_warnings() {
        assert_eq!(warnings(&[]), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn warnings_always_fit_and_none_is_lost(problems in prop::collection::vec(".*", 0..60)) {
            let findings: Vec<_> = problems.iter().map(|text| finding(213, text)).collect();
            let texts = warnings(&findings);
            prop_assert!(texts.iter().all(|text| text.chars().count() <= WARNING_CHARS));
            let total: usize = texts.iter().map(|text| text.chars().count()).sum();
            prop_assert!(total <= WARNINGS_CHARS);
            prop_assert!(texts.iter().all(|text| !text.contains(char::is_control)));
            let listed = texts.iter().filter(|text| text.starts_with("RF213 spec")).count();
            let counted = match texts.last().filter(|text| text.starts_with('+')) {
                Some(more) => more[1..].split(' ').next().unwrap().parse().unwrap(),
                None => 0,
            };
            prop_assert_eq!(listed + counted, findings.len());
        }
    }
}

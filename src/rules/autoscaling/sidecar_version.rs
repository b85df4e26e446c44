//! RF218: an autoscaler container of another Ray version than the head.

use crate::policy::Mode;
use crate::ray::{Cluster, RayVersion, since};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown_text;

/// RF218
pub static RULE: Rule = Rule {
    id: RuleId(218),
    name: "sidecar-version",
    mode: OwnMode::Always(Mode::Warn),
    summary: "The autoscaler's image has another Ray version than the head's",
    page: RulePage(include_str!("sidecar_version.md")),
    why: "The autoscaler and the head communicate over interfaces that change between Ray \
          versions, so scaling can fail in ways that nobody tests.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Object,
        mode: Mode::Warn,
        faults: r#"!s.auto || s.mode in ['central', 'sidecar'] || s.cluster.?rayVersion.orValue('').matches(r'^v?[01]\.[0-9]') ? []
: s.groups.filter(g, g.head && g.containers.size() > 0).map(g, [s.options.?image.orValue(''), g.containers[0].?image.orValue('')]
  .map(image, image.find(r'(^|/)(rayproject/ray-[^:/@]+|ray|ray-ml|ray-llm):v?[0-9]+\.[0-9]+\.[0-9]+').find(r'[0-9]+\.[0-9]+\.[0-9]+$')))
  .filter(pair, pair[0] != '' && pair[1] != '' && pair[0] != pair[1] && !(pair[1].matches(r'^[01]\.') && s.cluster.?rayVersion.orValue('') == ''))
  .map(pair, s.path + '.autoscalerOptions.image is Ray ' + pair[0] + ', the head is ' + pair[1])"#,
        fix: "Remove autoscalerOptions.image; KubeRay then takes the image of the head.",
    }],
    "Tags with fewer than three numbers are not checked.",
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    // The image is then Rayfit's, whose tag names no version of Ray.
    if subject.reconcile_mode().is_ours() {
        return;
    }
    let Some((image, sidecar, head)) = versions(cluster) else {
        return;
    };
    let version = cluster.ray_version().unwrap_or(head);
    if sidecar == head || version < since::AUTOSCALER_IN_IMAGE {
        return;
    }
    findings.add(
        RULE.finding(
            cluster.option_path("image"),
            format!(
                "{} is not the head's Ray version, {head}",
                shown_text(image)
            ),
            "Remove autoscalerOptions.image; KubeRay then takes the head's image, also after an \
             upgrade.",
        )
        .valued(format!("{sidecar} != head {head}")),
    );
}

/// The autoscaler's image, its Ray version and the head's.
fn versions<'a>(cluster: &Cluster<'a>) -> Option<(&'a str, RayVersion, RayVersion)> {
    let image = cluster.autoscaler_option("image")?.as_str()?;
    let head = cluster.head.as_ref()?.ray_container()?.image()?;
    Some((image, ray_version(image)?, ray_version(head)?))
}

/// The Ray version that the tag names. The tag of any other image (`mycorp/trainer:1.4`) is a
/// version of that image, not of Ray.
fn ray_version(image: &str) -> Option<RayVersion> {
    let name = image.split('@').next()?.rsplit('/').next()?;
    let copied = matches!(name.split(':').next()?, "ray" | "ray-ml" | "ray-llm");
    RayVersion::of_official_image(image)
        .or_else(|| copied.then(|| RayVersion::of_image(image)).flatten())
}

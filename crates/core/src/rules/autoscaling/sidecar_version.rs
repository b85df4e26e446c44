//! RF218: an autoscaler container of another Ray version than the head.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(218),
    name: "sidecar-version",
    mode: OwnMode::Always(Mode::Warn),
    summary: "The autoscaler's image has another Ray version than the head's",
    page: include_str!("sidecar_version.md"),
    why: "The autoscaler and the head communicate over interfaces that change between Ray \
          versions, so scaling can fail in ways that nobody tests.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Object,
            faults: r#"!s.auto || s.mode in ['central', 'sidecar'] || s.cluster.?rayVersion.orValue('').matches(r'^v?[01]\.[0-9]') ? []
: s.groups.filter(g, g.head && g.containers.size() > 0).map(g, [s.options.?image.orValue(''), g.containers[0].?image.orValue('')]
  .map(image, image.find(r'(^|/)(rayproject/ray-[^:/@]+|ray|ray-ml|ray-llm):v?[0-9]+\.[0-9]+\.[0-9]+').find(r'[0-9]+\.[0-9]+\.[0-9]+$')))
  .filter(pair, pair[0] != '' && pair[1] != '' && pair[0] != pair[1] && !(pair[1].matches(r'^[01]\.') && s.cluster.?rayVersion.orValue('') == ''))
  .map(pair, s.path + '.autoscalerOptions.image is Ray ' + pair[0] + ', the head is ' + pair[1])"#,
            fix: "Remove autoscalerOptions.image; KubeRay then takes the image of the head.",
        }],
        "Tags with fewer than three numbers are not checked.",
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    // The image is otherwise Rayfit's, whose tag names no version of Ray.
    let by_ray = !subject.object.reconcile_mode().is_ours();
    let Some(cluster) = subject.autoscaled().filter(|_| by_ray) else {
        return;
    };
    let image = cluster.autoscaler_option("image").and_then(Json::as_str);
    let container = cluster.head.as_ref().and_then(|head| head.ray_container);
    let head_image = container.as_ref().and_then(Container::image);
    let (Some(image), Some(sidecar), Some(head)) = (
        image,
        image.and_then(ray_version),
        head_image.and_then(ray_version),
    ) else {
        return;
    };
    // The autoscaler's start skips Ray's own check of versions (`run_autoscaler.py`), so nothing else notices it.
    let version = cluster.ray_version().unwrap_or(head);
    if sidecar == head || version < since::AUTOSCALER_IN_IMAGE {
        return;
    }
    let finding = RULE.finding(
        cluster.option_path("image"),
        format!(
            "{} is not the head's Ray version, {head}",
            shown_text(image)
        ),
        "Remove autoscalerOptions.image; KubeRay then takes the head's image, also after an \
         upgrade.",
    );
    let finding = finding.valued(format!("{sidecar} != head {head}"));
    findings.push(finding.mended_by_removal());
}

/// The Ray version that the tag names. The tag of any other image (`mycorp/trainer:1.4`) is a
/// version of that image, not of Ray.
fn ray_version(image: &str) -> Option<RayVersion> {
    let name = image.split('@').next()?.rsplit('/').next()?;
    let copied = matches!(name.split(':').next()?, "ray" | "ray-ml" | "ray-llm");
    RayVersion::of_official_image(image)
        .or_else(|| copied.then(|| RayVersion::of_image(image)).flatten())
}

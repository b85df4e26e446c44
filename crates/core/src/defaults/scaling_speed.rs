//! DF05: when idle workers go, and how fast new ones come.

use serde_json::json;

use super::draft::autoscaled;
use super::{DefaultId, DefaultRule, DefaultsDraft};
use crate::policy::Settings;
use crate::ray::RayObject;

pub(crate) static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(5),
    name: "scaling-speed",
    summary: "`idleTimeoutSeconds: 60` and `upscalingMode: Default`",
    page: include_str!("scaling_speed.md"),
    why: "How long an idle worker is kept is what a cluster costs; it should be seen in the object.",
    apply,
};

fn apply(draft: &mut DefaultsDraft<'_>) {
    let values = &draft.settings.defaults;
    // The values that Ray assumes without them (its `autoscaling_config.py`), so that filling them in changes nothing.
    let seconds = values.idle_timeout_seconds.unwrap_or(60);
    let mode = values.upscaling_mode.as_deref().unwrap_or("Default");
    // RF505 would deny the object for a value that its author has not written.
    let limit = draft.settings.limits.max_idle_timeout_seconds.as_ref();
    let seconds = limit.map_or(seconds, |limit| seconds.min(limit.most));
    let scales = |object: &RayObject<'_>, _: &Settings| autoscaled(object).is_some();
    draft.option(DefaultId(5), "idleTimeoutSeconds", scales, || {
        json!(seconds)
    });
    draft.option(DefaultId(5), "upscalingMode", scales, || json!(mode));
}

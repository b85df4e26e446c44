//! DF08: a head that takes no work, where a policy asks for it.

use serde_json::json;

use super::draft::{autoscaled, settle};
use super::{DefaultId, DefaultRule, DefaultsDraft};
use crate::json::Json;
use crate::ray::group::HEAD_NAME;
use crate::ray::{Group, RayObject};

pub(crate) static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(8),
    name: "head-takes-no-work",
    summary: "`num-cpus: \"0\"` on the head, only where a policy asks for it",
    page: include_str!("head_work.md"),
    why: "Tasks that land on the head compete with the services that keep the whole cluster alive.",
    apply,
};

fn apply(draft: &mut DefaultsDraft<'_>) {
    // The head, if it can be configured to take no work.
    fn wanting_head<'a>(object: &'a RayObject<'a>) -> Option<&'a Group<'a>> {
        let head = autoscaled(object)?.head.as_ref()?;
        (head.resources.is_none() && !object.ippr.lists(HEAD_NAME)).then_some(head)
    }
    let is_asked = draft.settings.defaults.head_takes_no_work == Some(true);
    let Some(head) = wanting_head(draft.object).filter(|_| is_asked) else {
        return;
    };
    let params = head.spec.get("rayStartParams");
    let is_open = |params: Json<'_>| {
        let params = params.as_object();
        params.is_some_and(|params| !params.contains_key("num-cpus"))
    };
    if !params.is_none_or(is_open) {
        return;
    }
    let stored_head = draft.old.and_then(wanting_head);
    let stored = stored_head.and_then(|head| head.start_param("num-cpus"));
    let Some((value, origin)) = settle(stored_head.is_some(), stored, json!("0")) else {
        return;
    };
    if params.is_none() {
        draft.make_parent(&head.path().key("rayStartParams"));
    }
    draft.add(DEFAULT.id, head.start_param_path("num-cpus"), value, origin);
}

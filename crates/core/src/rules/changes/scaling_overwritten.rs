//! RF305: the scaler's own fields, overwritten by somebody else.

use std::collections::HashMap;

use super::live_change::LiveChange;
use crate::policy::settings::is_rayfit;
use crate::ray::object::kuberay_name;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(305),
    name: "scaling-overwritten",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`replicas` or `scaleStrategy` is reset by somebody other than the scaler",
    page: include_str!("scaling_overwritten.md"),
    why: "The scaler keeps its decisions in these two fields: a higher number starts workers that \
          nobody requested, a lower one drops workers that are being started, and names of workers \
          to delete are lost or deleted again.",
    cel: Cel::NotCovered(
        "It needs the accounts that scale a cluster, one of which the stored object names, and a \
     comparison of each group with the stored one.",
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let (Some(change), Some(object)) = (LiveChange::of(subject), subject.old) else {
        return;
    };
    // Nobody who scales this cluster asks without being known.
    let by_scaler = subject.user.is_some_and(|user| {
        subject.settings.is_operator(user)
            || is_rayfit(user)
            || is_autoscaler(user, object, subject.object.namespace())
    });
    if !change.new.autoscaling() || !change.old.autoscaling() || by_scaler {
        return;
    }
    let mut report = |path: FieldPath,
                      problem: String,
                      value: String,
                      field: &str,
                      bounds: &str| {
        let fix = format!(
            "Leave {field} out of what you apply{bounds}. The same applies to server-side apply, \
             which treats the list of groups as one value. In an Argo CD Application add \
             .spec.workerGroupSpecs[].{field} to ignoreDifferences (jqPathExpressions), and \
             RespectIgnoreDifferences=true to syncOptions."
        );
        findings.push(RULE.finding(path, problem, fix).valued(value));
    };
    let workers = change.old.workers.iter();
    let stored_groups: HashMap<&str, &Group<'_>> = workers
        .filter_map(|group| Some((group.name?, group)))
        .collect();
    for group in &change.new.workers {
        let Some(earlier) = group.name.and_then(|name| stored_groups.get(name)) else {
            continue;
        };
        // Every way of applying replaces the list of groups as a whole, and the API server then stores
        // 0 where `replicas` was left out.
        if let (Some(old), Some(new)) = (earlier.integer("replicas"), group.integer("replicas"))
            && old != new
            && new != 0
        {
            report(
                group.path().key("replicas"),
                format!("resets the scaler's number of workers from {old} to {new}"),
                format!("{old} -> {new}"),
                "replicas",
                "; set minReplicas and maxReplicas to control the scaler",
            );
        }
        // KubeRay acts on the list at once (`reconcilePods`), so workers of an old list are deleted again, and those
        // that it lacks are lost.
        let old = workers_to_delete(earlier).unwrap_or(Json::Array(Items::default()));
        let new = workers_to_delete(group).filter(|new| !new.is_null() && *new != old);
        if let Some(new) = new {
            report(
                group.path().key("scaleStrategy").key("workersToDelete"),
                "resets the list of workers that the scaler wants deleted".to_owned(),
                format!("{} -> {}", shown(old), shown(new)),
                "scaleStrategy",
                "",
            );
        }
    }
}

/// The list of workers that the scaler wants deleted.
fn workers_to_delete<'a>(group: &Group<'a>) -> Option<Json<'a>> {
    group.spec.object("scaleStrategy")?.get("workersToDelete")
}

/// Recognizes the service account under which the cluster's own head pod runs.
fn is_autoscaler(user: &str, cluster: &RayObject<'_>, namespace: Option<&str>) -> bool {
    let account = user
        .strip_prefix("system:serviceaccount:")
        .and_then(|account| account.split_once(':'));
    // The account that the head's template names, or else the cluster's own, which has its name.
    let head = cluster
        .cluster
        .as_ref()
        .map(|cluster| cluster.head.as_ref());
    let expected = head.and_then(|head| {
        head.and_then(|head| head.pod_spec?.filled("serviceAccountName"))
            .or_else(|| cluster.name())
    });
    account
        .zip(expected)
        .is_some_and(|((space, account), expected)| {
            cluster.namespace().or(namespace) == Some(space) && *account == kuberay_name(expected)
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::Facts;
    use crate::policy::Settings;
    use crate::policy::settings::KUBERAY_OPERATOR;

    fn object(name: &str, account: Option<&str>, replicas: i64) -> Value {
        json!({
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": {"name": name, "namespace": "team"},
            "spec": {
                "enableInTreeAutoscaling": true,
                "headGroupSpec": {"template": {"spec": {"serviceAccountName": account}}},
                "workerGroupSpecs": [{"groupName": "small", "replicas": replicas}],
            },
        })
    }

    fn is_reported(name: &str, account: Option<&str>, user: Option<&str>) -> bool {
        let (old, new) = (object(name, account, 5), object(name, account, 1));
        let (old, new) = (
            RayObject::parse(&old).unwrap(),
            RayObject::parse(&new).unwrap(),
        );
        let mut findings = Vec::new();
        check(
            &Subject {
                object: &new,
                old: Some(&old),
                facts: &Facts::default(),
                settings: &Settings::default(),
                user,
            },
            &mut findings,
        );
        !findings.is_empty()
    }

    #[test]
    fn anybody_else_is_reported() {
        for user in [
            None,
            Some("alice"),
            Some("system:serviceaccount:argocd:argocd-application-controller"),
            Some("system:serviceaccount:other:demo"),
            Some("system:serviceaccount:team:demo2"),
        ] {
            assert!(is_reported("demo", None, user), "{user:?}");
        }
        let own = Some("system:serviceaccount:team:demo");
        assert!(
            is_reported("demo", Some("ray"), own),
            "the head runs as another"
        );
    }

    #[test]
    fn the_scalers_may() {
        for user in [
            KUBERAY_OPERATOR,
            "system:serviceaccount:rayfit-system:rayfit-controller",
            "system:serviceaccount:rayfit-b:rayfit-controller",
            "system:serviceaccount:rayfit-system:rayfit",
            "system:serviceaccount:team:demo",
        ] {
            assert!(!is_reported("demo", None, Some(user)), "{user}");
        }
        let named = Some("system:serviceaccount:team:ray");
        assert!(!is_reported("demo", Some("ray"), named));
    }

    #[test]
    fn account_names_are_cut_as_kuberay_cuts_them() {
        let name = format!("abc-{}", "x".repeat(49));
        assert_eq!(kuberay_name(&name), format!("r{}", "x".repeat(49)));
        let whole = "y".repeat(50);
        assert_eq!(kuberay_name(&whole), whole);
        let user = format!("system:serviceaccount:team:{}", kuberay_name(&name));
        assert!(!is_reported(&name, None, Some(&user)));
    }
}

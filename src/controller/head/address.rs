//! The address of a cluster's GCS and the credentials that it requires, from the cluster's objects.
//! Pure.

use rayfit_core::dns_name::DnsName;
use rayfit_core::ray::cluster::gcs_port;
use rayfit_core::ray::object::kuberay_name;
use rayfit_core::reconcile::{Blind, HeadPod};
use rayfit_core::snapshot::pod::Pod;
use rayfit_core::snapshot::{OwnPods, leading_head};
use rayfit_core::text::Misread;
use serde_json::Value;

use crate::controller::observe::Key;
use crate::gcs::Address;

/// The head of a cluster: the GCS's address, and the Secrets with the credentials that it requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The head pod's name.
    pub pod: String,
    /// The head pod's UID: another pod is another GCS.
    pub uid: String,
    /// The address of the GCS.
    pub address: Address,
    /// The Secret and its key that hold the token, if the GCS requires one.
    pub token: Option<(DnsName, &'static str)>,
    /// The Secret with a client certificate, its key and the authority, if the GCS uses TLS.
    pub tls: Option<DnsName>,
}

/// The head of a cluster. It is always one of the cluster's own pods, so that a token or
/// certificate is never sent anywhere else. Of several head pods it is [the one that
/// leads](leading_head).
///
/// # Errors
///
/// There is no GCS to ask.
pub fn head(key: &Key, cluster: &Value, pods: &OwnPods) -> Result<Head, Blind> {
    head_in(key, cluster, leading_head(pods, None).as_ref())
}

/// The head of a cluster in this one of its own pods, if there is one.
///
/// # Errors
///
/// There is no GCS to ask.
pub fn head_in(key: &Key, cluster: &Value, pod: Option<&Pod<'_>>) -> Result<Head, Blind> {
    let pod = pod.ok_or(Blind::NoHead)?;
    let name = pod.name.to_owned();
    if pod.ended {
        return Err(Blind::Ended { pod: name });
    }
    let Some(ip) = pod.address() else {
        return Err(Blind::NoAddress { pod: name });
    };
    let no_secret = |fault: Misread| Blind::Credentials {
        head: HeadPod {
            name: pod.name.to_owned(),
            ready: false,
            closed: false,
        },
        reason: format!(
            "the Secret that clients of its GCS need cannot be asked for: {fault}, in spec.authOptions.secretName"
        ),
    };
    // KubeRay names the Secret with the token like the cluster. With `enableK8sTokenAuth` the token is that of a
    // service account, and no Secret holds it.
    let options = &cluster["spec"]["authOptions"];
    let token = (options["mode"].as_str() == Some("token")).then(|| {
        let named = options["secretName"].as_str();
        let named = named.filter(|name| !name.is_empty());
        let name = named.map_or_else(|| kuberay_name(&key.name), str::to_owned);
        Ok((DnsName::parse(&name)?, "auth_token"))
    });
    Ok(Head {
        pod: name,
        uid: pod.uid().to_owned(),
        address: Address::new(ip, port(cluster)),
        token: token.transpose().map_err(no_secret)?,
        tls: cluster["spec"]["tlsOptions"]["enabled"]
            .as_bool()
            .unwrap_or(false)
            // KubeRay makes this Secret for workers, which are clients of the GCS, too.
            .then(|| DnsName::parse(&format!("ray-worker-secret-{}", key.name)))
            .transpose()
            .map_err(no_secret)?,
    })
}

/// The GCS's port: the one that `ray start --head` is given.
pub fn port(cluster: &Value) -> u16 {
    let port = &cluster["spec"]["headGroupSpec"]["rayStartParams"]["port"];
    gcs_port(Some(port.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::controller::head::address::*;

    fn pod(name: &str, ip: &str, extra: &Value) -> Value {
        let mut pod = json!({
            "metadata": { "name": name, "uid": name, "labels": {
                "ray.io/cluster": "demo", "ray.io/node-type": "head"
            } },
            "status": { "phase": "Running", "podIP": ip }
        });
        json_patch::merge(&mut pod, extra);
        pod
    }

    fn found(cluster: &Value, pods: &[Value]) -> Result<Head, Blind> {
        let mut cluster = cluster.clone();
        json_patch::merge(
            &mut cluster,
            &json!({ "metadata": { "name": "demo", "namespace": "ray" } }),
        );
        let pods = pods
            .iter()
            .cloned()
            .map(serde_json::from_value)
            .map(Result::unwrap);
        let (pods, _) = OwnPods::divide(rayfit_core::snapshot::ClusterId::of(&cluster), pods);
        head(&Key::new("ray", "demo").unwrap(), &cluster, &pods)
    }

    #[test]
    fn a_pod_of_another_namespace_is_never_asked() {
        let foreign = pod(
            "h",
            "10.6.6.6",
            &json!({ "metadata": { "namespace": "evil" } }),
        );
        assert_eq!(
            found(&json!({}), std::slice::from_ref(&foreign)),
            Err(Blind::NoHead)
        );
        let pods = [foreign, pod("own", "10.0.0.1", &json!({}))];
        assert_eq!(
            found(&json!({}), &pods).unwrap().address,
            Address::new("10.0.0.1", 6379)
        );
    }

    #[test]
    fn the_live_head_pod_is_asked_on_its_port() {
        let cluster =
            json!({ "spec": { "headGroupSpec": { "rayStartParams": { "port": "6380" } } } });
        let old = pod(
            "old",
            "10.0.0.1",
            &json!({ "metadata": { "deletionTimestamp": "x" } }),
        );
        let pods = [old, pod("new", "10.0.0.2", &json!({}))];
        let found = found(&cluster, &pods).unwrap();
        assert_eq!(
            (found.uid.as_str(), found.address),
            ("new", Address::new("10.0.0.2", 6380))
        );
        assert_eq!(port(&json!({})), 6379);
    }

    /// An evicted pod stays until somebody deletes it.
    #[test]
    fn a_head_pod_that_has_ended_hides_none_that_runs() {
        let ended = json!({ "status": { "phase": "Failed" } });
        let pods = [
            pod("a", "10.0.0.1", &ended),
            pod("b", "10.0.0.2", &json!({})),
        ];
        assert_eq!(found(&json!({}), &pods).unwrap().pod, "b");
    }

    #[test]
    fn without_a_head_it_says_why() {
        assert_eq!(found(&json!({}), &[]), Err(Blind::NoHead));
        let named = || "h".to_owned();
        let pods = [pod("h", "", &json!({}))];
        assert_eq!(
            found(&json!({}), &pods),
            Err(Blind::NoAddress { pod: named() })
        );
        let pods = [pod(
            "h",
            "10.0.0.1",
            &json!({ "status": { "phase": "Failed" } }),
        )];
        let ended = Blind::Ended { pod: named() };
        assert_eq!(found(&json!({}), &pods), Err(ended));
    }

    #[test]
    fn a_secret_whose_name_would_be_a_path_is_not_asked_for() {
        let cluster = json!({ "spec": { "authOptions": {
            "mode": "token", "secretName": "../../kube-system/secrets/admin" } } });
        let refused = found(&cluster, &[pod("h", "10.0.0.1", &json!({}))]).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("../../kube-system") && said.contains("secretName"),
            "{said}"
        );
    }

    #[test]
    fn secrets_are_named_as_kuberay_names_them() {
        let cluster = json!({ "spec": {
            "authOptions": { "mode": "token" }, "tlsOptions": { "enabled": true }
        } });
        let found = found(&cluster, &[pod("h", "10.0.0.1", &json!({}))]).unwrap();
        assert_eq!(
            found.token,
            Some((DnsName::parse("demo").unwrap(), "auth_token"))
        );
        assert_eq!(found.tls.unwrap().to_string(), "ray-worker-secret-demo");
        let long = format!("1{}", "a".repeat(55));
        assert_eq!(kuberay_name(&long).len(), 50);
        assert!(kuberay_name("1abc").starts_with('r'));
    }
}

//! The command with which KubeRay starts the autoscaler container, read strictly. Pure.

use rayfit_core::dns_name::DnsName;
use rayfit_core::text::Misread;

use crate::controller::observe::Key;

/// The error of arguments that do not have the form `-c [--] TEXT`.
const NOT_THE_AUTOSCALER: &str = "this image contains only Rayfit and its /bin/bash is not a shell: \
    it understands one command, `/bin/bash -c -- \"ray kuberay-autoscaler --cluster-name NAME \
    --cluster-namespace NAMESPACE\"`, as KubeRay gives it to the autoscaler container. Use this image \
    for that container only (spec.autoscalerOptions.image), or run `/rayfit --help`";

const NAME: &str = "--cluster-name";
const NAMESPACE: &str = "--cluster-namespace";

/// The RayCluster that `ray kuberay-autoscaler` is told to scale, by the arguments of `bash` (without its own name): `-c` or `-cl`, optionally `--`, and one
/// text `ray kuberay-autoscaler --cluster-name A --cluster-namespace B`.
pub fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<Key, Misread> {
    let not_the_autoscaler = || Misread(NOT_THE_AUTOSCALER.to_owned());
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let text = match arguments.as_slice() {
        // The flag is combined with `-l` for a login shell where KubeRay's operator has `ENABLE_LOGIN_SHELL`.
        // (KubeRay, `GetContainerCommand`.)
        ["-c" | "-cl" | "-lc", "--", text] | ["-c" | "-cl" | "-lc", text] => *text,
        _ => return Err(not_the_autoscaler()),
    };
    let mut words = text.split_ascii_whitespace();
    if (words.next(), words.next()) != (Some("ray"), Some("kuberay-autoscaler")) {
        return Err(not_the_autoscaler());
    }
    let (mut cluster, mut namespace) = (None, None);
    while let Some(word) = words.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word, words.next()),
        };
        let slot = match option {
            NAME => &mut cluster,
            NAMESPACE => &mut namespace,
            _ => {
                return Err(Misread(format!(
                    "`ray kuberay-autoscaler` was given {word:?}, which Rayfit does not know; remove \
                     spec.autoscalerOptions.command and .args so that KubeRay gives its own command"
                )));
            }
        };
        // As in Ray's own command, the last value counts of an option that is given twice.
        *slot = value;
    }
    Ok(Key {
        name: name(NAME, cluster)?,
        namespace: name(NAMESPACE, namespace)?,
    })
}

/// No character in a name has a meaning to a shell.
fn name(option: &str, value: Option<&str>) -> Result<DnsName, Misread> {
    let value = value.unwrap_or_default();
    DnsName::parse(value).map_err(|_| {
        Misread(format!(
            "`ray kuberay-autoscaler` was given no usable {option}: {value:?} is not a Kubernetes \
             name; KubeRay sets it from RAY_CLUSTER_NAME and RAY_CLUSTER_NAMESPACE, so check whether \
             spec.autoscalerOptions.env overwrites one of them"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: &str = "ray kuberay-autoscaler --cluster-name prod --cluster-namespace ray";

    fn prod() -> Key {
        Key::new("ray", "prod").unwrap()
    }

    #[test]
    fn understands_every_form_that_kuberay_gives() {
        for flag in ["-c", "-cl", "-lc"] {
            assert_eq!(parse(&[flag, "--", FIXED]), Ok(prod()));
            assert_eq!(parse(&[flag, FIXED]), Ok(prod()));
        }
        let folded = "ray  kuberay-autoscaler\n --cluster-namespace=ray --cluster-name=prod\n";
        assert_eq!(parse(&["-c", "--", folded]), Ok(prod()));
    }

    #[test]
    fn is_no_shell() {
        let other: &[&[&str]] = &[
            &[],
            &["-c"],
            &["-c", "--"],
            &["-c", "--", ""],
            &["-i"],
            &["-c", "--", "ulimit -n 65536; ray start --head"],
            &["-c", "--", "ray start --head"],
            &["--", FIXED],
            &["-c", "--", FIXED, "more"],
            &["-x", "--", FIXED],
        ];
        for arguments in other {
            let error = parse(arguments).unwrap_err();
            assert_eq!(error.to_string(), NOT_THE_AUTOSCALER);
        }
    }

    #[test]
    fn takes_nothing_beside_the_two_names() {
        for (tail, wrong) in [
            (";", "was given no usable --cluster-namespace"),
            (" && true", "was given \"&&\", which Rayfit does not know"),
            (
                " --verbose",
                "was given \"--verbose\", which Rayfit does not know",
            ),
        ] {
            let error = parse(&["-c", "--", &format!("{FIXED}{tail}")]).unwrap_err();
            assert!(error.to_string().contains(wrong), "{error}");
        }
    }

    #[test]
    fn refuses_names_that_kubernetes_could_not_have() {
        for value in [
            "",
            "$(RAY_CLUSTER_NAME)",
            "A",
            "-a",
            "a-",
            "a_b",
            "a'b",
            "`id`",
        ] {
            let text =
                format!("ray kuberay-autoscaler --cluster-name={value} --cluster-namespace=ray");
            let error = parse(&["-c", "--", &text]).unwrap_err();
            let unusable = format!("no usable --cluster-name: {value:?} is");
            assert!(error.to_string().contains(&unusable), "{error}");
        }
        let without = parse(&["-c", "--", "ray kuberay-autoscaler --cluster-name a"]);
        let error = without.unwrap_err().to_string();
        assert!(
            error.contains("no usable --cluster-namespace: \"\" is"),
            "{error}"
        );
    }
}

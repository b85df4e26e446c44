//! The command with which KubeRay starts the autoscaler container, read strictly. Pure.

use rayfit_core::dns_name::DnsName;
use thiserror::Error;

use crate::controller::observe::Key;

/// The reason why a command is not the one that KubeRay gives to the autoscaler container.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandError {
    /// The arguments do not have the form `-c [--] TEXT`.
    #[error(
        "this image contains only Rayfit and its /bin/bash is not a shell: it understands one \
         command, `/bin/bash -c -- \"ray kuberay-autoscaler --cluster-name NAME \
         --cluster-namespace NAMESPACE\"`, as KubeRay gives it to the autoscaler container. Use \
         this image for that container only (spec.autoscalerOptions.image), or run `/rayfit \
         --help`"
    )]
    NotTheAutoscaler,
    /// `ray kuberay-autoscaler` has an option that Ray's command does not have.
    #[error(
        "`ray kuberay-autoscaler` was given {0:?}, which Rayfit does not know; remove \
         spec.autoscalerOptions.command and .args so that KubeRay gives its own command"
    )]
    UnknownArgument(String),
    /// An option has no value, an empty value, or one that is not a Kubernetes name.
    #[error(
        "`ray kuberay-autoscaler` was given no usable {option}: {value:?} is not a Kubernetes \
         name; KubeRay sets it from RAY_CLUSTER_NAME and RAY_CLUSTER_NAMESPACE, so check whether \
         spec.autoscalerOptions.env overwrites one of them"
    )]
    BadName {
        /// The option.
        option: &'static str,
        /// The value that was given.
        value: String,
    },
}

const NAME: &str = "--cluster-name";
const NAMESPACE: &str = "--cluster-namespace";

/// The RayCluster that `ray kuberay-autoscaler` is told to scale, by the arguments of `bash` (without its own name): `-c` or `-cl`, optionally `--`, and one
/// text `ray kuberay-autoscaler --cluster-name A --cluster-namespace B`.
pub fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<Key, CommandError> {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let text = match arguments.as_slice() {
        // The flag is combined with `-l` for a login shell where KubeRay's operator has `ENABLE_LOGIN_SHELL`.
        // (KubeRay, `GetContainerCommand`.)
        ["-c" | "-cl" | "-lc", "--", text] | ["-c" | "-cl" | "-lc", text] => *text,
        _ => return Err(CommandError::NotTheAutoscaler),
    };
    let mut words = text.split_ascii_whitespace();
    if (words.next(), words.next()) != (Some("ray"), Some("kuberay-autoscaler")) {
        return Err(CommandError::NotTheAutoscaler);
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
            _ => return Err(CommandError::UnknownArgument(word.to_owned())),
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
fn name(option: &'static str, value: Option<&str>) -> Result<DnsName, CommandError> {
    let value = value.unwrap_or_default();
    DnsName::parse(value).map_err(|_| CommandError::BadName {
        option,
        value: value.to_owned(),
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
            assert_eq!(parse(arguments), Err(CommandError::NotTheAutoscaler));
        }
    }

    #[test]
    fn takes_nothing_beside_the_two_names() {
        let with =
            |tail: &str| parse(&["-c".to_owned(), "--".to_owned(), format!("{FIXED}{tail}")]);
        assert!(matches!(with(";"), Err(CommandError::BadName { .. })));
        assert_eq!(
            with(" && true"),
            Err(CommandError::UnknownArgument("&&".to_owned()))
        );
        assert_eq!(
            with(" --verbose"),
            Err(CommandError::UnknownArgument("--verbose".to_owned()))
        );
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
            assert!(
                matches!(error, CommandError::BadName { option: NAME, .. }),
                "{value}: {error}"
            );
        }
        let without = parse(&["-c", "--", "ray kuberay-autoscaler --cluster-name a"]);
        assert!(matches!(
            without,
            Err(CommandError::BadName {
                option: NAMESPACE,
                ..
            })
        ));
    }
}

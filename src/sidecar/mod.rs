//! The sidecar: Rayfit in place of Ray's autoscaler container, in the head pod.
//!
//! KubeRay starts that container as `/bin/bash -c -- "ray kuberay-autoscaler .."`, whatever its
//! image is. In Rayfit's image `/bin/bash` is Rayfit itself, so that setting the image is enough on
//! every version of KubeRay.
//!
//! In: the command line of Ray's container. Out: the same calls as the controller's, about one cluster, and the
//! metrics that Ray's container serves. Invariant: it scales only while the hand-over says that it scales the cluster.

mod command;
mod figures;
mod metrics_port;
mod start;
pub mod work;

pub use command::parse;
pub use start::{options, run, start};

/// Returns whether a program that was started as `name` (its zeroth argument) is to act as the shell of
/// Rayfit's image. The name of a login shell begins with a dash.
pub fn is_shell(name: &std::ffi::OsStr) -> bool {
    let file = std::path::Path::new(name).file_name();
    file.is_some_and(|file| file == "bash" || file == "-bash")
}

#[cfg(test)]
mod tests {
    use super::is_shell;

    #[test]
    fn only_the_name_bash_is_the_shell() {
        for shell in ["bash", "/bin/bash", "-bash", "./bash"] {
            assert!(is_shell(shell.as_ref()), "{shell}");
        }
        for other in ["rayfit", "/rayfit", "/bin/sh", "bash/rayfit", ""] {
            assert!(!is_shell(other.as_ref()), "{other}");
        }
    }
}

//! Rayfit in the place of Ray's autoscaler container, in the pod of a Ray head.
//!
//! KubeRay starts that container as `/bin/bash -c -- "ray kuberay-autoscaler .."` whatever its
//! image. In our image `/bin/bash` is Rayfit itself, so that setting the image is all it takes on
//! every version of KubeRay.

mod command;
mod start;
pub mod work;

pub use command::{Autoscaler, CommandError, parse};
pub use start::{options, run, start};

/// Whether a program started under `name` (its zeroth argument) is meant to be the shell of our
/// image. A login shell's name begins with a dash.
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

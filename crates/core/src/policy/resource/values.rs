//! `defaults`: the table of values that defaults fill in. Each default's own file has the value that holds where
//! no policy sets one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::table::settings;

settings! {
    /// Values that defaults fill in instead of Rayfit's own.
    #[derive(JsonSchema)]
    pub struct Defaults {
        /// Requests and limits of Ray's autoscaler container (DF04).
        pub ray_container: in ContainerSize,

        /// autoscalerOptions.idleTimeoutSeconds (DF05).
        // The field of a RayCluster has 32 bits.
        #[schemars(range(min = 0, max = 2_147_483_647))]
        pub idle_timeout_seconds: i64,

        /// autoscalerOptions.upscalingMode (DF05).
        #[schemars(regex(pattern = "^(Default|Aggressive|Conservative)$"))]
        pub upscaling_mode: String,

        /// Rayfit's container, for the clusters that it scales (DF06).
        pub rayfit_container: in RayfitContainer,

        /// Set num-cpus of heads to "0" where it is absent, so that no tasks run there (DF08).
        pub head_takes_no_work: bool,
    }
}

settings! {
    /// Requests and limits of a container, which are equal.
    #[derive(JsonSchema)]
    pub struct ContainerSize {
        /// CPU.
        pub cpu: Amount,

        /// Memory.
        pub memory: Amount,
    }
}

settings! {
    /// Rayfit's container.
    #[derive(JsonSchema)]
    pub struct RayfitContainer {
        /// Its image.
        #[schemars(length(min = 1, max = 512))]
        pub image: String,

        /// The Secret in the namespace of each object with which its image is pulled (DF06, RF238).
        #[schemars(length(min = 1, max = 253))]
        pub image_pull_secret: String,

        /// The architectures of its image, as kubernetes.io/arch has them (RF239); amd64 and arm64 if it is left out.
        #[schemars(length(min = 1, max = 8), inner(length(min = 1, max = 63)))]
        pub architectures: Vec<String>,

        /// CPU, requests and limits.
        pub cpu: Amount,

        /// Memory, requests and limits.
        pub memory: Amount,
    }
}

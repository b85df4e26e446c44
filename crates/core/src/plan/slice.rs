//! The slices by name: what [`pipeline`](crate::plan::pipeline) adds to Ray's decision, and what settings can leave out
//! of it. Each has the name of its module in [`slices`](crate::plan::slices), but for `node-headroom` and
//! `steady-packing`, which are rules of growth and of packing, and for two parts that are left out by themselves:
//! `sizes-to-come` of `growth_backoff`, and `gaps` of `small_pods`.

/// Writes the type of the slices from a table of them: each with its name and what it is for.
macro_rules! slices {
    ($($slice:ident $name:literal $purpose:literal)*) => {
        /// An improvement on Ray's decision, in the order of the pipeline.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Slice {
            $(#[doc = $purpose] $slice,)*
        }

        impl Slice {
            /// All slices.
            pub const ALL: &[Self] = &[$(Self::$slice,)*];

            /// The name and the purpose, as a sentence without its end.
            pub fn about(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$slice => ($name, $purpose),)*
                }
            }
        }
    };
}

slices! {
    Objects "objects" "Counts new nodes with what KubeRay passes to `ray start`, and makes other pods for those that hang"
    Raylets "raylets" "Counts new nodes with what raylets report, and tells raylets the sizes of their pods"
    Departures "departures" "Drains nodes that are about to leave with their Kubernetes node"
    Blocked "blocked" "Uses other groups where pods of one would not start"
    NodeHeadroom "node-headroom" "Lets pods grow only as far as their Kubernetes node has room, for which idle pods give way"
    Resizes "resizes" "Believes refusals of resizes, forgets what they suggested, and tries them again"
    GrowthBackoff "growth-backoff" "Launches no pods in vain for a size to which they do not grow"
    SizesToCome "sizes-to-come" "Counts pending nodes at the size that they will have"
    Gangs "gangs" "Gives up placement groups and jumps that do not get all of their pods"
    Excess "excess" "Gives nodes above a maximum their time to finish their work"
    MemoryInUse "memory-in-use" "Lets pods grow whose memory is nearly full"
    SteadyPacking "steady-packing" "Places demand on what is settled first, and decides as the round before"
    Standby "standby" "Keeps room ready: headroom, hours, and the work of nodes that leave"
    Gaps "gaps" "Learns from the gaps between bursts for how long small pods are kept"
    GivenUp "given-up" "Gives up launches and pods that nothing needs any more before they start"
    Rooms "rooms" "Removes idle pods early where demand that waits could use their room"
    SmallPods "small-pods" "Keeps a few small idle pods for longer than the idle timeout"
    Shrinking "shrinking" "Takes away from pods what they do not use"
    WholeReplicas "whole-replicas" "Removes the hosts of a replica together"
}

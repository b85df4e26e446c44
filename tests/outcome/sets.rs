//! Which workload runs on which RayCluster.

use std::path::Path;

use rayfit_core::simulate::trace::Trace;
use serde_json::Value;

use super::made;
use super::recorded::{Form, Recording};

/// A workload and the RayCluster that it runs on.
#[derive(Debug, Clone, Copy)]
pub struct Set {
    /// Its name.
    pub name: &'static str,
    /// What the workload is, as a sentence without its end.
    pub what: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// The RayCluster.
    pub cluster: Cluster,
    /// The Kubernetes nodes, in YAML; none for room for everything.
    pub nodes: Option<&'static str>,
}

/// Where a workload comes from.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// It is made.
    Made(fn() -> Trace),
    /// It was recorded.
    Recorded(Recording),
}

/// A RayCluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cluster {
    /// Workers of one size.
    Fixed,
    /// Workers that grow in place.
    Growing,
    /// Larger workers that grow in place.
    Wide,
    /// Workers with GPUs.
    Gpu,
}

impl Cluster {
    /// Its name, which is that of its file too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Growing => "growing",
            Self::Wide => "wide",
            Self::Gpu => "gpu",
        }
    }

    /// Whether its pods grow.
    pub fn grows(self) -> bool {
        matches!(self, Self::Growing | Self::Wide)
    }

    /// Its manifest.
    pub fn manifest(self) -> Value {
        let text = match self {
            Self::Fixed => include_str!("fixed.yaml"),
            Self::Growing => include_str!("growing.yaml"),
            Self::Wide => include_str!("wide.yaml"),
            Self::Gpu => include_str!("gpu.yaml"),
        };
        rayfit_core::yaml::read(text).remove(0).unwrap().value
    }
}

impl Set {
    /// Whether it needs a download.
    pub fn recording(&self) -> Option<&Recording> {
        match &self.source {
            Source::Made(_) => None,
            Source::Recorded(recording) => Some(recording),
        }
    }

    /// The workload.
    ///
    /// # Errors
    ///
    /// It was not downloaded; the text says how.
    pub fn trace(&self, folder: &Path) -> Result<Trace, String> {
        match &self.source {
            Source::Made(make) => Ok(make()),
            Source::Recorded(recording) => recording.read(folder),
        }
    }
}

const NODES: &str = include_str!("nodes.yaml");

/// All sets, in the order of the page.
pub fn all() -> Vec<Set> {
    let made = |name, what, make, cluster, nodes| Set {
        name,
        what,
        source: Source::Made(make),
        cluster,
        nodes,
    };
    let mut sets = vec![
        made(
            "bursts",
            BURSTS,
            made::bursts as fn() -> Trace,
            Cluster::Fixed,
            None,
        ),
        made(
            "bursts-growing",
            BURSTS,
            made::bursts,
            Cluster::Growing,
            None,
        ),
        made("mixed", MIXED, made::mixed, Cluster::Fixed, None),
        made("mixed-growing", MIXED, made::mixed, Cluster::Growing, None),
        made("gangs", GANGS, made::gangs, Cluster::Fixed, None),
        made(
            "shapes-growing",
            SHAPES,
            made::shapes,
            Cluster::Growing,
            None,
        ),
        made(
            "shapes-nodes",
            SHAPES,
            made::shapes,
            Cluster::Growing,
            Some(NODES),
        ),
    ];
    for (fixed, growing, what, recording) in WORKFLOWS {
        for (name, cluster) in [(fixed, Cluster::Fixed), (growing, Cluster::Growing)] {
            sets.push(Set {
                name,
                what,
                source: Source::Recorded(recording),
                cluster,
                nodes: None,
            });
        }
    }
    sets.push(Set {
        name: "gpu-day",
        what: "the pods of one day of a GPU cluster of Alibaba, the day with the most of them",
        source: Source::Recorded(OPENB),
        cluster: Cluster::Gpu,
        nodes: None,
    });
    sets
}

/// The sets of the table about new pods that are made large: one workload on nodes with more or less
/// room. They are not on the page.
pub fn rooms() -> Vec<Set> {
    let rooms = [
        ("shapes-15.5", NODES),
        (
            "shapes-9.5",
            "[{name: cpu, cpu: 9.5, memory: 37Gi, max: 10, min: 1, startSeconds: 60, idleSeconds: 300}]",
        ),
        (
            "shapes-6.5",
            "[{name: cpu, cpu: 6.5, memory: 25Gi, max: 12, min: 1, startSeconds: 60, idleSeconds: 300}]",
        ),
        (
            "shapes-4.5",
            "[{name: cpu, cpu: 4.5, memory: 18Gi, max: 20, min: 1, startSeconds: 60, idleSeconds: 300}]",
        ),
        ("shapes-fitted", FITTED),
    ];
    let set = |name, nodes| Set {
        name,
        what: SHAPES,
        source: Source::Made(made::shapes),
        cluster: Cluster::Growing,
        nodes,
    };
    let rooms = rooms.map(|(name, nodes)| set(name, Some(nodes)));
    [set("shapes-any", None)].into_iter().chain(rooms).collect()
}

/// Short graphs on Kubernetes nodes with room for few large pods. They are not on the page.
pub fn short() -> Vec<Set> {
    let set = |(name, what, recording)| Set {
        name,
        what,
        source: Source::Recorded(recording),
        cluster: Cluster::Wide,
        nodes: Some(READY),
    };
    SHORT.map(set).into()
}

/// Kubernetes nodes that are there from the beginning, with room for two of the largest pods each.
const READY: &str = "[{name: cpu, cpu: 32, memory: 128Gi, max: 20, min: 20}]";

/// Nodes as a node autoscaler chooses them: the smallest that a pod fits on.
const FITTED: &str = "
- {name: a-small, cpu: 2.5, memory: 10Gi, max: 30, startSeconds: 60, idleSeconds: 300}
- {name: b-medium, cpu: 4.5, memory: 18Gi, max: 15, startSeconds: 60, idleSeconds: 300}
- {name: c-large, cpu: 8.5, memory: 34Gi, max: 8, startSeconds: 60, idleSeconds: 300}
";

const BURSTS: &str = "bursts of 8 to 64 tasks of 20 to 90 s, with gaps of 3 to 20 minutes";
const MIXED: &str = "three hours of tasks, one in ten of 5 to 30 minutes, the others of 2 to 30 s";
const GANGS: &str = "placement groups of 2 to 6 bundles of 4 CPUs, and small tasks";
const SHAPES: &str = "waves of tasks that ask for 0.5 to 6 CPUs and 0.5 to 12 GiB of memory";

const OPENB: Recording = Recording {
    file: "openb_pod_list_default.csv",
    url: "https://raw.githubusercontent.com/alibaba/clusterdata/7a6c496e4f4b6ce6150be8f881cb051bf2abff42/cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv",
    sha256: "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
    form: Form::Openb { day: 148 },
};

macro_rules! workflow {
    ($path:literal, $file:literal, $sha256:literal) => {
        Recording {
            file: $file,
            url: concat!(
                "https://raw.githubusercontent.com/wfcommons/WfInstances/f085867f2f9d0b266835295605a6db2c434fe69b/",
                $path,
                $file
            ),
            sha256: $sha256,
            form: Form::WfFormat,
        }
    };
}

/// Graphs of WfCommons: the names of the two sets of each, what it is, and its file.
const WORKFLOWS: [(&str, &str, &str, Recording); 5] = [
    (
        "genome",
        "genome-growing",
        "a graph of WfCommons: 1000genome, of Pegasus",
        workflow!(
            "pegasus/1000genome/",
            "1000genome-chameleon-8ch-250k-001.json",
            "13b42874db9af98cd72e8947d5cbdbfe65df45614fd95ed5be275a60fb8fa437"
        ),
    ),
    (
        "epigenomics",
        "epigenomics-growing",
        "a graph of WfCommons: Epigenomics, of Pegasus",
        workflow!(
            "pegasus/epigenomics/",
            "epigenomics-chameleon-hep-4seq-100k-001.json",
            "a95af627e11a19db0b8d04ff861f9ea17ffa368401c4a9778aa8604423409ee1"
        ),
    ),
    (
        "montage",
        "montage-growing",
        "a graph of WfCommons: Montage, of Pegasus",
        workflow!(
            "pegasus/montage/",
            "montage-chameleon-dss-10d-001.json",
            "f84da9f02c1799ee9121ecf19600afa8b7ed2b7e9426c6e514eaabc29712e15f"
        ),
    ),
    (
        "soykb",
        "soykb-growing",
        "a graph of WfCommons: SoyKB, of Pegasus",
        workflow!(
            "pegasus/soykb/",
            "soykb-chameleon-20fastq-10ch-001.json",
            "38f69b88a6b63cfb2b241d544e9a857e13e91db2705d08f718b584c104847ef5"
        ),
    ),
    (
        "atacseq",
        "atacseq-growing",
        "a graph of WfCommons: nf-core/atacseq, of Nextflow",
        workflow!(
            "nextflow/",
            "atacseq-dirt02-001.json",
            "99af5f58b707cd7d2323eb10201a02260511e056f8f7244cdbc95312f6c3daf7"
        ),
    ),
];

/// Short graphs of WfCommons: the name of the set of each, what it is, and its file.
const SHORT: [(&str, &str, Recording); 3] = [
    (
        "bwa-wide",
        "a graph of WfCommons: BWA, of Makeflow, one thousand tasks of 4 s",
        workflow!(
            "makeflow/bwa/",
            "bwa-chameleon-medium-001.json",
            "b7808cf517ba6d3f5bed6b72ad92521595e254f1f46b7a4de0e92577eb881bbc"
        ),
    ),
    (
        "blast-wide",
        "a graph of WfCommons: BLAST, of Makeflow, three hundred tasks of 2 minutes",
        workflow!(
            "makeflow/blast/",
            "blast-chameleon-medium-001.json",
            "49379ed0edde3a5aabbb3903a1ac73655aeb0c13464bcc32d61b5036a4d4ee09"
        ),
    ),
    (
        "genome-wide",
        "a graph of WfCommons: 1000genome, of Pegasus, with more chromosomes",
        workflow!(
            "pegasus/1000genome/",
            "1000genome-chameleon-18ch-250k-001.json",
            "3ea2779c5c20b99150ec0634c81b5287ad11e1491f5347e8b074ff79019db8ad"
        ),
    ),
];

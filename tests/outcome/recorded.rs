//! Workloads that others have recorded. They are not in this repository: whoever runs them downloads them.

use std::fmt::Write as _;
use std::path::Path;

use rayfit_core::simulate::trace::{self, Trace};
use ring::digest::{SHA256, digest};

use super::wfformat;

/// A file to download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recording {
    /// Its name in the folder of downloads.
    pub file: &'static str,
    /// Where it is.
    pub url: &'static str,
    /// What it has to be, so that figures of the page are of the same workload.
    pub sha256: &'static str,
    /// How it is read.
    pub form: Form,
}

/// How a recording is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A workflow of WfCommons.
    WfFormat,
    /// The pods of Alibaba's cluster-trace-gpu-v2023 that were created on one day, counted from 0.
    Openb {
        /// The day.
        day: u64,
    },
}

const DAY_S: u64 = 86_400;

impl Recording {
    /// Reads it from a folder.
    ///
    /// # Errors
    ///
    /// It is not there, is another file, or cannot be read; the text says what to do.
    pub fn read(&self, folder: &Path) -> Result<Trace, String> {
        let path = folder.join(self.file);
        let shown = path.display();
        let bytes = std::fs::read(&path).map_err(|error| {
            format!(
                "{shown}: {error}: download it with\n  {}",
                self.command(folder)
            )
        })?;
        let found = hex(digest(&SHA256, &bytes).as_ref());
        if found != self.sha256 {
            return Err(format!(
                "{shown} is another file than the page is of, its SHA-256 is {found}: download it with\n  {}",
                self.command(folder)
            ));
        }
        let text = String::from_utf8(bytes).map_err(|error| format!("{shown}: {error}"))?;
        let text = match self.form {
            Form::WfFormat => {
                wfformat::lines(&text).map_err(|error| format!("{shown}: {error}"))?
            }
            Form::Openb { day } => {
                openb(&text, day).map_err(|error| format!("{shown}: {error}"))?
            }
        };
        trace::read(&text, self.file).map_err(|error| format!("{shown}: {error}"))
    }

    /// The command that downloads it.
    pub fn command(&self, folder: &Path) -> String {
        let path = folder.join(self.file);
        format!("curl -fL --create-dirs -o {} {}", path.display(), self.url)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The pods that were created on a day and ever ran, as a CSV that `rayfit trace` reads. A pod ran from
/// when it was scheduled until it was deleted. One that asks for a part of a GPU shares it.
fn openb(text: &str, day: u64) -> Result<String, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let titles = reader.headers().map_err(|error| error.to_string())?.clone();
    let mut out = "id,submit,duration,cpus,gpus,memory\n".to_owned();
    for row in reader.records() {
        let row = row.map_err(|error| error.to_string())?;
        let cell = |title: &str| {
            let column = titles.iter().position(|found| found == title);
            row.get(column?)
        };
        let number = |title: &str| -> Option<u64> { cell(title)?.parse().ok() };
        let (Some(created), Some(scheduled), Some(deleted)) = (
            number("creation_time"),
            number("scheduled_time"),
            number("deletion_time"),
        ) else {
            continue;
        };
        if created / DAY_S != day || cell("pod_phase") == Some("Pending") {
            continue;
        }
        let wanted = |title: &str| number(title).ok_or_else(|| format!("a pod has no {title}"));
        let (cpus, mebibytes) = (wanted("cpu_milli")?, wanted("memory_mib")?);
        let gpus = wanted("num_gpu")? * wanted("gpu_milli")?;
        let _ = writeln!(
            out,
            "{},{},{},{},{},{mebibytes}Mi",
            cell("name").unwrap_or_default(),
            created % DAY_S,
            deleted.saturating_sub(scheduled),
            thousandths(cpus),
            thousandths(gpus),
        );
    }
    Ok(out)
}

fn thousandths(amount: u64) -> String {
    format!("{}.{:03}", amount / 1000, amount % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_a_day_that_ran_become_jobs() {
        let text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
            before,4000,1024,1,1000,,LS,Running,86399,90000,86399\n\
            shares,3152,5600,1,810,,LS,Running,86410,86520,86420\n\
            waits,4000,1024,1,1000,,LS,Pending,86410,90000,\n\
            whole,88000,327680,8,1000,,BE,Failed,86500,86560,86500\n";
        assert_eq!(
            openb(text, 1).unwrap(),
            "id,submit,duration,cpus,gpus,memory\n\
             shares,10,100,3.152,0.810,5600Mi\n\
             whole,100,60,88.000,8.000,327680Mi\n"
        );
    }
}

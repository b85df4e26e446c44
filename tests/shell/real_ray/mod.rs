//! Real Ray processes on the loopback interface.

#![allow(unreachable_pub, missing_docs)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests are told by the environment where Ray is"
)]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use rayfit::gcs::{Address, Client, Endpoint, GcsLimits};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::process_support::PATIENCE;

/// The head's address. Not 127.0.0.1, for which Ray takes the machine's own address instead; and
/// another one in each process, as two runs on one machine would find each other's GCS.
pub static HEAD: LazyLock<String> = LazyLock::new(|| {
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("127.{}.{}.2", 64 + high % 64, low)
});

/// One Ray at a time is enough for the machine.
pub static TURN: Mutex<()> = Mutex::const_new(());

/// A Ray cluster. Its processes are ended when it is dropped.
pub struct Ray {
    bin: PathBuf,
    folder: TempDir,
    port: u16,
    variables: Vec<(String, String)>,
}

impl Ray {
    /// A head with two CPUs, started with these environment variables.
    pub fn head(variables: &[(&str, &str)]) -> Self {
        let mut ray = Self {
            bin: bin(),
            // Short: the path of a Unix socket has at most 107 bytes.
            folder: tempfile::Builder::new()
                .prefix("ray-")
                .tempdir_in("/tmp")
                .unwrap(),
            port: 0,
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        let folder = ray.folder.path().to_str().unwrap();
        let args = ["start", "--head", "--port", "0", "--temp-dir", folder];
        let node = ["--node-ip-address", &HEAD, "--num-cpus", "2"];
        let less = ["--include-dashboard=false", "--disable-usage-stats"];
        let start = [args.as_slice(), &node, &less].concat();
        let mut tries = 1;
        // Ray gives its raylet 30 s (`node.py`), which a busy machine may need and no variable changes.
        while let Err(errors) = ray.try_run(&start) {
            let is_late = errors.contains("timed out during startup");
            assert!(is_late && tries < 10, "{errors}");
            ray.kill_all();
            tries += 1;
        }
        // Ray takes a free port, and writes down which.
        let address = fs::read_to_string(ray.folder.path().join("ray_current_cluster")).unwrap();
        let (_, port) = address.trim().rsplit_once(':').unwrap();
        ray.port = port.parse().unwrap();
        ray
    }

    /// A worker node with one CPU and one of the resource `worker`.
    pub fn worker(&self, ip: &str) {
        let address = self.address().to_string();
        let args = ["start", "--address", &address, "--node-ip-address", ip];
        let size = ["--num-cpus", "1", "--resources", r#"{"worker": 1}"#];
        self.run(&[args.as_slice(), &size, &["--disable-usage-stats"]].concat());
    }

    /// Where its GCS listens.
    pub fn address(&self) -> Address {
        Address::new(HEAD.as_str(), self.port)
    }

    /// A client with the credentials that the cluster's own environment names.
    pub fn client(&self) -> Client {
        client_with(Endpoint::from_environment(self.address(), |name| self.variable(name)).unwrap())
    }

    /// What `ray ARGS` prints.
    pub fn run(&self, args: &[&str]) -> String {
        let result = self.try_run(args);
        result.unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn try_run(&self, args: &[&str]) -> Result<String, String> {
        let Output {
            status,
            stdout,
            stderr,
        } = self
            .command("timeout")
            .arg(PATIENCE.as_secs().to_string())
            .arg(self.bin.join("ray"))
            .args(args)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&stdout).into_owned();
        let errors = String::from_utf8_lossy(&stderr);
        if status.success() {
            return Ok(said);
        }
        Err(format!("ray {args:?}: {status}\n{said}{errors}"))
    }

    fn kill_all(&self) {
        // Some of them start others while they are ended.
        while let Some((pid, _)) = self.processes().first() {
            kill(*pid);
        }
    }

    /// Runs Python code as a driver of the cluster.
    pub fn driver(&self, code: &str) -> Driver {
        let child = self
            .command(self.bin.join("python"))
            .args(["-c", code])
            .env("RAY_ADDRESS", self.address().to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Driver(child)
    }

    /// Kills the GCS, and returns how to start it again where it was.
    pub fn kill_gcs(&self) -> Command {
        let (pid, line) = self
            .processes()
            .into_iter()
            .find(|(_, line)| line[0].ends_with("/gcs_server"))
            .expect("a GCS runs");
        kill(pid);
        let any = "--gcs_server_port=0";
        assert!(line.iter().any(|word| word == any), "{line:?}");
        let port = format!("--gcs_server_port={}", self.port);
        let words = line[1..]
            .iter()
            .map(|word| if word == any { &port } else { word });
        let mut command = Command::new(&line[0]);
        command.args(words).env("RAY_AUTH_MODE", "disabled");
        command.envs(self.variables.clone());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn variable(&self, name: &str) -> Option<String> {
        let found = self.variables.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone())
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let patience = PATIENCE.as_secs().to_string();
        let mut command = Command::new(program);
        // Where whoever runs the tests has a token of Ray's in their home, Ray would ask for it.
        command
            .env("RAY_AUTH_MODE", "disabled")
            .envs(self.variables.clone())
            .env("RAY_USAGE_STATS_ENABLED", "0")
            .env("RAY_gcs_server_port_wait_time_s", patience)
            .env("RAY_enable_autoscaler_v2", "1");
        command
    }

    /// Our processes, known by the temporary folder in their command lines.
    fn processes(&self) -> Vec<(Pid, Vec<String>)> {
        let ours = self.folder.path().to_str().unwrap();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries
            .filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse().ok()?;
                let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
                let words: Vec<String> = line.split_terminator('\0').map(str::to_owned).collect();
                let is_ours = words.iter().any(|word| word.contains(ours));
                Some((Pid::from_raw(pid)?, words)).filter(|_| is_ours)
            })
            .collect()
    }
}

impl Drop for Ray {
    fn drop(&mut self) {
        self.kill_all();
    }
}

pub fn client_with(endpoint: Endpoint) -> Client {
    let limits = GcsLimits {
        deadline: PATIENCE,
        ..GcsLimits::default()
    };
    Client::new(endpoint, limits)
}

/// A Python process, ended when it is dropped.
pub struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn kill(pid: Pid) {
    // One that has just ended by itself is as good.
    let _ = kill_process(pid, Signal::KILL);
    let process = Path::new("/proc").join(pid.as_raw_nonzero().to_string());
    // Until it is gone, or a zombie whose parent has yet to look.
    while fs::read_to_string(process.join("cmdline")).is_ok_and(|line| !line.is_empty()) {
        std::thread::yield_now();
    }
}

/// The folder with `ray` and its `python`.
fn bin() -> PathBuf {
    let named = std::env::var("RAYFIT_RAY").unwrap_or_else(|_| {
        panic!(
            "this test runs against real Ray 2.60.0: run it by `make test-rust`, or name the bin \
             folder of a virtual environment that has it: RAYFIT_RAY=$(scripts/ray.sh)"
        )
    });
    let bin = PathBuf::from(named);
    assert!(
        bin.join("ray").exists(),
        "there is no ray in RAYFIT_RAY={}",
        bin.display()
    );
    bin
}

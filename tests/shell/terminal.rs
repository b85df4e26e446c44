//! Commands on a terminal, with texts of strangers in all that they read: a terminal obeys none of them.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

/// Sets the title, clears the screen, writes a line of its own, turns the text around.
const OBEYED: &str = "a\u{1b}]0;owned\u{7}\u{1b}[2J\r\nforged: all is well\u{202e}";

/// What a command writes on a terminal.
fn on_terminal(arguments: &[&str]) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let program = OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let stream = |file: &File| Stdio::from(file.try_clone().unwrap());
    let mut child = Command::new(env!("CARGO_BIN_EXE_rayfit"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(stream(&program))
        .stdout(stream(&program))
        .stderr(stream(&program))
        .spawn()
        .unwrap();
    drop(program);
    let (mut written, mut part) = (Vec::new(), [0; 4096]);
    let mut terminal = File::from(terminal);
    // Once the command has ended, there is an error instead of an end.
    while let Ok(count @ 1..) = terminal.read(&mut part) {
        written.extend_from_slice(&part[..count]);
    }
    child.wait().unwrap();
    String::from_utf8(written).unwrap()
}

fn written(name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("terminal");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file
}

/// An object with the text for every name, as JSON, which is YAML too.
fn named(file: &str) -> Value {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let mut value = rayfit::yaml::read(&text).remove(0).unwrap().value;
    rename(&mut value);
    value
}

fn rename(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rename),
        Value::Object(fields) => {
            fields.values_mut().for_each(rename);
            for key in ["name", "groupName", "instanceId", "rayNodeTypeName"] {
                if let Some(name @ Value::String(_)) = fields.get_mut(key) {
                    *name = OBEYED.into();
                }
            }
            if let Some(Value::Object(bundle)) = fields.get_mut("resourcesBundle") {
                bundle.insert(OBEYED.to_owned(), json!(1));
            }
        }
        _ => {}
    }
}

#[test]
fn nothing_that_a_stranger_wrote_is_obeyed() {
    let cluster = named("examples/bad.yaml");
    let cluster = written("cluster.json", &cluster.to_string());
    let broken = written("broken.yaml", "a: \u{202e}b: c\n");
    let snapshot = written(
        "snapshot.json",
        &named("examples/snapshot.yaml").to_string(),
    );
    let header = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "Trace", "name": OBEYED});
    let job = json!({"task": "a", "name": OBEYED, "seconds": 1, "resources": {OBEYED: 1}});
    let trace = written("trace.jsonl", &format!("{header}\n{job}\n"));
    let [cluster, broken, snapshot, trace] =
        [&cluster, &broken, &snapshot, &trace].map(|file| file.to_str().unwrap());
    let good = "examples/trace.jsonl";
    for arguments in [
        &["check", cluster, broken][..],
        &["check", cluster, "-o", "github"],
        &["check", &format!("{OBEYED}.yaml")],
        &["default", cluster],
        &["default", "--diff", cluster],
        &["default", broken],
        &["plan", snapshot],
        &["trace", trace],
        &["trace", "--summary", trace],
        &["simulate", good, "--cluster", cluster],
        &["simulate", trace, "--cluster", "examples/good.yaml"],
        &["recommend", good, "--cluster", cluster],
    ] {
        let written = on_terminal(arguments);
        for obeyed in ["\u{1b}]", "\u{7}", "\u{1b}[2J", "\u{202e}", "\nforged"] {
            assert!(!written.contains(obeyed), "{arguments:?}: {written:?}");
        }
        assert!(!written.is_empty(), "{arguments:?}");
    }
}

//! `proto/` against what Ray itself has (`tests/parity/ray-messages.json`, recorded from Ray
//! 2.60.0 by `tests/parity/run.sh wire`).

use std::collections::BTreeMap;
use std::path::Path;

use protox::Compiler;
use protox::prost_reflect::{DescriptorPool, FieldDescriptor, Kind};
use serde_json::{Value, json};

fn ours() -> DescriptorPool {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let mut compiler = Compiler::new([proto]).unwrap();
    compiler.include_imports(true);
    let files = [
        "autoscaler.proto",
        "common.proto",
        "gcs.proto",
        "gcs_service.proto",
        "pubsub.proto",
    ];
    compiler.open_files(files).unwrap().descriptor_pool()
}

/// Number, type and cardinality.
fn field(field: &FieldDescriptor) -> Value {
    let kind = match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let [key, value] = [entry.map_entry_key_field(), entry.map_entry_value_field()]
                .map(|field| kind(&field.kind()));
            format!("map<{key}, {value}>")
        }
        other => kind(&other),
    };
    let count = if field.is_list() {
        "repeated"
    } else {
        "single"
    };
    json!([field.number(), kind, count])
}

fn kind(kind: &Kind) -> String {
    match kind {
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(one) => one.full_name().to_owned(),
        scalar => format!("{scalar:?}").to_lowercase(),
    }
}

/// `proto/` in the form of the recording.
fn in_words(pool: &DescriptorPool) -> BTreeMap<&'static str, BTreeMap<String, Value>> {
    let messages = pool
        .all_messages()
        .filter(|message| !message.is_map_entry())
        .map(|message| {
            let fields: BTreeMap<_, _> = message
                .fields()
                .map(|one| (one.name().to_owned(), field(&one)))
                .collect();
            (message.full_name().to_owned(), json!(fields))
        });
    let enums = pool.all_enums().map(|one| {
        let values: BTreeMap<_, _> = one
            .values()
            .map(|value| (value.name().to_owned(), value.number()))
            .collect();
        (one.full_name().to_owned(), json!(values))
    });
    let services = pool.services().map(|service| {
        let methods: BTreeMap<_, _> = service
            .methods()
            .map(|method| {
                let types = json!([method.input().full_name(), method.output().full_name()]);
                (method.name().to_owned(), types)
            })
            .collect();
        (service.full_name().to_owned(), json!(methods))
    });
    BTreeMap::from([
        ("messages", messages.collect()),
        ("enums", enums.collect()),
        ("services", services.collect()),
    ])
}

#[test]
fn wire_names_and_numbers_are_rays() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/ray-messages.json");
    let rays: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut compared = 0;
    for (kind, things) in in_words(&ours()) {
        for (name, parts) in things {
            let known = &rays[kind][&name];
            assert!(known.is_object(), "Ray has no {name}: record anew");
            for (part, ours) in parts.as_object().unwrap() {
                assert_eq!(Some(ours), known.get(part), "{name}.{part}");
                compared += 1;
            }
        }
    }
    assert!(compared > 80, "only {compared} were compared");
}

#[test]
fn wire_what_would_end_a_gcs_is_left_out() {
    for name in ["GetClusterResourceStateRequest", "AutoscalingState"] {
        let message = ours().get_message_by_name(&format!("ray.rpc.autoscaler.{name}"));
        assert_eq!(message.unwrap().get_field(1), None, "{name}");
    }
}

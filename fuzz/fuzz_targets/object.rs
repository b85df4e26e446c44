//! Any JSON as a Ray object, judged and defaulted: the patch must apply.
#![no_main]

use rayfit::facts::Facts;
use rayfit::policy::Settings;
use rayfit::ray::{Kind, RayObject};

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(text) else { return };
    let Some(root) = value.as_object() else { return };
    let settings = Settings::default();
    let operations = {
        let object = RayObject::of_kind(Kind::RayCluster, root);
        rayfit::judge::judge(&object, None, None, &Facts::default(), &settings);
        rayfit::defaults::patch(&object, None, &settings).operations
    };
    json_patch::patch(&mut value, &operations).expect("the patch applies");
});

//! Values that were written are read again as they were, and no text hurts.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::one;
use crate::yaml::*;

#[test]
fn writes_as_kubectl_prints() {
    let value = json!({
        "kind": "RayCluster",
        "empty": {}, "none": [], "null": null, "n": 1.5, "yes": "yes", "time": "12:30",
        "list": [{"a": 1, "b": ["x", ["y"], []]}, "- z", "--flag=1", "a: b", "it's"],
        "text": "one\n  two\n", "octal": "010", "json": "{\"a\": 1}", "bell": "\u{7}",
    });
    insta::assert_snapshot!(write(&value), @r#"
    kind: RayCluster
    empty: {}
    none: []
    'null': null
    'n': 1.5
    'yes': 'yes'
    time: 12:30
    list:
    - a: 1
      b:
      - x
      -
        - 'y'
      - []
    - '- z'
    - --flag=1
    - 'a: b'
    - it's
    text: |
      one
        two
    octal: '010'
    json: '{"a": 1}'
    bell: "\u0007"
    "#);
}

#[test]
fn texts_that_look_like_something_else_survive() {
    for text in [
        "a #b",
        "a:",
        "a: b",
        ":a",
        " a",
        "a ",
        "-",
        "- a",
        "---",
        "...",
        "?",
        "? a",
        "#",
        "'",
        "\"",
        "a\n b",
        "a\n\n",
        "\n",
        "\na",
        " a\nb",
        "a\n  \nb",
        "a\n\t\nb",
        "a\t",
        "x\u{85}y",
        "x\u{2028}y",
        "\u{feff}",
        "a\r\nb",
        "@a",
        "`a`",
        "%a",
        "!a",
        "&a",
        "*a",
        "{a",
        "[a",
        "|",
        ">",
        "<<",
        "=",
        "~",
        "null",
        "yes",
        "1e3",
        "0x1F",
        "1_000",
        "2001-01-01",
        ".inf",
        "-.5",
        "+1",
    ] {
        let value = json!({ text: [text, {"a": text}] });
        let written = write(&value);
        assert_eq!(one(&written), Ok(value), "{written}");
    }
    let top = json!("a\nb");
    assert_eq!(one(&write(&top)), Ok(top));
}

fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "\\PC{0,12}",
        "[-:#'\"{}\\[\\]|>&*!%@`~ \t\n\r0-9a-zA-Z.,?<=_+]{0,12}",
        prop::sample::select(vec![
            "yes",
            "1e3",
            "010",
            "null",
            "<<",
            "",
            "=",
            "0x1F",
            "...",
            "---",
            "2001-01-01"
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (any::<i32>(), 1..9_u8)
            .prop_map(|(whole, part)| json!(f64::from(whole) + f64::from(part) / 10.0)),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_as_it_was(value in values()) {
        let text = write(&value);
        prop_assert_eq!(one(&text), Ok(value), "{}", text);
    }

    #[test]
    fn json_reads_as_yaml(value in values()) {
        let text = value.to_string();
        if !text.contains('\u{7f}') {
            prop_assert_eq!(one(&text), Ok(value), "{}", text);
        }
    }

    #[test]
    fn no_text_hurts(text in "[-:#'\"{}\\[\\]|>&*!%@`~ \t\n<a1.,?]{0,40}", pointer in "(/[a-z0-9]{0,2}){0,4}") {
        for document in read(&text).into_iter().flatten() {
            let YamlPlace { span, .. } = document.place(&pointer);
            prop_assert!(text.get(span.start.offset..span.end.offset).is_some());
        }
    }
}

//! Reading and writing of whole documents.

mod round_trip;

use serde_json::json;

use super::*;

fn one(text: &str) -> Result<Value, YamlFault> {
    let mut documents = read(text);
    assert_eq!(documents.len(), 1, "{text:?}: {documents:?}");
    documents.remove(0).map(|document| document.value)
}

fn fault(text: &str) -> YamlFault {
    one(text).expect_err(text)
}

/// The text that is underlined for a pointer.
fn underlined<'a>(text: &'a str, pointer: &str) -> (&'a str, bool) {
    let document = read(text).remove(0).expect(text);
    let YamlPlace { span, exact } = document.place(pointer);
    (&text[span.start.offset..span.end.offset], exact)
}

/// Confirmed with sigs.k8s.io/yaml 1.6.0.
#[test]
fn documents_read_as_in_kubectl() {
    for (text, value) in [
        (
            "a: &x {k: 1, j: 2}\nb:\n  k: 5\n  <<: *x\n",
            json!({"a": {"k": 1, "j": 2}, "b": {"k": 1, "j": 2}}),
        ),
        (
            "a: &x {k: 1, j: 2}\nb:\n  <<: *x\n  k: 5\n",
            json!({"a": {"k": 1, "j": 2}, "b": {"k": 5, "j": 2}}),
        ),
        (
            "a: &x {k: 1}\nc: &y {k: 2, z: 1}\nb:\n  <<: [*x, *y]\n",
            json!({"a": {"k": 1}, "c": {"k": 2, "z": 1}, "b": {"k": 1, "z": 1}}),
        ),
        (
            "a: &x {<<: {c: 1}}\nb: {<<: *x}\n",
            json!({"a": {"c": 1}, "b": {"c": 1}}),
        ),
        ("\"<<\": v\n", json!({"<<": "v"})),
        ("a: <<\n", json!({"a": "<<"})),
        ("a: &x 1\nb: &x 2\nc: *x\n", json!({"a": 1, "b": 2, "c": 2})),
        ("a: &x 1\nb: {*x : 2}\n", json!({"a": 1, "b": {"1": 2}})),
        (
            "a: !!str 1\nb: !foo 1\nc: !!float 1\nd: !!timestamp 2001-01-01\n",
            json!({"a": "1", "b": "1", "c": 1, "d": "2001-01-01"}),
        ),
        ("--- # a comment\na: yes\n", json!({"a": true})),
        ("{a: 1,\n\tb: [2]}\n", json!({"a": 1, "b": [2]})),
        ("a: \"x\n y\"\nb: &x-y_1 1\n", json!({"a": "x y", "b": 1})),
        ("a: x\n  y\nc:\t1\n", json!({"a": "x y", "c": 1})),
        ("{\n\t\"a\": 1\n}\n", json!({"a": 1})),
        ("\t{\"a\": 1}\n", json!({"a": 1})),
        (
            "a: 'x\n  y'\nb: |\n  x\n   y\n\nc: >-\n  x\n  y\n\n  z\n",
            json!({"a": "x y", "b": "x\n y\n", "c": "x y\nz"}),
        ),
        ("\u{feff}a: 1\n", json!({"a": 1})),
        (
            "a: [a:b, c]\nb: {c:1}\nd:\t1\n",
            json!({"a": ["a:b", "c"], "b": {"c:1": null}, "d": 1}),
        ),
        (
            "a: ''\nb: \"\"\nc:\nd: !!str\n",
            json!({"a": "", "b": "", "c": null, "d": ""}),
        ),
        ("a: &b\n", json!({"a": null})),
        (
            "a: 1\nb: {c: 1, c: 2}\na: 3\n",
            json!({"a": 3, "b": {"c": 2}}),
        ),
        (
            "a: &x {k: 1, k: 2}\nb: {<<: *x}\n",
            json!({"a": {"k": 2}, "b": {"k": 2}}),
        ),
        ("a: \"b\nc\"\nd: 1\n", json!({"a": "b c", "d": 1})),
        (
            "a:\n- k: '{\n\n  ü: \n}'\n  l: \"x\ny\\\nz\"\n",
            json!({"a": [{"k": "{\nü: }", "l": "x yz"}]}),
        ),
    ] {
        assert_eq!(one(text).as_ref(), Ok(&value), "{text}");
    }
}

#[test]
fn what_kubectl_refuses_is_a_fault_with_its_place() {
    for (text, line, column) in [
        ("a: 1\nb: c: d\n", 2, 5),
        ("a:\n\tb: 1\n", 2, 2),
        ("a: *nope\n", 1, 4),
        ("x: 1\n~: v\n", 2, 1),
        ("[a]: 1\n", 1, 1),
        ("b:\n  <<: 3\n", 2, 7),
        ("a: &x [*x]\n", 1, 8),
        ("a: &x\n  <<: *x\n", 2, 7),
        ("a: .inf\n", 1, 4),
        ("a: !!int x\n", 1, 10),
        ("a: \u{7}\n", 1, 4),
        ("%YAML 1.1\n---\na: 1\n", 1, 1),
        ("# c\n%YAML 1.2\n---\na: 1\n", 2, 1),
        ("%TAG ! tag:x,2000:\n---\na: 1\n", 1, 1),
        ("--- {a: 1}\n", 1, 1),
        ("\ta: 1\n", 1, 1),
        ("\t# c\na: 1\n", 1, 1),
        ("a: 1\n\t\nb: 2\n", 2, 1),
        ("a: [1]\n\t# c\nb: 2\n", 2, 1),
        ("a:\n- 1\n\t\n- 2\n", 3, 1),
        ("a: 1\nb: &x.y 1\n", 2, 4),
        ("a: &ü 1\n", 1, 4),
    ] {
        let at = fault(text).at;
        assert_eq!(
            (at.line, at.column),
            (line, column),
            "{text}: {}",
            fault(text)
        );
    }
}

#[test]
fn a_template_is_called_one() {
    for (text, hint) in [
        ("a: {{ .Values.x }}\n", "render it first"),
        ("{{- if x }}\na: 1\n{{- end }}\n", "render it first"),
        ("{a: ${X}}\n", "fill it in first"),
    ] {
        assert!(fault(text).to_string().contains(hint), "{text}");
    }
    assert!(
        !fault("a: b: c")
            .to_string()
            .contains("looks like a template")
    );
}

#[test]
fn a_fault_leaves_the_documents_before_it() {
    let documents = read("a: 1\n---\nb: 1\nb: 2\n---\nd: [\n---\ne: 1\n");
    let read: Vec<bool> = documents.iter().map(Result::is_ok).collect();
    assert_eq!(read, [true, true, false]);
}

#[test]
fn a_key_that_hides_another_is_told() {
    let overwritten = |text: &str| {
        let document = read(text).remove(0).expect(text);
        let faults = document.overwritten.iter();
        faults
            .map(|fault| (fault.at.line, fault.at.column))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        overwritten("a: 1\nb: {c: 1, c: 2}\na: 3\n"),
        [(2, 11), (3, 1)]
    );
    assert_eq!(overwritten("a: {x: 1}\na: {x: 1}\n"), []);
    assert_eq!(overwritten("a: &x {k: 1, k: 2}\nb: *x\n"), [(1, 14)]);
    assert_eq!(overwritten("a: 'x\ny'\nb: 1\nb: 2\n"), [(4, 1)]);
}

#[test]
fn places_behind_a_quoted_text_at_its_keys_column() {
    let text = "a:\n  k: \"x\n  ü\ny\"\n  l: 1\nb: {c: 2}\n";
    assert_eq!(underlined(text, "/a/k"), ("\"x\n  ü\ny\"", true));
    assert_eq!(underlined(text, "/a/l"), ("1", true));
    assert_eq!(underlined(text, "/b/c"), ("2", true));
    let place = read(text).remove(0).unwrap().place("/a/k").span;
    assert_eq!((place.end.line, place.end.column), (4, 3));
    assert_eq!(fault("a: 'x\ny'\nb: [\n").at.line, 3);
}

#[test]
fn json_objects_may_follow_each_other() {
    let text = "{\"a\": 1}\n{\"b\": [\n  2]} {\"c\": \"\\u00e9\\/\"}";
    let documents: Vec<Document> = read(text).into_iter().map(Result::unwrap).collect();
    let values: Vec<&Value> = documents.iter().map(|document| &document.value).collect();
    assert_eq!(
        values,
        [&json!({"a": 1}), &json!({"b": [2]}), &json!({"c": "é/"})]
    );
    let start = documents[1].place("/b/0").span.start;
    assert_eq!(
        (start.line, start.column, &text[start.offset..=start.offset]),
        (3, 3, "2")
    );
    let start = documents[2].place("/c").span.start;
    assert_eq!((start.line, start.column), (3, 13));
}

#[test]
fn places_name_scalars_keys_and_nearest_ancestors() {
    let text = "spec:\n  groups:\n  - name: gpu\n    params: {num-cpus: \"2.5\"}\n    empty:\n";
    for (pointer, shown, exact) in [
        ("/spec/groups/0/params/num-cpus", "\"2.5\"", true),
        ("/spec/groups/0/params", "params", true),
        ("/spec/groups/0/params/num-gpus", "params", false),
        ("/spec/groups/0/name/deeper", "gpu", false),
        ("/spec/groups/1/name", "groups", false),
        ("/spec/groups/0/empty", "empty", true),
        ("/spec/groups/x", "groups", false),
        ("/spec/groups/0/absent", "name", false),
        ("/metadata", "spec", false),
    ] {
        assert_eq!(underlined(text, pointer), (shown, exact), "{pointer}");
    }
}

#[test]
fn places_follow_aliases_and_merges_to_what_is_written() {
    let text = "a: &x {k: one, j: two}\nb:\n  <<: *x\n  j: three\nc: *x\n";
    assert_eq!(underlined(text, "/b/k"), ("one", true));
    assert_eq!(underlined(text, "/b/j"), ("three", true));
    assert_eq!(underlined(text, "/c/k"), ("one", true));
    assert_eq!(underlined("ray.io~x/y: v\n", "/ray.io~0x~1y"), ("v", true));
}

#[test]
fn columns_count_characters() {
    let place = read("ü: {ä: x}\n").remove(0).unwrap().place("/ü/ä");
    assert_eq!(
        place.span.start,
        Position {
            offset: 9,
            line: 1,
            column: 8
        }
    );
}

#[test]
fn hostile_texts_are_refused() {
    let laughs = (1..20).fold("a0: &a0 [x]\n".to_owned(), |text, level| {
        let below = format!("*a{}", level - 1);
        let items = vec![below; 10].join(",");
        format!("{text}a{level}: &a{level} [{items}]\n")
    });
    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1 << 20),
        "*a,".repeat(1000)
    );
    let chain = (1..5000).fold("a0: &a0 [x]\n".to_owned(), |text, level| {
        format!("{text}a{level}: &a{level} [*a{}]\n", level - 1)
    });
    let merges = (1..40).fold("a0: &a0 {x: 1}\n".to_owned(), |text, level| {
        let below = level - 1;
        format!("{text}a{level}: &a{level} {{<<: [*a{below}, *a{below}]}}\n")
    });
    for text in [
        laughs,
        long,
        chain,
        merges,
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        " ".repeat(MAX_BYTES + 1),
    ] {
        assert!(read(&text).iter().any(Result::is_err), "{text:.60}");
    }
}

/// With time by the square of their number these would take minutes.
#[test]
fn many_lines_with_tabs_and_many_faulty_documents_are_read_in_one_go() {
    let tabs = "- 'a\n\tb'\n".repeat(100_000);
    assert_eq!(one(&tabs).unwrap().as_array().unwrap().len(), 100_000);
    assert_eq!(fault(&format!("{tabs}\t# c\n- c\n")).at.line, 200_001);
    let faulty = read(&"a: 1\n~: 2\n---\n".repeat(100_000));
    assert_eq!(faulty.iter().filter(|one| one.is_err()).count(), 100_000);
    let quoted = read(&format!("a: '{}'\n", "x\n".repeat(100_000)));
    assert!(quoted.first().is_some_and(Result::is_err));
}

#[test]
fn the_number_of_values_is_bounded_over_all_documents() {
    let text = "[1, 2]\n---\n[3, 4]\n";
    let trees = |limit| DocumentReader::new(Position::default(), text, limit, false);
    assert!(trees(6).all(|tree| tree.is_ok()));
    let read: Vec<bool> = trees(5).map(|tree| tree.is_ok()).collect();
    assert_eq!(read, [true, false]);
}

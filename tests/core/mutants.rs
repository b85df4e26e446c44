//! The faults that `scripts/mutants.py` puts into the code on purpose, to see that simulations find them.

use std::path::PathBuf;

/// A fault that is put into the code on purpose, of `mutants.txt`.
struct Mutant<'a> {
    title: &'a str,
    file: &'a str,
    before: &'a str,
    after: &'a str,
}

fn mutants(text: &str) -> impl Iterator<Item = Mutant<'_>> {
    text.trim().split("\n\n").skip(1).map(|block| {
        let lines: Vec<&str> = block.lines().collect();
        let [title, file, before, after] = lines[..] else {
            panic!("not a title, a file and two lines: {block}");
        };
        Mutant {
            title,
            file,
            before: before.strip_prefix("- ").unwrap(),
            after: after.strip_prefix("+ ").unwrap(),
        }
    })
}

/// `scripts/mutants.py` is run before a release only: what it changes must be there all the time.
#[test]
fn each_fault_that_is_put_in_on_purpose_has_its_place_in_the_code() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("tests/fixtures/simulate/mutants.txt")).unwrap();
    let mut count = 0;
    for mutant in mutants(&text) {
        count += 1;
        let code = std::fs::read_to_string(root.join(mutant.file)).unwrap();
        let times = code.matches(mutant.before).count();
        let (title, before) = (mutant.title, mutant.before);
        assert_eq!(times, 1, "{title}: in {}: {before}", mutant.file);
        assert!(mutant.after.contains("MUTANT"), "{title}");
    }
    assert!(count >= 20, "{count}");
}

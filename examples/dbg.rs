use rayfit::plan::*;
fn main() {
    for l in std::io::stdin().lines() {
        let c: serde_json::Value = serde_json::from_str(&l.unwrap()).unwrap();
        let s = serde_json::from_value(c["snapshot"].clone()).unwrap();
        let (p, r) = decide(
            &s,
            &Settings {
                strategy: Strategy::Ray,
                ..Default::default()
            },
        );
        println!("{}\n{r}", serde_json::to_string_pretty(&p).unwrap());
    }
}

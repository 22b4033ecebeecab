//! Learning from attention that was made up.

use std::path::PathBuf;
use std::{env, fs};

use half::f16;
use kvfolio::evict::{FEATURES, Mlp};

use super::recording::Recording;
use super::weights::Weights;
use super::{Judge, Train, judge, network, samples, train};

const TOKENS: usize = 320;

/// A file of this process that goes away with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = env::temp_dir().join(format!("kvf-{}-{name}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// One layer, one KV head of two query heads. All queries share their attention among tokens with long keys, one in sixteen: a
/// policy that looks at keys can keep them all.
fn recording(phase: usize) -> Vec<u8> {
    let is_long = |position: usize| (position + phase) % 16 == 3;
    let mut bytes = b"KVFATTN1".to_vec();
    for word in [1_u32, 1, 2, TOKENS as u32] {
        bytes.extend(word.to_le_bytes());
    }
    let norms = (0..TOKENS).map(|position| if is_long(position) { 9.0_f32 } else { 1.0 });
    norms.chain((0..TOKENS).map(|_| 1.0)).for_each(|norm| bytes.extend(norm.to_le_bytes()));
    for t in 0..TOKENS {
        let long = (0..=t).filter(|&position| is_long(position)).count();
        let share = |position| match long {
            0 => 2.0 / (t + 1) as f32,
            _ if is_long(position) => 2.0 / long as f32,
            _ => 0.0,
        };
        (0..=t).for_each(|position| bytes.extend(f16::from_f32(share(position)).to_le_bytes()));
    }
    bytes
}

fn ask(learn: &Scratch, other: &Scratch, out: &Scratch) -> Result<(String, String), String> {
    let options = Train { recording: learn.0.clone(), out: out.0.clone(), hidden: 8, passes: 2, seed: 7 };
    let trained = train(&options)?;
    let options = Judge { recording: other.0.clone(), weights: Some(out.0.clone()), budgets: vec![20], check: true };
    Ok((trained, judge(&options)?))
}

/// The evicted mass of a policy in the table of `kvf judge`.
fn mass(table: &str, policy: &str) -> f64 {
    let line = table.lines().find(|line| line.contains(policy)).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap()
}

#[test]
fn what_attention_goes_by_is_learned_and_holds_for_another_text() {
    let (learn, other) = (Scratch::new("learn", &recording(0)), Scratch::new("other", &recording(5)));
    let (first, second) = (Scratch::new("first", b""), Scratch::new("second", b""));
    let (_, table) = ask(&learn, &other, &first).unwrap();
    assert!(mass(&table, "learned") < 0.02, "{table}");
    assert!(mass(&table, "random-sinks") > 0.3, "{table}");

    // The same seed gives the same weights, and reading them back too.
    ask(&learn, &other, &second).unwrap();
    assert_eq!(fs::read(&first.0).unwrap(), fs::read(&second.0).unwrap());
    let again = Scratch::new("again", b"");
    Weights::read(&first.0).unwrap().write(&again.0).unwrap();
    assert_eq!(fs::read(&first.0).unwrap(), fs::read(&again.0).unwrap());
}

/// The gradient against differences of the loss.
#[test]
fn gradients_are_slopes_of_the_loss() {
    let file = Scratch::new("slopes", &recording(0));
    let samples = samples::of_layer(&Recording::read(&file.0).unwrap(), 0).unwrap();
    let plan = network::Plan { hidden: 3, passes: 1, seed: 2 };
    let (weights, _) = network::train(&samples, plan);
    for sample in samples.iter().step_by(9_973) {
        let mut gradient = vec![0.0; weights.len()];
        let miss = network::backward(&weights, plan.hidden, sample, &mut gradient);
        // What is trained is what the library evaluates.
        let mlp = Mlp::new(Mlp::VERSION, FEATURES, plan.hidden as u32, &weights).unwrap();
        let score = mlp.score(sample.features);
        assert!((miss + sample.target - score).abs() < 1e-4 * (1.0 + score.abs()));
        for at in 16..weights.len() {
            let loss = |by: f32| {
                let mut moved = weights.clone();
                moved[at] += by;
                let miss = f64::from(network::backward(&moved, plan.hidden, sample, &mut vec![0.0; weights.len()]));
                miss * miss / 2.0
            };
            let slope = (loss(1e-2) - loss(-1e-2)) / 2e-2;
            assert!((slope - f64::from(gradient[at])).abs() < 1e-2 * (1.0 + slope.abs()), "{at}: {slope} {gradient:?}");
        }
    }
}

#[test]
fn files_that_are_not_whole_are_refused() {
    let whole = recording(0);
    for (name, bytes) in
        [("short", &whole[..whole.len() - 1]), ("header", &whole[..20]), ("other", b"KVFATTN2 and so on")]
    {
        let file = Scratch::new(name, bytes);
        assert!(Recording::read(&file.0).is_err(), "{name}");
    }
    let mut huge = whole;
    huge[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(Recording::read(&Scratch::new("huge", &huge).0).is_err());

    let good = format!("kvf-evict-mlp 1 8 1 1\n{}", "1 ".repeat(27));
    assert!(Weights::read(&Scratch::new("good", good.as_bytes()).0).is_ok());
    for (name, text) in [
        ("none", String::new()),
        ("word", good.replace("mlp", "mlq")),
        ("version", good.replace("mlp 1", "mlp 2")),
        ("features", good.replace("1 8 1", "1 9 1")),
        ("hidden", good.replace("1 8 1", "1 8 99")),
        ("few", good.replacen("1 1 1 ", "1 1 ", 1)),
        ("many", good.clone() + " 1"),
        ("text", good.clone() + " x"),
        ("infinite", good.replacen("\n1 1", "\n1 inf", 1)),
        ("deviation", format!("kvf-evict-mlp 1 8 1 1\n{}", "0 ".repeat(27))),
    ] {
        assert!(Weights::read(&Scratch::new(name, text.as_bytes()).0).is_err(), "{name}");
    }
}

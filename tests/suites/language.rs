//! Text and bytes say the same.

use kvfolio_tests::rng::Rng;
use kvfolio_tests::{bytes, text};

#[test]
fn every_byte_string_is_a_program_and_has_a_text_form() {
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let len = rng.below(400) as usize;
        let (spec, ops) = bytes::decode(&rng.bytes(len));
        assert!(spec.is_valid(), "seed {seed}: {spec:?}");
        let source = text::print_program("random", &spec, &ops);
        let cases = text::parse(&source).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{source}"));
        let [case] = cases.as_slice() else { panic!("seed {seed}: one case") };
        assert_eq!(case.spec, spec, "seed {seed}\n{source}");
        let back: Vec<_> = case.steps.iter().filter_map(|step| step.op.clone()).collect();
        assert_eq!(back, ops, "seed {seed}\n{source}");
    }
}

#[test]
fn bytes_survive_a_round_trip() {
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let len = rng.below(400) as usize;
        let (spec, ops) = bytes::decode(&rng.bytes(len));
        // Varints may carry more than the byte form can write back (more than 255 runs, say).
        if let Some(wire) = bytes::encode(&spec, &ops) {
            assert_eq!(bytes::decode(&wire), (spec, ops), "seed {seed}");
        }
    }
}

#[test]
fn an_empty_string_and_one_byte_are_programs() {
    for wire in [&[][..], &[0], &[255], &[1]] {
        let (spec, ops) = bytes::decode(wire);
        assert!(spec.is_valid());
        assert!(ops.is_empty());
    }
}

#[test]
fn a_bad_line_is_named() {
    for (source, line) in [("OPEN A", 1), ("CASE x\nP4 N4\nJUMP A", 3), ("CASE x\nP4 N4\nREPEAT 2\nOPEN A", 3)] {
        let error = text::parse(source).expect_err("refused");
        assert_eq!(error.line, line, "{source}: {error}");
    }
}

#[test]
fn version_1_is_still_read() {
    for seed in 0..200 {
        let body = Rng::new(seed).bytes(60);
        let (old, _) = bytes::decode(&[&[1], &body[..]].concat());
        assert!(old.is_valid() && old.groups.iter().all(|group| !group.contiguous), "seed {seed}: {old:?}");
    }
    // One full group per version; the byte behind `exact` is the flag, or the number of namespaces less one.
    let body = [0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 1];
    let [old, new] = [1, 2].map(|version| bytes::decode(&[&[version], &body[..]].concat()).0);
    assert_eq!((old.groups[0].contiguous, new.groups[0].contiguous), (false, true));
    assert_eq!((old.groups[0].page_tokens, old.pools[0].pages), (4, 8));
}

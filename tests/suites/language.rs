//! Text and bytes say the same.

use kvfolio_tests::case::{self, Verdict};
use kvfolio_tests::op::Op;
use kvfolio_tests::rng::Rng;
use kvfolio_tests::spec::Spec;
use kvfolio_tests::{bytes, drivers, shrink, stream, text};

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
fn a_failing_program_is_shortened_to_what_its_failure_needs() {
    let (spec, ops) = stream::guided_program(3, None, 300);
    let fails = |_: &Spec, ops: &[Op]| {
        let fork = ops.iter().position(|op| matches!(op, Op::Fork { .. }))?;
        ops[fork..].iter().any(|op| matches!(op, Op::Close { .. })).then(|| format!("a fork at {fork} and a close"))
    };
    let (message, _, short) = shrink::shorten(&spec, &ops, &fails, 2_000).expect("it fails");
    assert!(matches!(short.as_slice(), [Op::Fork { .. }, Op::Close { .. }]), "{message}: {short:?}");
    assert!(shrink::shorten(&spec, &[Op::Check], &fails, 2_000).is_none());
}

#[test]
fn a_watched_case_tells_every_op_up_to_the_one_that_fails() {
    let cases = text::parse("CASE x\nP4 N4\nOPEN A\nAPPEND A 0..4\nMARK m\nCLOSE A\nEVICT 1 => freed 2\nDRAIN\n");
    let mut told = Vec::new();
    let verdict = case::run_caught(&cases.expect("parses")[0], &drivers::all, &mut |done| {
        told.push((done.nth, done.status.is_some()));
    });
    assert!(matches!(verdict, Verdict::Failed(message) if message.contains("line 7")));
    assert_eq!(told, [(0, true), (1, true), (2, true), (3, false)]);
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

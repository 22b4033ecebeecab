//! Any bytes as a scenario: the model, the Rust API and the C ABI in lock step, device memory read back, everything compared.
#![no_main]

use kvfolio_tests::{bytes, drivers, stream, text};
use libfuzzer_sys::{Corpus, fuzz_target};

/// Ops of one input: the comparison after each op is thorough, and long inputs teach a fuzzer little.
const MOST_OPS: usize = 200;

fuzz_target!(|data: &[u8]| -> Corpus {
    let (mut spec, mut ops) = bytes::decode(data);
    stream::bound(&mut spec, &mut ops);
    ops.truncate(MOST_OPS);
    if let Err(failure) = stream::run(&spec, &ops, &drivers::all, 1) {
        panic!("op {}: {}\n{}", failure.op, failure.message, text::print_program("found", &spec, &ops));
    }
    Corpus::Keep
});

//! The byte form of scenarios: every byte string is a valid program.
//!
//! One `visit` function per type serves both directions: the writer reads the fields, the reader sets
//! them. A number with a small base takes one byte (`b mod base`); bytes of 0xF0 and above announce a
//! varint, clamped to the field's limit, so that any scenario can be written. Past the end all bytes
//! are 0. Layout and limits: `GRAMMAR.md`.

mod kinds;
mod ops;
mod spec;
mod wire;

use crate::op::Op;
use crate::spec::Spec;

/// The newest version; a first byte that names no version means it.
pub const VERSION: u8 = 4;

/// Reads a program. Total.
pub fn decode(bytes: &[u8]) -> (Spec, Vec<Op>) {
    let body = bytes.get(1..).unwrap_or_default();
    let mut reader = wire::Reader::new(body);
    let version = bytes.first().copied().filter(|version| (1..VERSION).contains(version)).unwrap_or(VERSION);
    let spec = spec::read(&mut reader, version);
    let mut ops = Vec::new();
    while !reader.is_empty() {
        ops.push(ops::read(&mut reader, &spec, version));
    }
    (spec, ops)
}

/// Reads ops only, for a configuration that is given.
pub fn decode_ops(bytes: &[u8], spec: &Spec) -> Vec<Op> {
    let mut reader = wire::Reader::new(bytes);
    let mut ops = Vec::new();
    while !reader.is_empty() {
        ops.push(ops::read(&mut reader, spec, VERSION));
    }
    ops
}

/// Writes a program; `None` when a value is beyond the byte form's limits.
pub fn encode(spec: &Spec, ops: &[Op]) -> Option<Vec<u8>> {
    let mut writer = wire::Writer::new(VERSION);
    spec::write(&mut writer, spec);
    for op in ops {
        ops::write(&mut writer, op, spec);
    }
    let bytes = writer.finish();
    let (spec_back, ops_back) = decode(&bytes);
    (spec_back == *spec && ops_back == ops).then_some(bytes)
}

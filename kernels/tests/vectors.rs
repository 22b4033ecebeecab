//! The golden vectors of the core's codecs, `quant.json`, through the C functions: as rows and as pages, in every instruction set.
//!
//! What C has no form for, and the core's own test covers: codes that fill no whole byte (the last two of `pack`); E5M2, E4M3FNUZ
//! and MXFP4 as rows, but pages have them; `hadamard` as rows, likewise; `splitmix64_seed_0`, since the seed 0 of a layout means
//! no signs; `split_half`, an order of 8 and 8 codes, where blocks of q4_0, which are of 32 elements, have 16 and 16.

use half::f16;
use kvfolio::layout::{
    Axis, ElementCode, PageLayout, PageLayoutSpec, Rotation, RowAddress, ScaleMode, Tensor, TensorFormat,
};
use kvfolio_kernels::capi::*;
use serde_json::Value;

/// Best, portable, AVX2: `KVF_KERNEL_ISA_*`.
const ISAS: [u32; 3] = [0, 1, 2];
const F32: u32 = 1;
const REJECT: u32 = 0;
const SANITISE: u32 = 1;

fn vectors(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../../cache-core/tests/vectors/quant.json")).expect("JSON");
    let list = all[name].as_array().unwrap_or_else(|| panic!("no list {name}"));
    assert!(!list.is_empty());
    list.clone()
}

fn number(x: &Value) -> f32 {
    match x {
        Value::String(name) if name == "nan" => f32::from_bits(0x7fc0_0000),
        Value::String(name) if name == "-nan" => f32::from_bits(0xffc0_0000),
        Value::String(name) => name.parse().unwrap(),
        number => number.as_f64().unwrap() as f32,
    }
}

fn numbers(vector: &Value, name: &str) -> Vec<f32> {
    vector[name].as_array().unwrap().iter().map(number).collect()
}

fn codes(vector: &Value) -> Vec<u8> {
    vector["codes"].as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u8).collect()
}

fn hex(vector: &Value, name: &str) -> u16 {
    u16::from_str_radix(vector[name].as_str().unwrap(), 16).unwrap()
}

fn bytes(vector: &Value) -> Vec<u8> {
    let hex = vector["bytes"].as_str().unwrap();
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

fn bits(vector: &Value) -> u32 {
    vector["bits"].as_u64().unwrap() as u32
}

fn element(bits: u32) -> ElementCode {
    match bits {
        8 => ElementCode::INT8,
        4 => ElementCode::INT4,
        _ => ElementCode::INT2,
    }
}

/// The first code in the lowest bits.
fn packed(bits: u32, codes: &[u8]) -> Vec<u8> {
    let byte = |codes: &[u8]| codes.iter().rev().fold(0_u32, |byte, &code| byte << bits | u32::from(code)) as u8;
    codes.chunks(8 / bits as usize).map(byte).collect()
}

/// `n` of them, over and over.
fn repeated<T: Copy>(of: &[T], n: usize) -> Vec<T> {
    of.iter().copied().cycle().take(n).collect()
}

fn as_bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// What `kvf_cpu_quantize` makes of one row or block of rows, in room that is larger than it needs.
#[derive(Debug, PartialEq)]
struct Encoded {
    status: i32,
    report: [u64; 2],
    codes: Vec<u8>,
    scales: Vec<u16>,
    zeros: Vec<u16>,
}

/// Rows of `element`, along channels (`axis` 1) or tokens (2), at addresses of `to`.
fn rows(
    element: ElementCode,
    axis: Axis,
    group: u32,
    (tokens, dim): (usize, usize),
    to: &mut Encoded,
) -> kvf_kernel_rows {
    kvf_kernel_rows {
        struct_size: size_of::<kvf_kernel_rows>() as u32,
        element: element.get(),
        axis: axis.get(),
        group,
        dim: dim as u32,
        isa: 0,
        on_non_finite: REJECT,
        scale: 1.0,
        tokens: tokens as u64,
        codes: to.codes.as_mut_ptr(),
        scales: to.scales.as_mut_ptr().cast(),
        zeros: to.zeros.as_mut_ptr().cast(),
    }
}

/// Encodes and decodes in one instruction set.
fn through_c(
    (element, axis, group): (ElementCode, Axis, u32),
    (isa, on_non_finite): (u32, u32),
    dim: usize,
    x: &[f32],
) -> (Encoded, Vec<f32>) {
    let mut to = Encoded {
        status: 0,
        report: [9; 2],
        codes: vec![0xa5; x.len() * 2],
        scales: vec![9; x.len()],
        zeros: vec![9; x.len()],
    };
    let shape = (x.len() / dim, dim);
    let rows = kvf_kernel_rows { isa, on_non_finite, ..rows(element, axis, group, shape, &mut to) };
    let mut out = vec![7.0_f32; x.len()];
    // SAFETY: the arrays have at least what the rows say.
    unsafe {
        to.status = kvf_cpu_quantize(&rows, F32, x.as_ptr().cast(), to.report.as_mut_ptr());
        if to.status == 0 {
            assert_eq!(kvf_cpu_dequantize(&rows, F32, out.as_mut_ptr().cast()), 0);
        }
    }
    (to, out)
}

#[test]
fn integers_as_rows() {
    for vector in vectors("int") {
        let (bits, x, codes) = (bits(&vector), numbers(&vector, "x"), codes(&vector));
        let (zero, scale) = (hex(&vector, "zero"), hex(&vector, "scale"));
        let value = |code: u8| f32::from(code) * f16::from_bits(scale).to_f32() + f16::from_bits(zero).to_f32();
        // As it is, which is too short for vectors, and over and over, as groups of many sizes.
        for (axis, group, dim, tokens) in [
            (Axis::TOKEN, 0, x.len(), 1),
            (Axis::TOKEN, 0, x.len(), 5),
            (Axis::TOKEN, 16, 64, 3),
            (Axis::TOKEN, 32, 96, 9),
            (Axis::TOKEN, 0, 128, 2),
            (Axis::CHANNEL, 16, 24, 32),
            (Axis::CHANNEL, 32, 64, 64),
        ] {
            let n = dim * tokens;
            let channel = axis == Axis::CHANNEL;
            // Along tokens each channel holds the vector.
            let index = |i: usize| if channel { i / dim % x.len() } else { i % dim % x.len() };
            let all: Vec<f32> = (0..n).map(|i| x[index(i)]).collect();
            let groups = n / if group == 0 { dim } else { group as usize };
            for isa in ISAS {
                let (is, out) = through_c((element(bits), axis, group), (isa, REJECT), dim, &all);
                let what = format!("{vector} {axis:?} {group} {dim} isa {isa}");
                assert_eq!((is.status, is.report), (0, [0; 2]), "{what}");
                assert_eq!(is.scales[..groups], vec![scale; groups], "{what}");
                assert_eq!(is.zeros[..groups], vec![zero; groups], "{what}");
                // Codes of a group are consecutive, and a group is the vector over and over, along either axis.
                let want = packed(bits, &repeated(&codes, n));
                assert_eq!(is.codes[..want.len()], want, "{what}");
                assert!(is.codes[want.len()..].iter().all(|&byte| byte == 0xa5), "{what}");
                let want: Vec<f32> = (0..n).map(|i| value(codes[index(i)])).collect();
                assert_eq!(as_bits(&out), as_bits(&want), "{what}");
            }
        }
    }
}

/// Codes under the scale 1 and the zero 0 are the values.
#[test]
fn packing() {
    let mut found = 0;
    for vector in vectors("pack") {
        let (bits, codes, want) = (bits(&vector), codes(&vector), bytes(&vector));
        if codes.len() != 16 {
            continue;
        }
        found += 1;
        let x: Vec<f32> = codes.iter().map(|&code| f32::from(code)).collect();
        for (axis, group, dim, tokens) in
            [(Axis::TOKEN, 0, 16, 1), (Axis::TOKEN, 16, 64, 2), (Axis::CHANNEL, 16, 8, 16)]
        {
            let n = dim * tokens;
            let all: Vec<f32> = (0..n).map(|i| x[if axis == Axis::CHANNEL { i / dim } else { i } % 16]).collect();
            for isa in ISAS {
                let (is, out) = through_c((element(bits), axis, group), (isa, REJECT), dim, &all);
                assert_eq!((is.status, is.scales[0], is.zeros[0]), (0, 0x3c00, 0));
                assert_eq!(
                    is.codes[..n * bits as usize / 8],
                    repeated(&want, n * bits as usize / 8),
                    "{vector} isa {isa}"
                );
                assert_eq!(out, all);
            }
        }
    }
    assert_eq!(found, 2);
}

#[test]
fn fp8_as_rows() {
    let format = (ElementCode::FP8_E4M3FN, Axis::NONE, 0);
    for vector in vectors("fp8").iter().filter(|vector| vector["kind"] == "e4m3fn") {
        let (x, code) = (number(&vector["x"]), hex(vector, "code") as u8);
        for isa in ISAS {
            for n in [3, 64] {
                // What is not finite is refused, unless it is asked for: then it is the code of the vector too.
                let (is, out) = through_c(format, (isa, SANITISE), n, &vec![x; n]);
                assert_eq!((is.status, &is.codes[..n]), (0, &vec![code; n][..]), "{vector} isa {isa}");
                assert!(x.is_nan() || out.iter().all(|out| (out - x.clamp(-448.0, 448.0)).abs() <= 16.0), "{vector}");
                let (is, _) = through_c(format, (isa, REJECT), n, &vec![x; n]);
                assert_eq!(is.status != 0, !x.is_finite(), "{vector} isa {isa}");
            }
        }
    }
}

#[test]
fn blocks_as_rows() {
    for (name, code) in [("q4_0", ElementCode::Q4_0), ("q8_0", ElementCode::Q8_0)] {
        for vector in vectors(name) {
            let (x, want) = (numbers(&vector, "x"), bytes(&vector));
            // One block, and as many as fill vectors of groups with some left.
            for blocks in [1, 2, 8, 9, 70] {
                for isa in ISAS {
                    let (is, _) = through_c((code, Axis::NONE, 0), (isa, REJECT), 32, &repeated(&x, 32 * blocks));
                    assert_eq!((is.status, is.report), (0, [0; 2]));
                    assert_eq!(
                        is.codes[..want.len() * blocks],
                        repeated(&want, want.len() * blocks),
                        "{name} isa {isa}"
                    );
                }
            }
        }
    }
}

/// A page of one head, after the NULL page.
struct Page {
    memory: Vec<u128>,
    /// Where its first row or block is, counted from the NULL page.
    row: RowAddress,
    /// All its rows, decoded.
    read: Vec<f32>,
}

impl Page {
    fn byte(&self, at: u64, n: usize) -> &[u8] {
        // SAFETY: any bits are bytes.
        let (_, bytes, _) = unsafe { self.memory.align_to::<u8>() };
        &bytes[at as usize..][..n]
    }

    fn word(&self, at: u64) -> u16 {
        u16::from_le_bytes([self.byte(at, 2)[0], self.byte(at, 2)[1]])
    }
}

const P: u32 = 16;

/// Rows through `kvf_cpu_quant_seal` or `kvf_cpu_quant_append`, and back through `kvf_cpu_quant_gather`.
fn page(spec: PageLayoutSpec, isa: u32, on_non_finite: u32, x: &[f32], seals: bool) -> Page {
    let layout = PageLayout::new(&PageLayoutSpec { page_tokens: P, ..spec }).unwrap();
    let dim = layout.k.dim as usize;
    assert_eq!(x.len(), dim * P as usize);
    let mut memory = vec![u128::MAX; layout.page_bytes as usize * 2 / 16];
    let scales = vec![1.0_f32; layout.k.static_scales as usize];
    let pages = kvf_kernel_quant {
        struct_size: size_of::<kvf_kernel_quant>() as u32,
        n_pages: 1,
        layout: (&raw const layout).cast(),
        base: memory.as_mut_ptr().cast(),
        layer: 0,
        isa,
        k_scales: scales.as_ptr(),
        v_scales: scales.as_ptr(),
    };
    let (mut k, mut v) = (repeated(x, x.len() * 2), x.to_vec());
    let exact = kvf_kernel_pages {
        struct_size: size_of::<kvf_kernel_pages>() as u32,
        dtype: F32,
        page_tokens: P,
        n_pages: 1,
        kv_heads: 1,
        head_dim: dim as u32,
        k: k.as_mut_ptr().cast(),
        v: k.as_mut_ptr().cast(),
        k_page_stride: x.len() as u64 * 4,
        k_token_stride: dim as u64 * 4,
        k_head_stride: dim as u64 * 4,
        v_page_stride: 0,
        v_token_stride: 0,
        v_head_stride: 0,
    };
    let slots: Vec<i64> = (i64::from(P)..i64::from(2 * P)).collect();
    let seal = kvfolio_kernels::quant::Seal { source: 1, target: 1 };
    let entries = [1_i32];
    let table = kvf_kernel_table {
        struct_size: size_of::<kvf_kernel_table>() as u32,
        rows: 1,
        stride: 1,
        reserved: 0,
        entries: entries.as_ptr(),
    };
    let mut floats = 0;
    // SAFETY: the arrays have the sizes that the structs say.
    unsafe {
        assert_eq!(kvf_cpu_quant_scratch(pages.layout, &raw mut floats), 0);
        let mut scratch = vec![0.0_f32; floats as usize];
        let status = if seals {
            kvf_cpu_quant_seal(&exact, &pages, on_non_finite, &seal, 1, scratch.as_mut_ptr(), floats)
        } else {
            let x = x.as_ptr();
            kvf_cpu_quant_append(&pages, on_non_finite, x, x, slots.as_ptr(), P, scratch.as_mut_ptr(), floats)
        };
        assert_eq!(status, 0, "{:?}", spec.k);
        let (to_k, to_v, scratch) = (k.as_mut_ptr(), v.as_mut_ptr(), scratch.as_mut_ptr());
        let status = kvf_cpu_quant_gather(&pages, &table, 0, 0, P, to_k, to_v, scratch, floats);
        assert_eq!(status, 0, "{:?}", spec.k);
    }
    assert_eq!(as_bits(&k[..x.len()]), as_bits(&v), "keys and values");
    let row = layout.row(0, Tensor::K, 0, 0).unwrap();
    let row = RowAddress { codes: row.codes + layout.page_bytes, scales: row.scales + layout.page_bytes, ..row };
    let row = RowAddress { zeros: row.zeros + layout.page_bytes, ..row };
    Page { memory, row, read: v }
}

fn spec(dim: usize, format: TensorFormat) -> PageLayoutSpec {
    PageLayoutSpec::new(1, 1, dim as u32, format)
}

/// `check` of a page of such rows, or of such channels where groups lie along tokens, in every instruction set and way of writing.
fn each_page(spec: PageLayoutSpec, on_non_finite: u32, row: &[f32], check: impl Fn(&Page, &str)) {
    let is_channel = spec.k.axis == Axis::CHANNEL;
    let x = if is_channel {
        (0..P as usize * row.len()).map(|i| row[i / row.len() % row.len()]).collect()
    } else {
        repeated(row, P as usize * row.len())
    };
    for isa in ISAS {
        for seals in [true, false] {
            if seals || !is_channel {
                check(&page(spec, isa, on_non_finite, &x, seals), &format!("{:?} isa {isa} seals {seals}", spec.k));
            }
        }
    }
}

#[test]
fn integers_in_pages() {
    for vector in vectors("int") {
        let (bits, x, codes) = (bits(&vector), numbers(&vector, "x"), codes(&vector));
        let row = repeated(&x, 16);
        let want = packed(bits, &repeated(&codes, 16));
        let (zero, scale) = (hex(&vector, "zero"), hex(&vector, "scale"));
        let value = |i: usize| {
            f32::from(codes[i % codes.len()]) * f16::from_bits(scale).to_f32() + f16::from_bits(zero).to_f32()
        };
        for format in [TensorFormat::per_token(element(bits), 16), TensorFormat::per_channel(element(bits), 16)] {
            each_page(spec(16, format), REJECT, &row, |page, what| {
                // The first row, or the first channel: either is the vector, over and over.
                assert_eq!(page.byte(page.row.codes, want.len()), want, "{vector} {what}");
                assert_eq!((page.word(page.row.scales), page.word(page.row.zeros)), (scale, zero), "{vector} {what}");
                let is_channel = format.axis == Axis::CHANNEL;
                let read: Vec<f32> =
                    page.read.iter().copied().step_by(if is_channel { 16 } else { 1 }).take(16).collect();
                assert_eq!(as_bits(&read), as_bits(&(0..16).map(value).collect::<Vec<_>>()), "{vector} {what}");
            });
        }
    }
}

#[test]
fn fp8_in_pages() {
    for vector in vectors("fp8") {
        let kind = match vector["kind"].as_str().unwrap() {
            "e4m3fn" => ElementCode::FP8_E4M3FN,
            "e5m2" => ElementCode::FP8_E5M2,
            _ => ElementCode::FP8_E4M3FNUZ,
        };
        let (x, code) = (number(&vector["x"]), hex(&vector, "code") as u8);
        let on = if x.is_finite() { REJECT } else { SANITISE };
        each_page(spec(32, TensorFormat::fp8(kind, ScaleMode::TENSOR)), on, &[x; 32], |page, what| {
            assert_eq!(page.byte(page.row.codes, 32), [code; 32], "{vector} {what}");
        });
    }
}

#[test]
fn blocks_in_pages() {
    for (name, format) in [("q4_0", TensorFormat::Q4_0), ("q8_0", TensorFormat::Q8_0)] {
        for vector in vectors(name) {
            let want = bytes(&vector);
            each_page(spec(32, format), REJECT, &numbers(&vector, "x"), |page, what| {
                assert_eq!(page.byte(page.row.codes, want.len()), want, "{name} {what}");
            });
        }
    }
    for vector in vectors("mxfp4") {
        let want = bytes(&vector);
        each_page(spec(32, TensorFormat::MXFP4), REJECT, &numbers(&vector, "x"), |page, what| {
            assert_eq!(page.byte(page.row.codes, want.len()), want, "{what}");
            assert_eq!(u64::from(page.byte(page.row.scales, 1)[0]), vector["scale"].as_u64().unwrap(), "{what}");
        });
    }
}

#[test]
fn rotation_in_pages() {
    for vector in vectors("hadamard") {
        let (x, times_root) = (numbers(&vector, "x"), numbers(&vector, "times_root"));
        let norm = (1.0 / (x.len() as f64).sqrt()) as f32;
        let spec = PageLayoutSpec {
            rotation: Rotation::HADAMARD,
            rotation_size: x.len() as u32,
            rotation_parts: PageLayoutSpec::ROTATE_K | PageLayoutSpec::ROTATE_V,
            ..spec(x.len(), TensorFormat::F32)
        };
        each_page(spec, REJECT, &x, |page, what| {
            let stored = page.byte(page.row.codes, x.len() * 4).as_chunks().0.iter().map(|x| f32::from_le_bytes(*x));
            let want = times_root.iter().map(|x| x * norm);
            assert_eq!(stored.collect::<Vec<_>>(), want.collect::<Vec<_>>(), "{what}");
        });
    }
}

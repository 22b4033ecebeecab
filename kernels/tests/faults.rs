//! Faults that other libraries have had in kernels over quantised pages. The numbers are those of a list of public reports that is
//! not in this repository; `cache-core/tests/quant/faults.rs` has those of codecs.

mod support;

use core::ffi::c_void;

use kvfolio::layout::{ElementCode, PageLayout, PageLayoutSpec, ScaleMode, TensorFormat};
use kvfolio::quant::NonFinite;
use kvfolio_kernels::Error;
use kvfolio_kernels::capi::kvf_cpu_quant_scratch;
use kvfolio_kernels::cpu::{AttentionParams, Isa, PageCopy, RawQueries, RawTable, RawWork};
use kvfolio_kernels::quant::{
    RawSplit, Seal, append_quant_raw, attention_quant_raw, attention_quant_scratch, copy_quant_raw, gather_quant_raw,
    seal_raw,
};
use support::Random;
use support::pools::{GROUP, HEADS, P, Pools, TOKENS, formats, id};

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// 30: another version of a library read what this one had described. A descriptor that differs in any word is refused by every
/// kernel, before anything is read or written.
#[test]
fn f30_other_descriptors_are_refused() {
    let spec = PageLayoutSpec::new(1, HEADS, 64, TensorFormat::per_token(ElementCode::INT4, 32));
    let mut pools = Pools::new(spec);
    pools.seal(Isa::Auto, 0..5).unwrap();
    let before = pools.quant.clone();
    let good = pools.layout;
    for (what, layout) in [
        ("version", PageLayout { version: PageLayout::VERSION + 1, ..good }),
        ("an older version", PageLayout { version: 0, ..good }),
        ("id", PageLayout { id: good.id ^ 1, ..good }),
        ("size", PageLayout { struct_size: good.struct_size - 4, ..good }),
        ("bytes of a page", PageLayout { page_bytes: good.page_bytes + 16, ..good }),
        ("flags", PageLayout { flags: good.flags ^ PageLayout::LOSSY, ..good }),
    ] {
        let exact = pools.exact();
        let quant = Pools::quant(&layout, 0, &[], &mut pools.quant);
        let (mut k, mut v) = (vec![7.0_f32; 64 * 4], vec![7.0_f32; 64 * 4]);
        let mut scratch = vec![0.0_f32; 1 << 14];
        let room = (scratch.as_mut_ptr(), scratch.len() as u64);
        let (slots, entries) = ([i64::from(P)], [1_i32]);
        let table = RawTable { entries: entries.as_ptr(), rows: 1, stride: 1 };
        let params = AttentionParams { heads: HEADS, ..AttentionParams::default() };
        let (q, mut out) = (vec![1.0_f32; 64 * HEADS as usize], vec![7.0_f32; 64 * HEADS as usize]);
        let queries = RawQueries {
            n: 1,
            q: q.as_ptr(),
            positions: [0].as_ptr(),
            table_rows: core::ptr::null(),
            out: out.as_mut_ptr(),
            lse: core::ptr::null_mut(),
        };
        let work = RawWork { rows: (0, 1), heads: (0, HEADS), scratch: room.0, scratch_floats: room.1 };
        let split = RawSplit { begin: core::ptr::null(), end: core::ptr::null() };
        let (seal, copy) = (Seal { source: 1, target: 1 }, PageCopy { src: 1, dst: 2, tokens: 1 });
        let on = NonFinite::Reject;
        let mut floats = 9;
        // SAFETY: all arrays have the sizes that the good layout says.
        let statuses = unsafe {
            assert_ne!(kvf_cpu_quant_scratch(core::ptr::from_ref(&layout).cast::<c_void>(), &raw mut floats), 0);
            [
                append_quant_raw(&quant, Isa::Auto, on, q.as_ptr(), q.as_ptr(), slots.as_ptr(), 1, room),
                seal_raw(&exact, &quant, Isa::Auto, on, &raw const seal, 1, room),
                copy_quant_raw(&quant, &raw const copy, 1),
                gather_quant_raw(&quant, Isa::Auto, &table, 0, (0, 1), k.as_mut_ptr(), v.as_mut_ptr(), room),
                attention_quant_scratch(&quant, &params, 9).map(|_| ()),
                attention_quant_raw(None, &quant, &split, &table, &params, &queries, &work),
            ]
        };
        assert_eq!(statuses, [Err(Error::Layout); 6], "{what}");
        assert!(floats == 9 && k.iter().chain(&v).chain(&out).all(|&x| x == 7.0), "{what}");
    }
    assert!(pools.quant == before);
}

/// 39: kernels that were right for some pairs of types of keys and values, and gave nonsense for others. Every pair, and every
/// format with heads of other lengths, against the exact kernel over decoded values.
#[test]
fn f39_every_pair_of_types() {
    let check = |spec: PageLayoutSpec, isa| {
        let params = AttentionParams { heads: HEADS * GROUP, isa, ..AttentionParams::default() };
        let mut pools = Pools::new(spec);
        pools.seal(isa, 0..4).unwrap();
        let is = pools.attend(&params, Some((0, 4)));
        assert!(
            is == pools.decoded(isa, 0..4).attend(&params, None),
            "{:?} {:?} {} {isa:?}",
            spec.k,
            spec.v,
            spec.k_dim
        );
        assert!(is.iter().all(|&bits| f32::from_bits(bits).is_finite()), "{:?} {:?}", spec.k, spec.v);
    };
    for (nth, k) in formats().into_iter().enumerate() {
        for (other, v) in formats().into_iter().enumerate() {
            let isa = if (nth + other) % 2 == 0 { Isa::Auto } else { Isa::Portable };
            check(PageLayoutSpec { v, ..PageLayoutSpec::new(1, HEADS, 64, k) }, isa);
        }
        for dim in [32, 96, 128, 256] {
            check(PageLayoutSpec::new(1, HEADS, dim, k), Isa::Auto);
        }
    }
}

/// 40: what was recorded once and run again read old addresses or old contents. Structs made once, with all that they point to
/// changing between calls and a scratch that is left as it was, give what structs made anew give.
#[test]
fn f40_a_call_keeps_nothing_for_the_next() {
    for format in [
        TensorFormat::fp8(ElementCode::FP8_E4M3FN, ScaleMode::TOKEN_HEAD),
        TensorFormat::per_channel(ElementCode::INT4, 32),
        TensorFormat::Q8_0,
    ] {
        let mut pools = Pools::new(PageLayoutSpec::new(1, HEADS, 64, format));
        pools.seal(Isa::Auto, 0..5).unwrap();
        let params = AttentionParams { heads: HEADS * GROUP, ..AttentionParams::default() };
        let width = (HEADS * GROUP * 64) as usize;
        let (mut q, mut position, mut entries) = (vec![0.0_f32; width], 0_i32, [0_i32; 5]);
        let (q, position, entries) = (q.as_mut_ptr(), &raw mut position, (&raw mut entries).cast::<i32>());
        let quant = Pools::quant(&pools.layout, 0, &[], &mut pools.quant);
        // SAFETY: the layout has no scales outside.
        let floats = unsafe { attention_quant_scratch(&quant, &params, TOKENS) }.unwrap();
        let attend = move |out: *mut f32, scratch: *mut f32| {
            let table = RawTable { entries, rows: 1, stride: 5 };
            let queries = RawQueries {
                n: 1,
                q,
                positions: position,
                table_rows: core::ptr::null(),
                out,
                lse: core::ptr::null_mut(),
            };
            let work = RawWork { rows: (0, 1), heads: (0, HEADS * GROUP), scratch, scratch_floats: floats };
            (table, queries, work)
        };
        let split = RawSplit { begin: core::ptr::null(), end: core::ptr::null() };
        let (mut out, mut scratch) = (vec![0.0_f32; width], vec![f32::NAN; floats as usize]);
        let recorded = attend(out.as_mut_ptr(), scratch.as_mut_ptr());
        let mut all = Vec::new();
        for step in 0..12_u32 {
            let values = Random(step).floats(width);
            // Every other step repeats the last but for the page ids.
            let mut new = vec![f32::NAN; width];
            let mut clean = vec![f32::NAN; floats as usize];
            // SAFETY: all arrays have the sizes that the structs say.
            let is = unsafe {
                core::ptr::copy_nonoverlapping(values.as_ptr(), q, width);
                *position = 159 - (step as i32 / 2) * 31;
                (0..5).for_each(|c| *entries.add(c) = id((c as u32 + step) % 5) as i32);
                let (table, queries, work) = &recorded;
                attention_quant_raw(None, &quant, &split, table, &params, queries, work).unwrap();
                let (table, queries, work) = attend(new.as_mut_ptr(), clean.as_mut_ptr());
                attention_quant_raw(None, &quant, &split, &table, &params, &queries, &work).unwrap();
                core::slice::from_raw_parts(recorded.1.out, width).to_vec()
            };
            assert_eq!(bits(&is), bits(&new), "{format:?} step {step}");
            assert!(!all.contains(&bits(&is)), "{format:?} step {step} gave what another gave");
            all.push(bits(&is));
        }
    }
}

/// 42: kernels over quantised pages that left out learned sinks.
#[test]
fn f42_learned_sinks_with_every_type() {
    let sinks: Vec<f32> = (0..HEADS * GROUP).map(|head| head as f32 * 0.7 - 1.0).collect();
    for format in formats() {
        for isa in [Isa::Portable, Isa::Auto] {
            let without = AttentionParams { heads: HEADS * GROUP, isa, ..AttentionParams::default() };
            let with = AttentionParams { sink_logits: Some(&sinks), ..without };
            let mut pools = Pools::new(PageLayoutSpec::new(2, HEADS, 64, format));
            pools.seal(isa, 0..5).unwrap();
            // Exact pages before and after, and none.
            for split in [(0, 5), (1, 4)] {
                let is = pools.attend(&with, Some(split));
                assert!(is == pools.decoded(isa, split.0..split.1).attend(&with, None), "{format:?} {isa:?}");
                let other = pools.attend(&without, Some(split));
                assert!(is.iter().zip(&other).all(|(a, b)| a != b), "{format:?} {isa:?}: a head without its sink");
            }
        }
    }
}

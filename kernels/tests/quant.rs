//! Quantised pages: attention bit for bit that over decoded values, and every instruction set and way of writing alike.

mod support;

use kvfolio::layout::{ElementCode, PageLayout, PageLayoutSpec, Rotation, TensorFormat};
use kvfolio::quant::NonFinite;
use kvfolio_kernels::Error;
use kvfolio_kernels::cpu::{AttentionParams, Isa, PageCopy};
use kvfolio_kernels::quant::{Seal, copy_quant_raw, encode_scratch, seal_raw};
use support::pools::{GROUP, HEADS, P, PAGES, Pools, formats, id};

fn rotated() -> PageLayoutSpec {
    PageLayoutSpec {
        rotation: Rotation::HADAMARD,
        rotation_size: 64,
        rotation_parts: PageLayoutSpec::ROTATE_K | PageLayoutSpec::ROTATE_V,
        rotation_seed: 3,
        ..PageLayoutSpec::new(1, HEADS, 64, TensorFormat::per_token(ElementCode::INT4, 32))
    }
}

fn specs() -> Vec<PageLayoutSpec> {
    let mut all = Vec::new();
    for format in formats() {
        all.push(PageLayoutSpec::new(2, HEADS, 64, format));
    }
    // Keys along tokens and values along channels, rotated keys, and a head that is no multiple of 16.
    let kivi = PageLayoutSpec::new(1, HEADS, 64, TensorFormat::per_channel(ElementCode::INT2, 32));
    all.push(PageLayoutSpec { v: TensorFormat::per_token(ElementCode::INT2, 32), ..kivi });
    all.push(rotated());
    all.push(PageLayoutSpec::new(1, HEADS, 8, TensorFormat::per_token(ElementCode::INT8, 0)));
    all.push(PageLayoutSpec::new(1, HEADS, 72, TensorFormat::per_channel(ElementCode::INT4, 16)));
    all
}

#[test]
fn attention_is_that_over_decoded_values() {
    for spec in specs() {
        for (isa, window, sinks) in [(Isa::Portable, 0, 0), (Isa::Auto, 0, 0), (Isa::Auto, 71, 5)] {
            let params =
                AttentionParams { heads: HEADS * GROUP, window, sink_tokens: sinks, isa, ..AttentionParams::default() };
            for (begin, end) in [(0, 5), (1, 4), (0, 0)] {
                let mut pools = Pools::new(spec);
                pools.seal(isa, begin..end).unwrap();
                let is = pools.attend(&params, Some((begin, end)));
                let must = pools.decoded(isa, begin..end).attend(&params, None);
                assert!(is == must, "{:?} {:?} {isa:?} {window} {begin}..{end}", spec.k, spec.v);
                assert!(is.iter().all(|&bits| f32::from_bits(bits).is_finite()), "what was not written is not read");
            }
        }
    }
}

#[test]
fn instruction_sets_write_and_read_the_same_bits() {
    for spec in specs() {
        let [mut portable, mut best] = [Isa::Portable, Isa::Auto].map(|isa| {
            let mut pools = Pools::new(spec);
            pools.seal(isa, 0..5).unwrap();
            pools
        });
        assert!(portable.quant == best.quant, "{:?}", spec.k);
        let params = |isa| AttentionParams { heads: HEADS * GROUP, isa, ..AttentionParams::default() };
        let outputs = portable.attend(&params(Isa::Portable), Some((0, 5)));
        assert!(outputs == best.attend(&params(Isa::Auto), Some((0, 5))), "{:?}", spec.k);
    }
}

#[test]
fn tokens_appended_one_by_one_are_those_of_sealed_pages() {
    for spec in specs() {
        let mut sealed = Pools::new(spec);
        sealed.seal(Isa::Auto, 0..5).unwrap();
        let mut appended = Pools::new(spec);
        let done = appended.append(5 * P);
        if appended.layout.k.block_tokens.max(appended.layout.v.block_tokens) > 1 {
            assert_eq!(done, Err(Error::Layout), "groups along tokens need whole pages");
        } else {
            assert_eq!(done, Ok(()));
            assert!(sealed.quant == appended.quant, "{:?}", spec.k);
        }
    }
}

#[test]
fn finite_values_that_overflow_when_rotated_are_saturated() {
    let fill = || {
        let mut pools = Pools::new(rotated());
        pools.k.fill(f32::MAX);
        pools.exact.0.fill(f32::MAX);
        pools
    };
    let (mut sealed, mut appended) = (fill(), fill());
    assert_eq!(sealed.seal(Isa::Auto, 0..5), Ok(()));
    assert_eq!(appended.append(5 * P), Ok(()), "what is refused is refused before a byte is written");
    assert!(sealed.quant == appended.quant);
}

#[test]
fn copies_are_whole_layers() {
    let mut pools = Pools::new(PageLayoutSpec::new(2, HEADS, 64, TensorFormat::per_token(ElementCode::INT4, 32)));
    pools.seal(Isa::Auto, 0..1).unwrap();
    let before = pools.quant.clone();
    let (from, to) = (id(0), id(1));
    let quant = Pools::quant(&pools.layout, pools.layer, &pools.scales, &mut pools.quant);
    let copy = PageCopy { src: from, dst: to, tokens: 3 };
    // SAFETY: all arrays have the sizes that the views say.
    unsafe { copy_quant_raw(&quant, &copy, 1) }.unwrap();
    let words = pools.layout.page_bytes as usize / 16;
    let page = |bytes: &[u128], p: u32| bytes[p as usize * words..(p as usize + 1) * words].to_vec();
    let (source, target) = (page(&pools.quant, from), page(&pools.quant, to));
    assert_eq!(source[words / 2..], target[words / 2..], "the layer of the view");
    assert_eq!(target[..words / 2], page(&before, to)[..words / 2], "no other");
    let onto_itself = PageCopy { src: from, dst: from, tokens: 3 };
    // SAFETY: as above.
    assert_eq!(unsafe { copy_quant_raw(&quant, &onto_itself, 1) }, Err(Error::Tokens));
}

#[test]
fn what_is_wrong_is_refused_and_nothing_is_written() {
    let spec = PageLayoutSpec::new(1, HEADS, 64, TensorFormat::per_channel(ElementCode::INT4, 32));
    let mut pools = Pools::new(spec);
    let before = pools.quant.clone();
    // Page 5 has unwritten slots, which are NaN here.
    assert_eq!(pools.seal(Isa::Auto, 4..6), Err(Error::NonFinite));
    assert!(pools.quant == before);

    let wrong = PageLayout { page_tokens: 16, ..pools.layout };
    let exact = pools.exact();
    let seal = Seal { source: 1, target: 1 };
    let mut scratch = vec![0.0; encode_scratch(&pools.layout) as usize];
    let scratch = (scratch.as_mut_ptr(), scratch.len() as u64);
    let try_seal = |layout: &PageLayout, layer, seal: Seal, floats, bytes: &mut [u128]| {
        let quant = Pools::quant(layout, layer, &[], bytes);
        // SAFETY: all arrays have the sizes that the views say, or are refused.
        unsafe { seal_raw(&exact, &quant, Isa::Auto, NonFinite::Reject, &seal, 1, (scratch.0, floats)) }
    };
    let layout = pools.layout;
    let bytes = &mut pools.quant;
    assert_eq!(try_seal(&wrong, 0, seal, scratch.1, bytes), Err(Error::Layout));
    assert_eq!(try_seal(&layout, 1, seal, scratch.1, bytes), Err(Error::Shape));
    assert_eq!(try_seal(&layout, 0, Seal { source: 0, ..seal }, scratch.1, bytes), Err(Error::NullPage));
    assert_eq!(try_seal(&layout, 0, Seal { target: PAGES + 1, ..seal }, scratch.1, bytes), Err(Error::Page));
    assert_eq!(try_seal(&layout, 0, seal, scratch.1 - 1, bytes), Err(Error::Scratch));
    assert_eq!(try_seal(&layout, 0, seal, scratch.1, &mut bytes[..]), Ok(()));
    let misaligned = (&raw const seal).wrapping_byte_add(2);
    let quant = Pools::quant(&layout, 0, &[], bytes);
    // SAFETY: as above.
    let result = unsafe { seal_raw(&exact, &quant, Isa::Auto, NonFinite::Reject, misaligned, 1, scratch) };
    assert_eq!(result, Err(Error::Align));
}

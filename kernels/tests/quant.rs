//! Quantised pages: attention bit for bit that over decoded values, and every instruction set and way of writing alike.

mod support;

use kvfolio::layout::{ElementCode, PageLayout, PageLayoutSpec, Rotation, ScaleMode, TensorFormat};
use kvfolio::quant::NonFinite;
use kvfolio_kernels::Error;
use kvfolio_kernels::cpu::{
    AttentionParams, Dtype, Geometry, Isa, PageCopy, RawPages, RawQueries, RawTable, RawWork, append_raw,
    attention_raw, attention_scratch,
};
use kvfolio_kernels::quant::{
    RawQuant, RawSplit, Seal, append_quant_raw, attention_quant_raw, attention_quant_scratch, copy_quant_raw,
    encode_scratch, gather_quant_raw, seal_raw,
};
use support::Random;

const P: u32 = 32;
const HEADS: u32 = 2;
const GROUP: u32 = 3;
const PAGES: u32 = 6;
const TOKENS: u32 = 5 * P + 11;

fn formats() -> Vec<TensorFormat> {
    let token = |code, group| TensorFormat::per_token(code, group);
    let channel = |code, group| TensorFormat::per_channel(code, group);
    let fp8 = TensorFormat::fp8;
    vec![
        TensorFormat::F16,
        token(ElementCode::INT8, 0),
        token(ElementCode::INT8, 32),
        token(ElementCode::INT8_SYMMETRIC, 0),
        token(ElementCode::INT4, 0),
        token(ElementCode::INT4, 32),
        token(ElementCode::INT2, 16),
        channel(ElementCode::INT8, 32),
        channel(ElementCode::INT4, 32),
        channel(ElementCode::INT2, 16),
        channel(ElementCode::INT8_SYMMETRIC, 16),
        fp8(ElementCode::FP8_E4M3FN, ScaleMode::TOKEN_HEAD),
        fp8(ElementCode::FP8_E5M2, ScaleMode::HEAD),
        fp8(ElementCode::FP8_E4M3FNUZ, ScaleMode::TENSOR),
        TensorFormat::Q8_0,
        TensorFormat::Q4_0,
        TensorFormat::NVFP4,
        TensorFormat::MXFP4,
    ]
}

/// Two pools, of f32 pages and of quantised ones, with one sequence in each at ids that are not in order.
struct Pools {
    layout: PageLayout,
    layer: u32,
    dim: u32,
    scales: Vec<f32>,
    exact: (Vec<f32>, Vec<f32>),
    quant: Vec<u128>,
    k: Vec<f32>,
    v: Vec<f32>,
}

fn id(column: u32) -> u32 {
    1 + (column * 5 + 2) % PAGES
}

impl Pools {
    fn new(spec: PageLayoutSpec) -> Self {
        let layout = PageLayout::new(&PageLayoutSpec { page_tokens: P, ..spec }).unwrap();
        let dim = layout.k.dim;
        let mut random = Random(7);
        let per_page = (P * HEADS * dim) as usize;
        let [k, v] = [0; 2].map(|_| {
            let x = random.floats((TOKENS * HEADS * dim) as usize);
            x.into_iter().map(|x| x * 3.0).collect::<Vec<_>>()
        });
        let scales = vec![0.011; (layout.layers * layout.k.static_scales) as usize];
        let quant = vec![u128::MAX; layout.page_bytes as usize * (PAGES as usize + 1) / 16];
        let poisoned = vec![f32::NAN; per_page * (PAGES as usize + 1)];
        let layer = layout.layers - 1;
        let mut pools = Self { layout, layer, dim, scales, exact: (poisoned.clone(), poisoned), quant, k, v };
        let slots = pools.slots();
        // SAFETY: all arrays have the sizes that the views say.
        unsafe { append_raw(&pools.exact(), pools.k.as_ptr(), pools.v.as_ptr(), slots.as_ptr(), slots.len()) }.unwrap();
        pools
    }

    fn slots(&self) -> Vec<i64> {
        (0..TOKENS).map(|t| i64::from(id(t / P) * P + t % P)).collect()
    }

    fn geometry(&self) -> Geometry {
        Geometry { dtype: Dtype::F32, page_tokens: P, n_pages: PAGES, kv_heads: HEADS, head_dim: self.dim }
    }

    fn exact(&mut self) -> RawPages {
        let (geometry, (k, v)) = (self.geometry(), &mut self.exact);
        let strides = geometry.plain_strides();
        RawPages {
            geometry,
            k: k.as_mut_ptr().cast(),
            v: v.as_mut_ptr().cast(),
            k_strides: strides,
            v_strides: strides,
        }
    }

    fn quant<'a>(layout: &'a PageLayout, layer: u32, scales: &'a [f32], bytes: &mut [u128]) -> RawQuant<'a> {
        assert_eq!(scales.len() as u32, layout.layers * layout.k.static_scales);
        let base = bytes.as_mut_ptr().cast();
        RawQuant { layout, base, n_pages: PAGES, layer, k_scales: scales.as_ptr(), v_scales: scales.as_ptr() }
    }

    fn seal(&mut self, isa: Isa, columns: core::ops::Range<u32>) -> Result<(), Error> {
        let seals: Vec<_> = columns.map(|c| Seal { source: id(c), target: id(c) }).collect();
        let mut scratch = vec![0.0; encode_scratch(&self.layout) as usize];
        let scratch = (scratch.as_mut_ptr(), scratch.len() as u64);
        let exact = self.exact();
        let quant = Self::quant(&self.layout, self.layer, &self.scales, &mut self.quant);
        // SAFETY: all arrays have the sizes that the views say.
        unsafe { seal_raw(&exact, &quant, isa, NonFinite::Reject, seals.as_ptr(), seals.len(), scratch) }
    }

    /// Appends the first `tokens` tokens one by one, to where they were sealed.
    fn append(&mut self, tokens: u32) -> Result<(), Error> {
        let mut scratch = vec![0.0; encode_scratch(&self.layout) as usize];
        let scratch = (scratch.as_mut_ptr(), scratch.len() as u64);
        let row = (HEADS * self.dim) as usize;
        for (t, slot) in self.slots().iter().enumerate().take(tokens as usize) {
            let (k, v) = (&self.k[t * row..], &self.v[t * row..]);
            let quant = Self::quant(&self.layout, self.layer, &self.scales, &mut self.quant);
            // SAFETY: all arrays have the sizes that the views say.
            unsafe {
                append_quant_raw(&quant, Isa::Auto, NonFinite::Reject, k.as_ptr(), v.as_ptr(), slot, 1, scratch)?;
            }
        }
        Ok(())
    }

    /// The f32 pages once columns are replaced by what their quantised pages decode to.
    fn decoded(&mut self, isa: Isa, columns: core::ops::Range<u32>) -> Pools {
        let n = P * HEADS * self.dim;
        let mut other = Pools::new(self.layout.spec());
        for column in columns {
            let table = [id(column) as i32];
            let raw = RawTable { entries: table.as_ptr(), rows: 1, stride: 1 };
            let (mut k, mut v) = (vec![0.0; n as usize], vec![0.0; n as usize]);
            let mut scratch = vec![0.0; encode_scratch(&self.layout) as usize];
            let scratch = (scratch.as_mut_ptr(), scratch.len() as u64);
            let quant = Self::quant(&self.layout, self.layer, &self.scales, &mut self.quant);
            let slots: Vec<i64> = (0..P).map(|t| i64::from(id(column) * P + t)).collect();
            // SAFETY: all arrays have the sizes that the views say.
            unsafe {
                gather_quant_raw(&quant, isa, &raw, 0, (0, P), k.as_mut_ptr(), v.as_mut_ptr(), scratch).unwrap();
                append_raw(&other.exact(), k.as_ptr(), v.as_ptr(), slots.as_ptr(), slots.len()).unwrap();
            }
        }
        other
    }

    /// Outputs of all queries; `split` tells the quantised columns, `None` reads the exact pages only.
    fn attend(&mut self, params: &AttentionParams<'_>, split: Option<(u32, u32)>) -> Vec<u32> {
        let positions: Vec<i32> = [TOKENS - 1, TOKENS - 9, TOKENS - 12].map(|t| t as i32).to_vec();
        let n = positions.len() as u32;
        let q = Random(99).floats((n * HEADS * GROUP * self.dim) as usize);
        let (mut out, mut lse) = (vec![f32::NAN; q.len()], vec![f32::NAN; (n * HEADS * GROUP) as usize]);
        let mut table: Vec<i32> = (0..TOKENS.div_ceil(P)).map(|c| id(c) as i32).collect();
        table.push(i32::MAX);
        let rows = vec![0; positions.len()];
        let raw = RawTable { entries: table.as_ptr(), rows: 1, stride: table.len() as u32 };
        let queries = RawQueries {
            n,
            q: q.as_ptr(),
            positions: positions.as_ptr(),
            table_rows: rows.as_ptr(),
            out: out.as_mut_ptr(),
            lse: lse.as_mut_ptr(),
        };
        let exact = self.exact();
        let quant = Self::quant(&self.layout, self.layer, &self.scales, &mut self.quant);
        // SAFETY: the scales are as many as the layout says.
        let floats = unsafe { attention_quant_scratch(&quant, params, TOKENS) }.unwrap();
        assert!(floats > attention_scratch(HEADS, params, TOKENS).unwrap());
        let mut scratch = vec![f32::NAN; floats as usize];
        let work =
            RawWork { rows: (0, n), heads: (0, HEADS * GROUP), scratch: scratch.as_mut_ptr(), scratch_floats: floats };
        // SAFETY: all arrays have the sizes that the views say.
        unsafe {
            match split {
                None => attention_raw(&exact, &raw, params, &queries, &work).unwrap(),
                Some((begin, end)) => {
                    let split = RawSplit { begin: &raw const begin, end: &raw const end };
                    attention_quant_raw(Some(&exact), &quant, &split, &raw, params, &queries, &work).unwrap();
                }
            }
        }
        out.iter().chain(&lse).map(|x| x.to_bits()).collect()
    }
}

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

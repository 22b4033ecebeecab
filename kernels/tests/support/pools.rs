//! One sequence in two pools, of f32 pages and of quantised ones.

use kvfolio::layout::{ElementCode, PageLayout, PageLayoutSpec, ScaleMode, TensorFormat};
use kvfolio::quant::NonFinite;
use kvfolio_kernels::Error;
use kvfolio_kernels::cpu::{
    AttentionParams, Dtype, Geometry, Isa, RawPages, RawQueries, RawTable, RawWork, append_raw, attention_raw,
    attention_scratch,
};
use kvfolio_kernels::quant::{
    RawQuant, RawSplit, Seal, append_quant_raw, attention_quant_raw, attention_quant_scratch, encode_scratch,
    gather_quant_raw, seal_raw,
};

use super::Random;

pub(crate) const P: u32 = 32;
pub(crate) const HEADS: u32 = 2;
pub(crate) const GROUP: u32 = 3;
pub(crate) const PAGES: u32 = 6;
pub(crate) const TOKENS: u32 = 5 * P + 11;

pub(crate) fn formats() -> Vec<TensorFormat> {
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
pub(crate) struct Pools {
    pub(crate) layout: PageLayout,
    pub(crate) layer: u32,
    pub(crate) dim: u32,
    pub(crate) scales: Vec<f32>,
    pub(crate) exact: (Vec<f32>, Vec<f32>),
    pub(crate) quant: Vec<u128>,
    pub(crate) k: Vec<f32>,
    pub(crate) v: Vec<f32>,
}

pub(crate) fn id(column: u32) -> u32 {
    1 + (column * 5 + 2) % PAGES
}

impl Pools {
    pub(crate) fn new(spec: PageLayoutSpec) -> Self {
        let layout = PageLayout::new(&PageLayoutSpec { page_tokens: P, ..spec }).unwrap();
        let dim = layout.k.dim;
        let mut random = Random(7);
        let per_page = (P * HEADS * dim) as usize;
        let [k, v] = [0; 2].map(|_| {
            let x = random.floats((TOKENS * HEADS * dim) as usize);
            x.into_iter().map(|x| x * 3.0).collect::<Vec<_>>()
        });
        let scales = vec![0.011; (layout.layers * layout.k.static_scales.max(layout.v.static_scales)) as usize];
        let quant = vec![u128::MAX; layout.page_bytes as usize * (PAGES as usize + 1) / 16];
        let poisoned = vec![f32::NAN; per_page * (PAGES as usize + 1)];
        let layer = layout.layers - 1;
        let mut pools = Self { layout, layer, dim, scales, exact: (poisoned.clone(), poisoned), quant, k, v };
        let slots = pools.slots();
        // SAFETY: all arrays have the sizes that the views say.
        unsafe { append_raw(&pools.exact(), pools.k.as_ptr(), pools.v.as_ptr(), slots.as_ptr(), slots.len()) }.unwrap();
        pools
    }

    pub(crate) fn slots(&self) -> Vec<i64> {
        (0..TOKENS).map(|t| i64::from(id(t / P) * P + t % P)).collect()
    }

    pub(crate) fn geometry(&self) -> Geometry {
        Geometry { dtype: Dtype::F32, page_tokens: P, n_pages: PAGES, kv_heads: HEADS, head_dim: self.dim }
    }

    pub(crate) fn exact(&mut self) -> RawPages {
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

    pub(crate) fn quant<'a>(layout: &'a PageLayout, layer: u32, scales: &'a [f32], bytes: &mut [u128]) -> RawQuant<'a> {
        assert!(scales.len() as u32 >= layout.layers * layout.k.static_scales.max(layout.v.static_scales));
        let base = bytes.as_mut_ptr().cast();
        RawQuant { layout, base, n_pages: PAGES, layer, k_scales: scales.as_ptr(), v_scales: scales.as_ptr() }
    }

    pub(crate) fn seal(&mut self, isa: Isa, columns: core::ops::Range<u32>) -> Result<(), Error> {
        let seals: Vec<_> = columns.map(|c| Seal { source: id(c), target: id(c) }).collect();
        let mut scratch = vec![0.0; encode_scratch(&self.layout) as usize];
        let scratch = (scratch.as_mut_ptr(), scratch.len() as u64);
        let exact = self.exact();
        let quant = Self::quant(&self.layout, self.layer, &self.scales, &mut self.quant);
        // SAFETY: all arrays have the sizes that the views say.
        unsafe { seal_raw(&exact, &quant, isa, NonFinite::Reject, seals.as_ptr(), seals.len(), scratch) }
    }

    /// Appends the first `tokens` tokens one by one, to where they were sealed.
    pub(crate) fn append(&mut self, tokens: u32) -> Result<(), Error> {
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
    pub(crate) fn decoded(&mut self, isa: Isa, columns: core::ops::Range<u32>) -> Pools {
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
    pub(crate) fn attend(&mut self, params: &AttentionParams<'_>, split: Option<(u32, u32)>) -> Vec<u32> {
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

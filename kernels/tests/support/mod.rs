//! A paged cache for tests, with everything poisoned that must not be read.
//!
//! Invariant: all memory is NaN except the tokens that were appended, and
//! table entries outside the columns in use are invalid ids.

#![allow(dead_code)]

pub(crate) mod pools;

use kvfolio_kernels::cpu::{
    AttentionParams, Contiguous, Dtype, Geometry, Pages, PagesMut, Queries, Strides, Table, append, attention,
    attention_contiguous, attention_scratch, convert_from_f32_raw,
};

/// A linear congruential generator of floats in -1..1.
pub(crate) struct Random(pub(crate) u32);

impl Random {
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }

    pub(crate) fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.next() as f32 / 8_388_608.0 - 1.0).collect()
    }
}

/// Bytes with the alignment of 8.
pub(crate) struct Bytes(Vec<u64>, usize);

impl Bytes {
    /// NaN in each element type.
    pub(crate) fn poisoned(len: usize) -> Self {
        Self(vec![u64::MAX; len.div_ceil(8)], len)
    }

    pub(crate) fn get(&self) -> &[u8] {
        // SAFETY: the vector has at least this many bytes.
        unsafe { core::slice::from_raw_parts(self.0.as_ptr().cast(), self.1) }
    }

    pub(crate) fn get_mut(&mut self) -> &mut [u8] {
        // SAFETY: the vector has at least this many bytes.
        unsafe { core::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.1) }
    }
}

/// Floats stored as elements.
pub(crate) fn encode(dtype: Dtype, src: &[f32]) -> Bytes {
    let mut bytes = Bytes::poisoned(src.len() * dtype.bytes() as usize);
    // SAFETY: the buffer has the elements of `src`.
    let result = unsafe { convert_from_f32_raw(dtype, src.as_ptr(), bytes.get_mut().as_mut_ptr(), src.len()) };
    assert_eq!(result, Ok(()));
    bytes
}

/// One sequence in pages with scattered ids.
pub(crate) struct Paged {
    pub(crate) geometry: Geometry,
    pub(crate) k_strides: Strides,
    pub(crate) v_strides: Strides,
    pub(crate) k: Bytes,
    pub(crate) v: Bytes,
    /// One row; the page of column c is `ids[c]`.
    pub(crate) table: Vec<i32>,
}

impl Paged {
    /// Empty pages for `tokens` tokens; K is `[page][slot][head]`, V `[page][head][slot]` with gaps.
    pub(crate) fn new(dtype: Dtype, page_tokens: u32, kv_heads: u32, head_dim: u32, tokens: usize) -> Self {
        let columns = tokens.div_ceil(page_tokens as usize);
        let n_pages = columns as u32 + 2;
        let geometry = Geometry { dtype, page_tokens, n_pages, kv_heads, head_dim };
        let k_strides = geometry.plain_strides();
        let row = geometry.row_bytes() + dtype.bytes();
        let head = row * page_tokens as u64;
        let v_strides = Strides { page: head * kv_heads as u64 + 16, token: row, head };
        // Ids descend in steps, so that neighbours in the sequence are none in memory.
        let mut table: Vec<i32> = (0..columns).map(|c| (n_pages as usize - c) as i32).collect();
        table.chunks_mut(3).for_each(<[i32]>::reverse);
        table.extend([-7, i32::MAX]);
        let pages = n_pages as u64 + 1;
        let k = Bytes::poisoned((k_strides.page * pages) as usize);
        let v = Bytes::poisoned((v_strides.page * pages) as usize);
        Self { geometry, k_strides, v_strides, k, v, table }
    }

    pub(crate) fn slot(&self, token: usize) -> i64 {
        let p = self.geometry.page_tokens as usize;
        self.table[token / p] as i64 * p as i64 + (token % p) as i64
    }

    pub(crate) fn pages_mut(&mut self) -> PagesMut<'_> {
        let (k, v) = (self.k.get_mut(), self.v.get_mut());
        PagesMut::new(self.geometry, (k, self.k_strides), (v, self.v_strides)).unwrap()
    }

    pub(crate) fn pages(&self) -> Pages<'_> {
        let (k, v) = (self.k.get(), self.v.get());
        Pages::new(self.geometry, (k, self.k_strides), (v, self.v_strides)).unwrap()
    }

    /// Append rows from token `first` on.
    pub(crate) fn append(&mut self, first: usize, k: &[f32], v: &[f32]) {
        let row = (self.geometry.kv_heads * self.geometry.head_dim) as usize;
        let slots: Vec<i64> = (0..k.len() / row).map(|i| self.slot(first + i)).collect();
        append(&mut self.pages_mut(), k, v, &slots).unwrap();
    }

    /// Attention of rows at positions; out and lse.
    pub(crate) fn attend(&self, params: &AttentionParams<'_>, q: &[f32], positions: &[i32]) -> (Vec<f32>, Vec<f32>) {
        let rows = vec![0; positions.len()];
        let queries = Queries { q, positions, table_rows: Some(&rows) };
        let (mut out, mut lse, mut scratch) = buffers(self.geometry.kv_heads, params, q.len(), positions);
        let table = Table::new(&self.table, self.table.len()).unwrap();
        let lse_ = Some(&mut lse[..]);
        attention(&self.pages(), &table, params, &queries, &mut out, lse_, &mut scratch).unwrap();
        (out, lse)
    }
}

fn buffers(
    kv_heads: u32,
    params: &AttentionParams<'_>,
    floats: usize,
    positions: &[i32],
) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let longest = positions.iter().max().map_or(0, |&t| (t + 1).max(0) as u32);
    let scratch = attention_scratch(kv_heads, params, longest).unwrap() as usize;
    let heads = params.heads as usize;
    (vec![7.0; floats], vec![7.0; positions.len() * heads], vec![f32::NAN; scratch])
}

/// Attention without pages over the first rows of k and v.
pub(crate) fn attend_contiguous(
    geometry: &Geometry,
    k: &[f32],
    v: &[f32],
    params: &AttentionParams<'_>,
    q: &[f32],
    positions: &[i32],
) -> (Vec<f32>, Vec<f32>) {
    let (k, v) = (encode(geometry.dtype, k), encode(geometry.dtype, v));
    let g = geometry;
    let kv = Contiguous::new(g.dtype, g.kv_heads, g.head_dim, k.get(), v.get()).unwrap();
    let queries = Queries { q, positions, table_rows: None };
    let (mut out, mut lse, mut scratch) = buffers(g.kv_heads, params, q.len(), positions);
    let lse_ = Some(&mut lse[..]);
    attention_contiguous(&kv, params, &queries, &mut out, lse_, &mut scratch).unwrap();
    (out, lse)
}

/// The bits, so that NaN and -0 compare too.
pub(crate) fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

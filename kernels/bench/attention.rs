//! Speed of decode attention over 8,192 tokens: quantised pages beside f16 pages.
//!
//! `kernels/bench/run.sh attention` runs it. One thread, its CPU time; formats take turns within each round, and the best round of
//! each counts, so that what else the machine does falls on all alike. Elements are those of K and V that are read, whatever the
//! number of query heads that share them.
//!
//! - in cache: one KV head, the same pages again and again
//! - in memory: 8 KV heads of several sequences in turn, together beyond every cache
//!
//! `attention [ROUNDS]`; `KVF_ISA=portable` for what every CPU has.

use cpu_time::ThreadTime;
use kvfolio::layout::{ElementCode, PageLayout, PageLayoutSpec, TensorFormat};
use kvfolio::quant::NonFinite;
use kvfolio_kernels::cpu::{
    AttentionParams, Dtype, Geometry, Isa, RawPages, RawQueries, RawTable, RawWork, append_raw, attention_raw,
    attention_scratch,
};
use kvfolio_kernels::quant::{
    RawQuant, RawSplit, Seal, attention_quant_raw, attention_quant_scratch, encode_scratch, seal_raw,
};

const TOKENS: u32 = 8192;
const P: u32 = 32;
const COLUMNS: u32 = TOKENS / P;

fn formats() -> [(&'static str, TensorFormat); 4] {
    [
        ("int8", TensorFormat::per_token(ElementCode::INT8, 0)),
        ("q8_0", TensorFormat::Q8_0),
        ("int4-channel K, int4 V", TensorFormat::per_channel(ElementCode::INT4, 32)),
        ("int4", TensorFormat::per_token(ElementCode::INT4, 0)),
    ]
}

struct Shape {
    kv_heads: u32,
    /// Query heads of a KV head.
    group: u32,
    dim: u32,
    sequences: u32,
}

/// Pages of one format with their layout; none for the f16 pages.
struct Pool {
    name: &'static str,
    layout: Option<PageLayout>,
    memory: Vec<u128>,
    best: f64,
}

/// All that a round runs over.
struct Bench {
    shape: Shape,
    isa: Isa,
    pools: Vec<Pool>,
    tables: Vec<i32>,
    q: Vec<f32>,
    out: Vec<f32>,
    scratch: Vec<f32>,
}

impl Bench {
    fn new(shape: Shape, isa: Isa) -> Self {
        let pages = shape.sequences * COLUMNS;
        let mut seed = 1_u32;
        let mut random = |n: u32| -> Vec<f32> {
            let mut next = || {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 8) as f32 / 8_388_608.0 - 1.0
            };
            (0..n).map(|_| next()).collect()
        };
        // Pages of a sequence are not in order.
        let table = |s: u32| (0..COLUMNS).map(move |c| (s * COLUMNS + c * 37 % COLUMNS + 1) as i32);
        let tables: Vec<i32> = (0..shape.sequences).flat_map(table).collect();
        let heads = shape.kv_heads * shape.group;
        let q = random(heads * shape.dim);
        let bytes = Self::f16(&shape, core::ptr::null_mut()).0 as usize * (pages as usize + 1) * 2;
        let f16 = Pool { name: "f16", layout: None, memory: vec![0; bytes.div_ceil(16)], best: f64::MAX };
        let mut bench =
            Self { isa, pools: vec![f16], tables, out: vec![0.0; q.len()], q, scratch: vec![0.0; 1 << 20], shape };
        let rows = random(TOKENS * bench.shape.kv_heads * bench.shape.dim);
        bench.fill(&rows);
        for (name, format) in formats() {
            bench.seal(name, format);
        }
        bench
    }

    /// K of all pages, then V: bytes of a page of either, and the pages.
    fn f16(shape: &Shape, memory: *mut u8) -> (u64, RawPages) {
        let n_pages = shape.sequences * COLUMNS;
        let geometry =
            Geometry { dtype: Dtype::F16, page_tokens: P, n_pages, kv_heads: shape.kv_heads, head_dim: shape.dim };
        let strides = geometry.plain_strides();
        let v = memory.wrapping_add((strides.page * (u64::from(n_pages) + 1)) as usize);
        (strides.page, RawPages { geometry, k: memory, v, k_strides: strides, v_strides: strides })
    }

    fn exact(&self) -> RawPages {
        Self::f16(&self.shape, self.pools[0].memory.as_ptr().cast_mut().cast()).1
    }

    /// All sequences get the same rows.
    fn fill(&mut self, rows: &[f32]) {
        let exact = Self::f16(&self.shape, self.pools[0].memory.as_mut_ptr().cast()).1;
        for table in self.tables.chunks(COLUMNS as usize) {
            let slot = |t: u32| i64::from(table[(t / P) as usize]) * i64::from(P) + i64::from(t % P);
            let slots: Vec<i64> = (0..TOKENS).map(slot).collect();
            // SAFETY: the rows are as many as the slots.
            unsafe { append_raw(&exact, rows.as_ptr(), rows.as_ptr(), slots.as_ptr(), slots.len()) }.unwrap();
        }
    }

    fn seal(&mut self, name: &'static str, format: TensorFormat) {
        let spec = PageLayoutSpec::new(1, self.shape.kv_heads, self.shape.dim, format);
        let is_channel = format == TensorFormat::per_channel(ElementCode::INT4, 32);
        let v = if is_channel { TensorFormat::per_token(ElementCode::INT4, 0) } else { format };
        let layout = PageLayout::new(&PageLayoutSpec { page_tokens: P, v, ..spec }).unwrap();
        let exact = self.exact();
        let pages = exact.geometry.n_pages;
        let mut memory = vec![0_u128; (layout.page_bytes as usize * (pages as usize + 1)).div_ceil(16)];
        let quant = Self::quant(&layout, memory.as_mut_ptr().cast(), pages);
        let seals: Vec<Seal> = (1..=pages).map(|page| Seal { source: page, target: page }).collect();
        let floats = encode_scratch(&layout);
        let scratch = (self.scratch.as_mut_ptr(), floats);
        assert!(floats <= self.scratch.len() as u64);
        // SAFETY: all arrays have the sizes that the views say.
        unsafe { seal_raw(&exact, &quant, self.isa, NonFinite::Reject, seals.as_ptr(), seals.len(), scratch) }.unwrap();
        self.pools.push(Pool { name, layout: Some(layout), memory, best: f64::MAX });
    }

    fn quant(layout: &PageLayout, base: *mut u8, n_pages: u32) -> RawQuant<'_> {
        let none = core::ptr::null();
        RawQuant { layout, base, n_pages, layer: 0, k_scales: none, v_scales: none }
    }

    /// Every sequence once, from pool `nth`.
    fn attend(&mut self, nth: usize) {
        let (exact, heads) = (self.exact(), self.shape.kv_heads * self.shape.group);
        let params = AttentionParams { heads, isa: self.isa, ..AttentionParams::default() };
        let (position, row, out) = (TOKENS as i32 - 1, 0, self.out.as_mut_ptr());
        let queries = RawQueries {
            n: 1,
            q: self.q.as_ptr(),
            positions: &raw const position,
            table_rows: &raw const row,
            out,
            lse: core::ptr::null_mut(),
        };
        let (scratch, scratch_floats) = (self.scratch.as_mut_ptr(), self.scratch.len() as u64);
        let work = RawWork { rows: (0, 1), heads: (0, heads), scratch, scratch_floats };
        let pool = &mut self.pools[nth];
        let split = RawSplit { begin: core::ptr::null(), end: core::ptr::null() };
        for table in self.tables.chunks(COLUMNS as usize) {
            let table = RawTable { entries: table.as_ptr(), rows: 1, stride: COLUMNS };
            // SAFETY: all arrays have the sizes that the views say.
            unsafe {
                match &pool.layout {
                    None => {
                        assert!(attention_scratch(self.shape.kv_heads, &params, TOKENS).unwrap() <= scratch_floats);
                        attention_raw(&exact, &table, &params, &queries, &work).unwrap();
                    }
                    Some(layout) => {
                        let quant = Self::quant(layout, pool.memory.as_mut_ptr().cast(), exact.geometry.n_pages);
                        assert!(attention_quant_scratch(&quant, &params, TOKENS).unwrap() <= scratch_floats);
                        attention_quant_raw(None, &quant, &split, &table, &params, &queries, &work).unwrap();
                    }
                }
            }
        }
    }

    fn run(&mut self, rounds: u32) {
        let Shape { kv_heads, group, dim, sequences } = self.shape;
        // At least some milliseconds a turn.
        let repeat = if sequences == 1 { 8 } else { 1 };
        for _ in 0..rounds {
            for nth in 0..self.pools.len() {
                let start = ThreadTime::now();
                (0..repeat).for_each(|_| self.attend(nth));
                let took = start.elapsed().as_secs_f64() / f64::from(repeat);
                self.pools[nth].best = self.pools[nth].best.min(took);
            }
        }
        let place = if sequences == 1 { "in cache" } else { "in memory" };
        println!("\n{place}: {kv_heads} KV heads of {dim}, {group} query heads each, {sequences} sequences");
        let elements = 2.0 * f64::from(TOKENS) * f64::from(kv_heads * dim * sequences);
        let f16 = self.pools[0].best;
        for pool in &self.pools {
            let rate = elements / pool.best * 1e-9;
            println!("  {:<24} {rate:6.2} Gelem/s  {:5.2} of f16", pool.name, f16 / pool.best);
        }
    }
}

fn main() {
    // What cargo passes is no number.
    let rounds = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(15);
    let is_portable = std::env::var("KVF_ISA").is_ok_and(|isa| isa == "portable");
    let isa = if is_portable { Isa::Portable } else { Isa::Auto.resolved() };
    println!("decode attention, {TOKENS} tokens, {isa:?}");
    for group in [1, 4] {
        for dim in [64, 128] {
            Bench::new(Shape { kv_heads: 1, group, dim, sequences: 1 }, isa).run(rounds);
            Bench::new(Shape { kv_heads: 8, group, dim, sequences: 8 }, isa).run(rounds);
        }
    }
}

//! Moving tokens: against single moves of a model, for every order of a page and every format.

mod support;

use kvfolio::layout::{ElementCode, Order, PageLayout, PageLayoutSpec, ScaleMode, TensorFormat};
use kvfolio_kernels::Error;
use kvfolio_kernels::cpu::{Dtype, Geometry, Isa, PagesMut, RawTable, RowMove, Strides, move_rows};
use kvfolio_kernels::quant::{RawQuant, append_quant_raw, encode_scratch, gather_quant_raw, move_quant_rows_raw};
use support::{Bytes, Random};

const PAGES: u32 = 7;

/// A list that moves survivors of a row to its front, as compaction does.
fn compaction(table: &[u32], page_tokens: u32, live: impl Fn(u32) -> bool) -> Vec<RowMove> {
    let slots = table.len() as u32 * page_tokens;
    let place = |s: u32| (table[(s / page_tokens) as usize], s % page_tokens);
    let moves = (0..).zip((0..slots).filter(|s| live(*s))).map(|(to, from)| {
        let ((src_page, src_slot), (dst_page, dst_slot)) = (place(from), place(to));
        RowMove { src_page, src_slot, dst_page, dst_slot }
    });
    moves.collect()
}

/// Pages of bytes that all differ in each row, moved by the kernel and row by row.
fn check(geometry: Geometry, k: Strides, v: Strides, moves: &[RowMove]) {
    let bytes = |s: Strides| ((geometry.n_pages as u64 + 1) * s.page + 64) as usize;
    let mut random = Random(3);
    let mut memory = [k, v].map(|strides| {
        let mut memory = Bytes::poisoned(bytes(strides));
        memory.get_mut().iter_mut().for_each(|b| *b = random.next() as u8);
        memory
    });
    let mut want = memory.each_ref().map(|memory| memory.get().to_vec());
    for step in moves {
        for (want, s) in want.iter_mut().zip([k, v]) {
            for head in 0..geometry.kv_heads as u64 {
                let from = s.offset(step.src_page.into(), step.src_slot.into(), head) as usize;
                let to = s.offset(step.dst_page.into(), step.dst_slot.into(), head) as usize;
                want.copy_within(from..from + geometry.row_bytes() as usize, to);
            }
        }
    }
    let [k_memory, v_memory] = &mut memory;
    let mut pages = PagesMut::new(geometry, (k_memory.get_mut(), k), (v_memory.get_mut(), v)).unwrap();
    move_rows(&mut pages, moves).unwrap();
    assert!(memory.iter().zip(&want).all(|(got, want)| got.get() == want), "{geometry:?} {moves:?}");
}

#[test]
fn plans_and_any_other_list() {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
        for page_tokens in [1, 2, 16, 64] {
            for (kv_heads, head_dim) in [(1, 8), (3, 5)] {
                let geometry = Geometry { dtype, page_tokens, n_pages: PAGES, kv_heads, head_dim };
                let plain = geometry.plain_strides();
                let row = geometry.row_bytes();
                let head = row * page_tokens as u64;
                let by_head = Strides { page: head * kv_heads as u64, token: row, head };
                let gaps = Strides { page: (head + 8) * (kv_heads as u64 + 1), token: row + 4, head: head * 2 + 8 };
                let gaps = Strides { page: gaps.head * (kv_heads as u64 + 1), ..gaps };
                let mut random = Random(page_tokens + kv_heads);
                let table = [5, 2, 7, 1];
                let slots = page_tokens * 4;
                let mut lists: Vec<Vec<RowMove>> = [1u32, 4, 7]
                    .map(|live_of_8| {
                        let live: Vec<bool> = (0..slots).map(|_| random.next() % 8 < live_of_8).collect();
                        compaction(&table, page_tokens, |s| live[s as usize])
                    })
                    .into();
                // Long runs with one gap, and what no plan would say: the order of the list decides.
                lists.push(compaction(&table, page_tokens, |s| s != 3 && s / 5 != 2));
                let any = |random: &mut Random| RowMove {
                    src_page: 1 + random.next() % PAGES,
                    src_slot: random.next() % page_tokens,
                    dst_page: 1 + random.next() % PAGES,
                    dst_slot: random.next() % page_tokens,
                };
                lists.push((0..40).map(|_| any(&mut random)).collect());
                // Adjacent slots that are torn apart, and the reverse.
                let apart = |s| RowMove { src_page: 4, src_slot: s, dst_page: 3, dst_slot: s * 2 };
                let back = |s: RowMove| RowMove { src_slot: s.dst_slot, dst_slot: s.src_slot, ..s };
                lists.push((0..page_tokens / 2).map(apart).collect());
                lists.push((0..page_tokens / 2).map(apart).map(back).collect());
                // Adjacent slots that come from two pages, or go to two.
                let to_two = |s| RowMove { src_page: 4, src_slot: s, dst_page: 1 + s % 2, dst_slot: s };
                let from_two = |s| RowMove { src_page: 1 + s % 2, src_slot: s, dst_page: 4, dst_slot: s };
                lists.push((0..page_tokens).map(to_two).collect());
                lists.push((0..page_tokens).map(from_two).collect());
                // Up by one slot inside a page: each token goes to where the next is read.
                let up = |s| RowMove { src_page: 4, src_slot: s, dst_page: 4, dst_slot: s + 1 };
                lists.push((0..page_tokens - 1).map(up).collect());
                for list in &lists {
                    check(geometry, plain, by_head, list);
                    check(geometry, by_head, gaps, list);
                    check(geometry, gaps, plain, list);
                }
            }
        }
    }
}

#[test]
fn errors_write_nothing() {
    let geometry = Geometry { dtype: Dtype::F32, page_tokens: 4, n_pages: 2, kv_heads: 1, head_dim: 2 };
    let strides = geometry.plain_strides();
    let mut memory = Bytes::poisoned(3 * strides.page as usize);
    let mut other = Bytes::poisoned(3 * strides.page as usize);
    other.get_mut()[40] = 9;
    let good = RowMove { src_page: 1, src_slot: 0, dst_page: 2, dst_slot: 0 };
    for (bad, error) in [
        (RowMove { src_page: 0, ..good }, Error::NullPage),
        (RowMove { dst_page: 0, ..good }, Error::NullPage),
        (RowMove { src_page: 3, ..good }, Error::Page),
        (RowMove { dst_page: u32::MAX, ..good }, Error::Page),
        (RowMove { src_slot: 4, ..good }, Error::Slot),
        (RowMove { dst_slot: 4, ..good }, Error::Slot),
    ] {
        let (k, v) = ((memory.get_mut(), strides), (other.get_mut(), strides));
        let mut pages = PagesMut::new(geometry, k, v).unwrap();
        assert_eq!(move_rows(&mut pages, &[good, bad]), Err(error));
    }
    assert!(other.get()[64..].iter().all(|b| *b == 0xff));
}

const P: u32 = 32;
const HEADS: u32 = 2;

struct Pool {
    layout: PageLayout,
    scales: Vec<f32>,
    bytes: Vec<u128>,
}

impl Pool {
    fn raw(&mut self) -> RawQuant<'_> {
        RawQuant {
            layout: &self.layout,
            base: self.bytes.as_mut_ptr().cast(),
            n_pages: PAGES,
            layer: 1,
            k_scales: self.scales.as_ptr(),
            v_scales: self.scales.as_ptr(),
        }
    }

    /// All tokens of pages 1 to N as they decode, `[token][Hk][d]` of K and of V.
    fn decoded(&mut self) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        let d = self.layout.k.dim as usize;
        let n = (PAGES * P) as usize * HEADS as usize * d;
        let (mut k, mut v) = (vec![0.0f32; n], vec![0.0f32; n]);
        let mut scratch = vec![0.0; encode_scratch(&self.layout) as usize];
        let entries: Vec<i32> = (1..=PAGES as i32).collect();
        let table = RawTable { entries: entries.as_ptr(), rows: 1, stride: PAGES };
        let scratch = (scratch.as_mut_ptr(), scratch.len() as u64);
        let all = (0, PAGES * P);
        // SAFETY: all arrays have the sizes that the views say.
        unsafe { gather_quant_raw(&self.raw(), Isa::Auto, &table, 0, all, k.as_mut_ptr(), v.as_mut_ptr(), scratch) }
            .unwrap();
        let rows = |x: &[f32]| x.chunks(HEADS as usize * d).map(support::bits).collect();
        (rows(&k), rows(&v))
    }

    fn run(&mut self, moves: &[RowMove]) -> Result<(), Error> {
        // SAFETY: all arrays have the sizes that the views say.
        unsafe { move_quant_rows_raw(&self.raw(), moves.as_ptr(), moves.len()) }
    }
}

#[test]
fn quantised_tokens_decode_to_the_same_where_they_went() {
    let token = TensorFormat::per_token;
    let formats = [
        token(ElementCode::INT8, 0),
        token(ElementCode::INT4, 32),
        token(ElementCode::INT2, 16),
        token(ElementCode::INT8_SYMMETRIC, 0),
        TensorFormat::fp8(ElementCode::FP8_E4M3FN, ScaleMode::TOKEN_HEAD),
        TensorFormat::fp8(ElementCode::FP8_E5M2, ScaleMode::HEAD),
        TensorFormat::F16,
        TensorFormat::Q8_0,
        TensorFormat::Q4_0,
        TensorFormat::NVFP4,
        TensorFormat::MXFP4,
    ];
    for format in formats {
        for order in [Order::TOKENS, Order::HEADS] {
            let spec = PageLayoutSpec { page_tokens: P, order, ..PageLayoutSpec::new(3, HEADS, 64, format) };
            let layout = PageLayout::new(&spec).unwrap();
            let n = (PAGES * P) as usize;
            let mut pool = Pool {
                layout,
                scales: vec![0.01; (3 * layout.k.static_scales) as usize],
                bytes: vec![0; layout.page_bytes as usize * (PAGES as usize + 1) / 16],
            };
            let mut random = Random(11);
            let [k, v] = [0; 2].map(|_| random.floats(n * HEADS as usize * 64));
            let slots: Vec<i64> = (0..n as i64).map(|t| t + i64::from(P)).collect();
            let mut scratch = vec![0.0; encode_scratch(&layout) as usize];
            let scratch = (scratch.as_mut_ptr(), scratch.len() as u64);
            let on = kvfolio::quant::NonFinite::Reject;
            // SAFETY: all arrays have the sizes that the views say.
            unsafe { append_quant_raw(&pool.raw(), Isa::Auto, on, k.as_ptr(), v.as_ptr(), slots.as_ptr(), n, scratch) }
                .unwrap();
            let live: Vec<bool> = (0..n).map(|_| random.next() % 8 < 5).collect();
            let moves = compaction(&[4, 1, 6, 2], P, |s| live[s as usize]);
            let (mut k, mut v) = pool.decoded();
            pool.run(&moves).unwrap();
            for step in &moves {
                let at = |page: u32, slot: u32| ((page - 1) * P + slot) as usize;
                let (from, to) = (at(step.src_page, step.src_slot), at(step.dst_page, step.dst_slot));
                k[to] = k[from].clone();
                v[to] = v[from].clone();
            }
            assert!(pool.decoded() == (k, v), "{format:?} {order:?}");
        }
    }
}

#[test]
fn groups_along_tokens_move_whole() {
    let channel = TensorFormat::per_channel(ElementCode::INT4, 16);
    for v in [channel, TensorFormat::per_token(ElementCode::INT4, 32)] {
        let spec = PageLayoutSpec { page_tokens: P, v, ..PageLayoutSpec::new(2, HEADS, 64, channel) };
        let layout = PageLayout::new(&spec).unwrap();
        let mut random = Random(5);
        // Bytes at random are codes; as scales and zeros they have to be numbers.
        let number = |random: &mut Random| (0x2c00 | u128::from(random.next() & 0x3ff)) * 0x1_0001_0001_0001;
        let words = layout.page_bytes as usize * (PAGES as usize + 1) / 16;
        let bytes = (0..words).map(|_| number(&mut random) << 64 | number(&mut random)).collect();
        let mut pool = Pool { layout, scales: Vec::new(), bytes };
        let step = |s: u32, to: u32| RowMove { src_page: 3, src_slot: s, dst_page: 1, dst_slot: to };
        let (mut k, mut v) = pool.decoded();
        let moves: Vec<_> = (0..16).map(|i| step(16 + i, i)).collect();
        pool.run(&moves).unwrap();
        for i in 0..16 {
            k[i] = k[2 * P as usize + 16 + i].clone();
            v[i] = v[2 * P as usize + 16 + i].clone();
        }
        assert!(pool.decoded() == (k, v));
        let before = pool.bytes.clone();
        for bad in [&moves[1..], &moves[..8]] {
            assert_eq!(pool.run(bad), Err(Error::Tokens));
        }
        let shifted: Vec<_> = (0..16).map(|i| step(i, i + 1)).collect();
        assert_eq!(pool.run(&shifted), Err(Error::Tokens));
        let mut swapped = moves.clone();
        swapped.swap(4, 5);
        assert_eq!(pool.run(&swapped), Err(Error::Tokens));
        assert_eq!(pool.run(&[RowMove { src_slot: P, ..moves[0] }]), Err(Error::Slot));
        assert!(pool.bytes == before);
    }
}

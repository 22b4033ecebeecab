//! Attention over rows with holes, and its scores: against packed rows bit for bit, and against double precision.

mod support;

use kvfolio_kernels::Error;
use kvfolio_kernels::cpu::{
    AttentionParams, Dtype, Geometry, Isa, Queries, Reduce, Scores, Slots, Table, append, attention_slots,
    attention_slots_scratch,
};
use support::{Paged, Random, attend_contiguous, bits};

const PAGE_TOKENS: [u32; 4] = [1, 2, 16, 64];

/// A row of slots: the position of each, or none, and keys and values of all.
struct Stream {
    geometry: Geometry,
    heads: u32,
    slots: Vec<Option<i32>>,
    k: Vec<f32>,
    v: Vec<f32>,
}

/// How slots stand to positions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// Slot and position are the same; evicted tokens left holes.
    Holes,
    /// New tokens took dead slots.
    Reused,
}

fn stream(order: Order, dtype: Dtype, kv_heads: u32, group: u32, head_dim: u32, used: usize, seed: u32) -> Stream {
    let mut random = Random(seed * 7919 + used as u32 + kv_heads * 31 + head_dim);
    let mut positions: Vec<i32> = (0..used as i32).collect();
    if order == Order::Reused {
        for i in (1..used).rev() {
            positions.swap(i, random.next() as usize % (i + 1));
        }
        // Tokens that are in no slot any more.
        positions.iter_mut().for_each(|p| *p = *p * 3 + 1);
    }
    let last = *positions.iter().max().unwrap();
    // Mostly live, mostly dead, or half.
    let live_of_8 = [7, 1, 4][seed as usize % 3];
    let slots = positions.iter().map(|&p| (p == last || random.next() % 8 < live_of_8).then_some(p)).collect();
    let row = (kv_heads * head_dim) as usize;
    let geometry = Geometry { dtype, page_tokens: 1, n_pages: 1, kv_heads, head_dim };
    let (k, v) = (random.floats(used * row), random.floats(used * row));
    // Values that each type holds, so that the oracle needs no rounding of its own.
    let [k, v] = [k, v].map(|x| x.iter().map(|x| (x * 128.0).round() / 128.0).collect());
    Stream { geometry, heads: kv_heads * group, slots, k, v }
}

/// Output, log-sum-exp, sums, probabilities.
#[derive(Clone, Debug, PartialEq)]
struct Got {
    out: Vec<u32>,
    lse: Vec<u32>,
    sums: Vec<u32>,
    probabilities: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Options {
    reduce: Reduce,
    without_own: bool,
}

impl Stream {
    fn last(&self) -> i32 {
        self.slots.iter().flatten().copied().max().unwrap()
    }

    fn row(&self) -> usize {
        (self.geometry.kv_heads * self.geometry.head_dim) as usize
    }

    /// Pages in which all but live slots is NaN.
    fn paged(&self, page_tokens: u32) -> Paged {
        let g = &self.geometry;
        let mut paged = Paged::new(g.dtype, page_tokens, g.kv_heads, g.head_dim, self.slots.len());
        let slots: Vec<i64> =
            self.slots.iter().enumerate().map(|(s, live)| live.map_or(-1, |_| paged.slot(s))).collect();
        append(&mut paged.pages_mut(), &self.k, &self.v, &slots).unwrap();
        // Columns without a live slot need no page.
        for (c, slots) in self.slots.chunks(page_tokens as usize).enumerate() {
            if slots.iter().all(Option::is_none) {
                paged.table[c] = [0, -3, i32::MAX][c % 3];
            }
        }
        paged
    }

    /// Bits and positions for a table; nonsense where nothing may look.
    fn valid(&self, page_tokens: u32, columns: usize) -> (Vec<u64>, Vec<i32>) {
        let p = page_tokens as usize;
        let mut valid = vec![u64::MAX; columns];
        let mut positions = vec![0; columns * p];
        for (c, slots) in self.slots.chunks(p).enumerate() {
            valid[c] = slots.iter().enumerate().fold(0, |bits, (o, live)| bits | u64::from(live.is_some()) << o);
        }
        for (to, live) in positions.iter_mut().zip(&self.slots) {
            *to = live.unwrap_or(0);
        }
        (valid, positions)
    }

    fn attend(
        &self,
        page_tokens: u32,
        order: Order,
        params: &AttentionParams<'_>,
        q: &[f32],
        positions: &[i32],
        options: Options,
    ) -> Got {
        let paged = self.paged(page_tokens);
        let table = Table::new(&paged.table, paged.table.len()).unwrap();
        let (valid, slot_positions) = self.valid(page_tokens, paged.table.len());
        let used = [self.slots.len() as u32];
        let slots = Slots {
            valid: Some(&valid),
            positions: (order == Order::Reused).then_some(&slot_positions),
            first: None,
            used: Some(&used),
        };
        let rows = vec![0; positions.len()];
        let queries = Queries { q, positions, table_rows: Some(&rows) };
        let n = self.slots.len();
        let mut out = vec![7.0; q.len()];
        let mut lse = vec![7.0; positions.len() * self.heads as usize];
        let mut sums = vec![f32::NAN; self.geometry.kv_heads as usize * n];
        let mut probabilities = vec![f32::NAN; lse.len() * n];
        let floats = attention_slots_scratch(self.geometry.kv_heads, params, n as u32).unwrap();
        let mut scratch = vec![f32::NAN; floats as usize];
        let mut scores = Scores {
            reduce: options.reduce,
            store: true,
            without_own: options.without_own,
            slots: n as u32,
            sums: Some(&mut sums),
            probabilities: Some(&mut probabilities),
        };
        let pages = paged.pages();
        let (lse_, scores_) = (Some(&mut lse[..]), Some(&mut scores));
        attention_slots(&pages, &table, &slots, params, &queries, &mut out, lse_, scores_, &mut scratch).unwrap();
        // Without scores: the same output.
        let mut again = vec![7.0; q.len()];
        attention_slots(&pages, &table, &slots, params, &queries, &mut again, None, None, &mut scratch).unwrap();
        assert_eq!(bits(&again), bits(&out));
        Got { out: bits(&out), lse: bits(&lse), sums: bits(&sums), probabilities: bits(&probabilities) }
    }

    /// The slots that a query reads.
    fn read(&self, params: &AttentionParams<'_>, t: i32) -> Vec<usize> {
        let reads =
            |p: i32| p <= t && (params.window == 0 || t - p < params.window as i32 || p < params.sink_tokens as i32);
        (0..self.slots.len()).filter(|&s| self.slots[s].is_some_and(reads)).collect()
    }

    /// Double precision: the probability of each slot for one query and head.
    fn probabilities(&self, params: &AttentionParams<'_>, q: &[f32], t: i32, head: usize) -> Vec<f64> {
        let d = self.geometry.head_dim as usize;
        let kv_head = head / (self.heads / self.geometry.kv_heads) as usize;
        let scale = if params.scale == 0.0 { 1.0 / (d as f64).sqrt() } else { params.scale as f64 };
        let mut weights = vec![0.0; self.slots.len()];
        for s in self.read(params, t) {
            let k = &self.k[s * self.row() + kv_head * d..][..d];
            let mut x = scale * q.iter().zip(k).map(|(a, b)| *a as f64 * *b as f64).sum::<f64>();
            if params.soft_cap != 0.0 {
                x = params.soft_cap as f64 * (x / params.soft_cap as f64).tanh();
            }
            weights[s] = x.exp();
        }
        let sink = params.sink_logits.map_or(0.0, |sinks| (sinks[head] as f64).exp());
        let sum: f64 = weights.iter().sum::<f64>() + sink;
        weights.iter().map(|w| if sum == 0.0 { 0.0 } else { w / sum }).collect()
    }

    /// Everything about one call.
    fn check(&self, order: Order, params: &AttentionParams<'_>, positions: &[i32], options: Options) -> Got {
        let (d, heads, n) = (self.geometry.head_dim as usize, self.heads as usize, self.slots.len());
        let q = Random(positions.len() as u32).floats(positions.len() * heads * d);
        let got = self.attend(16, order, params, &q, positions, options);
        for page_tokens in PAGE_TOKENS {
            for isa in [Isa::Auto, Isa::Portable] {
                let params = AttentionParams { isa, ..*params };
                let other = self.attend(page_tokens, order, &params, &q, positions, options);
                assert_eq!(got, other, "P {page_tokens} {isa:?}");
            }
        }
        let group = heads / self.geometry.kv_heads as usize;
        let mut sums = vec![0.0f64; self.geometry.kv_heads as usize * n];
        for (row, &t) in positions.iter().enumerate() {
            let q = &q[row * heads * d..][..heads * d];
            // Packed: the slots that are read, and nothing else.
            let read = self.read(params, t);
            let pick = |x: &[f32]| read.iter().flat_map(|s| x[s * self.row()..][..self.row()].to_vec()).collect();
            let (k, v): (Vec<f32>, Vec<f32>) = (pick(&self.k), pick(&self.v));
            let packed = AttentionParams { window: 0, sink_tokens: 0, ..*params };
            let at = read.len() as i32 - 1;
            let (out, lse) = attend_contiguous(&self.geometry, &k, &v, &packed, q, &[at]);
            assert_eq!(bits(&out), got.out[row * heads * d..][..heads * d], "row {row}");
            assert_eq!(bits(&lse), got.lse[row * heads..][..heads], "row {row}");
            let own = |s: usize| options.without_own && self.slots[s] == Some(t);
            for kv_head in 0..self.geometry.kv_heads as usize {
                let mut reduced = vec![0.0f64; n];
                for head in kv_head * group..(kv_head + 1) * group {
                    let want = self.probabilities(params, &q[head * d..][..d], t, head);
                    let row = &got.probabilities[(row * heads + head) * n..][..n];
                    for (s, (want, got)) in want.iter().zip(row).enumerate() {
                        let got = f32::from_bits(*got) as f64;
                        assert!((want - got).abs() < 1e-6 && (got != 0.0 || *want < 1e-30), "{s}: {want} {got}");
                        reduced[s] = match options.reduce {
                            Reduce::Max => reduced[s].max(*want),
                            _ => reduced[s] + want,
                        };
                    }
                }
                for s in (0..n).filter(|&s| !own(s)) {
                    let mean = options.reduce == Reduce::Mean;
                    sums[kv_head * n + s] += if mean { reduced[s] / group as f64 } else { reduced[s] };
                }
            }
        }
        for (at, (want, got)) in sums.iter().zip(&got.sums).enumerate() {
            let got = f32::from_bits(*got) as f64;
            assert!((want - got).abs() < 1e-6 * positions.len() as f64 * group as f64, "{at}: {want} {got}");
        }
        got
    }
}

#[test]
fn decode_of_all_shapes_and_lengths() {
    let mut seed = 0;
    for order in [Order::Holes, Order::Reused] {
        for (dtype, kv_heads, group, head_dim) in [
            (Dtype::F32, 1, 1, 8),
            (Dtype::F16, 2, 3, 16),
            (Dtype::Bf16, 1, 4, 33),
            (Dtype::F16, 2, 6, 64),
            (Dtype::F32, 3, 2, 7),
            (Dtype::F32, 1, 9, 5),
        ] {
            // All residues of T mod 16, and more than a page of 64.
            for used in (1..=33).chain([64, 65, 130]) {
                seed += 1;
                let stream = stream(order, dtype, kv_heads, group, head_dim, used, seed);
                let params = AttentionParams { heads: stream.heads, ..Default::default() };
                let options =
                    Options { reduce: [Reduce::Mean, Reduce::Max, Reduce::Sum][used % 3], ..Default::default() };
                stream.check(order, &params, &[stream.last()], options);
            }
        }
    }
}

#[test]
fn prefill_windows_sinks_and_caps() {
    let sinks = [0.5, -3.0, 9.0, 0.0, -60.0, 2.25];
    for order in [Order::Holes, Order::Reused] {
        for (seed, (window, sink_tokens)) in
            [(0, 0), (1, 0), (5, 2), (16, 16), (20, 60), (40, 3)].into_iter().enumerate()
        {
            for (soft_cap, sink_logits) in [(0.0, None), (2.0, None), (0.0, Some(&sinks[..]))] {
                let stream = stream(order, Dtype::F16, 2, 3, 16, 70, seed as u32);
                let params =
                    AttentionParams { heads: 6, window, sink_tokens, soft_cap, sink_logits, ..Default::default() };
                let last = stream.last();
                // The last queries, padding, one that is not in a slot, and one before all tokens but few.
                let positions = [last - 6, -1, last - 2, 4, 0, last];
                for without_own in [false, true] {
                    stream.check(order, &params, &positions, Options { reduce: Reduce::Mean, without_own });
                }
            }
        }
    }
}

#[test]
fn plain_rows_are_those_of_attention() {
    let stream = stream(Order::Holes, Dtype::Bf16, 2, 5, 40, 50, 0);
    let params = AttentionParams { heads: 10, window: 30, sink_tokens: 3, ..Default::default() };
    let q = Random(5).floats(2 * 10 * 40);
    for page_tokens in [1, 16, 128] {
        let mut paged = Paged::new(Dtype::Bf16, page_tokens, 2, 40, 50);
        paged.append(0, &stream.k, &stream.v);
        let want = paged.attend(&params, &q, &[44, 49]);
        let (mut out, mut lse) = (vec![7.0; q.len()], vec![7.0; 20]);
        let mut scratch = [0.0; 7 * 64];
        let table = Table::new(&paged.table, paged.table.len()).unwrap();
        let queries = Queries { q: &q, positions: &[44, 49], table_rows: Some(&[0, 0]) };
        let slots = Slots::default();
        let lse_ = Some(&mut lse[..]);
        attention_slots(&paged.pages(), &table, &slots, &params, &queries, &mut out, lse_, None, &mut scratch).unwrap();
        assert_eq!((bits(&out), bits(&lse)), (bits(&want.0), bits(&want.1)));
        // Positions alone, with dead slots said by them, work for any P.
        let mut positions: Vec<i32> = (0..(paged.table.len() * page_tokens as usize) as i32).collect();
        positions[50..].fill(-1);
        let slots = Slots { positions: Some(&positions), ..Default::default() };
        let lse_ = Some(&mut lse[..]);
        attention_slots(&paged.pages(), &table, &slots, &params, &queries, &mut out, lse_, None, &mut scratch).unwrap();
        assert_eq!((bits(&out), bits(&lse)), (bits(&want.0), bits(&want.1)));
    }
}

/// After compaction slot s stands for position first + s: the same as packed rows with queries counted likewise.
#[test]
fn first_moves_positions() {
    let stream = stream(Order::Holes, Dtype::F32, 1, 2, 16, 30, 1);
    let mut paged = Paged::new(Dtype::F32, 4, 1, 16, 30);
    paged.append(0, &stream.k, &stream.v);
    let q = Random(5).floats(3 * 2 * 16);
    let table = Table::new(&paged.table, paged.table.len()).unwrap();
    for (window, sink_tokens) in [(0, 0), (9, 0)] {
        let params = AttentionParams { heads: 2, window, sink_tokens, ..Default::default() };
        let want = paged.attend(&params, &q, &[27, 28, 29]);
        let mut out = vec![7.0; q.len()];
        let mut scratch = [0.0; 5 * 32];
        let slots = Slots { first: Some(&[1000]), ..Default::default() };
        let queries = Queries { q: &q, positions: &[1027, 1028, 1029], table_rows: Some(&[0, 0, 0]) };
        attention_slots(&paged.pages(), &table, &slots, &params, &queries, &mut out, None, None, &mut scratch).unwrap();
        assert_eq!(bits(&out), bits(&want.0));
    }
}

/// Two table rows in one call, in several, in any order, and added in parts: the same bits.
#[test]
fn batch_and_split_do_not_matter() {
    let a = stream(Order::Reused, Dtype::F16, 2, 6, 32, 40, 0);
    let paged = a.paged(8);
    let stride = paged.table.len();
    let (valid, positions) = a.valid(8, stride);
    // The second row has the same pages, other holes, and fewer slots.
    let entries = [&paged.table[..], &paged.table[..]].concat();
    let thinner: Vec<u64> = valid.iter().map(|bits| bits & 0xb7).collect();
    let valid = [valid, thinner].concat();
    let positions = [&positions[..], &positions[..]].concat();
    let table = Table::new(&entries, stride).unwrap();
    let slots = Slots { valid: Some(&valid), positions: Some(&positions), first: None, used: Some(&[40, 29]) };
    let params = AttentionParams { heads: 12, ..Default::default() };
    let t = a.last();
    let q = Random(9).floats(5 * 12 * 32);
    let at = [t - 3, t - 2, t, t - 1, t];
    let run = |rows: &[usize], table_rows: &[i32], store: bool, sums: &mut [f32]| {
        let q: Vec<f32> = rows.iter().flat_map(|r| q[r * 384..][..384].to_vec()).collect();
        let at: Vec<i32> = rows.iter().map(|r| at[*r]).collect();
        let queries = Queries { q: &q, positions: &at, table_rows: Some(table_rows) };
        let mut out = vec![7.0; q.len()];
        let mut scratch = [0.0; 7 * 48];
        let scores = &mut Scores { store, slots: 40, sums: Some(sums), ..Default::default() };
        let pages = paged.pages();
        attention_slots(&pages, &table, &slots, &params, &queries, &mut out, None, Some(scores), &mut scratch).unwrap();
        out
    };
    let mut whole = vec![f32::NAN; 2 * 2 * 40];
    let out = run(&[0, 1, 2, 3, 4], &[0, 1, 0, 1, 0], true, &mut whole);
    assert!(whole.iter().all(|x| x.is_finite()));
    // One at a time: the first of each row stores.
    let mut parts = vec![f32::NAN; 2 * 2 * 40];
    for (row, table_row) in [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0)] {
        let part = run(&[row], &[table_row], row < 2, &mut parts);
        assert_eq!(bits(&part), bits(&out[row * 384..][..384]));
    }
    assert_eq!(bits(&parts), bits(&whole));
    // Other company, in another order.
    let mut parts = vec![0.0; 2 * 2 * 40];
    run(&[1, 3, 0, 2, 4], &[1, 1, 0, 0, 0], false, &mut parts);
    assert_eq!(bits(&parts), bits(&whole));
    // A row that no query asks for is left alone.
    let mut only = vec![5.0; 2 * 2 * 40];
    run(&[1, 3], &[1, 1], true, &mut only);
    assert!(only[..80].iter().all(|x| *x == 5.0));
    assert_eq!(bits(&only[80..]), bits(&whole[80..]));
}

#[test]
fn probabilities_are_one_in_all() {
    let stream = stream(Order::Holes, Dtype::F32, 1, 4, 16, 100, 2);
    let params = AttentionParams { heads: 4, ..Default::default() };
    let got = stream.check(Order::Holes, &params, &[99], Options { reduce: Reduce::Sum, without_own: false });
    let sum: f64 = got.sums.iter().map(|x| f32::from_bits(*x) as f64).sum();
    assert!((sum - 4.0).abs() < 1e-5);
}

#[test]
fn nothing_to_read() {
    let sinks = [1.5, -2.0];
    let mut stream = stream(Order::Holes, Dtype::F32, 1, 2, 8, 20, 0);
    stream.slots = vec![None; 20];
    let got = stream.attend(
        4,
        Order::Reused,
        &AttentionParams { heads: 2, ..Default::default() },
        &[1.0; 16],
        &[19],
        Options::default(),
    );
    assert_eq!(got.lse, bits(&[f32::NEG_INFINITY; 2]));
    assert!(got.out.iter().chain(&got.sums).chain(&got.probabilities).all(|x| *x == 0));
    let params = AttentionParams { heads: 2, sink_logits: Some(&sinks), ..Default::default() };
    let got = stream.attend(4, Order::Holes, &params, &[1.0; 16], &[19], Options::default());
    assert_eq!(got.lse, bits(&sinks));
}

#[test]
fn a_nan_that_is_read_reaches_the_scores() {
    let mut stream = stream(Order::Holes, Dtype::F32, 1, 2, 8, 20, 0);
    stream.slots[5] = Some(5);
    stream.k[5 * 8] = f32::NAN;
    let params = AttentionParams { heads: 2, ..Default::default() };
    for reduce in [Reduce::Mean, Reduce::Max, Reduce::Sum] {
        let got = stream.attend(4, Order::Holes, &params, &[1.0; 16], &[19], Options { reduce, ..Default::default() });
        for (s, live) in stream.slots.iter().enumerate() {
            assert_eq!(f32::from_bits(got.sums[s]).is_nan(), live.is_some());
        }
    }
}

#[test]
fn a_nan_of_one_head_reaches_what_its_group_comes_to() {
    let stream = stream(Order::Holes, Dtype::F32, 1, 3, 8, 20, 0);
    let params = AttentionParams { heads: 3, ..Default::default() };
    for reduce in [Reduce::Mean, Reduce::Max, Reduce::Sum] {
        for head in 0..3 {
            let mut q = [1.0; 24];
            q[head * 8] = f32::NAN;
            let got = stream.attend(4, Order::Holes, &params, &q, &[19], Options { reduce, ..Default::default() });
            for (s, live) in stream.slots.iter().enumerate() {
                assert_eq!(f32::from_bits(got.sums[s]).is_nan(), live.is_some());
            }
        }
    }
}

/// A column without a page is as good as one without a bit.
#[test]
fn a_missing_page_is_a_hole() {
    let mut stream = stream(Order::Holes, Dtype::F32, 1, 2, 8, 20, 0);
    let params = AttentionParams { heads: 2, ..Default::default() };
    let mut paged = stream.paged(4);
    let (valid, _) = stream.valid(4, paged.table.len());
    assert!(valid[2] != 0);
    paged.table[2] = 0;
    let table = Table::new(&paged.table, paged.table.len()).unwrap();
    let slots = Slots { valid: Some(&valid), used: Some(&[20]), ..Default::default() };
    let queries = Queries { q: &[1.0; 16], positions: &[19], table_rows: None };
    let mut out = [7.0; 16];
    attention_slots(&paged.pages(), &table, &slots, &params, &queries, &mut out, None, None, &mut [0.0; 160]).unwrap();
    stream.slots[8..12].fill(None);
    let want = stream.attend(4, Order::Holes, &params, &[1.0; 16], &[19], Options::default());
    assert_eq!(bits(&out), want.out);
}

#[test]
fn errors_write_nothing() {
    let stream = stream(Order::Holes, Dtype::F32, 1, 2, 8, 20, 0);
    let params = AttentionParams { heads: 2, ..Default::default() };
    let paged = stream.paged(4);
    let columns = paged.table.len();
    let (valid, positions) = stream.valid(4, columns);
    let good = Slots { valid: Some(&valid), positions: None, first: None, used: Some(&[20]) };
    let run = |slots: &Slots<'_>, n: u32, scratch: usize, want: Error| {
        let table = Table::new(&paged.table, columns).unwrap();
        let queries = Queries { q: &[1.0; 16], positions: &[19], table_rows: None };
        let (mut out, mut sums) = ([7.0; 16], vec![7.0; n as usize]);
        let mut scratch = vec![0.0; scratch];
        let mut scores = Scores { store: true, slots: n, sums: Some(&mut sums), ..Default::default() };
        let pages = paged.pages();
        let scores = Some(&mut scores);
        let got = attention_slots(&pages, &table, slots, &params, &queries, &mut out, None, scores, &mut scratch);
        assert_eq!(got, Err(want));
        assert!(out.iter().chain(&sums).all(|x| *x == 7.0));
    };
    run(&good, 19, 1000, Error::Range);
    run(&good, 20, 4, Error::Scratch);
    run(&Slots { used: Some(&[19]), ..good }, 20, 1000, Error::Table);
    run(&Slots { used: Some(&[29]), ..good }, 20, 1000, Error::Table);
    run(&Slots { first: Some(&[-1]), ..good }, 20, 1000, Error::Range);
    run(&Slots { valid: Some(&valid[1..]), ..good }, 20, 1000, Error::Shape);
    run(&Slots { positions: Some(&positions[1..]), ..good }, 20, 1000, Error::Shape);
    // Behind the slots in use lie entries that are no pages.
    run(&Slots { positions: Some(&positions), used: None, ..good }, 40, 1000, Error::Page);

    let mut paged = Paged::new(Dtype::F32, 128, 1, 8, 20);
    paged.append(0, &stream.k, &stream.v);
    let table = Table::new(&paged.table[..1], 1).unwrap();
    let queries = Queries { q: &[1.0; 16], positions: &[19], table_rows: None };
    let slots = Slots { valid: Some(&[1]), ..Default::default() };
    let mut out = [7.0; 16];
    let got = attention_slots(&paged.pages(), &table, &slots, &params, &queries, &mut out, None, None, &mut [0.0; 999]);
    assert_eq!((got, out), (Err(Error::PageTokens), [7.0; 16]));
}

//! What is learnt from keys alone: against double precision, and bounds of pages against every dot product.

mod support;

use kvfolio_kernels::Error;
use kvfolio_kernels::cpu::{
    AttentionParams, Dtype, Isa, Keys, Queries, Slots, Table, append, attention_slots, key_extremes, keys, page_bounds,
};
use support::{Paged, Random, bits};

const ISAS: [Isa; 2] = [Isa::Auto, Isa::Portable];

/// One row of slots, about five of eight of them live; all else in the pages is NaN.
struct Case {
    dtype: Dtype,
    kv_heads: u32,
    head_dim: u32,
    live: Vec<bool>,
    k: Vec<f32>,
}

struct Row {
    paged: Paged,
    valid: Vec<u64>,
    positions: Vec<i32>,
}

impl Case {
    fn new(dtype: Dtype, kv_heads: u32, head_dim: u32, slots: usize, size: f32) -> Self {
        let mut random = Random(head_dim * 77 + slots as u32);
        let live = (0..slots).map(|_| random.next() % 8 < 5).collect();
        let k = random.floats(slots * (kv_heads * head_dim) as usize);
        // Values that each type holds.
        let k = k.iter().map(|x| (x * 128.0).round() / 128.0 * size).collect();
        Self { dtype, kv_heads, head_dim, live, k }
    }

    fn key(&self, slot: usize, head: usize) -> &[f32] {
        let d = self.head_dim as usize;
        &self.k[(slot * self.kv_heads as usize + head) * d..][..d]
    }

    fn row(&self, page_tokens: u32) -> Row {
        let p = page_tokens as usize;
        let mut paged = Paged::new(self.dtype, page_tokens, self.kv_heads, self.head_dim, self.live.len());
        let slots: Vec<i64> =
            self.live.iter().enumerate().map(|(s, live)| if *live { paged.slot(s) } else { -1 }).collect();
        append(&mut paged.pages_mut(), &self.k, &self.k, &slots).unwrap();
        paged.table.truncate(self.live.len().div_ceil(p));
        let mut valid = vec![0; paged.table.len()];
        let mut positions = vec![-1; paged.table.len() * p];
        for (s, _) in self.live.iter().enumerate().filter(|s| *s.1) {
            valid[s / p] |= 1 << (s % p % 64);
            positions[s] = 9999 - s as i32;
        }
        for (entry, valid) in paged.table.iter_mut().zip(&valid) {
            if *valid == 0 {
                *entry = -5;
            }
        }
        Row { paged, valid, positions }
    }
}

impl Row {
    fn slots(&self) -> Slots<'_> {
        // Bits for pages of at most 64, positions for larger ones.
        if self.paged.geometry.page_tokens <= 64 {
            Slots { valid: Some(&self.valid), ..Default::default() }
        } else {
            Slots { positions: Some(&self.positions), ..Default::default() }
        }
    }

    fn table(&self) -> Table<'_> {
        Table::new(&self.paged.table, self.paged.table.len()).unwrap()
    }
}

/// Norms, dots and unit sums after the ranges given.
fn look(case: &Case, row: &Row, isa: Isa, vectors: &[f32], ranges: &[(u32, u32)]) -> [Vec<f32>; 3] {
    let slots = case.live.len() as u32;
    let n = (case.kv_heads * slots) as usize;
    let [mut norms, mut dots] = [vec![7.0; n], vec![7.0; n]];
    let mut unit_sums = vec![0.0; vectors.len()];
    for range in ranges {
        let mut wanted = Keys {
            isa,
            remove: false,
            slots,
            norms: Some(&mut norms),
            dots: Some((vectors, &mut dots)),
            unit_sums: Some(&mut unit_sums),
        };
        keys(&row.paged.pages(), &row.table(), &row.slots(), 0, *range, &mut wanted).unwrap();
    }
    [norms, dots, unit_sums]
}

#[test]
fn norms_dots_and_unit_sums() {
    for (dtype, kv_heads, head_dim) in
        [(Dtype::F32, 1, 1), (Dtype::F16, 2, 16), (Dtype::Bf16, 3, 33), (Dtype::F16, 1, 128)]
    {
        for slots in [1, 5, 16, 67, 200] {
            let mut case = Case::new(dtype, kv_heads, head_dim, slots, 1.0);
            // A key of length 0.
            let d = head_dim as usize;
            case.live[slots / 2] = true;
            case.k[slots / 2 * kv_heads as usize * d..][..d].fill(0.0);
            let vectors = Random(1).floats(kv_heads as usize * d);
            let end = slots as u32;
            let got = look(&case, &case.row(16), Isa::Auto, &vectors, &[(0, end)]);
            for page_tokens in [1, 2, 16, 64, 256] {
                for isa in ISAS {
                    let row = case.row(page_tokens);
                    let cut = end / 3;
                    for ranges in [&[(0, end)][..], &[(0, cut), (cut, cut), (cut, end)]] {
                        let other = look(&case, &row, isa, &vectors, ranges);
                        assert_eq!(
                            got.each_ref().map(|x| bits(x)),
                            other.each_ref().map(|x| bits(x)),
                            "P {page_tokens}"
                        );
                    }
                }
            }
            let mut sums = vec![0.0f64; kv_heads as usize * d];
            for head in 0..kv_heads as usize {
                for s in 0..slots {
                    let at = head * slots + s;
                    if !case.live[s] {
                        assert!(got[0][at] == 7.0 && got[1][at] == 7.0);
                        continue;
                    }
                    let key = case.key(s, head);
                    let product = |v: &[f32]| key.iter().zip(v).map(|(a, b)| *a as f64 * *b as f64).sum::<f64>();
                    let norm = product(key).sqrt();
                    assert!((norm - got[0][at] as f64).abs() <= 1e-6 * norm);
                    assert!((product(&vectors[head * d..]) - got[1][at] as f64).abs() <= 1e-5);
                    if norm > 0.0 {
                        sums[head * d..].iter_mut().zip(key).for_each(|(sum, x)| *sum += *x as f64 / norm);
                    }
                }
            }
            assert!(sums.iter().zip(&got[2]).all(|(want, got)| (want - *got as f64).abs() < 1e-4));
        }
    }
}

#[test]
fn what_joined_can_leave() {
    let case = Case::new(Dtype::F16, 2, 24, 90, 1.0);
    let row = case.row(16);
    let mut sums = vec![0.0; 48];
    for (range, remove) in [((0, 90), false), ((0, 40), true), ((40, 90), true)] {
        let mut wanted = Keys { remove, unit_sums: Some(&mut sums), ..Default::default() };
        keys(&row.paged.pages(), &row.table(), &row.slots(), 0, range, &mut wanted).unwrap();
    }
    assert!(sums.iter().all(|x| x.abs() < 1e-5));
}

/// Bounds of all pages of a row, for one query row.
fn bounds(case: &Case, row: &Row, isa: Isa, q: &[f32], heads: u32) -> Vec<f32> {
    let columns = row.paged.table.len();
    let [mut least, mut greatest] = [0; 2].map(|_| vec![7.0; columns * (case.kv_heads * case.head_dim) as usize]);
    // In two parts.
    let cut = columns as u32 / 2;
    for range in [(cut, columns as u32), (0, cut)] {
        let pages = row.paged.pages();
        key_extremes(&pages, &row.table(), &row.slots(), 0, range, isa, &mut least, &mut greatest).unwrap();
    }
    let mut out = vec![7.0; heads as usize * columns];
    page_bounds(isa, (heads, case.kv_heads, case.head_dim), q, (&least, &greatest), &mut out).unwrap();
    out
}

/// The dot products as attention makes them: over one slot the log-sum-exp is the logit.
fn logit(case: &Case, row: &Row, slot: usize, q: &[f32], heads: u32) -> Vec<f32> {
    let p = row.paged.geometry.page_tokens as usize;
    let mut positions = vec![-1; row.paged.table.len() * p];
    positions[slot] = 0;
    let slots = Slots { positions: Some(&positions), ..Default::default() };
    let params = AttentionParams { heads, scale: 1.0, ..Default::default() };
    let queries = Queries { q, positions: &[0], table_rows: None };
    let (mut out, mut lse) = (vec![0.0; q.len()], vec![0.0; heads as usize]);
    let lse_ = Some(&mut lse[..]);
    let pages = row.paged.pages();
    attention_slots(&pages, &row.table(), &slots, &params, &queries, &mut out, lse_, None, &mut [0.0; 112]).unwrap();
    assert!(case.live[slot]);
    lse
}

#[test]
fn no_dot_product_exceeds_its_page() {
    let mut exact = 0;
    for (dtype, head_dim) in [(Dtype::F32, 1), (Dtype::F16, 7), (Dtype::F32, 64), (Dtype::Bf16, 100), (Dtype::F32, 128)]
    {
        for (size, kv_heads, group) in [(1.0, 1, 1), (4096.0, 2, 3), (1e-3, 1, 5)] {
            let size = if dtype == Dtype::F16 { 1.0 } else { size };
            let case = Case::new(dtype, kv_heads, head_dim, 75, size);
            let heads = kv_heads * group;
            for seed in 0..4 {
                let mut q = Random(seed).floats((heads * head_dim) as usize);
                // Queries that cancel, and ones along an axis.
                q.iter_mut().enumerate().for_each(|(i, x)| match seed {
                    1 => *x = if i % 2 == 0 { 1.0 } else { -1.0 },
                    2 => *x = if i % head_dim as usize == 0 { -3.0 } else { 0.0 },
                    _ => {}
                });
                for page_tokens in [1, 2, 16, 64, 128] {
                    let row = case.row(page_tokens);
                    let columns = row.paged.table.len();
                    let got = bounds(&case, &row, Isa::Auto, &q, heads);
                    assert_eq!(bits(&got), bits(&bounds(&case, &row, Isa::Portable, &q, heads)));
                    let mut most = vec![f32::NEG_INFINITY; got.len()];
                    for s in (0..75).filter(|s| case.live[*s]) {
                        for (head, x) in logit(&case, &row, s, &q, heads).into_iter().enumerate() {
                            let most = &mut most[head * columns + s / page_tokens as usize];
                            *most = most.max(x);
                        }
                    }
                    for (bound, most) in got.iter().zip(&most) {
                        assert!(bound >= most, "P {page_tokens} d {head_dim}: {bound} {most}");
                        // One token, or one channel: no room between them. No token: nothing.
                        if page_tokens == 1 || head_dim == 1 {
                            assert_eq!(bound, most);
                            exact += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(exact > 1000);
}

#[test]
fn extremes_of_what_is_not_finite() {
    let mut case = Case::new(Dtype::F32, 1, 3, 12, 1.0);
    case.live = [true, true, true, true, false, false, false, false, true, true, true, true].into();
    case.k[2 * 3 + 1] = f32::NAN;
    case.k[9 * 3] = f32::INFINITY;
    case.k[10 * 3] = f32::NEG_INFINITY;
    let row = case.row(4);
    // A NaN, an empty page, and infinities times 0.
    let got = bounds(&case, &row, Isa::Auto, &[0.0, 1.0, 1.0], 1);
    assert_eq!(got, [f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY]);
    // One infinity is enough; the other end of the channel is finite.
    for x in [f32::INFINITY, f32::NEG_INFINITY] {
        case.k[9 * 3] = x;
        case.k[10 * 3] = 0.5;
        let got = bounds(&case, &case.row(4), Isa::Auto, &[0.0, 1.0, 1.0], 1);
        assert_eq!(got, [f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY]);
    }
    let [mut least, mut greatest] = [[7.0; 9]; 2];
    key_extremes(&row.paged.pages(), &row.table(), &row.slots(), 0, (0, 3), Isa::Auto, &mut least, &mut greatest)
        .unwrap();
    assert!(least[1].is_nan() && greatest[1].is_nan() && least[0].is_finite() && greatest[2].is_finite());
}

#[test]
fn errors_write_nothing() {
    let case = Case::new(Dtype::F32, 2, 4, 20, 1.0);
    let row = case.row(4);
    let (pages, table, slots) = (row.paged.pages(), row.table(), row.slots());
    let mut norms = [7.0; 40];
    let mut run = |slots: &Slots<'_>, row: u32, range: (u32, u32), n: u32| {
        let mut wanted = Keys { slots: n, norms: Some(&mut norms), ..Default::default() };
        let result = keys(&pages, &table, slots, row, range, &mut wanted);
        assert!(norms.iter().all(|x| *x == 7.0));
        result
    };
    assert_eq!(run(&slots, 0, (3, 2), 20), Err(Error::Range));
    assert_eq!(run(&slots, 1, (0, 2), 20), Err(Error::Table));
    assert_eq!(run(&slots, 0, (0, 21), 20), Err(Error::Table));
    assert_eq!(run(&slots, 0, (0, 2), 19), Err(Error::Shape));
    let mut less = [7.0; 38];
    let mut wanted = Keys { slots: 19, norms: Some(&mut less), ..Default::default() };
    assert_eq!(keys(&pages, &table, &slots, 0, (0, 20), &mut wanted), Err(Error::Range));
    let [mut least, mut greatest] = [[7.0f32; 40]; 2];
    let isa = Isa::Auto;
    let mut run = |range| key_extremes(&pages, &table, &slots, 0, range, isa, &mut least, &mut greatest);
    assert_eq!(run((0, 6)), Err(Error::Table));
    assert_eq!(run((2, 1)), Err(Error::Range));
    assert!(least.iter().chain(&greatest).all(|x| *x == 7.0));
    let mut out = [7.0; 5];
    assert_eq!(page_bounds(isa, (3, 2, 4), &[0.0; 12], (&least, &greatest), &mut out), Err(Error::Shape));
    assert_eq!(page_bounds(isa, (2, 2, 4), &[0.0; 8], (&least, &greatest), &mut out), Err(Error::Shape));
}

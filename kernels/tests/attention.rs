//! Attention: against double precision, and bit for bit against itself.

mod support;

use kvfolio_kernels::cpu::{AttentionParams, Dtype, Geometry, Isa, Queries, Table, attention};
use support::{Paged, Random, attend_contiguous, bits, encode};

const PAGE_TOKENS: [u32; 5] = [1, 4, 16, 64, 256];

/// Random keys, values and queries of one sequence, all of whose tokens are query rows.
struct Case {
    geometry: Geometry,
    heads: u32,
    tokens: usize,
    k: Vec<f32>,
    v: Vec<f32>,
    q: Vec<f32>,
    positions: Vec<i32>,
}

fn case(dtype: Dtype, kv_heads: u32, group: u32, head_dim: u32, tokens: usize) -> Case {
    let mut random = Random(kv_heads * 1000 + group * 100 + head_dim + tokens as u32);
    let heads = kv_heads * group;
    let row = (kv_heads * head_dim) as usize;
    // Values that every element type holds, so that the reference needs no rounding of its own.
    let k = decode(dtype, &random.floats(tokens * row));
    let v = decode(dtype, &random.floats(tokens * row));
    let q = random.floats(tokens * (heads * head_dim) as usize);
    let geometry = Geometry { dtype, page_tokens: 1, n_pages: 1, kv_heads, head_dim };
    let positions = (0..tokens as i32).collect();
    Case { geometry, heads, tokens, k, v, q, positions }
}

/// Round floats to an element type.
fn decode(dtype: Dtype, src: &[f32]) -> Vec<f32> {
    let bytes = encode(dtype, src);
    match dtype {
        Dtype::F32 => src.to_vec(),
        Dtype::F16 => bytes.get().chunks(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
        Dtype::Bf16 => bytes.get().chunks(2).map(|b| half::bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
    }
}

impl Case {
    fn paged(&self, page_tokens: u32) -> Paged {
        let g = &self.geometry;
        let mut paged = Paged::new(g.dtype, page_tokens, g.kv_heads, g.head_dim, self.tokens);
        paged.append(0, &self.k, &self.v);
        paged
    }

    /// Double precision, one token at a time; out and lse of one row and head.
    fn reference(&self, params: &AttentionParams<'_>, row: usize, head: usize) -> (Vec<f64>, f64) {
        let d = self.geometry.head_dim as usize;
        let kv_heads = self.geometry.kv_heads as usize;
        let kv_head = head / (self.heads as usize / kv_heads);
        let t = self.positions[row] as usize;
        let q = &self.q[(row * self.heads as usize + head) * d..][..d];
        let scale = if params.scale == 0.0 { 1.0 / (d as f64).sqrt() } else { params.scale as f64 };
        let mut weights = Vec::new();
        for j in 0..=t {
            let reads = params.window == 0 || t - j < params.window as usize || j < params.sink_tokens as usize;
            if reads {
                let k = &self.k[(j * kv_heads + kv_head) * d..][..d];
                let mut x = scale * q.iter().zip(k).map(|(a, b)| *a as f64 * *b as f64).sum::<f64>();
                if params.soft_cap != 0.0 {
                    x = params.soft_cap as f64 * (x / params.soft_cap as f64).tanh();
                }
                weights.push((j, x.exp()));
            }
        }
        let mut sum: f64 = weights.iter().map(|w| w.1).sum();
        if let Some(sinks) = params.sink_logits {
            sum += (sinks[head] as f64).exp();
        }
        let mut out = vec![0.0; d];
        for (j, w) in weights {
            let v = &self.v[(j * kv_heads + kv_head) * d..][..d];
            out.iter_mut().zip(v).for_each(|(o, v)| *o += w / sum * *v as f64);
        }
        (out, sum.ln())
    }

    /// All page sizes and instruction sets give the bits of the contiguous form, and those are near the reference.
    fn check(&self, params: &AttentionParams<'_>) {
        let g = &self.geometry;
        let contiguous = attend_contiguous(g, &self.k, &self.v, params, &self.q, &self.positions);
        let runs = PAGE_TOKENS.map(|page_tokens| (page_tokens, Isa::Auto));
        for (page_tokens, isa) in runs.into_iter().chain([(16, Isa::Portable)]) {
            let params = AttentionParams { isa, ..*params };
            let paged = self.paged(page_tokens).attend(&params, &self.q, &self.positions);
            assert_eq!(bits(&paged.0), bits(&contiguous.0), "P {page_tokens} {params:?}");
            assert_eq!(bits(&paged.1), bits(&contiguous.1), "P {page_tokens} {params:?}");
        }
        let d = g.head_dim as usize;
        for row in 0..self.tokens {
            for head in 0..self.heads as usize {
                let at = row * self.heads as usize + head;
                let (out, lse) = self.reference(params, row, head);
                assert!((lse - contiguous.1[at] as f64).abs() < 4e-6 * lse.abs().max(1.0));
                for (want, got) in out.iter().zip(&contiguous.0[at * d..]) {
                    assert!((want - *got as f64).abs() < 3e-6, "row {row} head {head}: {want} {got}");
                }
            }
        }
    }
}

#[test]
fn all_shapes_and_types() {
    for group in [1, 3, 8] {
        for head_dim in [8, 64, 80, 128] {
            for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
                let case = case(dtype, 2, group, head_dim, 37);
                case.check(&AttentionParams { heads: case.heads, ..Default::default() });
            }
        }
    }
}

#[test]
fn odd_shapes() {
    for (kv_heads, group, head_dim, tokens) in [(1, 1, 1, 1), (3, 5, 7, 20), (2, 7, 120, 17), (1, 4, 33, 65)] {
        let case = case(Dtype::F16, kv_heads, group, head_dim, tokens);
        case.check(&AttentionParams { heads: case.heads, ..Default::default() });
    }
}

#[test]
fn windows_and_sinks_at_their_edges() {
    let case = case(Dtype::F32, 1, 3, 16, 35);
    for window in [1, 2, 4, 15, 16, 17, 34, 35, 36, u32::MAX] {
        for sink_tokens in [0, 1, 4, 5, 34, 35, 36, u32::MAX] {
            case.check(&AttentionParams { heads: case.heads, window, sink_tokens, ..Default::default() });
        }
    }
}

#[test]
fn scale_soft_cap_and_sink_logits() {
    let case = case(Dtype::Bf16, 2, 3, 64, 40);
    let sinks = [0.5, -3.0, 0.0, 9.0, -60.0, 2.25];
    for scale in [0.0, 1.0, -0.3] {
        for soft_cap in [0.0, 0.7, 30.0] {
            for sink_logits in [None, Some(&sinks[..])] {
                case.check(&AttentionParams {
                    heads: case.heads,
                    scale,
                    soft_cap,
                    sink_logits,
                    window: 11,
                    sink_tokens: 2,
                    ..Default::default()
                });
            }
        }
    }
}

#[test]
fn chunks_and_single_rows_and_single_heads_have_the_same_bits() {
    let case = case(Dtype::F16, 2, 6, 80, 50);
    let params = AttentionParams { heads: 12, window: 30, sink_tokens: 3, ..Default::default() };
    let row = (case.heads * 80) as usize;
    let kv_row = 2 * 80;
    let whole = case.paged(16).attend(&params, &case.q, &case.positions);
    for chunk in [1, 7, 16, 33] {
        // Later tokens are not even there when an earlier chunk is computed.
        let mut paged = Paged::new(Dtype::F16, 16, 2, 80, case.tokens);
        let mut out = Vec::new();
        let mut lse = Vec::new();
        for first in (0..case.tokens).step_by(chunk) {
            let end = (first + chunk).min(case.tokens);
            paged.append(first, &case.k[first * kv_row..end * kv_row], &case.v[first * kv_row..end * kv_row]);
            let part = paged.attend(&params, &case.q[first * row..end * row], &case.positions[first..end]);
            out.extend(part.0);
            lse.extend(part.1);
        }
        assert_eq!(bits(&out), bits(&whole.0), "chunk {chunk}");
        assert_eq!(bits(&lse), bits(&whole.1), "chunk {chunk}");
    }
}

#[test]
fn a_trimmed_table_has_the_same_bits() {
    let case = case(Dtype::F32, 1, 4, 64, 64);
    let params = AttentionParams { heads: 4, window: 13, sink_tokens: 5, ..Default::default() };
    let mut paged = case.paged(4);
    let q = &case.q[63 * 256..];
    let full = paged.attend(&params, q, &[63]);
    // Window 51..64, sinks 0..5: columns 2..12 are not needed; NULL or nonsense there is the same.
    paged.table[2..12].fill(0);
    assert_eq!(bits(&paged.attend(&params, q, &[63]).0), bits(&full.0));
    paged.table[2..12].fill(-1);
    assert_eq!(bits(&paged.attend(&params, q, &[63]).1), bits(&full.1));
}

#[test]
fn a_missing_page_is_as_if_its_tokens_were_not_there() {
    let case = case(Dtype::F16, 2, 2, 32, 24);
    let params = AttentionParams { heads: 4, ..Default::default() };
    let mut paged = case.paged(4);
    paged.table[1] = 0;
    paged.table[4] = 0;
    let q = &case.q[23 * 128..];
    let got = paged.attend(&params, q, &[23]);
    let keep = |x: &[f32]| [&x[..4 * 64], &x[8 * 64..16 * 64], &x[20 * 64..]].concat();
    let want = attend_contiguous(&case.geometry, &keep(&case.k), &keep(&case.v), &params, q, &[15]);
    assert_eq!(bits(&got.0), bits(&want.0));
    assert_eq!(bits(&got.1), bits(&want.1));
}

#[test]
fn nothing_to_read() {
    let case = case(Dtype::F32, 1, 2, 8, 4);
    let mut paged = case.paged(4);
    let sinks = [1.5, -2.0];
    let plain = AttentionParams { heads: 2, ..Default::default() };
    let learned = AttentionParams { sink_logits: Some(&sinks), ..plain };
    for missing_page in [false, true] {
        let position = if missing_page {
            paged.table[0] = 0;
            3
        } else {
            -1
        };
        let (out, lse) = paged.attend(&plain, &case.q[..16], &[position]);
        assert_eq!(out, [0.0; 16]);
        assert_eq!(lse, [f32::NEG_INFINITY; 2]);
        let (out, lse) = paged.attend(&learned, &case.q[..16], &[position]);
        assert_eq!(out, [0.0; 16]);
        assert_eq!(lse, sinks);
    }
}

#[test]
fn a_nan_that_is_read_comes_out() {
    let mut case = case(Dtype::F32, 1, 1, 16, 20);
    case.k[5 * 16 + 3] = f32::NAN;
    let params = AttentionParams { heads: 1, ..Default::default() };
    let (out, lse) = case.paged(4).attend(&params, &case.q, &case.positions);
    for row in 0..20 {
        assert_eq!(lse[row].is_nan(), row >= 5);
        assert!(out[row * 16..][..16].iter().all(|x| x.is_nan() == (row >= 5)));
    }
}

#[test]
fn large_logits_do_not_overflow() {
    let mut case = case(Dtype::F32, 1, 1, 8, 9);
    case.q.iter_mut().for_each(|x| *x *= 1e4);
    let params = AttentionParams { heads: 1, scale: 1.0, ..Default::default() };
    let (out, lse) = case.paged(4).attend(&params, &case.q, &case.positions);
    assert!(out.iter().chain(&lse).all(|x| x.is_finite()));
}

#[test]
fn threads_have_the_same_bits() {
    let case = case(Dtype::F16, 2, 3, 64, 48);
    let params = AttentionParams { heads: 6, window: 20, ..Default::default() };
    let paged = case.paged(16);
    let whole = paged.attend(&params, &case.q, &case.positions);
    let pages = paged.pages();
    let table = Table::new(&paged.table, paged.table.len()).unwrap();
    let mut out = vec![0.0; case.q.len()];
    let rows = [0; 16];
    let (pages, table, params) = (&pages, &table, &params);
    std::thread::scope(|scope| {
        let shares = out.chunks_mut(16 * 384).zip(case.q.chunks(16 * 384));
        for ((out, q), positions) in shares.zip(case.positions.chunks(16)) {
            let queries = Queries { q, positions, table_rows: Some(&rows) };
            scope.spawn(move || {
                let mut scratch = [0.0; 3 * 48];
                attention(pages, table, params, &queries, out, None, &mut scratch).unwrap();
            });
        }
    });
    assert_eq!(bits(&out), bits(&whole.0));
}

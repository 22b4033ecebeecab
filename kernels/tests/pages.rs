//! Append, copy, gather and scatter; every argument error.

mod support;

use kvfolio_kernels::Error;
use kvfolio_kernels::cpu::{
    AttentionParams, Dtype, Geometry, PageCopy, Pages, PagesMut, Queries, Strides, Table, append, attention,
    attention_scratch, copy_pages, gather, scatter,
};
use support::{Bytes, Paged, Random, bits};

const TYPES: [Dtype; 3] = [Dtype::F32, Dtype::F16, Dtype::Bf16];

fn round(dtype: Dtype, x: f32) -> f32 {
    match dtype {
        Dtype::F32 => x,
        Dtype::F16 => half::f16::from_f32(x).to_f32(),
        Dtype::Bf16 => half::bf16::from_f32(x).to_f32(),
    }
}

fn read(paged: &Paged, tokens: (u32, u32)) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let row = (paged.geometry.kv_heads * paged.geometry.head_dim) as usize;
    let mut k = vec![0.0; (tokens.1 - tokens.0) as usize * row];
    let mut v = k.clone();
    let table = Table::new(&paged.table, paged.table.len()).unwrap();
    gather(&paged.pages(), &table, 0, tokens, &mut k, &mut v)?;
    Ok((k, v))
}

#[test]
fn what_is_appended_or_scattered_is_gathered() {
    for dtype in TYPES {
        for page_tokens in [1, 4, 16, 64, 256] {
            let mut random = Random(page_tokens);
            let (k, v) = (random.floats(37 * 3 * 10), random.floats(37 * 3 * 10));
            let mut paged = Paged::new(dtype, page_tokens, 3, 10, 37);
            paged.append(0, &k, &v);
            let rounded = |x: &[f32]| x.iter().map(|x| round(dtype, *x)).collect::<Vec<_>>();
            let (got_k, got_v) = read(&paged, (0, 37)).unwrap();
            assert_eq!(bits(&got_k), bits(&rounded(&k)));
            assert_eq!(bits(&got_v), bits(&rounded(&v)));
            let (part, _) = read(&paged, (5, 21)).unwrap();
            assert_eq!(part, got_k[5 * 30..21 * 30]);

            let mut other = Paged::new(dtype, page_tokens, 3, 10, 37);
            let row = other.table.clone();
            let table = Table::new(&row, row.len()).unwrap();
            for tokens in [(0, 9), (9, 9), (9, 37)] {
                let at = tokens.0 as usize * 30..tokens.1 as usize * 30;
                scatter(&mut other.pages_mut(), &table, 0, tokens, &k[at.clone()], &v[at]).unwrap();
            }
            assert_eq!(other.k.get(), paged.k.get());
            assert_eq!(other.v.get(), paged.v.get());
        }
    }
}

#[test]
fn append_skips_minus_one_and_takes_the_last_of_two() {
    let mut paged = Paged::new(Dtype::F32, 4, 1, 2, 8);
    let slot = paged.slot(5);
    let k = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    append(&mut paged.pages_mut(), &k, &k, &[slot, -1, slot]).unwrap();
    assert_eq!(read(&paged, (5, 6)).unwrap().0, [5.0, 6.0]);
    let written = paged.k.get().chunks(4).filter(|b| **b != [0xff; 4]).count();
    assert_eq!(written, 2);
}

#[test]
fn copies_reach_exactly_the_tokens_asked_for() {
    for dtype in TYPES {
        for kv_heads in [1, 3] {
            for page_tokens in [1u32, 4, 16] {
                for tokens in 0..=page_tokens {
                    let n = 2 * page_tokens as usize;
                    let mut random = Random(tokens);
                    let floats = n * kv_heads as usize * 6;
                    let (k, v) = (random.floats(floats), random.floats(floats));
                    let mut paged = Paged::new(dtype, page_tokens, kv_heads, 6, n);
                    paged.append(0, &k, &v);
                    let (src, dst) = (paged.table[0] as u32, paged.table[1] as u32);
                    let before = read(&paged, (0, n as u32)).unwrap();
                    let copy = PageCopy { src, dst, tokens };
                    copy_pages(&mut paged.pages_mut(), &[copy]).unwrap();
                    let after = read(&paged, (0, n as u32)).unwrap();
                    let row = kv_heads as usize * 6;
                    let (p, t) = (page_tokens as usize, tokens as usize);
                    for (was, is) in [(before.0, after.0), (before.1, after.1)] {
                        assert_eq!(was[..p * row], is[..p * row]);
                        assert_eq!(was[..t * row], is[p * row..(p + t) * row]);
                        assert_eq!(was[(p + t) * row..], is[(p + t) * row..]);
                    }
                    // Gaps between rows and the NULL page are as they were.
                    let v_page = paged.v_strides.page as usize;
                    assert!(paged.v.get()[..v_page].iter().all(|b| *b == 0xff));
                    let gap = paged.geometry.row_bytes() as usize;
                    let at = dst as usize * v_page + gap;
                    assert!(paged.v.get()[at..at + dtype.bytes() as usize].iter().all(|b| *b == 0xff));
                }
            }
        }
    }
}

#[test]
fn wrong_ids_are_refused_and_nothing_is_written() {
    let mut paged = Paged::new(Dtype::F16, 4, 2, 4, 8);
    let n = paged.geometry.n_pages;
    let untouched = paged.k.get().to_vec();
    let row = [1.0; 16];
    let good = paged.slot(0);
    for bad in [-2, 0, 3, (n as i64 + 1) * 4, i64::MAX, i64::MIN] {
        let result = append(&mut paged.pages_mut(), &row, &row, &[good, bad]);
        assert_eq!(result, Err(Error::Slot), "{bad}");
    }
    let result = append(&mut paged.pages_mut(), &row, &row[1..], &[good, -1]);
    assert_eq!(result, Err(Error::Shape));

    let copy = |src, dst, tokens| PageCopy { src, dst, tokens };
    for (bad, error) in [
        (copy(0, 1, 1), Error::NullPage),
        (copy(1, 0, 1), Error::NullPage),
        (copy(n + 1, 1, 1), Error::Page),
        (copy(1, u32::MAX, 1), Error::Page),
        (copy(1, 1, 1), Error::Tokens),
        (copy(1, 2, 5), Error::Tokens),
    ] {
        let result = copy_pages(&mut paged.pages_mut(), &[copy(1, 2, 4), bad]);
        assert_eq!(result, Err(error));
    }
    assert_eq!(paged.k.get(), untouched);

    let entries = paged.table.clone();
    for (column, entry, error) in [(1, 0, Error::NullPage), (1, -1, Error::Page), (1, n as i32 + 1, Error::Page)] {
        paged.table[column] = entry;
        assert_eq!(read(&paged, (0, 8)).err(), Some(error));
        assert!(read(&paged, (0, 4)).is_ok());
        paged.table.clone_from(&entries);
    }
    let table = Table::new(&entries, entries.len()).unwrap();
    let (mut k, mut v) = ([0.0; 8], [0.0; 8]);
    let mut get = |row, tokens| gather(&paged.pages(), &table, row, tokens, &mut k, &mut v);
    assert_eq!(get(1, (0, 1)), Err(Error::Table));
    assert_eq!(get(0, (16, 17)), Err(Error::Table));
    assert_eq!(get(0, (2, 1)), Err(Error::Range));
    assert_eq!(get(0, (0, 2)), Err(Error::Shape));
    assert_eq!(Table::new(&entries, 0).err(), Some(Error::Shape));
    assert_eq!(Table::new(&entries, 3).err(), Some(Error::Shape));
}

#[test]
fn wrong_geometry_is_refused() {
    let good = Geometry { dtype: Dtype::F16, page_tokens: 4, n_pages: 3, kv_heads: 2, head_dim: 4 };
    let strides = good.plain_strides();
    let memory = Bytes::poisoned(4 * strides.page as usize);
    let view = |geometry, k, v| Pages::new(geometry, (memory.get(), k), (memory.get(), v)).err();
    assert_eq!(view(good, strides, strides), None);
    for page_tokens in [0, 3, 512, u32::MAX] {
        let geometry = Geometry { page_tokens, ..good };
        assert_eq!(view(geometry, strides, strides), Some(Error::PageTokens));
    }
    for geometry in [
        Geometry { n_pages: 0, ..good },
        Geometry { n_pages: 1 << 31, ..good },
        Geometry { kv_heads: 0, ..good },
        Geometry { kv_heads: 8193, ..good },
        Geometry { head_dim: 0, ..good },
        Geometry { head_dim: 8193, ..good },
    ] {
        assert_eq!(view(geometry, strides, strides), Some(Error::Shape));
    }
    for bad in [
        Strides { page: 6, ..strides },
        Strides { token: 6, ..strides },
        Strides { head: 6, ..strides },
        Strides { page: u64::MAX - 1, ..strides },
        Strides { token: 1 << 63, ..strides },
        Strides { page: strides.page + 2, ..strides },
    ] {
        assert_eq!(view(good, bad, strides), Some(Error::Stride), "{bad:?}");
        assert_eq!(view(good, strides, bad), Some(Error::Stride), "{bad:?}");
    }
    let odd = Strides { head: 9, ..strides };
    assert_eq!(view(good, odd, strides), Some(Error::Align));
    let shifted = Pages::new(good, (&memory.get()[1..], strides), (memory.get(), strides));
    assert_eq!(shifted.err(), Some(Error::Align));
    // With one token or one head that stride is not used.
    let single = Geometry { page_tokens: 1, kv_heads: 1, ..good };
    assert_eq!(view(single, Strides { token: 0, head: 0, ..strides }, strides), None);
}

#[test]
fn keys_and_values_in_one_buffer() {
    let geometry = Geometry { dtype: Dtype::F32, page_tokens: 2, n_pages: 2, kv_heads: 1, head_dim: 4 };
    // [page][k or v][slot][d]
    let strides = Strides { page: 64, token: 16, head: 16 };
    let mut memory = Bytes::poisoned(3 * 64);
    assert!(PagesMut::interleaved(geometry, memory.get_mut(), strides, 48).is_err());
    let mut pages = PagesMut::interleaved(geometry, memory.get_mut(), strides, 32).unwrap();
    append(&mut pages, &[1.0; 4], &[2.0; 4], &[5]).unwrap();
    let (mut k, mut v) = ([0.0; 4], [0.0; 4]);
    let table = Table::new(&[2], 1).unwrap();
    gather(&pages.as_pages(), &table, 0, (1, 2), &mut k, &mut v).unwrap();
    assert_eq!((k, v), ([1.0; 4], [2.0; 4]));
    assert_eq!(memory.get()[2 * 64 + 16..][..4], 1.0f32.to_le_bytes());
    assert_eq!(memory.get()[2 * 64 + 48..][..4], 2.0f32.to_le_bytes());
}

#[test]
fn wrong_attention_arguments_are_refused_and_nothing_is_written() {
    let mut paged = Paged::new(Dtype::F32, 4, 2, 4, 8);
    let kv = Random(1).floats(8 * 8);
    paged.append(0, &kv, &kv);
    let good = AttentionParams { heads: 4, ..Default::default() };
    let n = paged.geometry.n_pages as i32;
    let q = [1.0; 32];
    let run = |paged: &Paged, params: &AttentionParams<'_>, rows: &[i32], positions: &[i32], scratch: usize| {
        let (mut out, mut lse) = ([7.0f32; 32], [7.0f32; 8]);
        let table = Table::new(&paged.table, paged.table.len()).unwrap();
        let queries = Queries { q: &q, positions, table_rows: Some(rows) };
        let mut scratch = vec![0.0; scratch];
        let lse_ = Some(&mut lse[..]);
        let result = attention(&paged.pages(), &table, params, &queries, &mut out, lse_, &mut scratch);
        if result.is_err() {
            assert_eq!((out, lse), ([7.0; 32], [7.0; 8]));
        }
        result.err()
    };
    assert_eq!(run(&paged, &good, &[0, 0], &[7, 3], 32), None);
    assert_eq!(run(&paged, &good, &[0, 0], &[7, 3], 31), Some(Error::Scratch));
    assert_eq!(run(&paged, &good, &[0, 1], &[7, 3], 32), Some(Error::Table));
    assert_eq!(run(&paged, &good, &[0, -1], &[7, 3], 32), Some(Error::Table));
    assert_eq!(run(&paged, &good, &[0, 0], &[7, 16], 32), Some(Error::Table));
    assert_eq!(run(&paged, &good, &[0, 0], &[7, i32::MAX], 32), Some(Error::Table));
    assert_eq!(run(&paged, &good, &[0, -1], &[7, -1], 32), None);
    assert_eq!(run(&paged, &good, &[0], &[7, 3], 32), Some(Error::Shape));
    for (params, error) in [
        (AttentionParams { heads: 0, ..good }, Error::Shape),
        (AttentionParams { scale: f32::NAN, ..good }, Error::Value),
        (AttentionParams { scale: f32::INFINITY, ..good }, Error::Value),
        (AttentionParams { soft_cap: -1.0, ..good }, Error::Value),
        (AttentionParams { soft_cap: f32::NAN, ..good }, Error::Value),
        (AttentionParams { sink_logits: Some(&[0.0; 3]), ..good }, Error::Shape),
    ] {
        assert_eq!(run(&paged, &params, &[0, 0], &[7, 3], 32), Some(error), "{params:?}");
        assert!(attention_scratch(2, &params, 8).is_err() || params.heads == 0);
    }
    for heads in [3, 5, 8193] {
        let params = AttentionParams { heads, ..good };
        assert_eq!(attention_scratch(2, &params, 8), Err(Error::Shape));
    }
    // A wrong id counts only where the mask reads.
    for entry in [n + 1, -1, i32::MIN] {
        let was = core::mem::replace(&mut paged.table[1], entry);
        assert_eq!(run(&paged, &good, &[0, 0], &[3, 4], 32), Some(Error::Page));
        assert_eq!(run(&paged, &good, &[0, 0], &[3, 3], 32), None);
        paged.table[1] = was;
    }
}

#[test]
fn scratch_size_covers_the_longest_row() {
    let params = AttentionParams { heads: 6, window: 10, sink_tokens: 3, ..Default::default() };
    assert_eq!(attention_scratch(2, &params, 0), Ok(0));
    assert_eq!(attention_scratch(2, &params, 1), Ok(3 * 16));
    assert_eq!(attention_scratch(2, &params, 1000), Ok(3 * 16));
    assert_eq!(attention_scratch(1, &params, 1000), Ok(4 * 16));
    let params = AttentionParams { window: 0, ..params };
    assert_eq!(attention_scratch(2, &params, 1000), Ok(3 * 1008));
}

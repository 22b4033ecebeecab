//! Certified bounds: no element, logit, probability or output is further off than they say, in any format.

use kvfolio::layout::{PageLayout, PageLayoutSpec, Rotation, Tensor, TensorFormat};
use kvfolio::quant::{NonFinite, RowCodec, fp4, logit_bound, output_bound, variation_bound};

use crate::page::formats;
use crate::support::{Rng, groups};

const P: u32 = 32;
const DIM: usize = 64;

struct Written {
    read: Vec<f32>,
    errors: Vec<f32>,
}

/// One page of one head.
fn write(spec: &PageLayoutSpec, tensor: Tensor, x: &[f32]) -> Written {
    let layout = PageLayout::new(spec).unwrap();
    let scale = if layout.part(tensor).format == TensorFormat::NVFP4 || layout.part(tensor).format.group == 16 {
        fp4::nvfp4_tensor_scale(x).max(1e-30)
    } else {
        x.iter().fold(1e-6_f32, |most, x| most.max(x.abs())) / 200.0
    };
    let scales = vec![scale; layout.part(tensor).static_scales as usize];
    let codec = RowCodec::new(&layout, tensor, &scales).unwrap();
    let mut memory = vec![0_u64; layout.page_bytes as usize / 8];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
    let mut rows = x.to_vec();
    codec.rotate(&mut rows, 0, 0).unwrap();
    let _ = codec.write(bytes, 0, 0, 0..P, &rows, NonFinite::Reject).unwrap();
    let (mut read, mut errors) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    codec.read(bytes, 0, 0, 0..P, &mut read).unwrap();
    codec.error_bounds(bytes, 0, 0, 0..P, &mut errors).unwrap();
    Written { read, errors }
}

fn spec(format: TensorFormat) -> PageLayoutSpec {
    PageLayoutSpec { page_tokens: P, ..PageLayoutSpec::new(1, 1, DIM as u32, format) }
}

#[test]
fn no_element_is_further_off_than_its_bound() {
    let pages = groups() / 1000 + 20;
    for format in formats() {
        let mut rng = Rng(21);
        let (mut largest, mut infinite) = (0.0_f64, 0);
        for _ in 0..pages {
            let mut x = vec![0.0; P as usize * DIM];
            x.chunks_mut(16).for_each(|x| rng.fill(x));
            let Written { read, errors } = write(&spec(format), Tensor::V, &x);
            for ((x, y), e) in x.iter().zip(&read).zip(&errors) {
                assert!(*e >= 0.0, "{format:?}: no bound is NaN");
                let error = (f64::from(*x) - f64::from(*y)).abs();
                assert!(error <= f64::from(*e), "{format:?}: {x:e} became {y:e}, bound {e:e}");
                infinite += usize::from(e.is_infinite());
                if e.is_finite() && *e > 0.0 {
                    largest = largest.max(error / f64::from(*e));
                }
            }
        }
        let is_exact = format == TensorFormat::F32;
        assert!(is_exact || largest > 0.4, "{format:?}: the bound is idle, {largest}");
        assert!(infinite * 10 < pages * P as usize * DIM * 9, "{format:?}: what f16 holds has a bound");
    }
}

#[test]
fn attention_is_no_further_off_than_its_bounds() {
    let mut rng = Rng(4);
    let rotated = PageLayoutSpec {
        rotation: Rotation::HADAMARD,
        rotation_size: 64,
        rotation_parts: PageLayoutSpec::ROTATE_K,
        rotation_seed: 9,
        ..spec(TensorFormat::Q4_0)
    };
    let mut tightest = 0.0_f64;
    for spec in formats().into_iter().map(spec).chain([rotated]) {
        for _ in 0..20 {
            let (k, v) = (rng.gaussians(P as usize * DIM), rng.gaussians(P as usize * DIM));
            let q = rng.gaussians(DIM);
            let scale = 0.125;
            let (keys, values) = (write(&spec, Tensor::K, &k), write(&spec, Tensor::V, &v));
            let mut asked = q.clone();
            let layout = PageLayout::new(&spec).unwrap();
            if layout.k.static_scales == 0 {
                RowCodec::new(&layout, Tensor::K, &[]).unwrap().rotate(&mut asked, 0, 0).unwrap();
            }
            let d = logit_bound(&asked, scale, &keys.errors) + 1e-5; // the rotation rounds
            let logits = |k: &[f32]| -> Vec<f64> {
                let dot = |row: &[f32]| row.iter().zip(&q).map(|(k, q)| f64::from(*k) * f64::from(*q)).sum::<f64>();
                k.chunks(DIM).map(|row| dot(row) * f64::from(scale)).collect()
            };
            let softmax = |x: &[f64]| -> Vec<f64> {
                let e: Vec<f64> = x.iter().map(|x| x.exp()).collect();
                let sum: f64 = e.iter().sum();
                e.iter().map(|e| e / sum).collect()
            };
            let (exact, read) = (logits(&k), logits(&keys.read));
            assert!(exact.iter().zip(&read).all(|(a, b)| (a - b).abs() <= d), "{:?}", spec.k);
            let (p, moved) = (softmax(&exact), softmax(&read));
            let variation = p.iter().zip(&moved).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0;
            assert!(variation <= variation_bound(d), "{:?}: {variation}", spec.k);
            tightest = tightest.max(variation / variation_bound(d));
            for channel in 0..DIM {
                let of = |v: &[f32], p: &[f64]| -> f64 {
                    v.iter().skip(channel).step_by(DIM).zip(p).map(|(v, p)| f64::from(*v) * p).sum()
                };
                let column = || values.read.iter().skip(channel).step_by(DIM).copied();
                let (least, most) = (column().fold(f32::MAX, f32::min), column().fold(f32::MIN, f32::max));
                let error = values.errors.iter().skip(channel).step_by(DIM).copied().fold(0.0, f32::max);
                let bound = output_bound(variation_bound(d), most - least, error);
                assert!((of(&v, &p) - of(&values.read, &moved)).abs() <= bound, "{:?}", spec.v);
            }
        }
    }
    assert!(tightest > 0.05, "{tightest}");
}

//! The rotation: blocks, involution, signs, what it is for.

use kvfolio::quant::*;

use crate::int::{Encoded, format};
use crate::support::*;

#[test]
fn blocks_divide_the_row() {
    for (dim, cap, block) in
        [(128, 128, 128), (128, 64, 64), (80, 128, 16), (96, 128, 32), (112, 256, 16), (64, 100, 64), (7, 8, 1)]
    {
        assert_eq!(Rotation::of(dim, cap).unwrap().block, block, "{dim} {cap}");
    }
    assert_eq!((Rotation::of(0, 8), Rotation::of(8, 0)), (Err(QuantError::Group), Err(QuantError::Group)));
    let wrong = Rotation { block: 32, ..Rotation::NONE };
    assert_eq!(wrong.apply(&mut [0.0; 80], 80, 0, 0), Err(QuantError::Group));
    assert_eq!(Rotation { block: 3, ..wrong }.apply(&mut [0.0; 3], 3, 0, 0), Err(QuantError::Group));
    assert_eq!(Rotation { signed: 2, ..wrong }.apply(&mut [0.0; 32], 32, 0, 0), Err(QuantError::Group));
    assert_eq!(wrong.apply(&mut [0.0; 33], 32, 0, 0), Err(QuantError::Length));
    assert_eq!(wrong.apply(&mut [], 0, 0, 0), Err(QuantError::Length));
    let mut x = [1.0, 2.0];
    Rotation::NONE.apply(&mut x, 2, 0, 0).unwrap();
    assert_eq!(x, [1.0, 2.0]);
}

#[test]
fn twice_is_nothing() {
    let mut rng = Rng(1);
    for (dim, cap) in [(128, 128), (256, 256), (80, 64), (96, 128), (64, 16), (2, 2)] {
        let plain = Rotation::of(dim, cap).unwrap();
        for rotation in [plain, plain.with_signs(9)] {
            for _ in 0..200 {
                let x = rng.gaussians(3 * dim as usize);
                let mut y = x.clone();
                rotation.apply(&mut y, dim as usize, 3, 1).unwrap();
                rotation.revert(&mut y, dim as usize, 3, 1).unwrap();
                let steps = 4.0 * f64::from(rotation.block.ilog2());
                for (x, y) in x.chunks(rotation.block as usize).zip(y.chunks(rotation.block as usize)) {
                    let bound = steps.max(1.0) * ulp(amax(x));
                    assert!(x.iter().zip(y).all(|(&x, &y)| (f64::from(x) - f64::from(y)).abs() <= bound));
                }
            }
        }
    }
}

#[test]
fn one_element_spreads_evenly() {
    for at in [0, 5, 63] {
        let mut x = [0.0; 64];
        x[at] = 8.0;
        Rotation::of(64, 64).unwrap().apply(&mut x, 64, 0, 0).unwrap();
        assert!(x.iter().all(|x| x.abs() == 1.0));
    }
    let mut x = [0.0; 128];
    x[70] = 1.0;
    Rotation::of(128, 128).unwrap().apply(&mut x, 128, 0, 0).unwrap();
    assert!(x.iter().all(|x| x.abs() == (1.0 / 128_f64.sqrt()) as f32));
}

#[test]
fn logits_are_unchanged() {
    let mut rng = Rng(2);
    let rotation = Rotation::of(96, 128).unwrap().with_signs(4);
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    for _ in 0..500 {
        let (mut q, mut k) = (rng.gaussians(96), rng.gaussians(96));
        let before = dot(&q, &k);
        rotation.apply(&mut q, 96, 1, 2).unwrap();
        rotation.apply(&mut k, 96, 1, 2).unwrap();
        assert!((dot(&q, &k) - before).abs() < 1e-4);
    }
}

#[test]
fn signs_differ_by_seed_layer_and_head() {
    let signs = |seed, layer, head| {
        let mut x = [1.0_f32; 128];
        Rotation::of(128, 1).unwrap().with_signs(seed).apply(&mut x, 128, layer, head).unwrap();
        x.map(|x| x.is_sign_negative())
    };
    let all = [signs(0, 0, 0), signs(1, 0, 0), signs(0, 1, 0), signs(0, 0, 1), signs(0, 1, 1)];
    for (i, a) in all.iter().enumerate() {
        let minus = a.iter().filter(|&&is| is).count();
        assert!((40..88).contains(&minus), "{minus}");
        assert!(all.iter().skip(i + 1).all(|b| a != b));
    }
    // And are not told apart by bits, but by the rotation.
    assert_ne!(Rotation::of(128, 1).unwrap().with_signs(1), Rotation::of(128, 1).unwrap().with_signs(2));
}

/// 4 bits are useless for keys with an outlier channel, unless rotated.
#[test]
fn rotation_tames_an_outlier() {
    let mut rng = Rng(3);
    let mut x = rng.gaussians(256 * 128);
    x.chunks_mut(128).for_each(|row| row[17] += 40.0);
    let format = format(IntBits::B4, 128, 128);
    let plain = relative_l2(&x, &Encoded::of(format, &x).decoded());
    let mut y = x.clone();
    let rotation = Rotation::of(128, 128).unwrap();
    rotation.apply(&mut y, 128, 0, 0).unwrap();
    let mut y = Encoded::of(format, &y).decoded();
    rotation.revert(&mut y, 128, 0, 0).unwrap();
    let rotated = relative_l2(&x, &y);
    assert!(rotated < plain / 2.0, "{plain} {rotated}");
}

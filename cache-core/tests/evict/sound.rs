//! Which removals and positions each layout allows.

use kvfolio::evict::*;
use kvfolio::layout::*;

fn layout(k: TensorFormat, v: TensorFormat, rope: RopeState) -> PageLayout {
    let spec = PageLayoutSpec::new(1, 2, 64, k);
    PageLayout::new(&PageLayoutSpec { v, rope, page_tokens: 64, ..spec }).unwrap()
}

#[test]
fn the_table() {
    let exact = [TensorFormat::F32, TensorFormat::F16, TensorFormat::BF16];
    let along_channels = [
        TensorFormat::per_token(ElementCode::INT8, 0),
        TensorFormat::per_token(ElementCode::INT4, 32),
        TensorFormat::of(ElementCode::Q8_0),
        TensorFormat::fp8(ElementCode::FP8_E4M3FN, ScaleMode::TOKEN_HEAD),
    ];
    let along_tokens =
        [ElementCode::INT8, ElementCode::INT4, ElementCode::INT2].map(|e| TensorFormat::per_channel(e, 32));
    let removals = [Removal::Hole, Removal::Replace, Removal::Compact];
    for rope in [RopeState::NONE, RopeState::PRE, RopeState::POST] {
        for (kind, formats) in [&exact[..], &along_channels, &along_tokens].into_iter().enumerate() {
            for &format in formats {
                let layout = layout(format, format, rope);
                assert_eq!(move_unit(&layout), if kind == 2 { 32 } else { 1 });
                for removal in removals {
                    let whole = kind == 2 && removal == Removal::Replace;
                    let expected = if whole { Err(EvictError::GroupOfTokens) } else { Ok(()) };
                    assert_eq!(check_sound(&layout, removal, PositionMode::Absolute), expected);
                    let turned = rope == RopeState::POST && kind > 0;
                    let expected = if turned { expected.and(Err(EvictError::Keys)) } else { expected };
                    assert_eq!(check_sound(&layout, removal, PositionMode::CacheRelative), expected);
                }
            }
        }
    }
    // Values in groups of tokens are as immutable as keys.
    let values = layout(TensorFormat::F16, TensorFormat::per_channel(ElementCode::INT4, 16), RopeState::PRE);
    assert_eq!(move_unit(&values), 16);
    assert_eq!(check_sound(&values, Removal::Replace, PositionMode::Absolute), Err(EvictError::GroupOfTokens));
}

#[test]
fn latent_attention_turns_its_rope_part_and_hadamard_nothing() {
    let mla = PageLayoutSpec {
        v: TensorFormat::default(),
        v_dim: 0,
        rope_dim: 64,
        rope_part: TensorFormat::BF16,
        rope: RopeState::POST,
        flags: PageLayoutSpec::MLA,
        ..PageLayoutSpec::new(1, 1, 512, TensorFormat::per_token(ElementCode::INT8, 128))
    };
    let mla = PageLayout::new(&mla).unwrap();
    assert_eq!(check_sound(&mla, Removal::Compact, PositionMode::CacheRelative), Ok(()));
    let rotated = PageLayoutSpec {
        rotation: Rotation::HADAMARD,
        rotation_size: 64,
        rotation_parts: PageLayoutSpec::ROTATE_K,
        rotation_seed: 1,
        rope: RopeState::POST,
        ..PageLayoutSpec::new(1, 2, 64, TensorFormat::F16)
    };
    let rotated = PageLayout::new(&rotated).unwrap();
    assert_eq!(check_sound(&rotated, Removal::Hole, PositionMode::CacheRelative), Err(EvictError::Keys));
    assert_eq!(check_sound(&rotated, Removal::Hole, PositionMode::Absolute), Ok(()));
    let mut other = rotated;
    other.layer_bytes += 1;
    assert_eq!(check_sound(&other, Removal::Hole, PositionMode::Absolute), Err(EvictError::Layout));
}

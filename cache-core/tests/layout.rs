//! Page layouts: what is refused, where every element lies, and what an id stands for.
#![allow(missing_docs)]

use kvfolio::PageId;
use kvfolio::layout::*;

const E4M3: ElementCode = ElementCode::FP8_E4M3FN;
const INTEGERS: [ElementCode; 4] =
    [ElementCode::INT8, ElementCode::INT4, ElementCode::INT2, ElementCode::INT8_SYMMETRIC];
const PLAIN: [TensorFormat; 7] = [
    TensorFormat::F32,
    TensorFormat::F16,
    TensorFormat::BF16,
    TensorFormat::Q8_0,
    TensorFormat::Q4_0,
    TensorFormat::NVFP4,
    TensorFormat::MXFP4,
];
const TENSORS: [Tensor; 3] = [Tensor::K, Tensor::V, Tensor::Rope];

fn int4(group: u32) -> TensorFormat {
    TensorFormat::per_token(ElementCode::INT4, group)
}

fn spec() -> PageLayoutSpec {
    PageLayoutSpec::new(2, 2, 64, int4(32))
}

fn mla() -> PageLayoutSpec {
    let latent = TensorFormat { group: 128, ..TensorFormat::fp8(E4M3, ScaleMode::TOKEN_HEAD) };
    PageLayoutSpec { page_tokens: 64, ..PageLayoutSpec::mla(61, 512, 64, latent, TensorFormat::BF16) }
}

fn rotated(parts: u32) -> PageLayoutSpec {
    PageLayoutSpec { rotation: Rotation::HADAMARD, rotation_size: 64, rotation_parts: parts, ..spec() }
}

#[test]
fn unsound_combinations_are_refused_each_with_its_reason() {
    use LayoutError as E;
    let format = |k: TensorFormat| PageLayoutSpec { k, ..spec() };
    let cases: &[(E, PageLayoutSpec)] = &[
        (E::PageTokens, PageLayoutSpec { page_tokens: 0, ..spec() }),
        (E::PageTokens, PageLayoutSpec { page_tokens: 24, ..spec() }),
        (E::PageTokens, PageLayoutSpec { page_tokens: 512, ..spec() }),
        (E::Layers, PageLayoutSpec { layers: 0, ..spec() }),
        (E::Heads, PageLayoutSpec { kv_heads: 0, ..spec() }),
        (E::HeadDim, PageLayoutSpec { k_dim: 0, ..spec() }),
        (E::HeadDim, PageLayoutSpec { v_dim: 0, ..spec() }),
        (E::HeadDim, PageLayoutSpec { k_dim: 33, k: int4(0), ..spec() }),
        (E::Align, PageLayoutSpec { align: 8, ..spec() }),
        (E::Align, PageLayoutSpec { align: 48, ..spec() }),
        (E::Align, PageLayoutSpec { align: 256, ..spec() }),
        (E::Format, format(TensorFormat::default())),
        (E::Format, format(TensorFormat::of(ElementCode::new(99)))),
        (E::Format, format(TensorFormat { reserved: 1, ..int4(32) })),
        (E::Format, format(TensorFormat { flags: 8, ..int4(32) })),
        (E::Format, format(TensorFormat { axis: Axis::new(3), ..int4(32) })),
        (E::Format, format(TensorFormat { scale: ScaleMode::new(4), ..int4(32) })),
        // A channel axis on formats that have none, and integers without one.
        (E::Axis, format(TensorFormat { axis: Axis::CHANNEL, ..TensorFormat::F16 })),
        (E::Axis, format(TensorFormat { axis: Axis::CHANNEL, ..TensorFormat::Q4_0 })),
        (E::Axis, format(TensorFormat { axis: Axis::CHANNEL, ..TensorFormat::fp8(E4M3, ScaleMode::HEAD) })),
        (E::Axis, format(TensorFormat { axis: Axis::TOKEN, ..TensorFormat::NVFP4 })),
        (E::Axis, format(TensorFormat { axis: Axis::NONE, ..int4(32) })),
        (E::Group, format(int4(24))),
        (E::Group, format(TensorFormat { group: 16, ..TensorFormat::F16 })),
        (E::Group, format(TensorFormat { group: 16, ..TensorFormat::Q8_0 })),
        (E::Group, format(TensorFormat { group: 64, ..TensorFormat::fp8(E4M3, ScaleMode::TENSOR) })),
        (E::Group, format(TensorFormat::per_channel(ElementCode::INT4, 0))),
        (E::GroupDim, format(int4(128))),
        (E::GroupDim, PageLayoutSpec { k_dim: 80, ..spec() }),
        (E::GroupDim, PageLayoutSpec { k_dim: 40, k: TensorFormat::NVFP4, ..spec() }),
        (E::GroupDim, PageLayoutSpec { k_dim: 48, k: TensorFormat::Q8_0, ..spec() }),
        // Pages shorter than a group along tokens.
        (E::GroupPage, format(TensorFormat::per_channel(ElementCode::INT2, 32))),
        (E::GroupPage, PageLayoutSpec { page_tokens: 1, ..format(TensorFormat::per_channel(ElementCode::INT8, 16)) }),
        (E::ScaleMode, format(TensorFormat::of(E4M3))),
        (E::ScaleMode, format(TensorFormat { scale: ScaleMode::TENSOR, ..int4(32) })),
        (E::ScaleMode, format(TensorFormat { scale: ScaleMode::HEAD, ..TensorFormat::F16 })),
        (E::DynamicScale, format(dynamic(ScaleMode::TENSOR))),
        (E::DynamicScale, format(dynamic(ScaleMode::HEAD))),
        (E::PowerOfTwo, format(TensorFormat { flags: TensorFormat::POWER_OF_TWO, ..int4(32) })),
        (E::Rope, PageLayoutSpec { rope: RopeState::default(), ..spec() }),
        (E::Rope, PageLayoutSpec { rope: RopeState::new(9), ..spec() }),
        (E::Rerotate, PageLayoutSpec { flags: PageLayoutSpec::REROTATED, ..spec() }),
        (E::Rotation, PageLayoutSpec { rotation: Rotation::new(7), ..rotated(1) }),
        (E::Rotation, PageLayoutSpec { rotation_size: 0, ..rotated(1) }),
        (E::Rotation, PageLayoutSpec { rotation_size: 1, ..rotated(1) }),
        (E::Rotation, PageLayoutSpec { rotation_size: 48, ..rotated(1) }),
        (E::Rotation, rotated(0)),
        (E::Rotation, rotated(4)),
        (E::Rotation, PageLayoutSpec { rotation_seed: 5, ..spec() }),
        (E::Rotation, PageLayoutSpec { rotation_size: 64, ..spec() }),
        (E::RotationDim, PageLayoutSpec { rotation_size: 128, ..rotated(1) }),
        (E::RotationDim, PageLayoutSpec { v_dim: 96, ..rotated(3) }),
        (E::RotationRope, PageLayoutSpec { rope: RopeState::PRE, ..rotated(1) }),
        (E::RotationRope, PageLayoutSpec { k: TensorFormat::F16, flags: PageLayoutSpec::REROTATED, ..rotated(1) }),
        (E::MlaHeads, PageLayoutSpec { kv_heads: 2, ..mla() }),
        (E::MlaValue, PageLayoutSpec { v: TensorFormat::F16, ..mla() }),
        (E::MlaValue, PageLayoutSpec { v_dim: 512, ..mla() }),
        (E::MlaRope, PageLayoutSpec { rope_part: int4(32), ..mla() }),
        (E::RopePart, PageLayoutSpec { rope_dim: 0, ..mla() }),
        (E::RopePart, PageLayoutSpec { rope_part: TensorFormat::default(), ..mla() }),
        (E::RopePart, PageLayoutSpec { rope_dim: 64, ..spec() }),
        (E::RopePart, PageLayoutSpec { rope_part: TensorFormat::F16, ..spec() }),
        (E::Rotation, PageLayoutSpec { rotation: Rotation::HADAMARD, rotation_size: 64, rotation_parts: 2, ..mla() }),
        (E::Order, PageLayoutSpec { order: Order::new(2), ..spec() }),
        (
            E::Order,
            PageLayoutSpec {
                page_tokens: 32,
                order: Order::TOKENS,
                ..format(TensorFormat::per_channel(ElementCode::INT4, 32))
            },
        ),
        (E::TooLarge, PageLayoutSpec { layers: u32::MAX, kv_heads: u32::MAX, ..spec() }),
        (E::TooLarge, PageLayoutSpec { layers: 1 << 20, kv_heads: 1 << 13, ..spec() }),
        (E::TooLarge, PageLayoutSpec { k: TensorFormat::F32, v: TensorFormat::F32, k_dim: u32::MAX, ..spec() }),
        (E::Flags, PageLayoutSpec { flags: 1 << 8, ..spec() }),
        (E::Flags, PageLayoutSpec { flags: 4, ..spec() }),
    ];
    for (reason, spec) in cases {
        assert_eq!(PageLayout::new(spec).map(|layout| layout.id), Err(*reason), "{spec:?}");
    }
    for reason in E::ALL.iter().filter(|r| !matches!(r, E::Descriptor | E::Index | E::Mismatch)) {
        assert!(cases.iter().any(|(case, _)| case == reason), "{reason:?} has no case");
    }
}

fn dynamic(scale: ScaleMode) -> TensorFormat {
    TensorFormat { flags: TensorFormat::DYNAMIC, ..TensorFormat::fp8(E4M3, scale) }
}

#[test]
fn what_looks_odd_and_is_sound_is_allowed() {
    let exact = |flags| PageLayoutSpec { flags, ..PageLayoutSpec::new(1, 1, 64, TensorFormat::F16) };
    let allowed = [
        exact(PageLayoutSpec::REROTATED), // from the exact key, once
        PageLayoutSpec { rope: RopeState::PRE, flags: PageLayoutSpec::REROTATED, ..spec() }, // nothing to rotate
        PageLayoutSpec { flags: PageLayoutSpec::MLA | PageLayoutSpec::REROTATED, ..mla() }, // its rope part is exact
        PageLayoutSpec { k: TensorFormat::F16, v: TensorFormat::F16, ..rotated(3) },
        PageLayoutSpec { rope: RopeState::PRE, ..rotated(PageLayoutSpec::ROTATE_V) },
        PageLayoutSpec { page_tokens: 1, ..spec() },
        PageLayoutSpec { k_dim: 80, k: int4(0), ..spec() },
        PageLayoutSpec { k_dim: 192, v_dim: 128, ..spec() },
        PageLayoutSpec { k: dynamic(ScaleMode::TOKEN_HEAD), ..spec() },
        PageLayoutSpec::mla(1, 576, 0, TensorFormat::BF16, TensorFormat::default()),
    ];
    for spec in allowed {
        PageLayout::new(&spec).unwrap_or_else(|reason| panic!("{reason}: {spec:?}"));
    }
    assert!(!PageLayout::new(&exact(0)).unwrap().is_lossy());
    assert!(PageLayout::new(&rotated(1)).unwrap().is_lossy());
    // A rotation costs one more rounding even where elements are plain numbers.
    let turned = PageLayoutSpec { k: TensorFormat::F16, v: TensorFormat::F16, ..rotated(1) };
    assert!(PageLayout::new(&turned).unwrap().is_lossy());
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % u64::from(n)) as u32
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    fn format(&mut self) -> TensorFormat {
        let group = self.of(&[0, 16, 32, 64, 128]);
        let fp8 = self.of(&[ElementCode::FP8_E4M3FN, ElementCode::FP8_E4M3FNUZ, ElementCode::FP8_E5M2]);
        match self.below(4) {
            0 => self.of(&PLAIN),
            1 => TensorFormat::per_token(self.of(&INTEGERS), group),
            2 => TensorFormat::per_channel(self.of(&INTEGERS), group),
            _ => {
                let scale = self.of(&[ScaleMode::TENSOR, ScaleMode::HEAD, ScaleMode::TOKEN_HEAD]);
                let group = if scale == ScaleMode::TOKEN_HEAD { group } else { 0 };
                let flags = self.below(2) * TensorFormat::POWER_OF_TWO;
                TensorFormat { group, flags, ..TensorFormat::fp8(fp8, scale) }
            }
        }
    }

    fn spec(&mut self) -> PageLayoutSpec {
        let dims = [16, 32, 48, 64, 80, 96, 128];
        let common = PageLayoutSpec {
            page_tokens: 1 << self.below(8),
            kv_heads: self.below(3) + 1,
            v_dim: self.of(&dims),
            v: self.format(),
            align: self.of(&[0, 16, 32, 64, 128]),
            order: self.of(Order::ALL),
            rope: self.of(RopeState::ALL),
            generation: self.below(3).into(),
            ..PageLayoutSpec::new(self.below(3) + 1, 1, self.of(&dims), self.format())
        };
        if self.below(4) > 0 {
            return common;
        }
        let exact = self.of(&PLAIN[..3]);
        let unset = TensorFormat::default();
        let mla = PageLayoutSpec { v: unset, v_dim: 0, kv_heads: 1, flags: PageLayoutSpec::MLA, ..common };
        PageLayoutSpec { rope_dim: 16, rope_part: exact, ..mla }
    }
}

/// Who owns each bit of a page.
struct Bits(Vec<u64>);

impl Bits {
    fn take(&mut self, byte: u64, bit: u32, bits: u32, owner: u64, shared: bool) {
        let first = byte as usize * 8 + bit as usize;
        for slot in &mut self.0[first..first + bits as usize] {
            assert!(*slot == 0 || (shared && *slot == owner), "two owners of one bit");
            *slot = owner;
        }
    }
}

/// Walks every element of a page.
fn walk(layout: &PageLayout) {
    let mut page = Bits(vec![0; layout.page_bytes as usize * 8]);
    let mut owner = 0;
    for layer in 0..layout.layers {
        for tensor in TENSORS {
            let part = layout.part(tensor);
            if part.flags & PartLayout::ALIAS != 0 {
                let here = layout.row(layer, tensor, 0, layout.page_tokens - 1).unwrap();
                assert_eq!(here, layout.row(layer, Tensor::K, 0, layout.page_tokens - 1).unwrap());
                continue;
            }
            for (head, token, channel) in (0..layout.kv_heads)
                .flat_map(|head| (0..layout.page_tokens).map(move |token| (head, token)))
                .flat_map(|(head, token)| (0..part.dim).map(move |channel| (head, token, channel)))
            {
                owner += 1;
                let at = layout.element(layer, tensor, head, token, channel).unwrap();
                page.take(at.byte, at.bit, at.bits, owner, false);
                // A group's scale and zero belong to its own elements only.
                let along = part.format.axis == Axis::CHANNEL;
                let size = if along { part.block_tokens } else { part.dim / part.groups };
                let (a, b) = if along { (token / size, channel) } else { (token, channel / size) };
                let group = (1_u64 << 63)
                    | (u64::from(layer) << 48)
                    | ((tensor as u64) << 44)
                    | (u64::from(head) << 36)
                    | (u64::from(a) << 16)
                    | u64::from(b);
                if at.scale != 0 {
                    page.take(at.scale, 0, part.scale_bytes * 8, group, true);
                    assert_eq!(at.scale % u64::from(part.scale_bytes), 0);
                }
                if at.zero != 0 {
                    page.take(at.zero, 0, part.zero_bytes * 8, group | 1 << 62, true);
                }
                let first = if along { token % size } else { channel % size };
                if first == 0 && part.format.inline_bytes() > 0 {
                    page.take(at.byte - 2, 0, 16, group, true);
                }
                // A plain element is aligned for its type.
                assert!(!part.format.is_exact() || at.byte.is_multiple_of(u64::from(at.bits / 8)));
            }
        }
    }
    let owned = page.0.iter().filter(|&&bit| bit != 0).count() as u64;
    assert_eq!(owned, layout.payload_bytes() * 8);
    assert_eq!(layout.payload_bytes() + layout.padding_bytes(), layout.page_bytes);
    // What belongs to nobody lies outside all sections.
    let (mut end, mut sum) = (0, 0);
    for section in layout.sections() {
        assert!(section.offset >= end && section.offset.is_multiple_of(layout.align.into()));
        end = section.offset + section.bytes;
        sum += section.bytes;
    }
    assert!(end <= layout.page_bytes && layout.page_bytes.is_multiple_of(layout.align.into()));
    assert_eq!(sum, layout.payload_bytes());
    assert!(end + u64::from(layout.align) > layout.page_bytes);
}

#[test]
fn every_element_has_its_own_bits_within_the_page() {
    let mut random = Random(1);
    let (mut walked, mut tried) = (0, 0);
    let mut formats = std::collections::BTreeSet::new();
    while walked < 300 {
        tried += 1;
        let spec = random.spec();
        let Ok(layout) = PageLayout::new(&spec) else { continue };
        if layout.page_bytes > 1 << 16 {
            continue;
        }
        walk(&layout);
        layout.verify().unwrap();
        assert_eq!(PageLayout::new(&layout.spec()), Ok(layout));
        formats.insert((layout.k.format.element.get(), layout.k.format.axis.get()));
        walked += 1;
    }
    assert!(tried < 20_000);
    assert_eq!(formats.len(), 14 + INTEGERS.len(), "every format, integers along both axes");
}

#[test]
fn what_is_not_there_has_no_address() {
    let layout = PageLayout::new(&spec()).unwrap();
    let at = |layer, tensor, head, token| layout.row(layer, tensor, head, token);
    assert!(at(1, Tensor::V, 1, 15).is_ok());
    for wrong in [at(2, Tensor::V, 1, 15), at(1, Tensor::V, 2, 15), at(1, Tensor::V, 1, 16), at(1, Tensor::Rope, 0, 0)]
    {
        assert_eq!(wrong, Err(LayoutError::Index));
    }
    assert_eq!(layout.element(0, Tensor::K, 0, 0, 64), Err(LayoutError::Index));
    assert_eq!(layout.offset(PageId::NULL, 0, Tensor::K, 0, 0), Err(LayoutError::Index));
    let far = layout.offset(PageId::new(1 << 24), 1, Tensor::V, 1, 15).unwrap();
    assert_eq!(far.codes, (layout.page_bytes << 24) + at(1, Tensor::V, 1, 15).unwrap().codes);
    // Offsets beyond 32 bits.
    let large = PageLayout::new(&PageLayoutSpec::new(32, 32, 128, TensorFormat::F16)).unwrap();
    assert_eq!(large.offset(PageId::new(1 << 20), 0, Tensor::K, 0, 0).unwrap().codes, (524_288 * 16) << 20);
}

/// Every single change of a spec that gives another legal layout gives another id; so does every change of a descriptor.
#[test]
fn ids_differ_with_every_meaningful_field() {
    let base = PageLayoutSpec { page_tokens: 64, k_dim: 128, v_dim: 128, ..rotated(3) };
    let base = PageLayoutSpec { k: int4(64), v: int4(64), ..base };
    let variants = [
        base,
        PageLayoutSpec { page_tokens: 32, ..base },
        PageLayoutSpec { layers: 3, ..base },
        PageLayoutSpec { kv_heads: 3, ..base },
        PageLayoutSpec { k_dim: 192, ..base },
        PageLayoutSpec { v_dim: 192, ..base },
        PageLayoutSpec { k: int4(32), ..base },
        PageLayoutSpec { k: TensorFormat::per_channel(ElementCode::INT4, 64), ..base },
        PageLayoutSpec { k: TensorFormat::per_token(ElementCode::INT8_SYMMETRIC, 64), ..base },
        PageLayoutSpec { v: TensorFormat::per_token(ElementCode::INT2, 64), ..base },
        PageLayoutSpec { align: 64, ..base },
        PageLayoutSpec { order: Order::TOKENS, ..base },
        PageLayoutSpec { rope: RopeState::NONE, ..base },
        PageLayoutSpec { rotation_size: 32, ..base },
        PageLayoutSpec { rotation_parts: 1, ..base },
        PageLayoutSpec { rotation_parts: 2, ..base },
        PageLayoutSpec { rotation_seed: 1, ..base },
        PageLayoutSpec { generation: 1, ..base },
        PageLayoutSpec { rotation: Rotation::NONE, rotation_size: 0, rotation_parts: 0, ..base },
        PageLayoutSpec { k: TensorFormat::F16, v: TensorFormat::F16, ..base },
        PageLayoutSpec { k: TensorFormat::BF16, v: TensorFormat::F16, ..base },
        PageLayoutSpec { rope: RopeState::PRE, rotation_parts: 2, ..base },
        PageLayoutSpec { rope: RopeState::PRE, rotation_parts: 2, flags: PageLayoutSpec::REROTATED, ..base },
        mla(),
        PageLayoutSpec { rope_part: TensorFormat::F16, ..mla() },
    ];
    let mut ids: Vec<u64> = variants.iter().map(|spec| PageLayout::new(spec).unwrap().id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), variants.len());

    // Defaults that are written out mean the same.
    let id = |spec: PageLayoutSpec| PageLayout::new(&spec).unwrap().id;
    assert_eq!(id(PageLayoutSpec { align: 16, ..base }), id(PageLayoutSpec { align: 0, ..base }));
    assert_eq!(id(PageLayoutSpec { k: int4(128), ..base }), id(PageLayoutSpec { k: int4(0), ..base }));
    let q8 = TensorFormat { group: 32, ..TensorFormat::Q8_0 };
    assert_eq!(id(PageLayoutSpec { k: q8, ..base }), id(PageLayoutSpec { k: TensorFormat::Q8_0, ..base }));
}

#[test]
fn a_descriptor_from_elsewhere_is_checked() {
    let good = PageLayout::new(&spec()).unwrap();
    assert_eq!(good.struct_size as usize, size_of::<PageLayout>());
    let bad = [
        PageLayout { version: 2, ..good },
        PageLayout { id: good.id ^ 1, ..good },
        PageLayout { page_bytes: good.page_bytes + 16, ..good },
        PageLayout { flags: 0, ..good },
        PageLayout { k: PartLayout { scales: good.k.scales + 16, ..good.k }, ..good },
        PageLayout { v: PartLayout { groups: 0, ..good.v }, ..good },
        PageLayout { v: PartLayout { flags: 4, ..good.v }, ..good },
        PageLayout { rope_part: PartLayout { codes: 1, ..good.rope_part }, ..good },
        PageLayout { struct_size: 0, ..good },
    ];
    for layout in bad {
        assert!(layout.verify().is_err());
        // Whatever is asked of it, no call panics.
        let _ = (layout.row(1, Tensor::V, 1, 15), layout.element(1, Tensor::V, 1, 15, 63), layout.sections().count());
        let _ = (layout.token_bytes(), layout.element_bits(Tensor::V), layout.token_elements());
    }
    let other = PageLayout::new(&PageLayoutSpec { generation: 1, ..spec() }).unwrap();
    assert_eq!(good.expect(good.id), Ok(()));
    assert_eq!(good.expect(other.id), Err(LayoutError::Mismatch));
}

#[test]
fn bits_per_element_are_exact() {
    let bits = |format, tensor, dim| {
        let spec = PageLayoutSpec { page_tokens: 128, ..PageLayoutSpec::new(2, 2, dim, format) };
        let ratio = PageLayout::new(&spec).unwrap().element_bits(tensor);
        (ratio.numerator, ratio.denominator)
    };
    let cases = [
        (TensorFormat::F32, (32, 1)),
        (TensorFormat::BF16, (16, 1)),
        (TensorFormat::per_token(ElementCode::INT8, 0), (33, 4)), // b + 32 / G
        (int4(128), (17, 4)),
        (int4(64), (9, 2)),
        (int4(32), (5, 1)),
        (TensorFormat::per_channel(ElementCode::INT2, 32), (3, 1)),
        (TensorFormat::per_channel(ElementCode::INT2, 128), (9, 4)),
        (TensorFormat::per_token(ElementCode::INT8_SYMMETRIC, 32), (17, 2)), // b + 16 / G
        (TensorFormat::fp8(E4M3, ScaleMode::TENSOR), (8, 1)),
        (TensorFormat::fp8(E4M3, ScaleMode::TOKEN_HEAD), (33, 4)),
        (TensorFormat::Q8_0, (17, 2)),
        (TensorFormat::Q4_0, (9, 2)),
        (TensorFormat::NVFP4, (9, 2)),
        (TensorFormat::MXFP4, (17, 4)),
    ];
    for (format, expected) in cases {
        assert_eq!(bits(format, Tensor::K, 128), expected, "{format:?}");
        assert_eq!(bits(format, Tensor::V, 128), expected, "{format:?}");
    }
    assert_eq!(bits(TensorFormat::F16, Tensor::Rope, 64), (0, 1));
}

#[test]
fn a_layer_of_flash_mla_takes_656_bytes_a_token() {
    let layout = PageLayout::new(&mla()).unwrap();
    assert_eq!(layout.token_bytes().whole(), Some(61 * 656));
    assert_eq!(layout.token_bytes().whole(), Some(40_016));
    assert_eq!(layout.token_elements(), 61 * 576);
    assert_eq!(layout.v.codes, layout.k.codes);
    assert_eq!((layout.k.groups, layout.k.scale_bytes, layout.k.static_scales), (4, 4, 0));
}

// What follows has the names of public fault reports: what a layout must not let happen.

/// vllm 45562, 45720: bytes of E4M3FN read as E4M3FNUZ.
#[test]
fn ledger_16_fn_and_fnuz_pages_are_never_taken_for_each_other() {
    let of = |element| {
        PageLayout::new(&PageLayoutSpec::new(2, 2, 64, TensorFormat::fp8(element, ScaleMode::TENSOR))).unwrap()
    };
    let (ocp, amd) = (of(ElementCode::FP8_E4M3FN), of(ElementCode::FP8_E4M3FNUZ));
    assert_eq!(ocp.page_bytes, amd.page_bytes);
    assert_ne!(ocp.id, amd.id);
    assert_eq!(ocp.expect(amd.id), Err(LayoutError::Mismatch));
}

/// vllm 49011: a change of the layout turned all output to garbage. Where each byte lies is written down.
#[test]
fn ledger_18_places_in_a_page_are_fixed() {
    let k = TensorFormat::per_channel(ElementCode::INT4, 16);
    let spec = PageLayoutSpec { page_tokens: 32, k, v: int4(32), ..PageLayoutSpec::new(2, 2, 64, k) };
    let layout = PageLayout::new(&spec).unwrap();
    // K codes 2 heads x 2 blocks x 64 channels x 8 bytes, scales and zeros 2 x 2 x 64 x 2 bytes; V codes 2 x 32 x 32 bytes,
    // scales and zeros 2 x 32 x 2 x 2 bytes.
    let sections: Vec<_> = layout.sections().take(6).map(|s| (s.offset, s.bytes)).collect();
    assert_eq!(sections, [(0, 2048), (2048, 512), (2560, 512), (3072, 2048), (5120, 256), (5376, 256)]);
    assert_eq!((layout.layer_bytes, layout.page_bytes), (5632, 11_264));
    let at = layout.element(1, Tensor::K, 1, 19, 5).unwrap(); // token 19 is the fourth of block 1: high half of byte 1
    assert_eq!((at.byte, at.bit, at.bits), (5632 + 1024 + 512 + 5 * 8 + 1, 4, 4));
    assert_eq!((at.scale, at.zero), (5632 + 2048 + 256 + 128 + 10, 5632 + 2560 + 256 + 128 + 10));
    let at = layout.element(0, Tensor::V, 1, 3, 33).unwrap(); // second of the second group
    assert_eq!((at.byte, at.bit), (3072 + 1024 + 3 * 32 + 16, 4));
    assert_eq!((at.scale, at.zero), (5120 + 128 + 3 * 4 + 2, 5376 + 128 + 3 * 4 + 2));
}

/// VeloxQuant-MLX 162: groups of one token that never fill. Along tokens, a group lies within a page or is refused.
#[test]
fn ledger_45_groups_along_tokens_fill_within_a_page() {
    for page_tokens in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
        for group in [16, 32, 64, 128] {
            let k = TensorFormat::per_channel(ElementCode::INT2, group);
            let made = PageLayout::new(&PageLayoutSpec { page_tokens, k, ..spec() });
            assert_eq!(made.is_ok(), page_tokens >= group);
            if let Ok(layout) = made {
                assert_eq!(layout.k.block_tokens, group);
            }
        }
    }
}

/// llama.cpp 28524: a combination that no kernel reads was accepted and failed later.
#[test]
fn ledger_60_what_cannot_be_read_is_refused_when_it_is_configured() {
    let k = TensorFormat { axis: Axis::CHANNEL, ..TensorFormat::Q8_0 };
    assert_eq!(PageLayout::new(&PageLayoutSpec { k, ..spec() }), Err(LayoutError::Axis));
    let v = TensorFormat { axis: Axis::CHANNEL, ..TensorFormat::fp8(E4M3, ScaleMode::TENSOR) };
    assert_eq!(PageLayout::new(&PageLayoutSpec { v, ..spec() }), Err(LayoutError::Axis));
    // llama.cpp PR 25636: a rotation of 64 where the head is no multiple of it.
    let spec = PageLayoutSpec { k_dim: 80, v_dim: 80, k: int4(16), v: int4(16), ..rotated(3) };
    assert_eq!(PageLayout::new(&spec), Err(LayoutError::RotationDim));
    assert!(PageLayout::new(&PageLayoutSpec { rotation_size: 16, ..spec }).is_ok());
}

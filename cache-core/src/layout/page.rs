//! The descriptor: every offset and stride of a page, worked out once.

use super::address::Tensor;
use super::codes::{ElementCode, Order, RopeState, Rotation};
use super::error::LayoutError;
use super::format::TensorFormat;
use super::pod::{hash, pod};
use super::spec::PageLayoutSpec;
use crate::config::MAX_PAGES;

pod! {
    /// Where K, V or the rope part lies within one layer of a page. Offsets are from the start of the layer.
    pub struct PartLayout: 136 {
        /// Its format; G is filled in.
        pub format: TensorFormat,
        /// Elements of one head; 0 = there is no such part.
        pub dim: u32,
        /// Tokens of one block: 1, or G where groups lie along tokens.
        pub block_tokens: u32,
        /// Groups of one block: d / G, or d where groups lie along tokens.
        pub groups: u32,
        /// Bytes of one group's codes, the scale inside included where the format has it there. Groups of a block follow
        /// each other.
        pub group_bytes: u32,
        /// Bytes of one group's scale in the scale section; 0 = it is not there.
        pub scale_bytes: u32,
        /// Bytes of one group's zero.
        pub zero_bytes: u32,
        /// Scales (f32) for each layer that lie outside pages: 0, 1 or one per head.
        pub static_scales: u32,
        /// [`Self::ALIAS`]
        pub flags: u32,
        /// Offset of the codes.
        pub codes: u64,
        /// Offset of the scales.
        pub scales: u64,
        /// Offset of the zeros, which are arranged like the scales.
        pub zeros: u64,
        /// Bytes of the codes.
        pub codes_bytes: u64,
        /// Bytes of the scales.
        pub scales_bytes: u64,
        /// Bytes of the zeros.
        pub zeros_bytes: u64,
        /// Bytes from a head's codes to the next head's.
        pub codes_head: u64,
        /// Bytes from a block's codes to the next block's.
        pub codes_block: u64,
        /// Bytes from a head's scales (or zeros) to the next head's.
        pub params_head: u64,
        /// Bytes from a block's scales (or zeros) to the next block's.
        pub params_block: u64,
    }
}

pod! {
    /// What each byte of a page means. Made by [`Self::new`]; one from elsewhere is to be passed to [`Self::verify`] first.
    ///
    /// `id` is xxh3-64 of the struct's bytes, little-endian, with `struct_size` and `id` taken as zero.
    pub struct PageLayout: 496 {
        /// Size of this struct in bytes.
        pub struct_size: u32,
        /// [`Self::VERSION`]
        pub version: u32,
        /// Identity: equal exactly if all else is.
        pub id: u64,
        /// Bytes from a page to the next.
        pub page_bytes: u64,
        /// Bytes from a layer of a page to the next.
        pub layer_bytes: u64,
        /// As in the spec.
        pub generation: u64,
        /// As in the spec.
        pub rotation_seed: u64,
        /// P.
        pub page_tokens: u32,
        /// Layers in a page.
        pub layers: u32,
        /// KV heads.
        pub kv_heads: u32,
        /// Sections, layers and pages begin at multiples of this.
        pub align: u32,
        /// What lies outermost in a section.
        pub order: Order,
        /// Whether keys are stored before or after RoPE.
        pub rope: RopeState,
        /// What rows were multiplied by.
        pub rotation: Rotation,
        /// n.
        pub rotation_size: u32,
        /// Which parts are rotated.
        pub rotation_parts: u32,
        /// [`PageLayoutSpec::MLA`], [`PageLayoutSpec::REROTATED`], [`Self::LOSSY`].
        pub flags: u32,
        /// K; with MLA the latent part.
        pub k: PartLayout,
        /// V; with MLA the latent part again, with [`PartLayout::ALIAS`].
        pub v: PartLayout,
        /// The rope part of MLA.
        pub rope_part: PartLayout,
    }
}

impl PartLayout {
    /// Flag: the bytes are those of K.
    pub const ALIAS: u32 = 1;

    /// Whether there is such a part.
    #[must_use]
    pub const fn exists(&self) -> bool {
        self.dim != 0
    }

    /// Whether its bytes are its own.
    #[must_use]
    pub const fn is_own(&self) -> bool {
        self.exists() && self.flags & Self::ALIAS == 0
    }

    /// Lays a part out from `at` on; gives where it ends.
    fn new(spec: &PageLayoutSpec, format: &TensorFormat, dim: u32, at: u64) -> Result<(Self, u64), LayoutError> {
        if dim == 0 {
            return Ok((Self::default(), at));
        }
        let form = format.resolve(dim, spec.kv_heads, spec.page_tokens)?;
        let heads = u64::from(spec.kv_heads);
        let blocks = u64::from(spec.page_tokens.checked_div(form.block_tokens).unwrap_or(0));
        let groups = u64::from(form.groups);
        let block_codes = times(groups, u64::from(form.group_bytes))?;
        let block_params = times(groups, u64::from(form.scale_bytes))?;
        let all_blocks = times(heads, blocks)?;
        let section = |bytes: u32| times(all_blocks, times(groups, u64::from(bytes))?);
        let (codes_head, codes_block) = strides(spec.order, block_codes, heads, blocks)?;
        let (params_head, params_block) = strides(spec.order, block_params, heads, blocks)?;
        let mut part = Self {
            format: form.format,
            dim,
            block_tokens: form.block_tokens,
            groups: form.groups,
            group_bytes: form.group_bytes,
            scale_bytes: form.scale_bytes,
            zero_bytes: form.zero_bytes,
            static_scales: form.static_scales,
            codes: at,
            codes_bytes: section(form.group_bytes)?,
            scales_bytes: section(form.scale_bytes)?,
            zeros_bytes: section(form.zero_bytes)?,
            codes_head,
            codes_block,
            params_head,
            params_block,
            ..Self::default()
        };
        part.scales = aligned(plus(part.codes, part.codes_bytes)?, spec.align)?;
        part.zeros = aligned(plus(part.scales, part.scales_bytes)?, spec.align)?;
        Ok((part, aligned(plus(part.zeros, part.zeros_bytes)?, spec.align)?))
    }
}

impl PageLayout {
    /// Version of the descriptor.
    pub const VERSION: u32 = 1;
    #[allow(clippy::cast_possible_truncation)] // 496
    const SIZE: u32 = size_of::<Self>() as u32;
    /// Flag: what is read is not what was computed, since some part is quantised or rotated. Such a page must not answer a
    /// request for exact ones.
    pub const LOSSY: u32 = 1 << 8;

    /// Works a layout out. O(1).
    ///
    /// # Errors
    /// The first rule that the spec breaks.
    pub fn new(spec: &PageLayoutSpec) -> Result<Self, LayoutError> {
        spec.check()?;
        let spec = &PageLayoutSpec { align: if spec.align == 0 { 16 } else { spec.align }, ..*spec };
        let (k, at) = PartLayout::new(spec, &spec.k, spec.k_dim, 0)?;
        let (v, at) = if spec.is_mla() {
            (PartLayout { flags: PartLayout::ALIAS, ..k }, at)
        } else {
            PartLayout::new(spec, &spec.v, spec.v_dim, at)?
        };
        let (rope_part, layer_bytes) = PartLayout::new(spec, &spec.rope_part, spec.rope_dim, at)?;
        let page_bytes = times(layer_bytes, u64::from(spec.layers))?;
        let end = times(page_bytes, u64::from(MAX_PAGES).saturating_add(1))?;
        if end > i64::MAX.unsigned_abs() {
            return Err(LayoutError::TooLarge);
        }
        let exact = k.format.is_exact() && v.format.is_exact() && spec.rotation == Rotation::NONE;
        let layout = Self {
            version: Self::VERSION,
            page_bytes,
            layer_bytes,
            generation: spec.generation,
            rotation_seed: spec.rotation_seed,
            page_tokens: spec.page_tokens,
            layers: spec.layers,
            kv_heads: spec.kv_heads,
            align: spec.align,
            order: spec.order,
            rope: spec.rope,
            rotation: spec.rotation,
            rotation_size: spec.rotation_size,
            rotation_parts: spec.rotation_parts,
            flags: spec.flags | if exact { 0 } else { Self::LOSSY },
            k,
            v,
            rope_part,
            ..Self::default()
        };
        Ok(Self { id: hash(&layout), struct_size: Self::SIZE, ..layout })
    }

    /// The spec that gives this layout.
    #[must_use]
    pub fn spec(&self) -> PageLayoutSpec {
        let mla = self.flags & PageLayoutSpec::MLA != 0;
        PageLayoutSpec {
            page_tokens: self.page_tokens,
            layers: self.layers,
            kv_heads: self.kv_heads,
            k_dim: self.k.dim,
            v_dim: if mla { 0 } else { self.v.dim },
            rope_dim: self.rope_part.dim,
            k: self.k.format,
            v: if mla { TensorFormat::of(ElementCode::new(0)) } else { self.v.format },
            rope_part: self.rope_part.format,
            align: self.align,
            order: self.order,
            rope: self.rope,
            rotation: self.rotation,
            rotation_size: self.rotation_size,
            rotation_parts: self.rotation_parts,
            rotation_seed: self.rotation_seed,
            flags: self.flags & !Self::LOSSY,
            generation: self.generation,
        }
    }

    /// Checks a descriptor that came from elsewhere: every field is what [`Self::new`] would make of its spec. O(1).
    ///
    /// # Errors
    /// `Descriptor`, or the rule that its spec breaks.
    pub fn verify(&self) -> Result<(), LayoutError> {
        if self.version != Self::VERSION {
            return Err(LayoutError::Descriptor);
        }
        if Self::new(&self.spec())? == *self { Ok(()) } else { Err(LayoutError::Descriptor) }
    }

    /// Checks that pages written under layout `id` may be read under this one.
    ///
    /// # Errors
    /// `Mismatch`.
    pub fn expect(&self, id: u64) -> Result<(), LayoutError> {
        if self.id == id { Ok(()) } else { Err(LayoutError::Mismatch) }
    }

    /// One of its parts; `dim` is 0 where there is none.
    #[must_use]
    pub const fn part(&self, tensor: Tensor) -> &PartLayout {
        match tensor {
            Tensor::K => &self.k,
            Tensor::V => &self.v,
            Tensor::Rope => &self.rope_part,
        }
    }
}

/// Strides from head to head and from block to block, for blocks of `bytes`.
fn strides(order: Order, bytes: u64, heads: u64, blocks: u64) -> Result<(u64, u64), LayoutError> {
    Ok(if order == Order::TOKENS { (bytes, times(bytes, heads)?) } else { (times(bytes, blocks)?, bytes) })
}

fn times(a: u64, b: u64) -> Result<u64, LayoutError> {
    a.checked_mul(b).ok_or(LayoutError::TooLarge)
}

fn plus(a: u64, b: u64) -> Result<u64, LayoutError> {
    a.checked_add(b).ok_or(LayoutError::TooLarge)
}

fn aligned(at: u64, align: u32) -> Result<u64, LayoutError> {
    at.checked_next_multiple_of(u64::from(align)).ok_or(LayoutError::TooLarge)
}

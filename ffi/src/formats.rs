//! The structs of the header about page layouts and memory. `kvfolio::layout` has the same, bit for bit.

/// 32-bit float. (Numbers of elements are fixed for ever; 0 = not set.)
pub const KVF_ELEMENT_F32: u32 = 1;
/// IEEE half.
pub const KVF_ELEMENT_F16: u32 = 2;
/// bfloat16.
pub const KVF_ELEMENT_BF16: u32 = 3;
/// 8-bit codes with f16 scale and zero: code * scale + zero.
pub const KVF_ELEMENT_INT8: u32 = 4;
/// The same with 4 bits: element 2i in the low half of byte i.
pub const KVF_ELEMENT_INT4: u32 = 5;
/// The same with 2 bits: element 4i in bits 0 and 1 of byte i.
pub const KVF_ELEMENT_INT2: u32 = 6;
/// Signed 8-bit codes, -127 to 127, with f16 scale: code * scale.
pub const KVF_ELEMENT_INT8_SYMMETRIC: u32 = 7;
/// FP8, largest 448.
pub const KVF_ELEMENT_FP8_E4M3FN: u32 = 8;
/// FP8, largest 240: the same byte is half of what it is in E4M3FN.
pub const KVF_ELEMENT_FP8_E4M3FNUZ: u32 = 9;
/// FP8, largest 57,344.
pub const KVF_ELEMENT_FP8_E5M2: u32 = 10;
/// Blocks of 34 bytes: f16 scale, 32 codes.
pub const KVF_ELEMENT_Q8_0: u32 = 11;
/// Blocks of 18 bytes: f16 scale, 32 codes; code j in the low half of byte j, j + 16 in the high half.
pub const KVF_ELEMENT_Q4_0: u32 = 12;
/// E2M1 in groups of 16 with an E4M3 scale each, and one f32 per layer for K and for V.
pub const KVF_ELEMENT_NVFP4: u32 = 13;
/// E2M1 in groups of 32 with an E8M0 scale each.
pub const KVF_ELEMENT_MXFP4: u32 = 14;
/// No groups, or nothing to choose.
pub const KVF_AXIS_NONE: u32 = 0;
/// Groups of G channels of one token. A token is complete when it is written.
pub const KVF_AXIS_TOKEN: u32 = 1;
/// Groups of G tokens of one channel. They need page_tokens >= G.
pub const KVF_AXIS_CHANNEL: u32 = 2;
/// Formats other than FP8.
pub const KVF_SCALE_NONE: u32 = 0;
/// FP8: one f32 for K and one for V of each layer, fixed before the first page, outside pages.
pub const KVF_SCALE_TENSOR: u32 = 1;
/// FP8: one for each head of these, likewise.
pub const KVF_SCALE_HEAD: u32 = 2;
/// FP8: one f32 for each G elements of a row, in the page.
pub const KVF_SCALE_TOKEN_HEAD: u32 = 3;
/// Flag: FP8 scales are powers of two.
pub const KVF_FORMAT_POWER_OF_TWO: u32 = 1;
/// Flag: the scale is computed from what is stored. KVF_SCALE_TOKEN_HEAD only.
pub const KVF_FORMAT_DYNAMIC: u32 = 2;

/// How K, V or the rope part of MLA is stored. All zero = not set. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_tensor_format {
    /// KVF_ELEMENT_*
    pub element: u32,
    /// KVF_AXIS_*: integer formats need one, others have none.
    pub axis: u32,
    /// G, elements that share a scale: 16, 32, 64, 128. 0 = the whole row (not along tokens), or the format's own.
    pub group: u32,
    /// KVF_SCALE_*: FP8 formats need one, others have none.
    pub scale: u32,
    /// KVF_FORMAT_*
    pub flags: u32,
    /// 0
    pub reserved: u32,
}

/// What lies outermost in a section: heads, so that a head of a page is one run of bytes,
pub const KVF_ORDER_HEADS: u32 = 0;
/// or tokens, so that a token of a page is one. Not with groups along tokens.
pub const KVF_ORDER_TOKENS: u32 = 1;
/// The model has no rotary positions.
pub const KVF_ROPE_NONE: u32 = 1;
/// Keys are stored before RoPE.
pub const KVF_ROPE_PRE: u32 = 2;
/// Keys are stored after RoPE.
pub const KVF_ROPE_POST: u32 = 3;
/// Rows are stored as they are.
pub const KVF_ROTATION_NONE: u32 = 0;
/// Rows were multiplied by blocks of an orthonormal Hadamard matrix.
pub const KVF_ROTATION_HADAMARD: u32 = 1;
/// Flag of rotation_parts: K is rotated.
pub const KVF_ROTATE_K: u32 = 1;
/// Flag of rotation_parts: V is rotated.
pub const KVF_ROTATE_V: u32 = 2;
/// Flag: multi-head latent attention. K is the latent part, the rope part lies behind it, V is the latent part.
pub const KVF_LAYOUT_MLA: u32 = 1;
/// Flag: stored keys may be rotated to another position. Not with quantised keys after RoPE.
pub const KVF_LAYOUT_REROTATED: u32 = 2;
/// Flag, of kvf_page_layout only: what is read is not what was computed.
pub const KVF_LAYOUT_LOSSY: u32 = 256;

/// What a page is to be.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_page_layout_spec {
    /// sizeof(kvf_page_layout_spec)
    pub struct_size: u32,
    /// P: a power of two, 1 to 256.
    pub page_tokens: u32,
    /// Layers in one page: all of a group, or 1 where each layer has a tensor of its own.
    pub layers: u32,
    /// KV heads. MLA: 1.
    pub kv_heads: u32,
    /// Elements of a head of K. MLA: of the latent part.
    pub k_dim: u32,
    /// Elements of a head of V. MLA: 0.
    pub v_dim: u32,
    /// MLA: elements of the rope part. Else 0.
    pub rope_dim: u32,
    /// Sections, layers and pages begin at multiples of it: 16, 32, 64, 128. 0 = 16.
    pub align: u32,
    /// KVF_ORDER_*
    pub order: u32,
    /// KVF_ROPE_*; 0 is refused. MLA: that of the rope part.
    pub rope: u32,
    /// KVF_ROTATION_*
    pub rotation: u32,
    /// Size of the matrix: a power of two that divides the head dimension. 0 without a rotation.
    pub rotation_size: u32,
    /// KVF_ROTATE_K | KVF_ROTATE_V. MLA: both.
    pub rotation_parts: u32,
    /// KVF_LAYOUT_MLA | KVF_LAYOUT_REROTATED
    pub flags: u32,
    /// Seed of the signs before the rotation. 0 = no signs.
    pub rotation_seed: u64,
    /// Changes whenever something outside the page that its bytes depend on does, such as calibrated scales.
    pub generation: u64,
    /// K; MLA: the latent part.
    pub k: kvf_tensor_format,
    /// V; MLA: not set.
    pub v: kvf_tensor_format,
    /// MLA: the rope part, an exact format. Else not set.
    pub rope_part: kvf_tensor_format,
}

/// Flag: the bytes are those of K.
pub const KVF_PART_ALIAS: u32 = 1;

/// Where K, V or the rope part lies within one layer of a page; offsets are from the layer's start. Record.
/// The codes of (head, token) begin at codes + head * codes_head + token / block_tokens * codes_block; its scales at
/// scales + head * params_head + token / block_tokens * params_block, and zeros likewise.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_part_layout {
    /// Its format; the group is filled in.
    pub format: kvf_tensor_format,
    /// Elements of a head. 0 = there is no such part.
    pub dim: u32,
    /// Tokens of a block: 1, or G with groups along tokens.
    pub block_tokens: u32,
    /// Groups of a block: d / G, or d with groups along tokens. They follow each other.
    pub groups: u32,
    /// Bytes of a group's codes; q8_0 and q4_0: with the scale in front.
    pub group_bytes: u32,
    /// Bytes of a group's scale in its section. 0 = none there.
    pub scale_bytes: u32,
    /// Bytes of a group's zero.
    pub zero_bytes: u32,
    /// Scales (f32) per layer that lie outside pages.
    pub static_scales: u32,
    /// KVF_PART_ALIAS or 0
    pub flags: u32,
    /// Offset of the codes.
    pub codes: u64,
    /// Offset of the scales.
    pub scales: u64,
    /// Offset of the zeros.
    pub zeros: u64,
    /// Bytes of the codes.
    pub codes_bytes: u64,
    /// Bytes of the scales.
    pub scales_bytes: u64,
    /// Bytes of the zeros.
    pub zeros_bytes: u64,
    /// Bytes from a head's codes to the next's.
    pub codes_head: u64,
    /// Bytes from a block's codes to the next's.
    pub codes_block: u64,
    /// Bytes from a head's scales to the next's, and zeros likewise.
    pub params_head: u64,
    /// Bytes from a block's scales to the next's, and zeros likewise.
    pub params_block: u64,
}

/// What each byte of a page means. Plain numbers: give it to device code as it is.
/// Layer l of page p begins at p * page_bytes + l * layer_bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_page_layout {
    /// sizeof(kvf_page_layout), set by the caller
    pub struct_size: u32,
    /// Version of this struct: 1.
    pub version: u32,
    /// Equal exactly if all that gives bytes their meaning is. Pages of one id are never read under another.
    pub id: u64,
    /// Bytes from a page to the next.
    pub page_bytes: u64,
    /// Bytes from a layer of a page to the next.
    pub layer_bytes: u64,
    /// As in the spec.
    pub generation: u64,
    /// As in the spec.
    pub rotation_seed: u64,
    /// P
    pub page_tokens: u32,
    /// Layers in a page.
    pub layers: u32,
    /// KV heads.
    pub kv_heads: u32,
    /// Alignment of sections, layers and pages.
    pub align: u32,
    /// KVF_ORDER_*
    pub order: u32,
    /// KVF_ROPE_*
    pub rope: u32,
    /// KVF_ROTATION_*
    pub rotation: u32,
    /// As in the spec.
    pub rotation_size: u32,
    /// As in the spec.
    pub rotation_parts: u32,
    /// KVF_LAYOUT_*
    pub flags: u32,
    /// K; MLA: the latent part.
    pub k: kvf_part_layout,
    /// V; MLA: the latent part again, with KVF_PART_ALIAS.
    pub v: kvf_part_layout,
    /// MLA: the rope part.
    pub rope_part: kvf_part_layout,
}

/// K; MLA: the latent part.
pub const KVF_TENSOR_K: u32 = 0;
/// V; MLA: the latent part.
pub const KVF_TENSOR_V: u32 = 1;
/// MLA: the rope part.
pub const KVF_TENSOR_ROPE: u32 = 2;

/// Where a row lies, in bytes from page 0. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_row_address {
    /// Codes of its block.
    pub codes: u64,
    /// Scales of its block, one per group. 0 = none in the page.
    pub scales: u64,
    /// Zeros of its block. 0 = none.
    pub zeros: u64,
}

/// What a page takes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_layout_sizes {
    /// sizeof(kvf_layout_sizes), set by the caller
    pub struct_size: u32,
    /// 1 = what is read is not what was computed. Else 0.
    pub lossy: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Of these, bytes that only align others.
    pub padding_bytes: u64,
    /// Bytes of one token without padding = token_bytes / token_divisor, in lowest terms.
    pub token_bytes: u64,
    /// Nearly always 1.
    pub token_divisor: u64,
    /// Elements of one token, all layers and heads.
    pub token_elements: u64,
    /// Bytes of the scales outside pages, once for the whole pool.
    pub static_scale_bytes: u64,
}

/// Layers that keep the same tokens in pages of one layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_memory_group {
    /// sizeof(kvf_memory_group)
    pub struct_size: u32,
    /// KVF_GROUP_FULL or KVF_GROUP_WINDOW
    pub kind: u32,
    /// Layout of its pages; with a residual, of sealed pages.
    pub layout: *const kvf_page_layout,
    /// With a residual: layout of open pages, an exact one of the same shape. NULL = no residual.
    pub exact: *const kvf_page_layout,
    /// Window groups: tokens that a query reads, its own included.
    pub window: u32,
    /// Tokens at the start that a window keeps, or that a residual keeps exact.
    pub sinks: u32,
    /// Most tokens added at a time. 0 = 1.
    pub chunk: u32,
    /// Window groups: 1 = a fixed ring. Else 0.
    pub ring: u32,
    /// With a residual: fewest recent tokens that stay exact.
    pub recent: u32,
    /// 0
    pub reserved: u32,
}

/// What sequences take.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_memory_report {
    /// sizeof(kvf_memory_report), set by the caller
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    /// Bytes of the rows that one sequence keeps, padding and free slots apart.
    pub row_bytes: u64,
    /// Bytes of the pages that it holds at most while it grows.
    pub page_bytes: u64,
    /// These pages, over all groups.
    pub pages: u64,
    /// Entries of the longest row of its page tables.
    pub row_pages: u64,
    /// Sequences that fit the budget.
    pub sequences: u64,
    /// Bytes that are there once: scales outside pages.
    pub static_bytes: u64,
    /// Bytes of the budget that are left over.
    pub spare_bytes: u64,
}

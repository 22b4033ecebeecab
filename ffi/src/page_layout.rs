//! Page layout
//!
//! kvfolio hands out page numbers and never touches a page. These functions say what its bytes are: state what is wanted,
//! get every offset, and use the struct on the host and on the device. What would be unsound is refused here, not found
//! later as garbage. They need no cache and may be called from any thread at any time. A library built without its feature
//! "layout" lacks this section and all behind it.
//!
//! ```text
//! page    layer 0 | layer 1 | ...
//! layer   K codes | K scales | K zeros | V codes | V scales | V zeros      MLA: latent ... | rope
//! codes   [head][block][group], or [block][head][group] with KVF_ORDER_TOKENS
//! ```
//!
//! Element (token t, channel c): with groups along channels code c % G of group c / G of block t; with groups along tokens
//! code t % G of group c of block t / G.

use core::ffi::c_char;

use kvfolio::PageId;
use kvfolio::layout::{Axis, ElementCode, Order, RopeState, Rotation, ScaleMode};
use kvfolio::layout::{LayoutError, PageLayout, PageLayoutSpec, Tensor, TensorFormat};

use crate::formats::*;
use crate::ptr;
use crate::status::{KVF_ERR_ARGUMENT, KVF_ERR_LAYOUT, Status, answer, kvf_status};

/// Works a layout out. On KVF_ERR_LAYOUT `reason`, which may be NULL, gets the number of the rule that the spec breaks;
/// kvf_layout_reason_text says it in words.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_layout_make(
    spec: *const kvf_page_layout_spec,
    layout: *mut kvf_page_layout,
    reason: *mut u32,
) -> kvf_status {
    let make = || {
        // SAFETY: rule (a).
        let (spec, layout, reason) = unsafe { (ptr::input(spec)?, ptr::output(layout)?, ptr::optional_out(reason)?) };
        match PageLayout::new(&spec_of(&spec)) {
            Ok(made) => layout.set(&to_c(made)),
            Err(error) => {
                if let Some(reason) = reason {
                    reason.set(error as u32);
                }
                return Err(Status(KVF_ERR_LAYOUT));
            }
        }
        Ok(())
    };
    answer(make())
}

/// Checks a layout that came from elsewhere, such as a file: KVF_OK if kvf_layout_make would make it so, else
/// KVF_ERR_LAYOUT.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_layout_check(layout: *const kvf_page_layout) -> kvf_status {
    let check = || {
        // SAFETY: rule (a).
        unsafe { read(layout) }?.verify().map_err(|_| Status(KVF_ERR_LAYOUT))
    };
    answer(check())
}

/// Says what a page takes. Like kvf_layout_row it expects a layout that kvf_layout_make has made or kvf_layout_check passed.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_layout_measure(
    layout: *const kvf_page_layout,
    sizes: *mut kvf_layout_sizes,
) -> kvf_status {
    let measure = || {
        // SAFETY: rule (a).
        let (layout, sizes) = unsafe { (read(layout)?, ptr::output(sizes)?) };
        let token = layout.token_bytes();
        sizes.set(&kvf_layout_sizes {
            struct_size: 0,
            lossy: u32::from(layout.is_lossy()),
            page_bytes: layout.page_bytes,
            padding_bytes: layout.padding_bytes(),
            token_bytes: token.numerator,
            token_divisor: token.denominator,
            token_elements: layout.token_elements(),
            static_scale_bytes: layout.static_scale_bytes(),
        });
        Ok(())
    };
    answer(measure())
}

/// Says where the row of one token of a page and one head lies. `tensor` is KVF_TENSOR_*. O(1). KVF_ERR_ARGUMENT for the
/// NULL page, for a layer, head or token that is not there, and for a part that the layout lacks.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_layout_row(
    layout: *const kvf_page_layout,
    page: u32,
    layer: u32,
    tensor: u32,
    head: u32,
    token: u32,
    address: *mut kvf_row_address,
) -> kvf_status {
    let row = || {
        // SAFETY: rule (a).
        let (layout, address) = unsafe { (read(layout)?, ptr::out(address)?) };
        let tensor = match tensor {
            KVF_TENSOR_K => Tensor::K,
            KVF_TENSOR_V => Tensor::V,
            KVF_TENSOR_ROPE => Tensor::Rope,
            _ => return Err(Status(KVF_ERR_ARGUMENT)),
        };
        let at = layout.offset(PageId::new(page), layer, tensor, head, token);
        let at = at.map_err(|_| Status(KVF_ERR_ARGUMENT))?;
        address.set(kvf_row_address { codes: at.codes, scales: at.scales, zeros: at.zeros });
        Ok(())
    };
    answer(row())
}

/// The rule with the number that kvf_layout_make gave, in words. "unknown reason" for other numbers.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub extern "C" fn kvf_layout_reason_text(reason: u32) -> *const c_char {
    let found = LayoutError::ALL.iter().find(|error| **error as u32 == reason);
    found.map_or(c"unknown reason", |error| error.c_text()).as_ptr()
}

/// A layout that the caller gives.
///
/// # Safety
/// Rule (a).
pub(crate) unsafe fn read(layout: *const kvf_page_layout) -> Result<PageLayout, Status> {
    // SAFETY: the caller's.
    let given = unsafe { ptr::input(layout) }?;
    // SAFETY: both are repr(C) with the same integers at the same places, as `layout.rs` asserts.
    let layout = unsafe { core::mem::transmute::<kvf_page_layout, PageLayout>(given) };
    Ok(PageLayout { struct_size: size_of::<PageLayout>() as u32, ..layout }) // that of the caller may be another
}

fn to_c(layout: PageLayout) -> kvf_page_layout {
    // SAFETY: both are repr(C) with the same integers at the same places, as `layout.rs` asserts.
    unsafe { core::mem::transmute::<PageLayout, kvf_page_layout>(layout) }
}

fn spec_of(spec: &kvf_page_layout_spec) -> PageLayoutSpec {
    PageLayoutSpec {
        page_tokens: spec.page_tokens,
        layers: spec.layers,
        kv_heads: spec.kv_heads,
        k_dim: spec.k_dim,
        v_dim: spec.v_dim,
        rope_dim: spec.rope_dim,
        k: format_of(&spec.k),
        v: format_of(&spec.v),
        rope_part: format_of(&spec.rope_part),
        align: spec.align,
        order: Order::new(spec.order),
        rope: RopeState::new(spec.rope),
        rotation: Rotation::new(spec.rotation),
        rotation_size: spec.rotation_size,
        rotation_parts: spec.rotation_parts,
        rotation_seed: spec.rotation_seed,
        flags: spec.flags,
        generation: spec.generation,
    }
}

fn format_of(format: &kvf_tensor_format) -> TensorFormat {
    TensorFormat {
        element: ElementCode::new(format.element),
        axis: Axis::new(format.axis),
        group: format.group,
        scale: ScaleMode::new(format.scale),
        flags: format.flags,
        reserved: format.reserved,
    }
}

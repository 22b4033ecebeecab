//! Quest: pages are chosen for each query, and none is evicted.

use super::error::EvictError;
use super::order::key;

/// Chooses the `count` columns of the highest bounds, each the greatest of `q . k` that any of its keys can reach; the first
/// `dense` and the last column are always among them. Of equal bounds the later column is chosen. Writes 1 or 0 per column
/// and gives the number chosen: `count`, or all columns if there are not more. O(columns) for each of few that are left out,
/// 64 passes at most.
///
/// # Errors
/// `Budget` for a count below what is always chosen; `Shape` for `chosen` of another length. Nothing is written then.
pub fn quest_columns(bounds: &[f32], count: u32, dense: u32, chosen: &mut [u8]) -> Result<u32, EvictError> {
    let columns = u32::try_from(bounds.len()).map_err(|_| EvictError::Shape)?;
    let protected = dense.saturating_add(1);
    if count < protected {
        return Err(EvictError::Budget { protected });
    }
    if chosen.len() != bounds.len() {
        return Err(EvictError::Shape);
    }
    let is_free = |column: u32| column >= dense && column.saturating_add(1) < columns;
    let surplus = columns.saturating_sub(count);
    let keys = || (0..columns).zip(bounds).filter(|&(column, _)| is_free(column)).map(|(column, &x)| key(x, column));
    // The highest key that leaves too few above: those up to it are left out.
    let left_out = |bound: u64| keys().filter(|&key| key < bound).fold(0_u32, |n, _| n.saturating_add(1));
    let mut bound = 0;
    for bit in (0..64).rev() {
        let higher = bound | 1_u64 << bit;
        if left_out(higher) <= surplus {
            bound = higher;
        }
    }
    for (column, (chosen, &x)) in (0..).zip(chosen.iter_mut().zip(bounds)) {
        *chosen = u8::from(!is_free(column) || key(x, column) >= bound);
    }
    Ok(columns.saturating_sub(surplus))
}

//! Configurations on the wire; whatever is read is a valid configuration.

use super::wire::{Reader, Wire, Writer};
use crate::spec::{GroupKind, GroupSpec, IndexKind, NamespaceSpec, Policy, PoolSpec, Spec};

const POOL: PoolSpec = PoolSpec { pages: 1, policy: Policy::Lru };
/// Most groups of a scenario.
const MAX_GROUPS: u64 = 1023;

pub(super) fn read(reader: &mut Reader<'_>, version: u8) -> Spec {
    let mut spec = Spec::default();
    visit(reader, &mut spec, version);
    let mut seen: Vec<NamespaceSpec> = Vec::new();
    for key in core::mem::take(&mut spec.namespaces) {
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    spec.namespaces = seen;
    spec.quotas = spec.quotas.min(spec.namespaces.len().min(spec.max_spaces()) as u32);
    if version < 3
        && spec.index != IndexKind::None
        && spec.anchor().is_none()
        && let Some(group) = spec.groups.first_mut()
    {
        group.kind = GroupKind::Full;
        group.ring = 0;
    }
    spec
}

pub(super) fn write(writer: &mut Writer, spec: &Spec) {
    visit(writer, &mut spec.clone(), super::VERSION);
}

fn visit(wire: &mut impl Wire, spec: &mut Spec, version: u8) {
    spec.index = match wire.num(index_code(spec.index), 8, 7) {
        0..=3 => IndexKind::Tree,
        4..=6 => IndexKind::Flat,
        _ => IndexKind::None,
    };
    wire.flag(&mut spec.deferred, 2);
    wire.flag(&mut spec.tail, 1);
    wire.flag(&mut spec.scrub, 1);
    wire.list(&mut spec.pools, 2, 15, 1, POOL);
    for pool in &mut spec.pools {
        let mut spare = pool.pages.saturating_sub(1);
        wire.u32(&mut spare, 24, 1 << 20);
        pool.pages = spare + 1;
        pool.policy = policy(wire, pool.policy);
    }
    let pools = spec.pools.len() as u64;
    wire.list(&mut spec.groups, 3, MAX_GROUPS, 1, GroupSpec::FULL);
    for spec in &mut spec.groups {
        group(wire, spec, pools);
        if version >= 2 {
            wire.flag(&mut spec.contiguous, 2);
            ring(wire, spec);
        }
        if version >= 3 {
            sealed(wire, spec, pools);
        }
        if version >= 4 && spec.sealed.is_some() {
            wire.u32(&mut spec.exact_sinks, 5, 1 << 20);
        }
    }
    wire.list(&mut spec.namespaces, 2, 63, 1, NamespaceSpec::default());
    for (i, key) in (0..).zip(&mut spec.namespaces) {
        for field in [&mut key.salt, &mut key.generation, &mut key.format] {
            wire.u32(field, 1, u32::MAX);
        }
        let mut offset = key.adapter.wrapping_sub(i);
        wire.u32(&mut offset, 1, u32::MAX);
        key.adapter = i.wrapping_add(offset);
    }
    let limits = [
        &mut spec.sequences,
        &mut spec.tickets,
        &mut spec.transfers,
        &mut spec.events,
        &mut spec.table_chunks,
        &mut spec.classes,
        &mut spec.leases,
        &mut spec.quotas,
        &mut spec.spans,
    ];
    for limit in limits {
        wire.u32(limit, 1, 1 << 20);
    }
    if version >= 3 {
        wire.u32(&mut spec.nodes, 1, 1 << 20);
        wire.u32(&mut spec.spaces, 1, 1 << 20);
        wire.u32(&mut spec.copies, 1, 1 << 20);
    }
    spec.classes = spec.classes.min(63);
    wire.u32(&mut spec.seed, 4, u32::MAX);
}

const fn index_code(index: IndexKind) -> u64 {
    match index {
        IndexKind::Tree => 0,
        IndexKind::Flat => 4,
        IndexKind::None => 7,
    }
}

fn policy(wire: &mut impl Wire, policy: Policy) -> Policy {
    let code = match policy {
        Policy::Lru => 0,
        Policy::Fifo => 1,
        Policy::Lfu => 2,
    };
    match wire.num(code, 1, 2) {
        0 => Policy::Lru,
        1 => Policy::Fifo,
        _ => Policy::Lfu,
    }
}

fn group(wire: &mut impl Wire, spec: &mut GroupSpec, pools: u64) {
    let (code, mut spare, mut sinks) = match spec.kind {
        GroupKind::Full => (0, 0, 0),
        GroupKind::Window { window, sinks } => (1, window.saturating_sub(1), sinks),
    };
    let code = wire.num(code, 2, 1);
    let log = wire.num(u64::from(spec.page_tokens.trailing_zeros()), 4, 8);
    spec.page_tokens = 1 << log;
    spec.pool = (wire.num(u64::from(spec.pool), 2, 15) % pools) as u16;
    spec.kind = if code == 0 {
        GroupKind::Full
    } else {
        wire.u32(&mut spare, 20, 1 << 20);
        wire.u32(&mut sinks, 5, 1 << 20);
        GroupKind::Window { window: spare + 1, sinks }
    };
    wire.flag(&mut spec.exact, 2);
}

fn ring(wire: &mut impl Wire, spec: &mut GroupSpec) {
    if spec.kind != GroupKind::Full && wire.num(if spec.ring > 0 { 3 } else { 0 }, 4, 3) == 3 {
        let mut spare = spec.ring.saturating_sub(1);
        wire.u32(&mut spare, 20, 1 << 20);
        spec.ring = spare + 1;
    }
}

/// The pool of sealed pages; none where it would be the group's own.
fn sealed(wire: &mut impl Wire, spec: &mut GroupSpec, pools: u64) {
    if spec.kind == GroupKind::Full && wire.num(if spec.sealed.is_some() { 3 } else { 0 }, 4, 3) == 3 {
        let pool = wire.num(u64::from(spec.sealed.unwrap_or(0)), 2, 15) % pools;
        spec.sealed = Some(pool as u16).filter(|pool| *pool != spec.pool);
    }
}

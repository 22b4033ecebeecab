//! Random configurations.

use crate::rng::Rng;
use crate::spec::{GroupKind, GroupSpec, IndexKind, NamespaceSpec, Policy, PoolSpec, Spec};

/// A random small configuration.
pub fn spec(rng: &mut Rng) -> Spec {
    let pools = 1 + rng.below(2) as u16;
    let groups = 1 + rng.below(3);
    let mut spec = Spec { pools: Vec::new(), ..Spec::default() };
    for _ in 0..pools {
        let pages = if rng.below(3) == 0 { 4 + rng.below(12) } else { 16 + rng.below(90) } as u32;
        spec.pools.push(PoolSpec { pages, policy: Policy::Lru });
    }
    let shift = rng.below(4);
    for group in 0..groups {
        let page_tokens = 1 << if rng.below(3) == 0 { rng.below(5) } else { shift };
        let window = 1 + rng.below(3 * u64::from(page_tokens) + 4) as u32;
        let sinks = if rng.below(2) == 0 { 0 } else { rng.below(u64::from(page_tokens) + 3) as u32 };
        let full = group == 0 || rng.below(3) == 0;
        let kind = if full { GroupKind::Full } else { GroupKind::Window { window, sinks } };
        let pool = rng.below(u64::from(pools)) as u16;
        let (exact, contiguous) = (!full && rng.below(2) == 0, rng.below(4) == 0);
        spec.groups.push(GroupSpec { kind, page_tokens, pool, exact, contiguous, ..GroupSpec::FULL });
    }
    if rng.below(4) == 0 {
        spec.groups.rotate_left(1);
    }
    spec.index = match rng.below(8) {
        0 => IndexKind::None,
        1..=3 => IndexKind::Flat,
        _ => IndexKind::Tree,
    };
    if rng.below(6) == 0 {
        without_full(rng, &mut spec);
    }
    spec.deferred = rng.below(4) == 0;
    options(rng, &mut spec);
    if rng.below(2) == 0 {
        spec.namespaces.push(NamespaceSpec { adapter: 1, ..NamespaceSpec::default() });
        namespaces(rng, &mut spec);
    }
    if rng.below(6) == 0 {
        with_seals(rng, &mut spec);
    }
    spec
}

/// Gives the full groups, or some of them, pools of sealed pages, sometimes all but those of the first tokens.
pub fn with_seals(rng: &mut Rng, spec: &mut Spec) {
    if spec.pools.len() == 1 {
        let pages = 2 + rng.below(30) as u32;
        spec.pools.push(PoolSpec { pages, ..spec.pools[0] });
    }
    let pools = spec.pools.len() as u64;
    for group in spec.groups.iter_mut().filter(|group| group.kind == GroupKind::Full) {
        let pool = (u64::from(group.pool) + 1 + rng.below(pools - 1)) % pools;
        group.sealed = (rng.below(4) != 0).then_some(pool as u16);
        let sinks = if rng.below(2) == 0 { 0 } else { 1 + rng.below(2 * u64::from(group.page_tokens)) as u32 };
        group.exact_sinks = if group.sealed.is_some() { sinks } else { 0 };
    }
    spec.copies = if rng.below(4) == 0 { 2 + rng.below(12) as u32 } else { 0 };
}

/// Further namespaces, with room for all or not, and sometimes without the one that is always open.
fn namespaces(rng: &mut Rng, spec: &mut Spec) {
    if rng.below(2) == 0 {
        spec.namespaces.push(NamespaceSpec { adapter: 1, generation: 1, ..NamespaceSpec::default() });
        spec.spaces = rng.below(4) as u32;
    }
    if rng.below(4) == 0 {
        spec.namespaces[0].salt = 1;
    }
    spec.quotas = spec.quotas.min(spec.max_spaces() as u32);
}

/// Makes all groups windows, one of them perhaps a fixed ring, with few nodes or many.
pub fn without_full(rng: &mut Rng, spec: &mut Spec) {
    for group in &mut spec.groups {
        if group.kind == GroupKind::Full {
            (group.sealed, group.exact_sinks) = (None, 0);
            let window = 1 + rng.below(3 * u64::from(group.page_tokens) + 4) as u32;
            group.kind = GroupKind::Window { window, sinks: rng.below(3) as u32 };
        }
    }
    if rng.below(6) == 0 {
        spec.groups[0].ring = 1 + rng.below(12) as u32;
    }
    spec.index = if rng.below(2) == 0 { IndexKind::Tree } else { IndexKind::Flat };
    spec.nodes = if rng.below(2) == 0 { 4 + rng.below(40) as u32 } else { 0 };
}

/// Policies, classes, leases, quotas, media spans, scrubbing: some of each.
fn options(rng: &mut Rng, spec: &mut Spec) {
    for pool in &mut spec.pools {
        pool.policy = match rng.below(8) {
            0 => Policy::Fifo,
            1 => Policy::Lfu,
            _ => Policy::Lru,
        };
    }
    let some = |rng: &mut Rng, most: u64| if rng.below(3) == 0 { 1 + rng.below(most) as u32 } else { 0 };
    spec.classes = some(rng, 5);
    spec.leases = some(rng, 4);
    spec.quotas = some(rng, 1);
    spec.spans = 4 * some(rng, 16);
    spec.scrub = rng.below(4) == 0;
    spec.table_chunks = if rng.below(4) == 0 { 3 + rng.below(30) as u32 } else { 0 };
    spec.tail = rng.below(4) == 0;
    if spec.pools.iter().any(|pool| pool.policy == Policy::Fifo) {
        (spec.classes, spec.leases) = (0, 0);
    }
}

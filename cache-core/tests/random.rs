//! Random calls: the self-check holds after every one, and a failed one leaves the digest as it was.
#![allow(missing_docs)]

use kvfolio::*;

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((((z ^ (z >> 31)) >> 32) * u64::from(n)) >> 32) as u32
    }
}

fn run(config: &Config<'_>, seed: u64, operations: u32) {
    let mut storage = OwnedStorage::new(config).unwrap();
    let mut cache = Cache::new(config, storage.lend()).unwrap();
    let mut scratch = vec![0; cache.check_scratch(2) as usize];
    let mut rng = Rng(seed);
    let mut sequences: Vec<SequenceId> = Vec::new();
    let mut tickets: Vec<TicketId> = Vec::new();
    let mut transfers: Vec<TransferId> = Vec::new();
    let mut in_plan: Vec<(SequenceId, u32)> = Vec::new();
    let mut leases: Vec<LeaseId> = Vec::new();
    let mut spaces: Vec<NamespaceId> = vec![cache.default_namespace()];
    let mut state = 0;
    let mut tick = 0;
    for operation in 0..operations {
        let before = cache.digest();
        let kind = rng.below(30);
        let pick = |rng: &mut Rng, n: usize| rng.below(n.max(1) as u32) as usize;
        let tokens: Vec<u32> = (0..1 + rng.below(40)).map(|_| 1 + rng.below(2)).collect();
        let mut name = "";
        let namespace = spaces[pick(&mut rng, spaces.len())];
        let span = MediaSpan { start: rng.below(20), length: 1 + rng.below(9), digest: [u64::from(rng.below(2)); 4] };
        let spans = if config.key_parts > 0 && rng.below(3) == 0 { vec![span] } else { Vec::new() };
        let class = rng.below(config.classes.max(1)) as u8;
        let prompt = Prompt { namespace, tokens: &tokens, spans: &spans };
        let params = OpenParams { namespace, class, user: 7, spans: &spans };
        let result: Result<(), Error> = match kind {
            0..3 => {
                name = "match";
                let looked_up = cache.lookup(&prompt, tokens.len() as u32);
                cache.match_prefix(&prompt, tokens.len() as u32, None).map(|(ticket, hit)| {
                    assert_eq!(looked_up, Ok(hit));
                    assert!(hit.tokens as usize <= tokens.len());
                    tickets.push(ticket);
                })
            }
            3..5 if !tickets.is_empty() => {
                name = "open_ticket";
                let at = pick(&mut rng, tickets.len());
                cache.open_ticket(tickets[at], &params).map(|id| {
                    tickets.swap_remove(at);
                    sequences.push(id);
                })
            }
            5 if !tickets.is_empty() => {
                name = "drop";
                let at = pick(&mut rng, tickets.len());
                cache.drop_ticket(tickets.swap_remove(at))
            }
            6 => {
                name = "open";
                cache.open(&params).map(|id| sequences.push(id))
            }
            7 if !sequences.is_empty() => {
                name = "close";
                let at = pick(&mut rng, sequences.len());
                let mode = if rng.below(3) == 0 { CloseMode::Discard } else { CloseMode::Keep };
                cache.close(sequences.swap_remove(at), mode)
            }
            8 if !sequences.is_empty() => {
                name = "fork";
                let id = sequences[pick(&mut rng, sequences.len())];
                let len = cache.sequence_info(id).unwrap().len;
                let at = if rng.below(2) == 0 { len } else { rng.below(len + 1) };
                let mut children = vec![SequenceId::default(); 1 + rng.below(2) as usize];
                cache.fork(id, at, &mut children).map(|()| sequences.extend(children))
            }
            9 if !sequences.is_empty() => {
                name = "truncate";
                let id = sequences[pick(&mut rng, sequences.len())];
                let len = cache.sequence_info(id).unwrap().len;
                cache.truncate(id, rng.below(len + 1))
            }
            10 if !sequences.is_empty() => {
                name = "io_begin";
                let id = sequences[pick(&mut rng, sequences.len())];
                let len = cache.sequence_info(id).unwrap().len;
                let end = rng.below(len + 1);
                let way = if rng.below(4) == 0 { Direction::Load } else { Direction::Store };
                cache.io_begin(Source::Sequence(id), rng.below(end + 1), end, way).map(|id| transfers.push(id))
            }
            11 if !transfers.is_empty() => {
                name = "io_end";
                let at = pick(&mut rng, transfers.len());
                cache.io_end(transfers.swap_remove(at), rng.below(3) > 0)
            }
            12 => {
                name = "evict";
                cache.evict(PoolId::new(0), rng.below(3)).map(|_| ())
            }
            13 if rng.below(20) == 0 => {
                name = "clear";
                cache.clear(None).map(|()| tickets.clear())
            }
            14 if !sequences.is_empty() => {
                name = "verify";
                let id = sequences[pick(&mut rng, sequences.len())];
                let info = cache.sequence_info(id).unwrap();
                cache.verify(id, info.verified + rng.below(info.len - info.verified + 1))
            }
            16 if !sequences.is_empty() => {
                name = "lease";
                let id = sequences[pick(&mut rng, sequences.len())];
                let until = tick + u64::from(rng.below(4));
                cache.lease(id, rng.below(40), until).map(|lease| leases.push(lease))
            }
            17 if !leases.is_empty() => {
                name = "end_lease";
                let at = pick(&mut rng, leases.len());
                cache.end_lease(leases.swap_remove(at))
            }
            18 => {
                name = "set_class";
                cache.set_class(&prompt, class).map(|_| ())
            }
            19 => {
                name = "reorder";
                cache.reorder(&prompt, if rng.below(2) == 0 { Move::Hot } else { Move::Cold }).map(|_| ())
            }
            20 if rng.below(4) == 0 => {
                name = "namespace";
                let key = NamespaceKey { tenant: [u64::from(rng.below(3)), 0, 0, 0], ..NamespaceKey::default() };
                cache.namespace_open(&key).map(|id| {
                    if !spaces.contains(&id) {
                        spaces.push(id);
                        let _ = cache.set_quota(id, PoolId::new(0), 3 + rng.below(20));
                    }
                })
            }
            21 if rng.below(4) == 0 => {
                name = "namespace_close";
                let closed = cache.namespace_close(namespace);
                spaces.retain(|&id| id != namespace || closed.is_err());
                closed
            }
            15 => {
                cache.publish(rng.below(3));
                Ok(())
            }
            _ => match state {
                0 => {
                    name = "begin";
                    tick += u64::from(rng.below(2));
                    cache.plan_begin(tick).map(|()| state = 1)
                }
                1 if !sequences.is_empty() && rng.below(4) > 0 => {
                    name = "add";
                    let id = sequences[pick(&mut rng, sequences.len())];
                    let known = rng.below(12) > 0;
                    let n = tokens.len() as u32;
                    cache.plan_add(id, n, known.then_some(&tokens[..])).map(|()| in_plan.push((id, n)))
                }
                1 if !in_plan.is_empty() && rng.below(3) == 0 => {
                    name = "seal";
                    let (id, _) = in_plan[pick(&mut rng, in_plan.len())];
                    cache.plan_seal(id, GroupId::new(0), 1 + rng.below(4))
                }
                1 if rng.below(5) == 0 => {
                    name = "cancel";
                    in_plan.clear();
                    cache.plan_cancel().map(|()| state = 0)
                }
                1 => {
                    name = "finish";
                    cache.plan_finish().map(|_| state = 2)
                }
                _ if rng.below(5) == 0 => {
                    name = "abort";
                    in_plan.clear();
                    cache.plan_abort().map(|()| state = 0)
                }
                _ => {
                    name = "commit";
                    let accepts: Vec<Accept> = in_plan
                        .drain(..)
                        .map(|(_, n)| {
                            let accepted = if rng.below(3) > 0 { n } else { rng.below(n + 1) };
                            let verified = if rng.below(3) > 0 { accepted } else { rng.below(accepted + 1) };
                            Accept { accepted, verified, tokens: None }
                        })
                        .collect();
                    cache.plan_commit(&accepts).map(|()| state = 0)
                }
            },
        };
        if let Err(error) = result {
            assert_eq!(before, cache.digest(), "operation {operation} {name}: {error} changed the cache");
        }
        if let Err(violation) = cache.check(2, &mut scratch).unwrap() {
            panic!(
                "seed {seed} operation {operation} {name} kind {kind} state {state}: {violation} (result {result:?}) {:?} {config:?}",
                cache.pool_stats(PoolId::new(0))
            );
        }
    }
}

#[test]
fn holds_its_rules() {
    for page_tokens in [1, 4, 16] {
        for pages in [8, 40, 300] {
            for groups in 1..4 {
                for variant in 0..8_u32 {
                    let all = [
                        GroupConfig { page_tokens, ..GroupConfig::FULL },
                        GroupConfig {
                            page_tokens,
                            kind: GroupKind::Window { window: 9, sinks: 3 },
                            pool: 1,
                            ..GroupConfig::FULL
                        },
                        GroupConfig {
                            page_tokens: page_tokens * 2,
                            pool: 1,
                            window_keep: WindowKeep::Exact,
                            ..GroupConfig::FULL
                        },
                    ];
                    let policy = [Policy::Lru, Policy::Fifo, Policy::Lfu, Policy::Lru][variant as usize % 4];
                    let sealed = PoolConfig { pages: pages / 2, policy };
                    let pools = [PoolConfig { pages, policy }, PoolConfig { pages: pages * 2, policy }, sealed];
                    let mut all = all;
                    all[1].contiguous = variant == 6;
                    (all[0].sealed_pool, all[0].sinks) = if variant == 4 { (3, groups as u32 % 2) } else { (0, 0) };
                    let config = Config {
                        pools: &pools,
                        // Group 1 alone: no group is full and the index has nodes of its own.
                        groups: if groups == 3 && variant == 7 { &all[1..2] } else { &all[..groups] },
                        sequences: 8,
                        tickets: 4,
                        transfers: 3,
                        publish: if variant & 1 == 0 { PublishMode::Immediate } else { PublishMode::Deferred },
                        index: if variant == 3 { IndexKind::Flat } else { IndexKind::Tree },
                        partial_tail: variant == 0,
                        events: 64,
                        scrub: variant == 2,
                        leases: if variant > 4 { 3 } else { 0 },
                        classes: if variant > 5 { 4 } else { 0 },
                        namespaces: if variant > 4 { 3 } else { 0 },
                        quotas: if variant > 4 { 2 } else { 0 },
                        key_parts: if variant > 3 { 12 } else { 0 },
                        index_nodes: pages,
                        ..Config::new()
                    };
                    let (seeds, operations) = if cfg!(debug_assertions) { (1, 60) } else { (3, 400) };
                    for seed in 0..seeds {
                        run(&config, seed * 1000 + u64::from(variant), operations);
                    }
                }
            }
        }
    }
}

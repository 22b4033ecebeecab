//! The workloads that are made from random numbers: W1 to W5.

use super::{Kind, Operation, PAGE_TOKENS, Random, Workload, segment, tokens};

/// A conversation of W3: everything said so far.
struct Conversation {
    history: Vec<u32>,
    turns: u32,
}

impl Workload {
    /// Steady decode: 256 requests of 256 to 767 tokens, then 2,000 steps of one token each.
    #[must_use]
    pub fn w1() -> Self {
        let mut work = Self::new("W1", 65_536, 256, 0x86aa_189c_4f79_7b5b);
        let mut random = Random(1);
        let lengths: Vec<u64> = (0..256).map(|_| 256 + random.below(512)).collect();
        for (request, &length) in (0..).zip(&lengths) {
            work.put(Kind::Admit, request, segment(1, 0, request), 0..length);
        }
        for step in 0..2_000 {
            for (request, &length) in (0..).zip(&lengths) {
                work.put(Kind::Grow, request, segment(1, 0, request), length + step..length + step + 1);
            }
        }
        (0..256).for_each(|request| work.release(request));
        work
    }

    /// Admissions and releases without a prefix cache: 20,000 requests of log-normal length.
    #[must_use]
    pub fn w2() -> Self {
        let mut work = Self { cached: false, ..Self::new("W2", 65_536, 20_000, 0x5ce2_18f0_25ec_2717) };
        let mut random = Random(2);
        let (mut active, mut used) = (Vec::new(), 0);
        for request in 0..20_000 {
            let (scale, prompt) = ((random.draw() >> 56).count_ones(), 16 + random.below(16));
            let prompt = prompt << scale;
            let (scale, reply) = ((random.draw() >> 58).count_ones(), 8 + random.below(8));
            let tokens = prompt + (reply << scale);
            let pages = tokens.div_ceil(u64::from(PAGE_TOKENS));
            while used + pages > 65_000 {
                let at = random.below(active.len() as u64) as usize;
                let (gone, its_pages) = active.swap_remove(at);
                used -= its_pages;
                work.release(gone);
            }
            let (request, count) = (request as u32, tokens as u32);
            work.operations.push(Operation { kind: Kind::Admit, request, offset: u32::MAX, count });
            active.push((u64::from(request), pages));
            used += pages;
        }
        active.iter().for_each(|&(request, _)| work.release(request));
        work
    }

    /// Conversations of 8 tenants over 128 templates, up to 8 turns each, 32 requests in flight.
    #[must_use]
    pub fn w3() -> Self {
        let mut work = Self::new("W3", 16_384, 5_000, 0xe3ab_6d41_5108_7cd7);
        let mut random = Random(3);
        let systems: Vec<u64> = (0..8).map(|_| 256 + random.below(769)).collect();
        let templates: Vec<u64> = (0..128).map(|_| 128 + random.below(1025)).collect();
        let mut slots: Vec<Option<Conversation>> = (0..256).map(|_| None).collect();
        let mut replies: Vec<Vec<u32>> = Vec::new();
        for request in 0..5_000 {
            let slot = &mut slots[random.below(256) as usize];
            let goes_on = slot.as_ref().is_some_and(|talk| talk.turns < 8) && random.below(8) != 0;
            let mut talk = match slot.take().filter(|_| goes_on) {
                Some(talk) => talk,
                None => {
                    let tenant = random.below(8).min(random.below(8));
                    let template = tenant * 16 + random.below(16).min(random.below(16));
                    let mut history = tokens(segment(3, 1, tenant), 0..systems[tenant as usize]);
                    history.extend(tokens(segment(3, 2, template), 0..templates[template as usize]));
                    Conversation { history, turns: 0 }
                }
            };
            let (user, reply) = (16 + random.below(241), 32 + random.below(481));
            talk.history.extend(tokens(segment(3, 3, request), 0..user));
            if request >= 32 {
                work.finish(request - 32, &replies[request as usize - 32]);
            }
            work.put_tokens(Kind::Admit, request, &talk.history);
            replies.push(tokens(segment(3, 3, request), user..user + reply));
            talk.history.extend_from_slice(&replies[request as usize]);
            talk.turns += 1;
            *slot = Some(talk);
        }
        (4_968..5_000).for_each(|request| work.finish(request, &replies[request as usize]));
        work
    }

    /// Long prompts: 200 of 32,768 tokens, 90 % of each shared with one of four documents.
    #[must_use]
    pub fn w4() -> Self {
        let mut work = Self::new("W4", 65_536, 200, 0xd884_8a28_bf7f_785f);
        let mut random = Random(4);
        for request in 0..200 {
            let document = random.below(4);
            work.put(Kind::Admit, request, segment(4, 1, document), 0..29_488);
            work.extend(segment(4, 2, request), 0..3_280);
            if request >= 3 {
                work.release(request - 3);
            }
        }
        (197..200).for_each(|request| work.release(request));
        work
    }

    /// Eviction storm: 4,000 requests with one-off tails into a pool of 8,192 pages.
    #[must_use]
    pub fn w5() -> Self {
        let mut work = Self::new("W5", 8_192, 4_000, 0x8902_9958_d5bd_235a);
        let mut random = Random(5);
        for request in 0..4_000 {
            let head = random.below(64);
            let tail = 1_024 + random.below(1_025);
            work.put(Kind::Admit, request, segment(5, 1, head), 0..512);
            work.extend(segment(5, 2, request), 0..tail);
            work.release(request);
        }
        work
    }
}

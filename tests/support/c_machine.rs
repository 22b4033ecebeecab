//! The C ABI behind the machine trait: every call goes through the functions of the header.

/// Calls a function of the header; `Err` is any status but KVF_OK.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: each pointer is NULL where the header allows it, or comes from a live reference, or from a slice whose
        // length is passed; the cache is this machine's, alive and used by one thread.
        let status = unsafe { kvfolio_ffi::$function($($argument),*) };
        if status == kvfolio_ffi::KVF_OK { Ok(()) } else { Err(status) }
    }};
}

mod answers;
mod config;
mod exports;
mod plan;
mod retain;
mod spaces;

use std::collections::BTreeMap;

use kvfolio_ffi as ffi;

use crate::machine::{Machine, Outcome, PageView, PoolView, SeqView, Status, Value, resolve_time};
use crate::mirror::Mirror;
use crate::op::{Lease, Op, Owner, Pos, Seq, Span, Ticket, Time, Transfer, masked_columns};
use crate::space_names::SpaceNames;
use crate::spec::Spec;
use config::{blank, size};

type Called = Result<Outcome, ffi::kvf_status>;

/// A cache behind the C ABI and the handles that the labels stand for.
pub struct CMachine {
    cache: *mut ffi::kvf_cache,
    /// What the cache lives in.
    _memory: Vec<config::Block>,
    spec: Spec,
    tick: u64,
    shortage: ffi::kvf_shortage,
    namespaces: Vec<ffi::kvf_namespace>,
    names: SpaceNames,
    mirror: Mirror,
    sequences: BTreeMap<Seq, ffi::kvf_seq>,
    tickets: BTreeMap<Ticket, ffi::kvf_ticket>,
    transfers: BTreeMap<Transfer, ffi::kvf_transfer>,
    leases: BTreeMap<Lease, ffi::kvf_lease>,
    /// The spans that each ticket was asked for.
    ticket_spans: BTreeMap<Ticket, Vec<ffi::kvf_media_span>>,
}

impl Drop for CMachine {
    fn drop(&mut self) {
        let _ = call!(kvf_cache_deinit(self.cache));
    }
}

fn no_shortage() -> ffi::kvf_shortage {
    ffi::kvf_shortage { struct_size: size::<ffi::kvf_shortage>(), ..blank() }
}

impl CMachine {
    /// A cache of this configuration.
    ///
    /// # Errors
    /// The status of the call that failed.
    pub fn new(spec: &Spec) -> Result<Self, String> {
        let (memory, cache) = config::init(spec)?;
        let mut machine = Self {
            cache,
            _memory: memory,
            spec: spec.clone(),
            tick: 0,
            shortage: no_shortage(),
            namespaces: vec![u64::MAX; spec.namespaces.len()],
            names: SpaceNames::default(),
            mirror: Mirror::default(),
            sequences: BTreeMap::new(),
            tickets: BTreeMap::new(),
            transfers: BTreeMap::new(),
            leases: BTreeMap::new(),
            ticket_spans: BTreeMap::new(),
        };
        for ns in 0..spec.namespaces.len() as u16 {
            match machine.open_space(ns) {
                Ok(_) | Err(ffi::KVF_RETRY) => {}
                Err(status) => return Err(format!("namespace: status {status}")),
            }
        }
        Ok(machine)
    }

    /// An unknown namespace must not become the default one, whose handle is also 0.
    fn ns(&self, ns: u16) -> ffi::kvf_namespace {
        self.namespaces.get(usize::from(ns)).copied().unwrap_or(u64::MAX)
    }

    fn seq(&self, seq: Seq) -> ffi::kvf_seq {
        self.sequences.get(&seq).copied().unwrap_or(0)
    }

    fn ticket(&self, ticket: Ticket) -> ffi::kvf_ticket {
        self.tickets.get(&ticket).copied().unwrap_or(0)
    }

    /// The prompt borrows tokens and spans: use it while they live.
    fn prompt(&self, ns: u16, tokens: &[u32], spans: &[ffi::kvf_media_span]) -> ffi::kvf_prompt {
        ffi::kvf_prompt {
            struct_size: size::<ffi::kvf_prompt>(),
            n_tokens: tokens.len() as u32,
            tokens: tokens.as_ptr(),
            spans: spans.as_ptr(),
            n_spans: spans.len() as u32,
            ns: self.ns(ns),
            ..blank()
        }
    }

    fn step(&mut self, op: &Op) -> Called {
        let cache = self.cache;
        match op {
            Op::Open { .. } | Op::OpenTicket { .. } | Op::Fork { .. } => self.open(op),
            Op::Truncate { seq, len } => done(call!(kvf_seq_truncate(cache, self.seq(*seq), position(*len)))),
            Op::Remove { seq, first, mask } => {
                let columns = masked_columns(*first, *mask);
                done(call!(kvf_seq_remove_pages(cache, self.seq(*seq), columns.as_ptr(), columns.len())))
            }
            Op::Close { seq, discard } => {
                let mode = if *discard { ffi::KVF_CLOSE_DISCARD } else { ffi::KVF_CLOSE_KEEP };
                done(call!(kvf_seq_close(cache, self.seq(*seq), mode)))
            }
            Op::Verify { seq, upto } => done(call!(kvf_seq_verify(cache, self.seq(*seq), position(*upto)))),
            Op::Publish { budget } => {
                let mut pages = 0;
                call!(kvf_prefix_publish(cache, *budget, &mut pages))?;
                Ok(Outcome::ok(Value::Pages(pages)))
            }
            Op::Evict { pool, count } => {
                let mut pages = 0;
                call!(kvf_cache_evict(cache, u32::from(*pool), *count, &mut pages))?;
                Ok(Outcome::ok(Value::Pages(pages)))
            }
            Op::Clear { ns: None } => done(call!(kvf_namespace_clear_all(cache))),
            Op::Clear { ns: Some(ns) } => done(call!(kvf_namespace_clear(cache, self.ns(*ns)))),
            Op::Advance { tick } => done(call!(kvf_cache_advance(cache, absolute(*tick)))),
            Op::Lease { .. } | Op::EndLease { .. } | Op::SetClass { .. } | Op::Move { .. } | Op::SetQuota { .. } => {
                self.retain(op)
            }
            Op::AddSpans { seq, spans } => {
                let (seq, spans) = (self.seq(*seq), media(spans));
                done(call!(kvf_seq_add_spans(cache, seq, spans.as_ptr(), spans.len(), &mut self.shortage)))
            }
            Op::CloseSpace { ns } => done(call!(kvf_namespace_close(cache, self.ns(*ns)))),
            Op::OpenSpace { ns } => self.open_space(*ns),
            Op::Export { seqs } => self.export(seqs),
            Op::Ring { seq, group, columns } => self.ring_view(*seq, *group, *columns),
            Op::Drain => self.drain(),
            Op::Check => Ok(Outcome::OK),
            Op::Lookup { .. } | Op::Match { .. } | Op::Drop { .. } => self.find(op),
            Op::IoBegin { .. } | Op::IoEnd { .. } => self.transfer(op),
            _ => self.plan(op),
        }
    }

    fn open(&mut self, op: &Op) -> Called {
        let (cache, mut id) = (self.cache, 0);
        let params = |ns, class: u8, spans: &[ffi::kvf_media_span]| ffi::kvf_open_params {
            struct_size: size::<ffi::kvf_open_params>(),
            eviction_class: u32::from(class),
            ns,
            spans: spans.as_ptr(),
            n_spans: spans.len() as u32,
            ..blank()
        };
        match op {
            Op::Open { seq, ns, class, spans } => {
                let spans = media(spans);
                let params = params(self.ns(*ns), *class, &spans);
                call!(kvf_seq_open(cache, &params, &mut id, &mut self.shortage))?;
                self.sequences.insert(*seq, id);
                Ok(Outcome::OK)
            }
            Op::OpenTicket { seq, ticket, class } => {
                let spans = self.ticket_spans.get(ticket).cloned().unwrap_or_default();
                let (ticket, params) = (self.ticket(*ticket), params(0, *class, &spans));
                call!(kvf_seq_open_ticket(cache, ticket, &params, &mut id, &mut self.shortage))?;
                self.sequences.insert(*seq, id);
                Ok(Outcome::ok(Value::Hit(self.info(id)?.len)))
            }
            Op::Fork { source, children, at } => {
                let mut ids = vec![0; children.len()];
                let (source, at) = (self.seq(*source), position(*at));
                call!(kvf_seq_fork(cache, source, at, ids.as_mut_ptr(), ids.len(), &mut self.shortage))?;
                self.sequences.extend(children.iter().copied().zip(ids));
                Ok(Outcome::OK)
            }
            _ => Ok(Outcome::of(Status::Unsupported)),
        }
    }

    fn find(&mut self, op: &Op) -> Called {
        let (cache, mut id, mut hit) = (self.cache, 0, 0);
        match op {
            Op::Lookup { ns, tokens, limit, spans } => {
                let spans = media(spans);
                call!(kvf_prefix_lookup(cache, &self.prompt(*ns, tokens, &spans), *limit, &mut hit))?;
                Ok(Outcome::ok(Value::Hit(hit)))
            }
            Op::Match { ticket, ns, tokens, limit, spans, until } => {
                let spans = media(spans);
                let prompt = self.prompt(*ns, tokens, &spans);
                let until = until.map_or(ffi::KVF_NO_DEADLINE, absolute);
                call!(kvf_prefix_match(cache, &prompt, *limit, until, &mut id, &mut hit, &mut self.shortage))?;
                self.tickets.insert(*ticket, id);
                self.ticket_spans.insert(*ticket, spans);
                Ok(Outcome::ok(Value::Hit(hit)))
            }
            Op::Drop { ticket } => done(call!(kvf_prefix_drop(cache, self.ticket(*ticket)))),
            _ => Ok(Outcome::of(Status::Unsupported)),
        }
    }

    fn transfer(&mut self, op: &Op) -> Called {
        let (cache, mut id) = (self.cache, 0);
        match op {
            Op::IoBegin { transfer, owner, begin, end, load } => {
                let direction = if *load { ffi::KVF_IO_LOAD } else { ffi::KVF_IO_STORE };
                match owner {
                    Owner::Seq(seq) => {
                        let seq = self.seq(*seq);
                        call!(kvf_io_begin_seq(cache, seq, *begin, *end, direction, &mut id, &mut self.shortage))?;
                    }
                    Owner::Ticket(ticket) => {
                        let ticket = self.ticket(*ticket);
                        call!(kvf_io_begin_ticket(
                            cache,
                            ticket,
                            *begin,
                            *end,
                            direction,
                            &mut id,
                            &mut self.shortage
                        ))?;
                    }
                }
                self.transfers.insert(*transfer, id);
                Ok(Outcome::OK)
            }
            Op::IoEnd { transfer, ok } => {
                let id = self.transfers.get(transfer).copied().unwrap_or(0);
                done(call!(kvf_io_end(cache, id, if *ok { ffi::KVF_IO_OK } else { ffi::KVF_IO_FAILED })))
            }
            _ => Ok(Outcome::of(Status::Unsupported)),
        }
    }

    fn info(&self, id: ffi::kvf_seq) -> Result<ffi::kvf_seq_info, ffi::kvf_status> {
        let mut info = ffi::kvf_seq_info { struct_size: size::<ffi::kvf_seq_info>(), ..blank() };
        call!(kvf_seq_info_read(self.cache, id, &mut info))?;
        Ok(info)
    }

    fn table(&self, id: ffi::kvf_seq, group: u32) -> Result<Vec<u32>, ffi::kvf_status> {
        let mut pages = 0;
        call!(kvf_seq_pages(self.cache, id, group, &mut pages))?;
        let mut row = vec![0; pages as usize];
        call!(kvf_table_dense(self.cache, group, &id, 1, pages, -1, row.as_mut_ptr(), row.len()))?;
        Ok(row.into_iter().map(|page| page as u32).collect())
    }

    /// The row of a fixed ring; empty for other groups.
    fn ring(&self, id: ffi::kvf_seq, group: u32) -> Result<Vec<u32>, ffi::kvf_status> {
        let spec = self.spec.groups[group as usize];
        if spec.ring == 0 {
            return Ok(Vec::new());
        }
        let (mut ring, mut report) =
            (0, ffi::kvf_ring_report { struct_size: size::<ffi::kvf_ring_report>(), ..blank() });
        call!(kvf_table_ring_pages(self.cache, group, spec.ring, &mut ring))?;
        let mut row = vec![-1; (spec.sink_pages() + ring) as usize];
        call!(kvf_table_ring(self.cache, id, group, ring, row.as_mut_ptr(), row.len(), &mut report))?;
        Ok(row.into_iter().map(|page| page as u32).collect())
    }
}

fn done(called: Result<(), ffi::kvf_status>) -> Called {
    called.map(|()| Outcome::OK)
}

/// The scenario's number stands in all four words of a digest.
fn media(spans: &[Span]) -> Vec<ffi::kvf_media_span> {
    let one = |span: &Span| ffi::kvf_media_span {
        start: span.start,
        length: span.length,
        digest: [u64::from(span.digest); 4],
    };
    spans.iter().map(one).collect()
}

fn position(pos: Pos) -> u32 {
    match pos {
        Pos::At(at) => at,
        Pos::Back(_) => unreachable!("the runner resolves positions"),
    }
}

const fn absolute(time: Time) -> u64 {
    resolve_time(time, 0)
}

impl Machine for CMachine {
    fn name(&self) -> &'static str {
        "c"
    }

    fn apply(&mut self, op: &Op) -> Outcome {
        self.shortage = no_shortage();
        let outcome = self.step(op).unwrap_or_else(|status| self.refusal(status));
        if let (Status::Ok, Op::PlanBegin { tick } | Op::Advance { tick }) = (outcome.status, op) {
            self.tick = absolute(*tick);
        }
        outcome
    }

    fn pool(&self, pool: u16) -> PoolView {
        let mut stats = ffi::kvf_pool_stats { struct_size: size::<ffi::kvf_pool_stats>(), ..blank() };
        call!(kvf_pool_stats_read(self.cache, u32::from(pool), &mut stats)).expect("a pool of the configuration");
        PoolView { used: stats.used, cached: stats.cached, free: stats.free_pages, pending: stats.pending }
    }

    fn page(&self, pool: u16, page: u32) -> PageView {
        let mut info = ffi::kvf_page_info { struct_size: size::<ffi::kvf_page_info>(), ..blank() };
        call!(kvf_page_info_read(self.cache, u32::from(pool), page, &mut info)).expect("a page of the configuration");
        PageView { refs: info.refs, used: info.state == ffi::KVF_PAGE_USED, indexed: info.indexed == 1 }
    }

    fn sequence(&self, seq: Seq) -> Option<SeqView> {
        let id = self.sequences.get(&seq).copied()?;
        let info = self.info(id).ok()?;
        let tables = (0..self.spec.groups.len() as u32).map(|group| self.table(id, group).expect("a live table"));
        let rings = (0..self.spec.groups.len() as u32).map(|group| self.ring(id, group).expect("a live ring"));
        let sealed = |group| {
            let mut sealed = 0..0;
            let read = call!(kvf_seq_sealed_columns(self.cache, id, group, &mut sealed.start, &mut sealed.end));
            read.map(|()| sealed).expect("a live row")
        };
        Some(SeqView {
            len: info.len,
            verified: info.verified,
            published: info.published,
            tables: tables.collect(),
            rings: rings.collect(),
            sealed: (0..self.spec.groups.len() as u32).map(sealed).collect(),
        })
    }

    fn digest(&self) -> u64 {
        let mut digest = 0;
        call!(kvf_cache_digest(self.cache, &mut digest)).expect("a live cache");
        digest
    }

    fn digest_kind(&self) -> u8 {
        1
    }

    fn check(&mut self) -> Result<(), String> {
        let mut violation = ffi::kvf_violation { struct_size: size::<ffi::kvf_violation>(), ..blank() };
        let (mut scratch, mut needed) = (Vec::new(), 0);
        loop {
            let (at, cap) = (<Vec<u32>>::as_mut_ptr(&mut scratch), scratch.len());
            match call!(kvf_cache_check(self.cache, 2, at, cap, &mut needed, &mut violation)) {
                Ok(()) if violation.rule == 0 => return Ok(()),
                Err(ffi::KVF_ERR_SHORT_BUFFER) if needed > scratch.len() => scratch.resize(needed, 0),
                Ok(()) | Err(ffi::KVF_ERR_CORRUPT) => {
                    return Err(format!("rule {} at {}", violation.rule, violation.index));
                }
                Err(status) => return Err(format!("status {status}")),
            }
        }
    }
}

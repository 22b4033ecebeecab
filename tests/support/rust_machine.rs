//! The Rust API behind the machine trait.
//!
//! Two flavours exercise different calls with equal meaning: the plain one spells every plan out and reads
//! dense tables, the sugared one uses `append` and compressed rows.

mod answers;
mod config;
mod exports;
mod retain;
mod spaces;
mod tables;

pub(crate) use config::roomy_chunks;

use std::collections::BTreeMap;

use kvfolio::{
    Accept, Cache, CloseMode, Direction, Error, GroupId, LeaseId, MediaSpan, NamespaceId, OpenParams, PageId, PoolId,
    Prompt, SequenceId, Source, TicketId, TransferId,
};

use crate::machine::{Copy, Machine, Outcome, PageView, PlanView, PoolView, SeqView, Status, Value, resolve_time};
use crate::mirror::Mirror;
use crate::op::{Accept as Accepted, Lease, Op, Owner, Pos, Seq, Span, Ticket, Time, Transfer, masked_columns};
use crate::space_names::SpaceNames;
use crate::spec::{IndexKind, Spec};
use answers::refusal;

/// What a dense row has behind its last page.
const PAD: i32 = -7;

/// Which calls are used where several mean the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Explicit plans, dense tables.
    Plain,
    /// `append`, compressed rows; and the other kind of index.
    Sugar,
}

/// A cache and the handles that the labels stand for.
pub struct RustMachine {
    cache: config::OwnedCache,
    spec: Spec,
    flavour: Flavour,
    namespaces: Vec<NamespaceId>,
    names: SpaceNames,
    mirror: Mirror,
    sequences: BTreeMap<Seq, SequenceId>,
    tickets: BTreeMap<Ticket, TicketId>,
    /// The spans that each ticket was asked for.
    ticket_spans: BTreeMap<Ticket, Vec<MediaSpan>>,
    leases: BTreeMap<Lease, LeaseId>,
    transfers: BTreeMap<Transfer, TransferId>,
}

type Answer = Result<Outcome, Error>;

impl RustMachine {
    /// A cache of this configuration.
    ///
    /// # Errors
    /// The configuration error.
    pub fn new(spec: &Spec, flavour: Flavour) -> Result<Self, String> {
        let mut spec = spec.clone();
        if flavour == Flavour::Sugar {
            spec.index = match spec.index {
                IndexKind::Tree => IndexKind::Flat,
                IndexKind::Flat => IndexKind::Tree,
                IndexKind::None => IndexKind::None,
            };
        }
        let cache = config::OwnedCache::new(&spec)?;
        let mut machine = Self {
            cache,
            flavour,
            namespaces: vec![NamespaceId::from_bits(u64::MAX); spec.namespaces.len()],
            names: SpaceNames::default(),
            mirror: Mirror::default(),
            spec,
            sequences: BTreeMap::new(),
            tickets: BTreeMap::new(),
            ticket_spans: BTreeMap::new(),
            leases: BTreeMap::new(),
            transfers: BTreeMap::new(),
        };
        for ns in 0..machine.spec.namespaces.len() as u16 {
            match machine.open_space(ns) {
                Ok(_) | Err(Error::Shortage(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(machine)
    }

    fn cache(&mut self) -> &mut Cache<'static> {
        self.cache.get_mut()
    }

    fn ns(&self, ns: u16) -> NamespaceId {
        let unknown = NamespaceId::from_bits(u64::MAX);
        self.namespaces.get(usize::from(ns)).copied().unwrap_or(unknown)
    }

    fn seq(&self, seq: Seq) -> SequenceId {
        self.sequences.get(&seq).copied().unwrap_or_default()
    }

    fn ticket(&self, ticket: Ticket) -> TicketId {
        self.tickets.get(&ticket).copied().unwrap_or_default()
    }

    fn step(&mut self, op: &Op) -> Answer {
        match op {
            Op::Open { seq, ns, class, spans } => {
                let spans: Vec<MediaSpan> = spans.iter().map(media).collect();
                let params = OpenParams { namespace: self.ns(*ns), class: *class, spans: &spans, user: 0 };
                let id = self.cache().open(&params)?;
                self.sequences.insert(*seq, id);
                Ok(Outcome::OK)
            }
            Op::OpenTicket { seq, ticket, class } => {
                let spans = self.ticket_spans.get(ticket).cloned().unwrap_or_default();
                let ticket = self.ticket(*ticket);
                let params = OpenParams { class: *class, spans: &spans, ..OpenParams::default() };
                let id = self.cache().open_ticket(ticket, &params)?;
                self.sequences.insert(*seq, id);
                Ok(Outcome::ok(Value::Hit(self.cache().sequence_info(id)?.len)))
            }
            Op::Fork { source, children, at } => {
                let mut ids = vec![SequenceId::default(); children.len()];
                let source = self.seq(*source);
                self.cache().fork(source, position(*at), &mut ids)?;
                self.sequences.extend(children.iter().copied().zip(ids));
                Ok(Outcome::OK)
            }
            Op::Truncate { seq, len } => {
                let id = self.seq(*seq);
                done(self.cache().truncate(id, position(*len)))
            }
            Op::Remove { seq, first, mask } => {
                let id = self.seq(*seq);
                done(self.cache().remove_pages(id, &masked_columns(*first, *mask)))
            }
            Op::Close { seq, discard } => {
                let id = self.seq(*seq);
                let mode = if *discard { CloseMode::Discard } else { CloseMode::Keep };
                done(self.cache().close(id, mode))
            }
            Op::Verify { seq, upto } => {
                let id = self.seq(*seq);
                done(self.cache().verify(id, position(*upto)))
            }
            Op::Publish { budget } => Ok(Outcome::ok(Value::Pages(self.cache().publish(*budget)))),
            Op::Evict { pool, count } => Ok(Outcome::ok(Value::Pages(self.cache().evict(PoolId::new(*pool), *count)?))),
            Op::Clear { ns } => {
                let namespace = ns.map(|ns| self.ns(ns));
                done(self.cache().clear(namespace))
            }
            Op::Advance { tick } => done(self.cache().advance(absolute(*tick))),
            Op::AddSpans { seq, spans } => {
                let id = self.seq(*seq);
                let spans: Vec<MediaSpan> = spans.iter().map(media).collect();
                done(self.cache().add_spans(id, &spans))
            }
            Op::Lease { .. } | Op::EndLease { .. } | Op::SetClass { .. } | Op::Move { .. } | Op::SetQuota { .. } => {
                self.retain(op)
            }
            Op::CloseSpace { ns } => self.close_space(*ns),
            Op::OpenSpace { ns } => self.open_space(*ns),
            Op::Export { seqs } => self.export(seqs),
            Op::Ring { seq, group, columns } => self.ring_view(*seq, *group, *columns),
            Op::Drain => Ok(self.drain()),
            Op::Check => Ok(Outcome::OK),
            Op::Lookup { .. } | Op::Match { .. } | Op::Drop { .. } => self.find(op),
            Op::IoBegin { .. } | Op::IoEnd { .. } => self.transfer(op),
            _ => self.plan(op),
        }
    }

    fn find(&mut self, op: &Op) -> Answer {
        match op {
            Op::Lookup { ns, tokens, limit, spans } => {
                let spans: Vec<MediaSpan> = spans.iter().map(media).collect();
                let prompt = Prompt { namespace: self.ns(*ns), tokens, spans: &spans };
                Ok(Outcome::ok(Value::Hit(self.cache().lookup(&prompt, *limit)?.tokens)))
            }
            Op::Match { ticket, ns, tokens, limit, spans, until } => {
                let spans: Vec<MediaSpan> = spans.iter().map(media).collect();
                let prompt = Prompt { namespace: self.ns(*ns), tokens, spans: &spans };
                let looked = self.cache().lookup(&prompt, *limit)?.tokens;
                let (id, hit) = self.cache().match_prefix(&prompt, *limit, until.map(absolute))?;
                assert_eq!(looked, hit.tokens, "lookup and match differ");
                self.tickets.insert(*ticket, id);
                self.ticket_spans.insert(*ticket, spans);
                Ok(Outcome::ok(Value::Hit(hit.tokens)))
            }
            Op::Drop { ticket } => {
                let id = self.ticket(*ticket);
                done(self.cache().drop_ticket(id))
            }
            _ => Ok(Outcome::of(Status::Unsupported)),
        }
    }

    fn transfer(&mut self, op: &Op) -> Answer {
        match op {
            Op::IoBegin { transfer, owner, begin, end, load } => {
                let source = match owner {
                    Owner::Seq(seq) => Source::Sequence(self.seq(*seq)),
                    Owner::Ticket(ticket) => Source::Ticket(self.ticket(*ticket)),
                };
                let direction = if *load { Direction::Load } else { Direction::Store };
                let id = self.cache().io_begin(source, *begin, *end, direction)?;
                self.transfers.insert(*transfer, id);
                Ok(Outcome::OK)
            }
            Op::IoEnd { transfer, ok } => {
                let id = self.transfers.get(transfer).copied().unwrap_or_default();
                done(self.cache().io_end(id, *ok))
            }
            _ => Ok(Outcome::of(Status::Unsupported)),
        }
    }

    fn plan(&mut self, op: &Op) -> Answer {
        match op {
            Op::PlanBegin { tick } => done(self.cache().plan_begin(absolute(*tick))),
            Op::PlanAdd { seq, count, tokens } => {
                let id = self.seq(*seq);
                done(self.cache().plan_add(id, *count, tokens.as_deref()))
            }
            Op::Seal { seq, group, upto } => {
                let id = self.seq(*seq);
                done(self.cache().plan_seal(id, GroupId::new(*group), *upto))
            }
            Op::PlanFinish => self.finish(),
            Op::PlanCancel => done(self.cache().plan_cancel()),
            Op::PlanCommit { accepts } => {
                let accepts: Vec<Accept<'_>> = accepts.iter().map(accept).collect();
                done(self.cache().plan_commit(&accepts))
            }
            Op::PlanAbort => done(self.cache().plan_abort()),
            Op::Reserve { seq, count, tokens } => self.reserve(*seq, *count, tokens.as_deref()),
            Op::Append { seq, tokens } if self.flavour == Flavour::Sugar => {
                let id = self.seq(*seq);
                done(self.cache().append(id, tokens).map(drop))
            }
            Op::Append { seq, tokens } => {
                let count = tokens.len() as u32;
                let plan = self.reserve(*seq, count, Some(tokens))?;
                self.cache().plan_commit(&[Accept::all(count)])?;
                Ok(plan)
            }
            _ => Ok(Outcome::of(Status::Unsupported)),
        }
    }

    fn reserve(&mut self, seq: Seq, count: u32, tokens: Option<&[u32]>) -> Answer {
        let id = self.seq(seq);
        let tick = self.cache.tick();
        self.cache().plan_begin(tick)?;
        if let Err(error) = self.cache().plan_add(id, count, tokens) {
            self.cache().plan_cancel()?;
            return Err(error);
        }
        self.finish()
    }

    fn finish(&mut self) -> Answer {
        let report = self.cache().plan_finish()?;
        let count = report.tokens as usize;
        let mut view = PlanView::default();
        view.copies.extend(self.cache().copies().map(|copy| Copy {
            group: copy.group.get(),
            src: copy.source.get(),
            dst: copy.target.get(),
            tokens: copy.tokens,
            seals: copy.seals,
        }));
        assert_eq!(view.copies.len(), report.copies as usize, "the report's copies");
        view.scrubs.extend(self.cache().scrubs().map(|(pool, page)| (pool.get(), page.get())));
        for group in 0..self.spec.groups.len() as u16 {
            // Two elements more than needed: the rest must say "do not write".
            let (mut slots, mut positions) = (vec![0; count + 2], vec![0; count + 2]);
            let written = self.cache().export_slots(GroupId::new(group), &mut slots, &mut positions)?;
            assert_eq!((written as usize, &slots[count..]), (count, &[-1, -1][..]), "slots");
            slots.truncate(count);
            positions.truncate(count);
            view.slots.push(slots);
            view.positions = positions;
        }
        Ok(Outcome::ok(Value::Plan(view)))
    }
}

fn done(result: Result<(), Error>) -> Answer {
    result.map(|()| Outcome::OK)
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

fn accept(accept: &Accepted) -> Accept<'_> {
    let tokens = accept.tokens.as_deref();
    Accept { accepted: accept.accepted.unwrap_or(0), verified: accept.verified.unwrap_or(0), tokens }
}

/// The scenario's number stands in all four words of a digest.
fn media(span: &Span) -> MediaSpan {
    MediaSpan { start: span.start, length: span.length, digest: [u64::from(span.digest); 4] }
}

impl Machine for RustMachine {
    fn name(&self) -> &'static str {
        match self.flavour {
            Flavour::Plain => "rust",
            Flavour::Sugar => "rust, sugared",
        }
    }

    fn apply(&mut self, op: &Op) -> Outcome {
        let outcome = self.step(op).unwrap_or_else(refusal);
        if let (Status::Ok, Op::PlanBegin { tick } | Op::Advance { tick }) = (outcome.status, op) {
            self.cache.note_tick(absolute(*tick));
        }
        outcome
    }

    fn pool(&self, pool: u16) -> PoolView {
        let stats = self.cache.get().pool_stats(PoolId::new(pool)).expect("a pool of the configuration");
        PoolView { used: stats.used, cached: stats.cached, free: stats.free, pending: stats.pending }
    }

    fn page(&self, pool: u16, page: u32) -> PageView {
        let info =
            self.cache.get().page_info(PoolId::new(pool), PageId::new(page)).expect("a page of the configuration");
        PageView { refs: info.refs, used: info.state == kvfolio::PageState::Used, indexed: info.indexed }
    }

    fn sequence(&self, seq: Seq) -> Option<SeqView> {
        let id = self.sequences.get(&seq).copied()?;
        let info = self.cache.get().sequence_info(id).ok()?;
        let tables = (0..self.spec.groups.len() as u16).map(|group| self.table(id, group).expect("a live table"));
        let rings = (0..self.spec.groups.len() as u16).map(|group| self.ring(id, group).expect("a live ring"));
        let sealed = |group| {
            let columns = self.cache.get().sealed_columns(id, GroupId::new(group)).expect("a live row");
            columns.begin..columns.end
        };
        Some(SeqView {
            len: info.len,
            verified: info.verified,
            published: info.published,
            tables: tables.collect(),
            rings: rings.collect(),
            sealed: (0..self.spec.groups.len() as u16).map(sealed).collect(),
        })
    }

    fn digest(&self) -> u64 {
        self.cache.get().digest()
    }

    fn digest_kind(&self) -> u8 {
        1
    }

    fn check(&mut self) -> Result<(), String> {
        let mut scratch = vec![0; self.cache.get().check_scratch(2) as usize];
        let checked = self.cache.get().check(2, &mut scratch).map_err(|error| error.to_string())?;
        checked.map_err(|violation| violation.to_string())
    }
}

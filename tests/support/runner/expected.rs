//! What device memory and the event stream must say.

use core::ops::Range;
use std::collections::BTreeMap;

use crate::device::{Chain, DeviceGroup, Protection, SimDevice};
use crate::machine::{Event, EventKind, Machine, Oracle, Outcome, PageView, PlanView, Status, Value};
use crate::model::{IndexKey, Model};
use crate::op::{Op, Owner, Pos, Seq, Span, masked_columns};
use crate::spec::Spec;

/// One entry of an open plan: sequence, count, tokens.
type Planned = (Seq, u32, Option<Vec<u32>>);

/// The part of the model's state that an op may destroy.
pub(super) struct Before {
    plan: Vec<Planned>,
    ticket: Option<(u16, Vec<u32>, Vec<Span>)>,
    spans: BTreeMap<Seq, Vec<Span>>,
}

/// What the finished plan wrote for one sequence beyond its length.
#[derive(Default)]
struct Written {
    tokens: Vec<u64>,
    chains: Vec<Chain>,
    /// Per group: the slot of each token.
    slots: Vec<Vec<i64>>,
}

impl Before {
    pub(super) fn of(model: &Model, op: &Op) -> Self {
        let mut before = Self { plan: Vec::new(), ticket: None, spans: BTreeMap::new() };
        match op {
            Op::OpenTicket { ticket, .. } => before.ticket = model.ticket(*ticket),
            Op::Append { seq, .. } => drop(before.spans.insert(*seq, model.spans(*seq))),
            Op::PlanCommit { .. } | Op::PlanAbort => {
                before.plan = model.plan();
                before.spans = before.plan.iter().map(|entry| (entry.0, model.spans(entry.0))).collect();
            }
            _ => {}
        }
        before
    }

    /// Sequences of the plan that the op may end.
    pub(super) fn planned(&self) -> impl Iterator<Item = Seq> {
        self.plan.iter().map(|entry| entry.0)
    }
}

/// The token chains of live sequences, the device, the folded events.
pub(super) struct Expected {
    spec: Spec,
    device: SimDevice,
    /// Per sequence: its namespace's root and the chain after each token.
    chains: BTreeMap<Seq, (Chain, Vec<Chain>)>,
    written: BTreeMap<Seq, Written>,
    /// Index as the events tell it; `None` once events were lost.
    folded: Option<BTreeMap<IndexKey, u32>>,
    /// Stands for the tokens of opaque sequences.
    unknown: u64,
}

impl Expected {
    pub(super) fn new(spec: &Spec) -> Self {
        let group =
            |g: &crate::spec::GroupSpec| DeviceGroup { page_tokens: g.page_tokens, pool: g.pool, sealed: g.sealed };
        let groups: Vec<DeviceGroup> = spec.groups.iter().map(group).collect();
        let pools: Vec<u32> = spec.pools.iter().map(|pool| pool.pages).collect();
        Self {
            spec: spec.clone(),
            device: SimDevice::new(&groups, &pools),
            chains: BTreeMap::new(),
            written: BTreeMap::new(),
            folded: Some(BTreeMap::new()),
            unknown: 1 << 40,
        }
    }

    /// Follows one op that all machines agreed on.
    pub(super) fn after(&mut self, op: &Op, before: &Before, outcome: &Outcome, model: &Model) -> Result<(), String> {
        if let Value::Events(events, lost) = &outcome.value {
            self.fold(events, *lost, model)?;
        }
        if outcome.status != Status::Ok {
            return Ok(());
        }
        match op {
            Op::Open { seq, ns, .. } => {
                self.chains.insert(*seq, (root(model, *ns), Vec::new()));
            }
            Op::OpenTicket { seq, .. } => {
                let (ns, tokens, spans) = before.ticket.as_ref().ok_or("a ticket from nowhere")?;
                let root = root(model, *ns);
                let tokens: Vec<u64> = tokens.iter().map(|&token| u64::from(token)).collect();
                self.chains.insert(*seq, (root, extend(root, 0, &tokens, spans)));
            }
            Op::Fork { source, children, at: Pos::At(at) } => {
                let (root, chain) = self.chains.get(source).cloned().ok_or("a fork from nowhere")?;
                for child in children {
                    self.chains.insert(*child, (root, chain[..*at as usize].to_vec()));
                }
            }
            Op::Truncate { seq, len: Pos::At(len) } => {
                if let Some((_, chain)) = self.chains.get_mut(seq) {
                    chain.truncate(*len as usize);
                }
            }
            Op::Remove { seq, first, mask } => {
                let step = self.spec.groups[0].page_tokens as usize;
                if let Some((_, chain)) = self.chains.get_mut(seq) {
                    for column in masked_columns(*first, *mask).into_iter().rev().map(|column| column as usize) {
                        chain.drain(column * step..(column + 1) * step);
                    }
                }
            }
            Op::PlanFinish | Op::Reserve { .. } => {
                if let Value::Plan(plan) = &outcome.value {
                    self.execute(plan, &model.plan(), &|seq| model.spans(seq), Some(model))?;
                }
            }
            Op::Export { seqs } => {
                if let Value::Rows(groups) = &outcome.value {
                    for (group, rows) in (0..).zip(groups) {
                        let read =
                            |(seq, row): (&Seq, &Vec<u32>)| self.read_row(*seq, group, &model.sealed(*seq, group), row);
                        seqs.iter().zip(rows).try_for_each(read)?;
                    }
                }
            }
            Op::Ring { seq, group, columns } => {
                if let Value::Ring(ring) = &outcome.value {
                    self.read_ring(*seq, *group, *columns, ring.end as usize, &ring.row)?;
                }
            }
            Op::Append { seq, tokens } => {
                if let Value::Plan(plan) = &outcome.value {
                    // The call has committed already: what may be written is no longer visible.
                    let spans = |seq| before.spans.get(&seq).cloned().unwrap_or_default();
                    self.execute(plan, &[(*seq, tokens.len() as u32, Some(tokens.clone()))], &spans, None)?;
                }
                self.accept(*seq, tokens.len(), None, &[])?;
            }
            Op::PlanCommit { accepts } => {
                for (entry, accept) in before.plan.iter().zip(accepts) {
                    let spans = before.spans.get(&entry.0).map_or(&[][..], Vec::as_slice);
                    let count = accept.accepted.unwrap_or(0) as usize;
                    self.accept(entry.0, count, accept.tokens.as_deref(), spans)?;
                }
            }
            _ => {}
        }
        if matches!(op, Op::PlanCommit { .. } | Op::PlanAbort) {
            self.written.clear();
        }
        self.chains.retain(|seq, _| model.is_live(Owner::Seq(*seq)));
        Ok(())
    }

    /// Keeps the accepted tokens of a sequence. Where commit names other ids, or media spans were added while the plan was
    /// open, the engine has computed those: their slots get that content.
    fn accept(&mut self, seq: Seq, count: usize, ids: Option<&[u32]>, spans: &[Span]) -> Result<(), String> {
        let mut written = self.written.remove(&seq).unwrap_or_default();
        let Some((root, chain)) = self.chains.get_mut(&seq) else {
            return Ok(());
        };
        if let Some(ids) = ids {
            written.tokens = ids.iter().map(|&id| u64::from(id)).collect();
        }
        if ids.is_some() || !spans.is_empty() {
            let last = chain.last().copied().unwrap_or(*root);
            written.tokens.truncate(count);
            written.chains = extend(last, chain.len(), &written.tokens, spans);
            for (group, slots) in (0..).zip(&written.slots) {
                for (&slot, &chain) in slots.iter().zip(&written.chains) {
                    self.device.write(group, slot, chain, Protection::Writable).map_err(|fault| fault.to_string())?;
                }
            }
        }
        chain.extend(written.chains.into_iter().take(count));
        Ok(())
    }

    /// Runs a finished plan on the device: new pages lose their content, copies run, then writes.
    fn execute(
        &mut self,
        plan: &PlanView,
        entries: &[Planned],
        spans: &dyn Fn(Seq) -> Vec<Span>,
        model: Option<&Model>,
    ) -> Result<(), String> {
        let mut chains: Vec<Chain> = Vec::new();
        for (seq, count, tokens) in entries {
            let (root, chain) = self.chains.get(seq).ok_or("a plan of no sequence")?;
            let last = chain.last().copied().unwrap_or(*root);
            let tokens: Vec<u64> = match tokens {
                Some(tokens) => tokens.iter().map(|&token| u64::from(token)).collect(),
                None => (0..*count)
                    .map(|_| {
                        self.unknown += 1;
                        self.unknown
                    })
                    .collect(),
            };
            let new = extend(last, chain.len(), &tokens, &spans(*seq));
            let here = chains.len()..chains.len() + new.len();
            let slots = plan.slots.iter().map(|slots| slots.get(here.clone()).unwrap_or_default().to_vec()).collect();
            chains.extend(&new);
            self.written.insert(*seq, Written { tokens, chains: new, slots });
        }
        for copy in &plan.copies {
            let copied = match copy.seals {
                true => self.device.seal(copy.group, copy.src, copy.dst),
                false => self.device.copy(copy.group, copy.src, copy.dst, copy.tokens),
            };
            copied.map_err(|fault| fault.to_string())?;
        }
        let pages = model.map(Model::pages);
        for (group, slots) in (0..).zip(&plan.slots) {
            let own = self.spec.groups[usize::from(group)];
            if slots.len() != chains.len() || plan.positions.len() != chains.len() {
                return Err(format!("group {group}: {} slots for {} tokens", slots.len(), chains.len()));
            }
            for ((&slot, &chain), &position) in slots.iter().zip(&chains).zip(&plan.positions) {
                let page = (slot / i64::from(own.page_tokens)) as u32;
                let offset = slot % i64::from(own.page_tokens);
                if offset != i64::from(position) % i64::from(own.page_tokens) {
                    return Err(format!("group {group}: position {position} on slot {slot}"));
                }
                if offset == 0 {
                    self.device.hand_out(group, page).map_err(|fault| fault.to_string())?;
                }
                let copies = plan.copies.iter().filter(|copy| copy.group == group && copy.src == page).count();
                let sources = match model {
                    Some(model) if own.ring > 0 => model.replaced(group, page),
                    _ => copies,
                };
                let protection = pages
                    .as_ref()
                    .map_or(Protection::Writable, |pages| protection(pages.page(own.pool, page), sources));
                self.device.write(group, slot, chain, protection).map_err(|fault| fault.to_string())?;
            }
        }
        Ok(())
    }

    /// Reads every position that each group still needs through the exported tables.
    pub(super) fn read_back(&self, lead: &dyn Machine, model: &Model) -> Result<(), String> {
        for seq in model.live() {
            let view = lead.sequence(seq).ok_or_else(|| format!("{seq:?} is gone"))?;
            let len = self.chains.get(&seq).map_or(0, |(_, chain)| chain.len());
            if len != view.len as usize {
                return Err(format!("{seq:?}: length {}, accepted {len}", view.len));
            }
            for (group, table) in (0..).zip(&view.tables) {
                self.read_row(seq, group, &view.sealed[usize::from(group)], table)?;
                if self.spec.groups[usize::from(group)].ring > 0 {
                    let ring = &view.rings[usize::from(group)];
                    let columns = self.spec.groups[usize::from(group)].ring_columns();
                    self.read_ring(seq, group, columns, table.len(), ring)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a sequence through one row, of which some columns are sealed pages.
    fn read_row(&self, seq: Seq, group: u16, sealed: &Range<u32>, row: &[u32]) -> Result<(), String> {
        let (_, chain) = self.chains.get(&seq).ok_or("a sequence from nowhere")?;
        let spec = self.spec.groups[usize::from(group)];
        for (position, &chain) in (0..).zip(chain) {
            if spec.needs_position(position, self.chains[&seq].1.len() as u32) {
                let read = self.device.read_sealed(group, row, sealed, position, chain);
                read.map_err(|fault| format!("{seq:?} at {position}: {fault}"))?;
            }
        }
        Ok(())
    }

    /// Reads a sequence through a ring of which the table has so many pages.
    fn read_ring(&self, seq: Seq, group: u16, columns: u32, pages: usize, ring: &[u32]) -> Result<(), String> {
        let sinks = self.spec.groups[usize::from(group)].sink_pages();
        let column = |index: u32| if index < sinks { index } else { sinks + index % columns };
        let turned: Vec<u32> = (0..pages as u32).map(|index| ring[column(index) as usize]).collect();
        self.read_row(seq, group, &(0..0), &turned).map_err(|fault| format!("in the ring: {fault}"))
    }

    /// The fold over (group, key) is the index, and each parent is announced before its child.
    fn fold(&mut self, events: &[Event], lost: u64, model: &Model) -> Result<(), String> {
        if lost > 0 {
            self.folded = None;
        }
        let anchor = self.spec.node_group();
        let Some(folded) = &mut self.folded else {
            return Ok(());
        };
        for event in events {
            let ns = event.ns.unwrap_or(0);
            let key = (event.group, event.key, ns);
            match event.kind {
                EventKind::Stored => {
                    if event.parent != 0 && !folded.contains_key(&(anchor, event.parent, ns)) {
                        return Err(format!("{event:?}: its parent is not announced"));
                    }
                    *folded.entry(key).or_insert(0) += 1;
                }
                EventKind::Removed => match folded.get_mut(&key) {
                    Some(1) => drop(folded.remove(&key)),
                    Some(count) => *count -= 1,
                    None => return Err(format!("{event:?}: removed but never stored")),
                },
                EventKind::Cleared => folded.retain(|key, _| event.ns.is_some_and(|ns| ns != key.2)),
            }
        }
        if *folded == model.indexed() { Ok(()) } else { Err("the folded events are not the index".into()) }
    }
}

/// What a sequence of a namespace begins with: nothing that an earlier opening wrote is right for a later one.
fn root(model: &Model, ns: u16) -> Chain {
    Chain::root(u64::from(ns) | model.opening(ns).unwrap_or(0) << 16)
}

/// Continues a chain by tokens from a position on. A media span changes the content from its first token on.
fn extend(mut chain: Chain, from: usize, tokens: &[u64], spans: &[Span]) -> Vec<Chain> {
    let mut chains = Vec::new();
    for (position, &token) in (from as u64..).zip(tokens) {
        for span in spans.iter().filter(|span| u64::from(span.start) == position) {
            chain = chain.then(1 << 48 | u64::from(span.digest)).then(1 << 49 | u64::from(span.length));
        }
        chain = chain.then(token);
        chains.push(chain);
    }
    chains
}

/// The plan's own source pins do not protect a page from the plan's later sequences.
fn protection(page: PageView, sources: usize) -> Protection {
    match page {
        _ if page.indexed => Protection::Published,
        _ if page.refs as usize > sources + 1 => Protection::Shared,
        _ => Protection::Writable,
    }
}

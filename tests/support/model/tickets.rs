//! Lookups and tickets.

use std::collections::{BTreeMap, BTreeSet};

use super::chunks::chunks_of;
use super::index::Key;
use super::pages::Page;
use super::sequences::check_spans;
use super::{Model, Pins, Sequence};
use crate::machine::{Outcome, Resource, Shortage, Status, Value};
use crate::op::{Seq, Span, Ticket};
use crate::spec::NULL;

impl Model {
    /// The key of a whole prompt.
    fn prompt(&self, ns: u16, tokens: &[u32], spans: &[Span]) -> Result<Key, Outcome> {
        self.space(ns)?;
        check_spans(spans)?;
        Ok(Key { ns, tokens: tokens.to_vec(), spans: spans.to_vec() })
    }

    pub(super) fn lookup(&self, ns: u16, tokens: &[u32], limit: u32, spans: &[Span]) -> Result<Outcome, Outcome> {
        let prompt = self.prompt(ns, tokens, spans)?;
        Ok(Outcome::ok(Value::Hit(self.hit(&prompt, limit).0)))
    }

    pub(super) fn match_prefix(
        &mut self,
        ticket: Ticket,
        (ns, tokens, limit): (u16, &[u32], u32),
        spans: &[Span],
        until: Option<u64>,
    ) -> Result<Outcome, Outcome> {
        let prompt = self.prompt(ns, tokens, spans)?;
        let (hit, path) = self.hit(&prompt, limit);
        let mut tables = Vec::new();
        for group in 0..self.spec.groups.len() {
            let mut table = vec![NULL; hit.div_ceil(self.page_tokens(group)) as usize];
            if hit > 0 {
                for index in self.resume_pages(group, hit) {
                    table[index as usize] = self.indexed_page(&path, group, index).expect("a hit is resident");
                }
            }
            tables.push(table);
        }
        let slot = self.free_slot();
        let spans = spans.to_vec();
        let pins = Pins { slot, ns, tokens: tokens[..hit as usize].to_vec(), spans, tables, until };
        self.room_for_chunks(chunks_of(&pins.tables))?;
        self.keep_promises(&pins)?;
        if self.state.tickets.len() >= self.spec.max_tickets() {
            return Err(Outcome::capacity(Resource::Tickets, 1, 0));
        }
        for page in self.pages_of(&pins.tables) {
            self.wake(page);
        }
        self.state.tickets.insert(ticket, pins);
        Ok(Outcome::ok(Value::Hit(hit)))
    }

    /// Refuses pins that would take cached pages which the open plan was promised, and all pins while the plan counts
    /// on withdrawing a page: a pin might be on that page.
    fn keep_promises(&self, pins: &Pins) -> Result<(), Outcome> {
        let refuse = |need: u32, have: u32| {
            let short = Shortage { need, have, ..Shortage::default() };
            Err(Outcome { status: Status::Retry, value: Value::Short(short) })
        };
        let building = self.state.plan.iter().filter(|plan| !plan.finished);
        if building.flat_map(|plan| &plan.entries).any(|entry| entry.withdraw.contains(&true)) {
            return refuse(1, 0);
        }
        let pinned: BTreeSet<Page> = self.pages_of(&pins.tables).into_iter().collect();
        for (pool, promised) in self.promised().into_iter().enumerate() {
            let own = &self.state.pools[pool];
            let taken = pinned.iter().filter(|page| page.0 == pool && own.cached.contains(&page.1)).count() as u32;
            let available = own.free_count() + own.cached_count() - promised;
            if taken > available {
                return refuse(taken, available);
            }
        }
        Ok(())
    }

    /// Resident pages of a set of tables in the order of release.
    pub(super) fn pages_of(&self, tables: &[Vec<u32>]) -> Vec<Page> {
        let mut pages = Vec::new();
        for group in self.release_groups() {
            let row = (0..tables[group].len() as u32).zip(&tables[group]).rev().filter(|(_, id)| **id != NULL);
            pages.extend(row.map(|(index, &id)| (self.indexed_pool(group, index), id)));
        }
        pages
    }

    pub(super) fn drop_ticket(&mut self, ticket: Ticket) -> Result<Outcome, Outcome> {
        let pins = self.state.tickets.remove(&ticket).ok_or(Outcome::of(Status::Stale))?;
        let pages = self.pages_of(&pins.tables);
        self.settle(&pages);
        Ok(Outcome::OK)
    }

    /// The lowest ticket index that is free.
    fn free_slot(&self) -> usize {
        let taken = |slot: &usize| self.state.tickets.values().any(|pins| pins.slot == *slot);
        (0..).find(|slot| !taken(slot)).expect("there are fewer tickets than numbers")
    }

    /// Tickets that pass a test, by index.
    pub(super) fn tickets_where(&self, test: impl Fn(&Pins) -> bool) -> Vec<Ticket> {
        let mut found: Vec<(usize, Ticket)> = self
            .state
            .tickets
            .iter()
            .filter(|(_, pins)| test(pins))
            .map(|(ticket, pins)| (pins.slot, *ticket))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, ticket)| ticket).collect()
    }

    pub(super) fn open_ticket(&mut self, seq: Seq, ticket: Ticket, class: u8) -> Result<Outcome, Outcome> {
        let pins = self.state.tickets.get(&ticket).ok_or(Outcome::of(Status::Stale))?;
        self.may_open(class, &pins.spans)?;
        let pins = self.state.tickets.remove(&ticket).expect("checked");
        let birth = self.birth();
        let len = pins.tokens.len() as u32;
        let sequence = Sequence {
            birth,
            ns: pins.ns,
            verified: len,
            published: len,
            tokens: pins.tokens.into_iter().map(Some).collect(),
            tables: pins.tables,
            rings: vec![Vec::new(); self.spec.groups.len()],
            sealed: self.all_sealed(len),
            holds: BTreeMap::new(),
            closing: None,
            class,
            spans: pins.spans,
        };
        self.state.sequences.insert(seq, sequence);
        Ok(Outcome::ok(Value::Hit(len)))
    }

    /// Drops the tickets whose deadline has passed.
    pub(super) fn expire(&mut self) {
        let tick = self.state.tick;
        for ticket in self.tickets_where(|pins| pins.until.is_some_and(|until| until < tick)) {
            let _ = self.drop_ticket(ticket);
        }
    }

    /// Unindexes everything, or one namespace: USED pages become private, tickets stale.
    pub(super) fn clear(&mut self, ns: Option<u16>) -> Result<Outcome, Outcome> {
        if self.state.plan.is_some() {
            return Err(Outcome::of(Status::Busy));
        }
        ns.map_or(Ok(()), |ns| self.space(ns))?;
        self.unindex_spaces(&|other| ns.is_none_or(|ns| ns == other));
        Ok(Outcome::OK)
    }
}

//! What the exports show, beyond the tables themselves.

use super::Model;
use crate::machine::{Machine, Outcome, RingView, SeqView, Status, Value};
use crate::op::Seq;
use crate::spec::{GroupKind, NULL};

impl Model {
    /// Once up to date, the caller's rows are the tables.
    pub(super) fn export(&self, seqs: &[Seq]) -> Result<Outcome, Outcome> {
        let views = seqs.iter().map(|seq| self.shown(*seq)).collect::<Result<Vec<_>, _>>()?;
        let rows = |group: usize| views.iter().map(|view| view.tables[group].clone()).collect();
        Ok(Outcome::ok(Value::Rows((0..self.visible_groups()).map(rows).collect())))
    }

    fn shown(&self, seq: Seq) -> Result<SeqView, Outcome> {
        self.sequence(seq).ok_or(Outcome::of(Status::Stale))
    }

    /// Sinks, then page `i` in column `i % columns`; a fixed ring as the sequence owns it.
    pub(super) fn ring_view(&self, seq: Seq, group: u16, columns: u32) -> Result<Outcome, Outcome> {
        let group = usize::from(group);
        if group >= self.visible_groups() {
            return Err(Outcome::of(Status::Argument));
        }
        let (view, spec) = (self.shown(seq)?, self.spec.groups[group]);
        let (table, sinks) = (&view.tables[group], spec.sink_pages());
        let end = table.len() as u32;
        let first = (sinks..end).find(|&index| table[index as usize] != NULL).unwrap_or(end.max(sinks));
        let is_other = spec.ring > 0 && columns != spec.ring_columns();
        if spec.kind == GroupKind::Full || columns == 0 || is_other || end.saturating_sub(first) > columns {
            return Err(Outcome::of(Status::Argument));
        }
        let mut row = vec![NULL; (sinks + columns) as usize];
        if spec.ring > 0 {
            row.clone_from(&view.rings[group]);
        } else {
            for index in (0..sinks.min(end)).chain(first..end) {
                let column = if index < sinks { index } else { sinks + index % columns };
                row[column as usize] = table[index as usize];
            }
        }
        Ok(Outcome::ok(Value::Ring(RingView { first, end, row })))
    }
}

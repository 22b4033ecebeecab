//! Deltas and rings through the Rust API.

use kvfolio::{Error, GroupId, RowDelta, RowQuery, SequenceId};

use super::{Answer, PAD, RustMachine};
use crate::machine::{Outcome, RingView, Value};
use crate::op::Seq;

impl RustMachine {
    pub(super) fn export(&mut self, seqs: &[Seq]) -> Answer {
        let handles: Vec<u64> = seqs.iter().map(|seq| self.seq(*seq).to_bits()).collect();
        for &handle in &handles {
            self.cache.get().sequence_info(SequenceId::from_bits(handle))?;
        }
        self.mirror.occupy(&handles, self.spec.groups.len());
        let groups = 0..self.spec.groups.len();
        groups.clone().try_for_each(|group| self.refresh(group, handles.len()))?;
        Ok(Outcome::ok(Value::Rows(groups.map(|group| self.mirror.rows(group, handles.len())).collect())))
    }

    /// Brings one group's rows up to date.
    fn refresh(&mut self, group: usize, count: usize) -> Result<(), Error> {
        let (cache, id) = (self.cache.get(), GroupId::new(group as u16));
        let ask = |mirror: &crate::mirror::Mirror| -> Vec<RowQuery> {
            let query = |(handle, since)| RowQuery { sequence: SequenceId::from_bits(handle), since };
            mirror.queries(group, count).map(query).collect()
        };
        let queries = ask(&self.mirror);
        let blank = RowDelta { row: u32::MAX, ..RowDelta::default() };
        let need = match cache.export_changed(&queries, id, &mut [], &mut []) {
            Ok(_) => 0,
            Err(Error::ShortBuffer(need)) => need as usize,
            Err(error) => return Err(error),
        };
        if need > 0 {
            let (mut rows, mut entries) = (vec![blank; need - 1], vec![PAD; need - 1]);
            let short = cache.export_changed(&queries, id, &mut rows, &mut entries);
            assert_eq!(short, Err(Error::ShortBuffer(need as u32)), "a short buffer");
            assert!(rows.iter().all(|row| *row == blank) && entries.iter().all(|entry| *entry == PAD), "is untouched");
        }
        let (mut rows, mut entries) = (vec![blank; need], vec![PAD; need]);
        let report = cache.export_changed(&queries, id, &mut rows, &mut entries)?;
        let (rows, entries) = (&rows[..report.rows as usize], &entries[..report.entries as usize]);
        let changes: Vec<_> = rows.iter().map(|delta| (delta.row, delta.start, delta.count)).collect();
        self.mirror.apply(group, count, &changes, entries, report.version);
        let again = cache.export_changed(&ask(&self.mirror), id, &mut [], &mut [])?;
        assert_eq!((again.rows, again.version), (0, report.version), "nothing changed since");
        Ok(())
    }

    pub(super) fn ring_view(&mut self, seq: Seq, group: u16, columns: u32) -> Answer {
        let (cache, id) = (self.cache.get(), self.seq(seq));
        let sinks = self.spec.groups.get(usize::from(group)).map_or(0, |spec| spec.sink_pages());
        let need = (sinks + columns) as usize;
        let mut row = vec![PAD; need + 1];
        let report = cache.export_ring(id, GroupId::new(group), columns, &mut row)?;
        assert_eq!((report.sinks, row[need]), (sinks, PAD), "ring");
        let mut short = vec![PAD; need - 1];
        let refused = cache.export_ring(id, GroupId::new(group), columns, &mut short);
        assert_eq!(refused, Err(Error::ShortBuffer(need as u32)), "a short buffer");
        assert!(short.iter().all(|entry| *entry == PAD), "is untouched");
        let row = row[..need].iter().map(|&page| page as u32).collect();
        Ok(Outcome::ok(Value::Ring(RingView { first: report.first, end: report.end, row })))
    }
}

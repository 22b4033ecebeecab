//! Deltas and rings through the C ABI.

use core::ptr::null_mut;

use kvfolio_ffi as ffi;

use super::config::{blank, size};
use super::{CMachine, Called};
use crate::machine::{Outcome, RingView, Value};
use crate::op::Seq;

impl CMachine {
    pub(super) fn export(&mut self, seqs: &[Seq]) -> Called {
        let handles: Vec<u64> = seqs.iter().map(|seq| self.seq(*seq)).collect();
        handles.iter().try_for_each(|&handle| self.info(handle).map(drop))?;
        self.mirror.occupy(&handles, self.spec.groups.len());
        let groups = 0..self.spec.groups.len();
        groups.clone().try_for_each(|group| self.refresh(group, handles.len()))?;
        Ok(Outcome::ok(Value::Rows(groups.map(|group| self.mirror.rows(group, handles.len())).collect())))
    }

    /// Brings one group's rows up to date.
    fn refresh(&mut self, group: usize, count: usize) -> Result<(), ffi::kvf_status> {
        let query = |(seq, since)| ffi::kvf_row_query { seq, since };
        let queries: Vec<ffi::kvf_row_query> = self.mirror.queries(group, count).map(query).collect();
        let mut report = ffi::kvf_delta_report { struct_size: size::<ffi::kvf_delta_report>(), ..blank() };
        let (cache, id, asked) = (self.cache, group as u32, queries.as_ptr());
        let need = match call!(kvf_table_changed(cache, id, asked, count, null_mut(), 0, null_mut(), 0, &mut report)) {
            Err(ffi::KVF_ERR_SHORT_BUFFER) => report.rows as usize,
            called => called.map(|()| 0)?,
        };
        let mut rows: Vec<ffi::kvf_row_delta> = vec![blank(); need];
        let mut entries = vec![-1; need];
        let (at, to) = (rows.as_mut_ptr(), entries.as_mut_ptr());
        call!(kvf_table_changed(cache, id, asked, count, at, need, to, need, &mut report))?;
        let (rows, entries) = (&rows[..report.rows as usize], &entries[..report.entries as usize]);
        let changes: Vec<_> = rows.iter().map(|delta| (delta.row, delta.start, delta.count)).collect();
        self.mirror.apply(group, count, &changes, entries, report.version);
        Ok(())
    }

    pub(super) fn ring_view(&mut self, seq: Seq, group: u16, columns: u32) -> Called {
        let sinks = self.spec.groups.get(usize::from(group)).map_or(0, |spec| spec.sink_pages());
        let mut row = vec![-1; (sinks + columns) as usize];
        let mut report = ffi::kvf_ring_report { struct_size: size::<ffi::kvf_ring_report>(), ..blank() };
        let (seq, group) = (self.seq(seq), u32::from(group));
        call!(kvf_table_ring(self.cache, seq, group, columns, row.as_mut_ptr(), row.len(), &mut report))?;
        assert_eq!(report.sinks, sinks, "sink columns");
        let row = row.into_iter().map(|page| page as u32).collect();
        Ok(Outcome::ok(Value::Ring(RingView { first: report.first, end: report.end, row })))
    }
}

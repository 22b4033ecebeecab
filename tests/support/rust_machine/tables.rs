//! Tables as kernels read them.

use kvfolio::{Error, GroupId, SequenceId};

use super::{Flavour, PAD, RustMachine};

impl RustMachine {
    pub(super) fn table(&self, id: SequenceId, group: u16) -> Result<Vec<u32>, Error> {
        let cache = self.cache.get();
        let group = GroupId::new(group);
        let len = cache.sequence_pages(id, group)? as usize;
        let row: Vec<i32> = match self.flavour {
            Flavour::Plain => {
                let stride = len + 2;
                let mut out = vec![0; 2 * stride];
                cache.export_dense(&[id, id], group, stride as u32, PAD, &mut out)?;
                let (first, second) = out.split_at(stride);
                assert_eq!((first, &first[len..]), (second, &[PAD, PAD][..]), "dense rows");
                first[..len].to_vec()
            }
            Flavour::Sugar => {
                let (mut starts, mut indices, mut last) = (vec![0; 2], vec![0; len], vec![0; 1]);
                cache.export_csr(&[id], group, &mut starts, &mut indices, &mut last)?;
                let info = cache.sequence_info(id)?;
                let page = self.spec.groups[usize::from(group.get())].page_tokens;
                let wanted = if info.written == 0 { 0 } else { (info.written - 1) % page + 1 };
                assert_eq!((starts[1] as usize, last[0] as u32), (len, wanted), "compressed rows");
                indices
            }
        };
        Ok(row.into_iter().map(|page| page as u32).collect())
    }

    /// The row of a fixed ring; empty for other groups.
    pub(super) fn ring(&self, id: SequenceId, group: u16) -> Result<Vec<u32>, Error> {
        let (cache, spec) = (self.cache.get(), self.spec.groups[usize::from(group)]);
        if spec.ring == 0 {
            return Ok(Vec::new());
        }
        let ring = cache.ring_pages(GroupId::new(group), spec.ring)?;
        let mut row = vec![PAD; (spec.sink_pages() + ring) as usize];
        let report = cache.export_ring(id, GroupId::new(group), ring, &mut row)?;
        assert!(report.sinks == spec.sink_pages() && report.end - report.first.min(report.end) <= ring, "ring report");
        Ok(row.into_iter().map(|page| page as u32).collect())
    }
}

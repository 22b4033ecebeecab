//! The caller's table of rows, kept up to date by what changed.
//!
//! For each row and group it knows the occupant and the version shown, as an engine that keeps its page tables on a device
//! would.

/// One row.
#[derive(Clone, Default)]
struct Row {
    occupant: u64,
    /// By group: the version, and the entries.
    shown: Vec<(u64, Vec<u32>)>,
}

/// All rows.
#[derive(Default)]
pub(crate) struct Mirror(Vec<Row>);

/// What changed in one row: its number, the first entry that may differ, and how many entries came.
pub(crate) type Change = (u32, u32, u32);

impl Mirror {
    /// Gives the first rows these occupants.
    pub(crate) fn occupy(&mut self, handles: &[u64], groups: usize) {
        self.0.resize(self.0.len().max(handles.len()), Row::default());
        for (row, &handle) in self.0.iter_mut().zip(handles) {
            if row.occupant != handle {
                *row = Row { occupant: handle, shown: vec![(0, Vec::new()); groups] };
            }
        }
    }

    /// What to ask for: occupant and version of the first rows.
    pub(crate) fn queries(&self, group: usize, count: usize) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().take(count).map(move |row| (row.occupant, row.shown[group].0))
    }

    /// Applies the answer to a question about the first rows.
    pub(crate) fn apply(&mut self, group: usize, count: usize, changes: &[Change], entries: &[i32], version: u64) {
        let mut rest = entries;
        for &(row, start, count) in changes {
            let (here, behind) = rest.split_at(count as usize);
            let shown = &mut self.0[row as usize].shown[group].1;
            assert!(start as usize <= shown.len(), "row {row} shows nothing before entry {start}");
            shown.truncate(start as usize);
            shown.extend(here.iter().map(|&page| page as u32));
            rest = behind;
        }
        assert!(rest.is_empty(), "entries of no row");
        self.0.iter_mut().take(count).for_each(|row| row.shown[group].0 = version);
    }

    /// The first rows of a group.
    pub(crate) fn rows(&self, group: usize, count: usize) -> Vec<Vec<u32>> {
        self.0.iter().take(count).map(|row| row.shown[group].1.clone()).collect()
    }
}

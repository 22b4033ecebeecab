//! Fixed rings: what kernels are given stays consistent while the window turns.
#![allow(missing_docs)]

use kvfolio::*;

const POOLS: &[PoolConfig] = &[PoolConfig { pages: 40, policy: Policy::Lru }];
const RING: GroupConfig = GroupConfig {
    kind: GroupKind::Window { window: 6, sinks: 3 },
    page_tokens: 4,
    ring_tokens: 5,
    ..GroupConfig::FULL
};
const CONFIG: Config<'static> =
    Config { pools: POOLS, groups: &[RING], sequences: 4, transfers: 2, index: IndexKind::None, ..Config::new() };
const STRIDE: usize = 32;

/// A table on a device that is kept up to date by deltas alone.
struct Shown {
    row: [i32; STRIDE],
    version: u64,
}

impl Shown {
    fn update(&mut self, cache: &Cache<'_>, sequence: SequenceId) {
        let query = [RowQuery { sequence, since: self.version }];
        let (mut rows, mut entries) = ([RowDelta::default(); 1], [0; STRIDE]);
        let report = cache.export_changed(&query, GroupId::new(0), &mut rows, &mut entries).unwrap();
        if report.rows == 1 {
            let (start, count) = (rows[0].start as usize, rows[0].count as usize);
            self.row[start..].fill(0);
            self.row[start..start + count].copy_from_slice(&entries[..count]);
        }
        self.version = report.version;
        let mut dense = [0; STRIDE];
        cache.export_dense(&[sequence], GroupId::new(0), STRIDE as u32, 0, &mut dense).unwrap();
        assert_eq!(self.row, dense);
    }
}

#[test]
fn deltas_give_the_table_and_the_ring_stays_what_it_is() {
    let mut storage = OwnedStorage::new(&CONFIG).unwrap();
    let mut cache = Cache::new(&CONFIG, storage.lend()).unwrap();
    let group = GroupId::new(0);
    let columns = cache.ring_pages(group, 5).unwrap();
    assert_eq!(columns, 4);
    let first = cache.open(&OpenParams::default()).unwrap();
    let mut shown = Shown { row: [0; STRIDE], version: 0 };
    let mut rings = Vec::new();
    for step in 0..60_u32 {
        if step == 23 || step == 43 {
            // Inside a page and with the window at rest, so that the copy alone changes the table.
            let mut child = [SequenceId::default()];
            cache.fork(first, cache.sequence_info(first).unwrap().len, &mut child).unwrap();
        }
        let count = step % 5 % 3 + 1;
        cache.append(first, &vec![step; count as usize]).unwrap();
        shown.update(&cache, first);
        let mut ring = [0; 5];
        let report = cache.export_ring(first, group, columns, &mut ring).unwrap();
        for page in report.first..report.end {
            assert_eq!(ring[(1 + page % columns) as usize], shown.row[page as usize], "page {page}");
        }
        rings.push(ring);
    }
    // Each fork made the first writer copy; nothing else moved a page.
    rings.dedup();
    assert_eq!(rings, [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12, 13, 14, 15]]);
    assert_eq!(cache.export_ring(first, group, columns + 1, &mut [0; 6]), Err(Error::Argument));
    assert!(matches!(
        cache.append(first, &[0; 6]),
        Err(Error::Shortage(Shortage { outcome: Outcome::Never, most: 5, .. }))
    ));
    let mut scratch = vec![0; cache.check_scratch(2) as usize];
    assert_eq!(cache.check(2, &mut scratch), Ok(Ok(())));
}

#[test]
fn a_ring_needs_a_window() {
    let groups = [GroupConfig { kind: GroupKind::Full, ..RING }];
    assert_eq!(StorageCounts::of(&Config { groups: &groups, ..CONFIG }), Err(ConfigError::Window));
}

//! The calls that are counted. Each function is one line of the table: 16 calls, or as many rounds of a few calls that
//! undo each other. No closures: the instruction counter would toggle on those as well.

use core::hint::black_box;

use kvfolio::{
    Accept, CloseMode, Direction, Error, GroupId, OpenParams, PoolId, Prompt, RowDelta, RowQuery, SequenceId, Source,
};

use crate::{BATCH, DOCUMENT, PAGE, Scene};

const TIMES: u32 = 16;
const GROUP: GroupId = GroupId::new(0);

/// 16 cached prompts of 64 pages are looked up.
#[inline(never)]
pub(crate) fn lookup(scene: &mut Scene<'_>) -> Result<(), Error> {
    for document in &scene.documents {
        let prompt = Prompt { tokens: document, ..Prompt::default() };
        let hit = black_box(&scene.cache).lookup(&prompt, DOCUMENT)?;
        assert_eq!(hit.tokens, DOCUMENT);
    }
    Ok(())
}

/// They are matched, and the tickets dropped.
#[inline(never)]
pub(crate) fn match_and_drop(scene: &mut Scene<'_>) -> Result<(), Error> {
    for document in &scene.documents {
        let prompt = Prompt { tokens: document, ..Prompt::default() };
        let (ticket, _) = scene.cache.match_prefix(&prompt, DOCUMENT, None)?;
        scene.cache.drop_ticket(ticket)?;
    }
    Ok(())
}

/// One token goes to a sequence; every fourth one fills a page, which is published.
#[inline(never)]
pub(crate) fn append(scene: &mut Scene<'_>) -> Result<(), Error> {
    for token in 0..TIMES {
        scene.cache.append(scene.step[0], &[token])?;
    }
    Ok(())
}

/// One token goes to each of 64 sequences.
#[inline(never)]
pub(crate) fn step(scene: &mut Scene<'_>) -> Result<(), Error> {
    for token in 0..TIMES {
        scene.cache.plan_begin(0)?;
        for &sequence in &scene.step {
            scene.cache.plan_add(sequence, 1, Some(&[token]))?;
        }
        scene.cache.plan_finish()?;
        scene.cache.plan_commit(&[Accept::all(1); BATCH])?;
    }
    Ok(())
}

/// A plan is begun, promises a page, and is cancelled.
#[inline(never)]
pub(crate) fn promise(scene: &mut Scene<'_>) -> Result<(), Error> {
    for _ in 0..TIMES {
        scene.cache.plan_begin(0)?;
        scene.cache.plan_add(scene.step[1], PAGE, None)?;
        scene.cache.plan_cancel()?;
    }
    Ok(())
}

/// Sequences get 5 and 16 pages whose tokens are unknown; the one with 16 is closed at once, those with 5 at the end, so
/// that pages are taken from all places of the words that say which are free.
#[inline(never)]
pub(crate) fn reserve_and_free(scene: &mut Scene<'_>) -> Result<(), Error> {
    let mut kept = [SequenceId::default(); TIMES as usize];
    for slot in &mut kept {
        let mut both = [SequenceId::default(); 2];
        for (sequence, tokens) in both.iter_mut().zip([5 * PAGE, 16 * PAGE]) {
            *sequence = scene.cache.open(&OpenParams::default())?;
            scene.cache.plan_begin(0)?;
            scene.cache.plan_add(*sequence, tokens, None)?;
            scene.cache.plan_finish()?;
            scene.cache.plan_commit(&[Accept::all(tokens)])?;
        }
        scene.cache.close(both[1], CloseMode::Discard)?;
        *slot = both[0];
    }
    for sequence in kept {
        scene.cache.close(sequence, CloseMode::Discard)?;
    }
    Ok(())
}

/// A sequence publishes one page, a new sibling of those that begin a prompt.
#[inline(never)]
pub(crate) fn publish(scene: &mut Scene<'_>) -> Result<[SequenceId; TIMES as usize], Error> {
    let mut opened = [SequenceId::default(); TIMES as usize];
    for (at, slot) in (0..).zip(&mut opened) {
        *slot = scene.cache.open(&OpenParams::default())?;
        scene.cache.append(*slot, &[5_000_000 + at, 5, 5, 5])?;
    }
    Ok(opened)
}

/// These sequences end; their pages stay cached.
#[inline(never)]
pub(crate) fn close(scene: &mut Scene<'_>, opened: &[SequenceId]) -> Result<(), Error> {
    for &sequence in opened {
        scene.cache.close(sequence, CloseMode::Keep)?;
    }
    Ok(())
}

/// A sequence of 64 pages is forked in two, and the children end.
#[inline(never)]
pub(crate) fn fork_and_close(scene: &mut Scene<'_>) -> Result<(), Error> {
    for _ in 0..TIMES {
        let mut children = [SequenceId::default(); 2];
        scene.cache.fork(scene.reader, DOCUMENT, &mut children)?;
        for child in children {
            scene.cache.close(child, CloseMode::Keep)?;
        }
    }
    Ok(())
}

/// A transfer of 64 pages begins and ends.
#[inline(never)]
pub(crate) fn transfer(scene: &mut Scene<'_>) -> Result<(), Error> {
    for _ in 0..TIMES {
        let source = Source::Sequence(scene.reader);
        let transfer = scene.cache.io_begin(source, 0, DOCUMENT, Direction::Store)?;
        scene.cache.io_end(transfer, true)?;
    }
    Ok(())
}

/// The rows of 64 sequences that changed in the last step.
#[inline(never)]
pub(crate) fn changed_rows(scene: &mut Scene<'_>) -> Result<(), Error> {
    let since = scene.cache.sequence_info(scene.step[0])?.version - 1;
    let mut queries = [RowQuery { sequence: scene.step[0], since }; BATCH];
    for (query, &sequence) in queries.iter_mut().zip(&scene.step) {
        query.sequence = sequence;
    }
    let (mut rows, mut entries) = ([RowDelta::default(); BATCH], [0; BATCH * 2]);
    for _ in 0..TIMES {
        black_box(&scene.cache).export_changed(&queries, GROUP, &mut rows, &mut entries)?;
    }
    Ok(())
}

/// A row of 64 pages, in a dense table and compressed.
#[inline(never)]
pub(crate) fn rows(scene: &mut Scene<'_>) -> Result<(), Error> {
    const PAGES: usize = (DOCUMENT / PAGE) as usize;
    let (mut table, mut indptr, mut last_page_len) = ([0; PAGES], [0; 2], [0]);
    for _ in 0..TIMES {
        let cache = black_box(&scene.cache);
        cache.export_dense(&[scene.reader], GROUP, PAGES as u32, -1, &mut table)?;
        cache.export_csr(&[scene.reader], GROUP, &mut indptr, &mut table, &mut last_page_len)?;
    }
    Ok(())
}

/// Slots of a plan with a token for each of 64 sequences, which is given up then.
#[inline(never)]
pub(crate) fn slots_and_abort(scene: &mut Scene<'_>) -> Result<(), Error> {
    let (mut slots, mut positions) = ([0; BATCH], [0; BATCH]);
    for _ in 0..TIMES {
        scene.cache.plan_begin(0)?;
        for &sequence in &scene.step {
            scene.cache.plan_add(sequence, 1, None)?;
        }
        scene.cache.plan_finish()?;
        scene.cache.export_slots(GROUP, &mut slots, &mut positions)?;
        scene.cache.plan_abort()?;
    }
    Ok(())
}

/// What a sequence, the pool and the cache are.
#[inline(never)]
pub(crate) fn read(scene: &mut Scene<'_>) -> Result<(), Error> {
    for _ in 0..TIMES {
        let cache = black_box(&scene.cache);
        black_box((cache.sequence_info(scene.step[0])?, cache.pool_stats(PoolId::new(0))?, cache.stats()));
    }
    Ok(())
}

/// A sequence loses one token after the other.
#[inline(never)]
pub(crate) fn truncate(scene: &mut Scene<'_>) -> Result<(), Error> {
    let length = scene.cache.sequence_info(scene.step[2])?.len;
    for cut in 1..=TIMES {
        scene.cache.truncate(scene.step[2], length - cut)?;
    }
    Ok(())
}

/// One page is evicted per call.
#[inline(never)]
pub(crate) fn evict(scene: &mut Scene<'_>) -> Result<(), Error> {
    for _ in 0..TIMES {
        assert_eq!(scene.cache.evict(PoolId::new(0), 1)?, 1);
    }
    Ok(())
}

// header.cpp - kvfolio.hpp at work: sequences, tickets and plans end with their scope
#include "kvfolio.hpp"
#include "kvfolio_kernels.h" // both headers in one program

#include <cstdio>
#include <utility>

static int failures;

static void check(bool good, int line) {
    if (!good) {
        std::printf("header.cpp:%d\n", line);
        failures++;
    }
}
#define CHECK(condition) check((condition), __LINE__)

static std::uint32_t live(const kvf::Cache &cache, std::uint32_t kvf_stats::*field) {
    kvf::Stats stats;
    CHECK(cache.stats(stats) == KVF_OK);
    return stats.*field;
}

static void run(kvf::Cache &cache) {
    const kvf_token tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    {
        kvf::Sequence first;
        CHECK(cache.open(first) == KVF_OK);
        CHECK(first.append(tokens, 10) == KVF_OK);
        kvf::Sequence moved = std::move(first);
        CHECK(!first && moved);
        kvf::Sequence child;
        CHECK(moved.fork(6, child) == KVF_OK);
        CHECK(live(cache, &kvf_stats::sequences) == 2);
        kvf::SequenceInfo info;
        CHECK(child.info(info) == KVF_OK && info.len == 6);
    }
    CHECK(live(cache, &kvf_stats::sequences) == 0);

    kvf::Ticket ticket;
    CHECK(cache.match(kvf::Prompt(tokens, 10), 9, ticket) == KVF_OK);
    CHECK(ticket.tokens() == 8);
    {
        kvf::Ticket second;
        CHECK(cache.match(kvf::Prompt(tokens, 10), 9, second) == KVF_OK);
        CHECK(live(cache, &kvf_stats::tickets) == 2);
    }
    CHECK(live(cache, &kvf_stats::tickets) == 1);
    kvf::Sequence sequence;
    CHECK(cache.open(ticket, sequence) == KVF_OK);
    CHECK(!ticket && live(cache, &kvf_stats::tickets) == 0);

    std::uint64_t before = 0, after = 0;
    kvf_tick now = 1;
    kvf::Plan plan;
    CHECK(cache.begin(now, plan) == KVF_OK);
    CHECK(cache.digest(before) == KVF_OK);
    {
        CHECK(plan.add(sequence, 2, tokens + 8) == KVF_OK);
        CHECK(plan.end() == KVF_OK); // cancelled
        CHECK(cache.begin(now, plan) == KVF_OK);
        CHECK(cache.digest(after) == KVF_OK);
        CHECK(before == after);
    }
    kvf::PlanReport report;
    CHECK(plan.add(sequence, 2, tokens + 8) == KVF_OK);
    CHECK(plan.finish(report) == KVF_OK && report.tokens == 2);
    kvf_accept accept = {2, 2, nullptr};
    CHECK(plan.commit(&accept, 1) == KVF_OK);
    CHECK(plan.end() == KVF_OK); // nothing left to end
    {
        kvf::Plan left;
        CHECK(cache.begin(now, left) == KVF_OK);
    } // taken back
    kvf::Plan again;
    CHECK(cache.begin(now, again) == KVF_OK);

    kvf::Shortage shortage;
    CHECK(again.add(sequence, 1000, nullptr, &shortage) == KVF_NEVER);
    CHECK(shortage.resource == KVF_RESOURCE_PAGES && shortage.most > 0 && shortage.most < 1000);
}

// The structs of token eviction come with their size set.
static void lend() {
    std::uint64_t valid[2] = {0, 0}, keep[2] = {0, 0};
    std::uint32_t positions[8] = {0}, kept = 0;
    kvf::Stream stream;
    stream.page_tokens = 4;
    stream.columns = 2;
    stream.valid = valid;
    stream.positions = positions;
    CHECK(kvf_stream_append(&stream, 7, KVF_PLACE_BEHIND, nullptr, nullptr) == KVF_OK);
    kvf::Protected guarded;
    guarded.sinks = guarded.recent = 1;
    CHECK(kvf_evict_keep_best(&stream, nullptr, &guarded, 3, keep, &kept, nullptr) == KVF_OK);
    CHECK(kept == 3 && keep[0] == 1 && keep[1] == 6);
}

int main() {
    kvf::Config config;
    config.pool(32).group(4);
    config.sequences = 8;
    config.tickets = 4;
    kvf::Cache cache;
    CHECK(cache.init(config) == KVF_OK);
    run(cache);
    lend();

    kvf::Config none;
    kvf::Cache empty;
    CHECK(empty.init(none) == KVF_ERR_CONFIG && empty.get() == nullptr);
    std::printf("header.cpp: %d failures\n", failures);
    return failures == 0 ? 0 : 1;
}

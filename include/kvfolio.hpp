// kvfolio.hpp - kvfolio.h for C++11 and later: values that clean up after themselves
//
// Header only. Throws nothing and needs no exceptions or RTTI; allocates nothing but the memory of a
// kvf::Cache that was not given any. Every answer is a kvf_status, as in C, and must be looked at. Functions
// that are not wrapped here are called with cache.get().
//
//     kvf::Config config;
//     config.pool(1024).group(16);
//     config.sequences = 64;
//     config.tickets = 64;
//     kvf::Cache cache;
//     if (cache.init(config) != KVF_OK) ...
//     kvf::Sequence sequence;
//     if (cache.open(sequence) != KVF_OK) ...
#ifndef KVFOLIO_HPP
#define KVFOLIO_HPP

#include "kvfolio.h"

#include <cstdint>
#include <new>

#if defined(__has_cpp_attribute)
#if __cplusplus >= 201703L && __has_cpp_attribute(nodiscard)
#define KVF_NODISCARD [[nodiscard]]
#endif
#endif
#ifndef KVF_NODISCARD
#define KVF_NODISCARD
#endif

namespace kvf {

// A struct of kvfolio.h with struct_size set and all else zero.
template <class T> struct Sized : T {
    Sized() noexcept : T() { this->struct_size = static_cast<std::uint32_t>(sizeof(T)); }
};

using Shortage = Sized<kvf_shortage>;
using OpenParams = Sized<kvf_open_params>;
using PlanReport = Sized<kvf_plan_report>;
using SequenceInfo = Sized<kvf_seq_info>;
using Stats = Sized<kvf_stats>;
using PoolStats = Sized<kvf_pool_stats>;
using NamespaceKey = Sized<kvf_namespace_key>;
using DeltaReport = Sized<kvf_delta_report>;
using RingReport = Sized<kvf_ring_report>;
using Stream = Sized<kvf_stream>;
using Compaction = Sized<kvf_compaction>;
using Protected = Sized<kvf_protected>;
using H2o = Sized<kvf_h2o>;
using Observation = Sized<kvf_observation>;
using Mlp = Sized<kvf_mlp>;
using FeatureInputs = Sized<kvf_feature_inputs>;

// A prompt; the tokens stay where they are.
struct Prompt : Sized<kvf_prompt> {
    Prompt(const kvf_token *first, std::uint32_t count, kvf_namespace space = 0) noexcept {
        tokens = first;
        n_tokens = count;
        ns = space;
    }
};

// A configuration with room for its pools and groups: up to 16 of each. Use kvf_config for more.
class Config : public Sized<kvf_config> {
public:
    static constexpr std::uint32_t capacity = 16;

    Config() noexcept {
        abi_version = KVF_ABI_VERSION;
        pools = pool_;
        groups = group_;
    }
    Config(const Config &) = delete; // its arrays would stay behind
    Config &operator=(const Config &) = delete;

    Config &pool(std::uint32_t pages, std::uint32_t policy = KVF_POLICY_LRU) noexcept {
        if (n_pools < capacity) {
            pool_[n_pools].pages = pages;
            pool_[n_pools].policy = policy;
        }
        n_pools++; // one too many is refused at init
        return *this;
    }

    // Every query reads all tokens before it.
    Config &group(std::uint32_t page_tokens, std::uint32_t pool = 0) noexcept {
        kvf_group_config config = Sized<kvf_group_config>();
        config.page_tokens = page_tokens;
        config.pool = pool;
        return group(config);
    }

    // Every query reads the `sinks` first tokens and the last `window`.
    Config &window(std::uint32_t page_tokens, std::uint32_t window, std::uint32_t sinks,
                   std::uint32_t pool = 0) noexcept {
        kvf_group_config config = Sized<kvf_group_config>();
        config.kind = KVF_GROUP_WINDOW;
        config.page_tokens = page_tokens;
        config.pool = pool;
        config.window = window;
        config.sinks = sinks;
        return group(config);
    }

    Config &group(const kvf_group_config &config) noexcept {
        if (n_groups < capacity) {
            static_cast<kvf_group_config &>(group_[n_groups]) = config;
        }
        n_groups++;
        return *this;
    }

    bool fits() const noexcept { return n_pools <= capacity && n_groups <= capacity; }

private:
    Sized<kvf_pool_config> pool_[capacity];
    Sized<kvf_group_config> group_[capacity];
};

static_assert(sizeof(Sized<kvf_pool_config>) == sizeof(kvf_pool_config), "arrays of them are arrays for C");
static_assert(sizeof(Sized<kvf_group_config>) == sizeof(kvf_group_config), "arrays of them are arrays for C");

class Cache;

// A sequence that is closed when this goes out of scope, with KVF_CLOSE_KEEP.
class Sequence {
public:
    Sequence() noexcept = default;
    Sequence(kvf_cache *cache, kvf_seq id) noexcept : cache_(cache), id_(id) {}
    Sequence(Sequence &&other) noexcept : cache_(other.cache_), id_(other.release()) {}
    Sequence &operator=(Sequence &&other) noexcept {
        if (this != &other) {
            close();
            cache_ = other.cache_;
            id_ = other.release();
        }
        return *this;
    }
    ~Sequence() { close(); }

    kvf_seq id() const noexcept { return id_; }
    explicit operator bool() const noexcept { return id_ != 0; }

    kvf_status close(std::uint32_t mode = KVF_CLOSE_KEEP) noexcept {
        kvf_seq id = release();
        return id == 0 ? KVF_OK : kvf_seq_close(cache_, id, mode);
    }

    // Gives the handle away: it will not be closed.
    kvf_seq release() noexcept {
        kvf_seq id = id_;
        id_ = 0;
        return id;
    }

    KVF_NODISCARD kvf_status append(const kvf_token *tokens, std::size_t n, kvf_plan_report *report = nullptr,
                                    kvf_shortage *shortage = nullptr) noexcept {
        return kvf_seq_append(cache_, id_, tokens, n, report, shortage);
    }
    KVF_NODISCARD kvf_status truncate(std::uint32_t len) noexcept { return kvf_seq_truncate(cache_, id_, len); }
    KVF_NODISCARD kvf_status verify(std::uint32_t upto) noexcept { return kvf_seq_verify(cache_, id_, upto); }
    KVF_NODISCARD kvf_status info(SequenceInfo &out) const noexcept {
        return kvf_seq_info_read(cache_, id_, &out);
    }
    KVF_NODISCARD kvf_status fork(std::uint32_t at, Sequence &child, kvf_shortage *shortage = nullptr) noexcept {
        kvf_seq id = 0;
        kvf_status status = kvf_seq_fork(cache_, id_, at, &id, 1, shortage);
        if (status == KVF_OK) {
            child = Sequence(cache_, id);
        }
        return status;
    }

private:
    kvf_cache *cache_ = nullptr;
    kvf_seq id_ = 0;
};

// A pinned match that is dropped when this goes out of scope, unless Cache::open used it up.
class Ticket {
public:
    Ticket() noexcept = default;
    Ticket(kvf_cache *cache, kvf_ticket id, std::uint32_t hit) noexcept : cache_(cache), id_(id), tokens_(hit) {}
    Ticket(Ticket &&other) noexcept : cache_(other.cache_), id_(other.release()), tokens_(other.tokens_) {}
    Ticket &operator=(Ticket &&other) noexcept {
        if (this != &other) {
            drop();
            cache_ = other.cache_;
            tokens_ = other.tokens_;
            id_ = other.release();
        }
        return *this;
    }
    ~Ticket() { drop(); }

    kvf_ticket id() const noexcept { return id_; }
    std::uint32_t tokens() const noexcept { return tokens_; }
    explicit operator bool() const noexcept { return id_ != 0; }

    kvf_status drop() noexcept {
        kvf_ticket id = release();
        return id == 0 ? KVF_OK : kvf_prefix_drop(cache_, id);
    }
    kvf_ticket release() noexcept {
        kvf_ticket id = id_;
        id_ = 0;
        return id;
    }

private:
    kvf_cache *cache_ = nullptr;
    kvf_ticket id_ = 0;
    std::uint32_t tokens_ = 0;
};

// One step. A plan that is neither committed nor ended is taken back when this goes out of scope.
class Plan {
public:
    Plan() noexcept = default;
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;
    ~Plan() { end(); }

    KVF_NODISCARD kvf_status add(const Sequence &sequence, std::uint32_t count, const kvf_token *tokens = nullptr,
                                 kvf_shortage *shortage = nullptr) noexcept {
        return kvf_plan_add(cache_, sequence.id(), count, tokens, shortage);
    }
    KVF_NODISCARD kvf_status finish(PlanReport &report) noexcept {
        kvf_status status = kvf_plan_finish(cache_, &report);
        finished_ = finished_ || status == KVF_OK;
        return status;
    }
    KVF_NODISCARD kvf_status commit(const kvf_accept *accepts, std::size_t n) noexcept {
        kvf_status status = kvf_plan_commit(cache_, accepts, n);
        if (status == KVF_OK) {
            cache_ = nullptr;
        }
        return status;
    }
    // Cancels or aborts.
    kvf_status end() noexcept {
        kvf_cache *cache = cache_;
        cache_ = nullptr;
        if (cache == nullptr) {
            return KVF_OK;
        }
        return finished_ ? kvf_plan_abort(cache) : kvf_plan_cancel(cache);
    }

private:
    friend class Cache;
    kvf_cache *cache_ = nullptr;
    bool finished_ = false;
};

// A cache. It must outlive its sequences, tickets and plans, and cannot be moved.
class Cache {
public:
    Cache() noexcept = default;
    Cache(const Cache &) = delete;
    Cache &operator=(const Cache &) = delete;
    ~Cache() { deinit(); }

    // Allocates the memory. KVF_ERR_MEMORY when there is none.
    KVF_NODISCARD kvf_status init(const Config &config) noexcept {
        return config.fits() ? init(static_cast<const kvf_config &>(config)) : KVF_ERR_CONFIG;
    }
    KVF_NODISCARD kvf_status init(const kvf_config &config) noexcept {
        std::size_t bytes = 0, align = 0;
        kvf_status status = kvf_cache_required_size(&config, &bytes, &align);
        if (status != KVF_OK) {
            return status;
        }
        if (bytes + align < bytes) {
            return KVF_ERR_SIZE;
        }
        unsigned char *block = new (std::nothrow) unsigned char[bytes + align];
        if (block == nullptr) {
            return KVF_ERR_MEMORY;
        }
        std::size_t over = reinterpret_cast<std::uintptr_t>(block) % align;
        status = init(block + (over == 0 ? 0 : align - over), bytes, config);
        if (status == KVF_OK) {
            owned_ = block;
        } else {
            delete[] block;
        }
        return status;
    }

    // Uses memory that the caller keeps until deinit. A cache that was here before ends, if this succeeds.
    KVF_NODISCARD kvf_status init(void *mem, std::size_t len, const kvf_config &config) noexcept {
        kvf_cache *cache = nullptr;
        kvf_status status = kvf_cache_init(mem, len, &config, &cache);
        if (status == KVF_OK) {
            deinit();
            cache_ = cache;
        }
        return status;
    }

    void deinit() noexcept {
        if (cache_ != nullptr) {
            kvf_cache_deinit(cache_);
        }
        delete[] owned_;
        cache_ = nullptr;
        owned_ = nullptr;
    }

    // For the functions of kvfolio.h.
    kvf_cache *get() noexcept { return cache_; }
    const kvf_cache *get() const noexcept { return cache_; }

    KVF_NODISCARD kvf_status open(Sequence &out, const kvf_open_params *params = nullptr,
                                  kvf_shortage *shortage = nullptr) noexcept {
        kvf_seq id = 0;
        kvf_status status = kvf_seq_open(cache_, params, &id, shortage);
        if (status == KVF_OK) {
            out = Sequence(cache_, id);
        }
        return status;
    }

    // Uses the ticket up, if it succeeds.
    KVF_NODISCARD kvf_status open(Ticket &ticket, Sequence &out, const kvf_open_params *params = nullptr,
                                  kvf_shortage *shortage = nullptr) noexcept {
        kvf_seq id = 0;
        kvf_status status = kvf_seq_open_ticket(cache_, ticket.id(), params, &id, shortage);
        if (status == KVF_OK) {
            ticket.release();
            out = Sequence(cache_, id);
        }
        return status;
    }

    KVF_NODISCARD kvf_status match(const kvf_prompt &prompt, std::uint32_t limit, Ticket &out,
                                   kvf_tick deadline = KVF_NO_DEADLINE, kvf_shortage *shortage = nullptr) noexcept {
        kvf_ticket id = 0;
        std::uint32_t tokens = 0;
        kvf_status status = kvf_prefix_match(cache_, &prompt, limit, deadline, &id, &tokens, shortage);
        if (status == KVF_OK) {
            out = Ticket(cache_, id, tokens);
        }
        return status;
    }

    KVF_NODISCARD kvf_status begin(kvf_tick tick, Plan &plan) noexcept {
        kvf_status status = kvf_plan_begin(cache_, tick);
        if (status == KVF_OK) {
            plan.cache_ = cache_;
            plan.finished_ = false;
        }
        return status;
    }

    KVF_NODISCARD kvf_status stats(Stats &out) const noexcept { return kvf_stats_read(cache_, &out); }
    KVF_NODISCARD kvf_status digest(std::uint64_t &out) const noexcept { return kvf_cache_digest(cache_, &out); }

private:
    kvf_cache *cache_ = nullptr;
    unsigned char *owned_ = nullptr;
};

} // namespace kvf

#endif // KVFOLIO_HPP

// hello.cpp - the same as hello.c by way of kvfolio.hpp
#include <kvfolio.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

int main() {
    kvf::Config config;
    config.pool(64).group(8);
    config.sequences = 4;
    config.tickets = 4;
    std::vector<kvf_token> tokens(50);
    std::iota(tokens.begin(), tokens.end(), 0u);

    kvf::Cache cache;
    kvf_status status = cache.init(config);
    if (status == KVF_OK) {
        kvf::Sequence first;
        status = cache.open(first);
        if (status == KVF_OK) {
            status = first.append(tokens.data(), tokens.size());
        }
    } // the sequence ends here and leaves its pages
    kvf::Ticket ticket;
    if (status == KVF_OK) {
        status = cache.match(kvf::Prompt(tokens.data(), 50), 49, ticket);
    }
    if (status != KVF_OK) {
        std::fprintf(stderr, "%s: %s\n", kvf_status_name(status), kvf_status_text(status));
        return 1;
    }
    std::printf("kvfolio %s: %u of 50 tokens are cached\n", kvf_version_string(), static_cast<unsigned>(ticket.tokens()));
    return ticket.tokens() == 48 ? 0 : 1;
}

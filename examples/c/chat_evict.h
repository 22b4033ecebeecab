/* kvf-chat with --evict: a cache that keeps a part of each chat. */
#ifndef ENGINE_CHAT_EVICT_H
#define ENGINE_CHAT_EVICT_H

#include "options.h"
#include "streams.h"

/*
 * Makes the cache that the options ask for; NULL and a reason where they make no sense together. The cache borrows
 * `weights`, which are read if the policy needs them.
 */
struct cache *chat_evict_new(const struct options *options, const struct model_shape *shape, struct threads *threads,
                             int rows, struct evict_weights *weights, struct error *error);

/* Prints what was kept of the chats that have ended. */
void chat_evict_table(struct cache *cache, int kv_heads);

#endif

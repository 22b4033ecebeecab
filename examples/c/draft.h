/* Drafts without a draft model: what followed the last time when the text ended like this. */
#ifndef ENGINE_DRAFT_H
#define ENGINE_DRAFT_H

#include <stdint.h>

/*
 * Looks for the latest earlier place where the last three, else two, of tokens[n] stand, and writes up to `k` of the
 * tokens that follow there to draft[]. Returns how many. O(n).
 */
int draft_lookup(const int32_t *tokens, int n, int k, int32_t *draft);

#endif

/* Prompt-lookup drafting. */
#include "draft.h"

#include <string.h>

int draft_lookup(const int32_t *tokens, int n, int k, int32_t *draft)
{
    for (int gram = 3; gram >= 2; gram--) {
        for (int at = n - gram - 1; at >= 0; at--) {
            int found = n - at - gram;
            if (memcmp(tokens + at, tokens + n - gram, (size_t)gram * sizeof *tokens) != 0)
                continue;
            found = found < k ? found : k;
            memcpy(draft, tokens + at + gram, (size_t)found * sizeof *draft);
            return found;
        }
    }
    return 0;
}

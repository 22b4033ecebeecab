/*
 * The loop at the heart of every BPE tokenizer.
 *
 * Symbols form a doubly linked list over the original positions; a heap holds the pairs that can be joined. An entry is
 * stale iff one of its two symbols has changed since it was pushed; stale entries are dropped when they come up.
 */
#include "merge.h"

#include <stdlib.h>

enum { NONE = -1 };

struct candidate {
    double priority;
    int32_t at;          /* position of the left symbol */
    int32_t left, right; /* ids when pushed */
    int32_t joined;
};

struct merger {
    int32_t *ids;  /* NONE at positions swallowed by a join */
    int32_t *next; /* position of the next symbol, NONE at the end */
    int32_t *previous;
    struct candidate *heap;
    size_t heap_size; /* at most 3n: n-1 pairs at first, two more after each of at most n-1 joins */
    const struct merge_rules *rules;
};

static int before(const struct candidate *a, const struct candidate *b)
{
    return a->priority != b->priority ? a->priority < b->priority : a->at < b->at;
}

static void push(struct merger *m, int32_t at)
{
    struct candidate new = { .at = at };
    size_t i;

    if (at == NONE || m->next[at] == NONE)
        return;
    new.left = m->ids[at];
    new.right = m->ids[m->next[at]];
    if (!m->rules->find(m->rules->context, new.left, new.right, &new.priority, &new.joined))
        return;
    for (i = m->heap_size++; i > 0 && before(&new, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = new;
}

static struct candidate pop(struct merger *m)
{
    const struct candidate top = m->heap[0], last = m->heap[--m->heap_size];
    size_t i = 0;

    for (size_t child = 1; child < m->heap_size; child = 2 * i + 1) {
        if (child + 1 < m->heap_size && before(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!before(&m->heap[child], &last))
            break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return top;
}

static void join(struct merger *m, const struct candidate *c)
{
    const int32_t swallowed = m->next[c->at], after = m->next[swallowed];

    m->ids[c->at] = c->joined;
    m->ids[swallowed] = NONE;
    m->next[c->at] = after;
    if (after != NONE)
        m->previous[after] = c->at;
    push(m, m->previous[c->at]);
    push(m, c->at);
}

size_t merge_pairs(int32_t *ids, size_t n, const struct merge_rules *rules)
{
    struct merger m = { .ids = ids, .rules = rules };
    size_t left = 0;

    if (n < 2)
        return n;
    if (n > INT32_MAX / 4)
        return SIZE_MAX;
    m.next = malloc(2 * n * sizeof *m.next);
    m.heap = malloc(3 * n * sizeof *m.heap);
    if (!m.next || !m.heap) {
        free(m.next);
        free(m.heap);
        return SIZE_MAX;
    }
    m.previous = m.next + n;
    for (size_t i = 0; i < n; i++) {
        m.next[i] = i + 1 < n ? (int32_t)i + 1 : NONE;
        m.previous[i] = (int32_t)i - 1;
    }
    for (size_t i = 0; i < n; i++)
        push(&m, (int32_t)i);
    while (m.heap_size > 0) {
        const struct candidate c = pop(&m);
        if (m.ids[c.at] == c.left && m.next[c.at] != NONE && m.ids[m.next[c.at]] == c.right)
            join(&m, &c);
    }
    for (int32_t at = 0; at != NONE; at = m.next[at])
        ids[left++] = ids[at];
    free(m.next);
    free(m.heap);
    return left;
}

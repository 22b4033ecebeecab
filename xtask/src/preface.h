/*
 * kvfolio.h - KV-cache manager for LLM inference
 *
 * Link with libkvfolio.a or libkvfolio.so; no other library is needed. Made from ffi/src by
 * "cargo run -p xtask -- header": do not edit.
 *
 * kvfolio decides which pages of device memory hold the keys and values of which tokens. It finds
 * how much of a prompt is cached, gives sequences the pages for what they are about to compute, says
 * what to copy first and where each token goes, and publishes finished pages so that later prompts
 * find them. It never touches a key or a value.
 *
 * Words
 *   page      P consecutive token slots of one group; ids 1..pages of the group's pool, 0 = NULL page
 *   slot      page * P + offset
 *   group     layers that share one page table
 *   sequence  the tokens of one request
 *   ticket    a match result that pins the pages it found
 *   tick      the caller's logical time
 *   [n]       in a comment: the pointer's target has n elements
 *
 * Rules that hold for every function
 *   1. The answer is a kvf_status: KVF_OK (0) or a positive code. A call that fails changes nothing
 *      and writes nothing, except a kvf_shortage, a needed length, the field of a configuration or
 *      the reason why a layout or an eviction is refused, where the function says so.
 *   2. The library does not allocate, lock, read a clock, print, or keep a pointer to the caller's
 *      data or functions. It has no global state: caches are independent of each other.
 *   3. Functions with a "const kvf_cache *" only read: several threads may call them at the same
 *      time. A function with a "kvf_cache *" needs the cache for itself.
 *   4. The cache comes first, then inputs, then outputs. A buffer is followed by its capacity in
 *      elements. A pointer may be NULL if its count is 0, or if the function says so.
 *   5. Buffers that a call writes overlap neither each other, nor its inputs, nor the cache's memory.
 *   6. A struct begins with struct_size = sizeof(the struct), set by the caller, for outputs too.
 *      Fields of an input that a smaller struct_size leaves out count as zero, and zero means the
 *      default; fields unknown to the library must be zero. Of an output the library writes what
 *      fits. Structs called "Record" come in large arrays and have no struct_size; they never change.
 *   7. Handles (sequences, tickets, ...) are numbers. One that is out of date is refused with
 *      KVF_ERR_STALE and never means something else.
 *   8. Pointers are checked for NULL and alignment, counts for overflow, structs for their size. What
 *      cannot be checked is whether memory exists.
 *   9. The same calls give the same page ids, tables, events and digest on every machine.
 *
 * A step of an engine
 *   new request   kvf_prefix_match, kvf_seq_open_ticket
 *   each step     kvf_plan_begin, kvf_plan_add for each sequence, kvf_plan_finish, kvf_plan_copies,
 *                 kvf_table_slots, kvf_table_dense (or _csr, _ring, _changed), run the model,
 *                 kvf_plan_commit
 *   at the end    kvf_seq_close
 */
#ifndef KVFOLIO_H
#define KVFOLIO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

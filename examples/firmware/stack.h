/*
 * stack.h - how deep a call goes
 *
 * With MEASURE_STACK the stack below the caller is painted before the call, and the paint that is gone afterwards says how
 * much the call used. Both happen inline: a function of their own would touch the stack that they look at.
 */
#ifndef STACK_H
#define STACK_H

#include <stdint.h>

#ifdef MEASURE_STACK

#ifdef __arm__
#define MOVE "mov"
#else
#define MOVE "mv"
#endif

enum { STACK_DEPTH = 8192, STACK_PAINT = 0x5aa5c33c };

/* Keeps the largest depth of each function. */
void stack_note(const char *function, uint32_t bytes);

/* Prints a line "stack FUNCTION BYTES" for each. */
void stack_report(void);

static inline __attribute__((always_inline)) uint32_t *stack_pointer(void)
{
    uint32_t *sp;
    __asm__ volatile(MOVE " %0, sp" : "=r"(sp)::"memory");
    return sp;
}

static inline __attribute__((always_inline)) void stack_paint(void)
{
    volatile uint32_t *top = stack_pointer(), *word = top - STACK_DEPTH / sizeof *word;

    while (word < top)
        *word++ = STACK_PAINT;
}

static inline __attribute__((always_inline)) uint32_t stack_used(void)
{
    volatile uint32_t *top = stack_pointer(), *word = top - STACK_DEPTH / sizeof *word;

    while (word < top && *word == STACK_PAINT)
        word++;
    return (uint32_t)((uintptr_t)top - (uintptr_t)word);
}

#else

#define stack_paint() ((void)0)
#define stack_used() 0u
#define stack_note(function, bytes) ((void)(function), (void)(bytes))
#define stack_report() ((void)0)

#endif
#endif

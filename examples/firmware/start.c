/* start.c - from reset to main, on Cortex-M and on RISC-V; a fault ends the program with status 1 */
#include <stdint.h>

#include "semihosting.h"

/* From sections.ld. */
extern uint32_t data_source[], data_begin[], data_end[], bss_begin[], bss_end[], stack_top[];

int main(void);
void start(void);

static void fault(void)
{
    semihosting_write("fault\n");
    semihosting_exit(1);
}

__attribute__((used)) static void run(void)
{
    uint32_t *to, *from = data_source;

    for (to = data_begin; to < data_end;)
        *to++ = *from++;
    for (to = bss_begin; to < bss_end;)
        *to++ = 0;
    semihosting_exit(main());
}

#ifdef __arm__

void start(void)
{
    *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20; /* CPACR: the code may use floating-point registers */
    __asm__ volatile("dsb\nisb");
    run();
}

/* The first word is the stack, the second the entry, then the faults; no interrupt is used. */
__attribute__((section(".start"), used)) static const struct {
    uint32_t *stack;
    void (*handler[15])(void);
} vectors = {stack_top, {start, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault}};

#else

__asm__(".section .start, \"ax\"\n"
        ".globl start\n"
        "start:\n"
        "    la sp, stack_top\n"
        "    la t0, trap\n"
        "    csrw mtvec, t0\n"
        "    j run\n"
        ".balign 4\n"
        "trap:\n"
        "    j fault_entry\n"
        ".text");

__attribute__((used)) void fault_entry(void)
{
    fault();
}

#endif

/* What a thread does that looks again and again: a moment in which the processor leaves its units to the core's other thread. */
#ifndef TANDEM_COMMON_BASE_RELAX_H
#define TANDEM_COMMON_BASE_RELAX_H

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif

#include "common/backend/cpu/kernels.h"

#include <string.h>
#ifdef TANDEM_X86
#include <cpuid.h>

/* clang's __builtin_cpu_supports does not know these two. */
static int has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

static int has_avx_vnni(void)
{
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1) != 0;
}

static int runs_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq");
}

static int runs_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}
#endif

static int is_asked(const char *isa, const char *name)
{
    return isa == NULL || strcasecmp(isa, name) == 0;
}

const struct kernels *kernels_find(const char *isa)
{
#ifdef TANDEM_X86
    if (is_asked(isa, "avx512vnni") && runs_avx512() && __builtin_cpu_supports("avx512vnni"))
        return &kernels_avx512vnni;
    if (is_asked(isa, "avx512") && runs_avx512())
        return &kernels_avx512;
    if (is_asked(isa, "avxvnni") && runs_avx2() && has_avx_vnni())
        return &kernels_avxvnni;
    if (is_asked(isa, "avx2") && runs_avx2())
        return &kernels_avx2;
#endif
    return is_asked(isa, "scalar") ? &kernels_scalar : NULL;
}

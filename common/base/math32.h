/* exp and log in single precision, defined operation by operation with explicit fused multiply-adds. Invariant: scalar and vector code, on every
 * instruction set, give the same bits; common/backend/cpu has the vector forms, tested to be equal. Accuracy: 2 ulp over the ranges named. Owns
 * nothing; pure; compiled for the device, too. */
#ifndef TANDEM_COMMON_BASE_MATH32_H
#define TANDEM_COMMON_BASE_MATH32_H

/* A kernel's file says __device__ here and includes math32.c, so that a device has the same bits from the same source. */
#ifndef DEVICE_CODE
#define DEVICE_CODE
#endif

/* e^x. x is clamped to [-87, 88]; below -87 the result is 0. NaN is not handled. */
DEVICE_CODE float math32_exp(float x);
/* Natural logarithm of a positive normal x; x = 0 gives -88. */
DEVICE_CODE float math32_log(float x);

/* The constants, for the vector forms. */
#define MATH32_EXP_LOW  (-87.0f)
#define MATH32_EXP_HIGH 88.0f
#define MATH32_LOG2E    1.44269504088896341f
#define MATH32_LN2_HIGH 0.693359375f
#define MATH32_LN2_LOW  (-2.12194440e-4f)
/* e^r = 1 + r + r^2 (c0 + r (c1 + ...)), |r| <= ln2 / 2; highest first (Cephes expf). */
#define MATH32_EXP_TERMS {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}
/* log(1 + f) = f - f^2/2 + f^3 (c0 f^8 + ... ), f in [sqrt(1/2) - 1, sqrt(2) - 1]; highest first (Cephes logf). */
#define MATH32_SQRT_HALF 0.707106781186547524f
#define MATH32_LOG_TERMS                                                                                                           \
    {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,                                  \
     -1.6668057665e-1f, 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f}

#endif

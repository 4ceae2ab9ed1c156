/* What the preludes of both languages share. Internal; stands alone. */
#ifndef SGM_HANDLERS_DEVICE_PRELUDE_H
#define SGM_HANDLERS_DEVICE_PRELUDE_H

#define SGM_PRELUDE_FUNCTIONS                                                                                \
    "#define sgm_exp exp\n"                                                                                  \
    "#define sgm_log log\n"                                                                                  \
    "#define sgm_log1p log1p\n"                                                                              \
    "#define sgm_sqrt sqrt\n"                                                                                \
    "#define sgm_sin sin\n"                                                                                  \
    "#define sgm_cos cos\n"                                                                                  \
    "#define sgm_tan tan\n"                                                                                  \
    "#define sgm_asin asin\n"                                                                                \
    "#define sgm_acos acos\n"                                                                                \
    "#define sgm_atan atan\n"                                                                                \
    "#define sgm_tanh tanh\n"                                                                                \
    "#define sgm_erf erf\n"                                                                                  \
    "#define sgm_erfc erfc\n"                                                                                \
    "#define sgm_floor floor\n"                                                                              \
    "#define sgm_fma fma\n"                                                                                  \
    "#define sgm_power pow\n"

/* What follows the condition that nobody was there before. */
#define SGM_PRELUDE_FAULT                                                                                    \
    "        words[1] = node;\n"                                                                             \
    "        words[2] = (int32_t)(value & 0xFFFFFFFF);\n"                                                    \
    "        words[3] = (int32_t)(value >> 32);\n"                                                           \
    "    }\n"                                                                                                \
    "}\n"

#endif

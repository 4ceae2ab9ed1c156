/* What the preludes of OpenCL C and CUDA C++ share: names of functions, and sgm_fault. Internal; stands
 * alone.
 *
 * A prelude is text that a plug-in puts before every source; code.h lists its words.
 */
#ifndef SGM_HANDLERS_DEVICE_CODE_PRELUDE_H
#define SGM_HANDLERS_DEVICE_CODE_PRELUDE_H

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
    "#define sgm_erf erf\n"                                                                                  \
    "#define sgm_erfc erfc\n"                                                                                \
    "#define sgm_floor floor\n"                                                                              \
    "#define sgm_fma fma\n"                                                                                  \
    "#define sgm_power pow\n"

/* sgm_fault(words, node, place, value) notes an index out of range in the fault words (see
 * SGM__DEVICE_FAULT_WORDS): of the first step that meets one, the first in order. SWAP_IF claims the words
 * for this node; LARGEST, an atomic maximum, keeps the work-item with the lowest place. Only a work-item that
 * leads so far takes the lock in words[2] to write its value. The loop does not spin inside the branch, as
 * work-items in lockstep would wait for each other for ever. */
#define SGM_PRELUDE_FAULT                                                                                    \
    "FUNCTION void sgm_fault(GLOBAL int32_t *words, int32_t node, int64_t place, int64_t value)\n"           \
    "{\n"                                                                                                    \
    "    const int32_t lead = place < 0x7FFFFFFF ? 0x7FFFFFFF - (int32_t)place : 1;\n"                       \
    "    const int32_t owner = SWAP_IF(words + 1, 0, node + 1);\n"                                           \
    "    if ((owner != 0 && owner != node + 1) || LARGEST(words, lead) >= lead)\n"                           \
    "        return;\n"                                                                                      \
    "    for (int waits = 1; waits != 0;)\n"                                                                 \
    "        if (SWAP_IF(words + 2, 0, 1) == 0) {\n"                                                         \
    "            if (LARGEST(words, 0) == lead) {\n"                                                         \
    "                SWAP(words + 3, (int32_t)(value & 0xFFFFFFFF));\n"                                      \
    "                SWAP(words + 4, (int32_t)(value >> 32));\n"                                             \
    "            }\n"                                                                                        \
    "            FENCE;\n"                                                                                   \
    "            SWAP(words + 2, 0);\n"                                                                      \
    "            waits = 0;\n"                                                                               \
    "        }\n"                                                                                            \
    "}\n"

#endif

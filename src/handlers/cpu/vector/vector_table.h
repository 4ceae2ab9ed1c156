/* Template: the table (sgm__vector) of one instruction set, from the names that the other templates defined.
 * Internal.
 *
 * The last of the templates that vector_portable.c, vector_avx2.c, vector_avx512.c and vector_neon.c include;
 * each of them defines its table with VECTOR_TABLE("name"). No include guard, as each file includes it once.
 */

#define TILES(type, lanes)                                                                                   \
    {                                                                                                        \
        .rows = TILE_ROWS, .columns = 2 * (lanes), .packed = TILE_FUNCTIONS(packed, type),                   \
        .transposed = TILE_FUNCTIONS(transposed, type), .apart = TILE_FUNCTIONS(apart, type),                \
        .row = row_##type, .small = small_##type, .copy_rows = copy_rows_##type,                             \
        .transpose = transpose_##type, .gather_columns = GATHER_VECTORS * (lanes),                           \
        .gather_wide = GATHER_TABLE(gather_wide_##type),                                                     \
        .gather_narrow = GATHER_TABLE(gather_narrow_##type), .spread = spread_##type,                        \
        .finish = finish_##type, .vector_lanes = (lanes), .slide = slide_##type,                             \
        .slide_sums = slide_sums_##type, .copy_lines = copy_lines_##type, .split_pairs = split_pairs_##type, \
        .join_pairs = join_pairs_##type, .winograd = WINOGRAD_##type, FOURS_##type,                          \
        .winograd_fours = WINOGRAD_FOURS_##type                                                              \
    }

#define VECTOR_TABLE(text)                                                                                   \
    {                                                                                                        \
        .name = (text), .functions = FUNCTIONS, .function_count = FUNCTION_COUNT, .pair = PAIR,              \
        .entries = entries, .fast_entries = fast_entries,                                                    \
        .fast_count = (int32_t)(sizeof fast_entries / sizeof *fast_entries),                                 \
        .fast_functions = FAST_FUNCTIONS, .fast_function_count = FAST_FUNCTION_COUNT,                        \
        .entry_count = (int32_t)(sizeof entries / sizeof *entries), .f32 = TILES(f32, LANES),                \
        .f64 = TILES(f64, LANES_D), .pairs = PAIR_TILES, .sum_f32 = sum_f32, .sum_f64 = sum_f64,             \
        .add_f32 = add_few_f32, .add_f64 = add_few_f64, .add_rows_f32 = add_rows_f32,                        \
        .add_rows_f64 = add_rows_f64, .largest_f32 = largest_f32, .exp_shifted_f32 = exp_shifted_f32,        \
        .scale_f32 = scale_f32, .shift_f32 = shift_f32, .softmax_f32 = softmax_row_f32,                      \
        .softmax_gradient_f32 = softmax_gradient_row_f32, .blend_f32 = blend_f32, .dot_f32 = dot_f32,        \
        .uniform_f32 = uniform_f32, .largest_pairs_f32 = largest_pairs_f32,                                  \
        .spread_pairs_f32 = spread_pairs_f32, .dot_rows_f32 = dot_rows_f32, .dot_rows_bf16 = dot_rows_bf16,  \
        .mix_rows_f32 = mix_rows_f32, .mix_rows_bf16 = mix_rows_bf16                                         \
    }

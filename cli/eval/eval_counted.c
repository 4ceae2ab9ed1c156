/* Which examples `sigma eval` counts, where data are a share of a file: a loss means little to a reader who
 * does not know whether the network was trained on what it is measured by. */
#include "config/files.h"
#include "eval/eval.h"

#include <math.h>
#include <stdio.h>

/* Where the examples come from: a path, or the name of a ready-made dataset; "": there are none. */
static const char *source_of(const data_config *data)
{
    const char *const all[] = {
        data->csv,        data->inputs, data->text,   data->chats,       data->labelled_texts,
        data->text_pairs, data->images, data->sounds, data->text_folder, data->dataset};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] != NULL)
            return all[i];
    return "";
}

static bool is_share(const data_config *data)
{
    return !isnan(data->begin) || !isnan(data->share);
}

static double begin_of(const data_config *data)
{
    return isnan(data->begin) ? 0 : data->begin;
}

static double end_of(const data_config *data)
{
    return isnan(data->share) ? 1 : begin_of(data) + data->share;
}

/* "the last 30 %", "the first 70 %" or "those from 70 % to 85 %". */
static void share_text(const data_config *data, char *text, size_t size)
{
    const double begin = 100 * begin_of(data), end = 100 * end_of(data);
    if (begin == 0)
        snprintf(text, size, "the first %.4g %%", end);
    else if (isnan(data->share))
        snprintf(text, size, "the last %.4g %%", end - begin);
    else
        snprintf(text, size, "those from %.4g %% to %.4g %%", begin, end);
}

sgm_status eval_count(eval_counted *counted, const saved *s, const char *name, sgm_dataset *dataset)
{
    const data_config *data = eval_data_of(s, name);
    *counted = (eval_counted){.data = data != NULL && is_share(data) ? data : NULL};
    counted->group = sgm_dataset_get_group(dataset);
    return counted->data != NULL ? sgm_dataset_get_status(dataset, &counted->all) : SGM_OK;
}

void eval_print_counted(const eval_counted *counted)
{
    const data_config *data = counted->data;
    const sgm_dataset_status all = counted->all;
    char share[64], count[64], of[96] = "";
    if (data == NULL)
        return;
    share_text(data, share, sizeof share);
    if (all.blocks > 1)
        snprintf(of, sizeof of, "each of the %lld blocks of ", (long long)all.blocks);
    const bool is_pairs = data->text_pairs != NULL && counted->group > 1;
    printf("  counted: %s of %sthe %s %s in %s%s\n", share, of,
           sgm_count_text(is_pairs ? all.examples / counted->group : all.examples, count, sizeof count),
           is_pairs ? "lines" : "examples", source_of(data),
           data->shuffled ? ", whose order the seed gives" : "");
}

void eval_print_json_counted(const eval_counted *counted)
{
    if (counted->data == NULL)
        return;
    printf(", \"counted\": {\"of\": ");
    print_json_text(source_of(counted->data));
    printf(", \"examples\": %lld, \"begin\": ", (long long)counted->all.examples);
    print_json_number(begin_of(counted->data));
    printf(", \"end\": ");
    print_json_number(end_of(counted->data));
    putchar('}');
}

void eval_hint_trained(const saved *s, const char *path, const char *file)
{
    const data_group *group = &s->c.data;
    const data_config *training = &group->training;
    char share[64] = "those that data.split chose";
    const bool is_split = data_group_is_split(group);
    const bool is_measured = is_split || is_same_file(source_of(&group->validation), file) ||
                             is_same_file(source_of(&group->test), file);
    if (!is_measured || (!is_split && !is_share(training)) || !is_same_file(source_of(training), file))
        return;
    if (!is_split)
        share_text(training, share, sizeof share);
    complain("hint: all examples of %s are counted, and the run was trained on %s of them; 'sigma eval %s' "
             "measures those that were held out\n",
             file, share, path);
}

/* A model of others goes on with a text: its network and its tokenizer are read from its folder.
 *
 *     generate_text FOLDER [TEXT [COUNT]]        (a folder of transformers, or a run of 'sigma import')
 *
 * The text becomes tokens, of which the network reads all. The likeliest token that may follow is read in
 * turn, and printed as soon as it is whole characters: one token may be a part of a character only. */
#include <sigma/models.h>
#include <sigma/sigma.h>
#include <sigma/tokenizer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where tokens become text, and the tokens that end it. */
typedef struct printer {
    sgm_pretrained_stream *stream;
    const int64_t *ends;
    size_t end_count;
} printer;

static bool is_end(const printer *p, int64_t token)
{
    for (size_t i = 0; i < p->end_count; i++)
        if (p->ends[i] == token)
            return true;
    return false;
}

/* Each token as it is found; false ends the text. */
static bool print_token(void *user, int64_t token)
{
    const printer *p = user;
    const char *text = is_end(p, token) ? NULL : sgm_pretrained_stream_next(p->stream, token);
    if (text == NULL)
        return false;
    fputs(text, stdout);
    return fflush(stdout) == 0;
}

/* At most `count` tokens more, up to the last place: a network with attention has only so many. */
static sgm_status go_on(sgm_generator *generator, const sgm_tensor *tokens, int64_t count, printer *p)
{
    const int64_t given = sgm_tensor_shape(tokens)->dims[0], places = sgm_generator_places(generator);
    if (places > 0 && count > places - given)
        count = places > given ? places - given : 0;
    return sgm_generator_generate(generator, sgm_tensor_const_data(tokens), (size_t)given, NULL,
                                  (size_t)count,
                                  SGM_GENERATION(.greedy = true, .told = print_token, .user = p));
}

int main(int argc, char **argv)
{
    const char *text = argc > 2 ? argv[2] : "Once upon a time";
    const int64_t count = argc > 3 ? atoll(argv[3]) : 50;
    if (argc < 2 || argc > 4 || count < 1) {
        fprintf(stderr, "usage: generate_text FOLDER [TEXT [COUNT]]\n");
        return 2;
    }
    sgm_env *env = sgm_env_create("generate_text");
    sgm_model *model = sgm_model_import(env, argv[1]);
    sgm_pretrained_tokenizer *tokenizer = model != NULL ? sgm_pretrained_tokenizer_open(argv[1]) : NULL;
    sgm_tensor *tokens =
        tokenizer != NULL ? sgm_pretrained_tokenizer_encode(tokenizer, text, strlen(text)) : NULL;
    sgm_generator *generator = tokens != NULL ? sgm_generator_create(sgm_model_trainer(model)) : NULL;
    printer p = {0};
    if (generator != NULL) {
        p.stream = sgm_pretrained_stream_create(tokenizer, .skip_special = true);
        p.ends = sgm_pretrained_tokenizer_ends(tokenizer, &p.end_count);
    }
    sgm_status status = sgm_last_status();
    if (p.stream != NULL) {
        fputs(text, stdout);
        status = go_on(generator, tokens, count, &p);
        puts(sgm_pretrained_stream_end(p.stream));
    }
    if (status != SGM_OK)
        fprintf(stderr, "generate_text: %s\n", sgm_last_error());
    sgm_pretrained_stream_free(p.stream);
    sgm_generator_free(generator);
    sgm_tensor_free(tokens);
    sgm_pretrained_tokenizer_free(tokenizer);
    sgm_env_free(env); /* and the model */
    return status == SGM_OK ? 0 : 1;
}

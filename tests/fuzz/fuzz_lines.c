/* Lines of chats, prompts with completions and texts, and of texts with classes and pairs of texts, beside a
 * tokenizer. Each reader takes the same bytes, as it is the first line that says which one they are for. */
#include "fuzz.h"

#include <sigma/chats.h>
#include <sigma/text_data.h>
#include <sigma/tokenizer.h>

#define WINDOW 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sgm_pretrained_tokenizer *tokenizer;
    static const char *const classes[] = {"good", "bad", NULL};
    if (tokenizer == NULL) {
        fuzz_copy("tests/models/data/qwen.json", "tokenizer.json");
        tokenizer = sgm_pretrained_tokenizer_open(fuzz_folder());
        fuzz_expect(tokenizer != NULL, sgm_last_error());
    }
    const char *path = fuzz_write("lines.jsonl", data, size);
    sgm_text_lines_of(path);
    sgm_dataset_free(sgm_chat_dataset("chats", tokenizer, path, .window = WINDOW));
    sgm_dataset_free(sgm_chat_dataset("packed", tokenizer, path, .window = WINDOW, .packing = true));
    sgm_dataset_free(sgm_labelled_text_dataset("labelled", tokenizer, path, .window = WINDOW));
    sgm_dataset_free(
        sgm_labelled_text_dataset("known", tokenizer, path, .window = WINDOW, .classes = classes));
    sgm_dataset_free(sgm_text_pair_dataset("pairs", tokenizer, path, .window = WINDOW));
    return 0;
}

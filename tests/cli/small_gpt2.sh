# shellcheck shell=bash
# A small GPT-2 with a tokenizer of letters, in the folder `model`.

cp -r "$SIGMA_SOURCE_DIR/tests/models/fixtures/gpt2" model
sed -i '/"eos_token_id"/d' model/config.json model/generation_config.json # of the fixture's own tokens
awk 'BEGIN {
    printf "{\"model\": {\"type\": \"BPE\", \"merges\": [\"a b\"], \"vocab\": {\"Ġ\": 0, \"ab\": 60"
    for (i = 1; i < 27; i++) printf ", \"%c\": %d", 96 + i, i
    for (i = 27; i < 60; i++) printf ", \"w%d\": %d", i, i
    print "}}, \"decoder\": {\"type\": \"ByteLevel\"},"
    print "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}}" }' >model/tokenizer.json

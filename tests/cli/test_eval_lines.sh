#!/bin/bash
# sigma eval of models of others on lines: perplexity of one that says the next token, as transformers has it
# (eval_lines.py), classes of one that has some, and what cannot be measured.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

fixtures=$SIGMA_SOURCE_DIR/tests/models/fixtures
cp -r "$fixtures/gpt2" model
sed -i '/"eos_token_id"/d' model/config.json model/generation_config.json # of the fixture's own tokens
awk 'BEGIN {
    printf "{\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"Ġ\": 0, \"<|im_end|>\": 59"
    for (i = 1; i < 27; i++) printf ", \"%c\": %d", 96 + i, i
    print "}}, \"added_tokens\": [{\"id\": 59, \"content\": \"<|im_end|>\", \"special\": true}],"
    print "\"decoder\": {\"type\": \"ByteLevel\"},"
    print "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}}" }' >model/tokenizer.json
echo '{"eos_token": "<|im_end|>"}' >model/tokenizer_config.json
cat >lines.jsonl <<'LINES'
{"text": "abc"}
{"prompt": "ab", "completion": "cdefg"}
{"text": "the quick brown fox"}
LINES

# --- the next token: of the folder, of what was imported, and of a run that was trained on such lines ---
run 0 import model --into imported
for path in model imported; do
    run 0 eval $path lines.jsonl
    has out '^lines.jsonl: loss 4\.3965, accuracy 3\.57 % \(3 examples\)$'
    has out '^  perplexity 81\.1633, tokens 28'
    run 0 eval $path lines.jsonl --json
    has out '^\{"data": "lines.jsonl", "loss": 4\.396463[0-9]*, "accuracy": 0\.0357142857, "examples": 3, "perplexity": 81\.1632[0-9]*, "tokens": 28\}$'
done
run 0 finetune model --data lines.jsonl --into run --epochs 40 --learning-rate 0.01 --context 16 --quiet
run 0 eval run lines.jsonl
has out '^lines.jsonl: loss [0-2]\.[0-9]+, '
has err '^warning: lines.jsonl: 1 of 3 examples are cut to 16 tokens'
(cat lines.jsonl; echo '{"prompt": "the quick brown fox jumps", "completion": "b"}') >asked.jsonl
run 0 eval run asked.jsonl
has err '^warning: asked.jsonl:4: the answer begins behind token 16; 1 line is left out'
run 0 eval run --data training
has out '^training: loss [0-2]\.'
run 1 eval run lines.jsonl --metrics f1
has err 'lines.jsonl: loss, accuracy and perplexity of next tokens are measured; leave out --metrics and --plot'
run 1 eval run lines.jsonl --plot a.svg
has err 'leave out --metrics and --plot'

# --- classes ---
cp -r "$fixtures/bert_classify" classifier
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' a b c >classifier/vocab.txt
echo '{"text": "a b", "label": "LABEL_0"}' >labelled.jsonl
echo '{"text": "b", "label": "LABEL_1"}' >>labelled.jsonl
run 0 import classifier --into imported-classifier
for path in classifier imported-classifier; do
    run 0 eval $path labelled.jsonl --json
    has out '^\{"data": "labelled.jsonl", "loss": 1\.1041[0-9]*, "accuracy": 0\.5, "examples": 2, "classes": \["LABEL_0", "LABEL_1", "LABEL_2"\]'
    has out '"confusion": \[\[0, 1, 0\], \[0, 1, 0\], \[0, 0, 0\]\]'
done

run 0 import classifier --context 5 --into brief
echo '{"text": "a b c a b c", "label": "LABEL_1"}' >>labelled.jsonl
run 0 eval brief labelled.jsonl
has err '^warning: labelled.jsonl: 1 of 3 texts are cut to 5 tokens'

# --- what cannot be measured, and what to do ---
for path in model imported classifier; do
    run 2 eval $path
    has err "say what to measure it on: sigma eval $path FILE.jsonl"
done
run 1 eval model labelled.jsonl
has err "labelled.jsonl: 'model' is a model to generate, which is measured by lines with messages, prompt and completion, or text"
run 1 eval classifier lines.jsonl
has err "lines.jsonl: 'classifier' is a model to classify, which is measured by lines with text and label"
echo '{"text": "a", "label": "praise"}' >others.jsonl
run 1 eval classifier others.jsonl
has err "others.jsonl:1: the label 'praise' is none of the 3 classes that are learnt"
run 1 eval model absent.jsonl
has err 'absent.jsonl'
echo '{"text": ' >broken.jsonl
run 1 eval model broken.jsonl
has err 'broken.jsonl:1: '
cp -r "$fixtures/bert_embed" vectors
cp classifier/vocab.txt vectors
run 1 eval vectors labelled.jsonl
has err "'vectors' makes vectors of texts, which have no cost here: 'sigma finetune' with lines of anchor and positive trains and measures them"
cp -r "$fixtures/bert_fill" fills
cp classifier/vocab.txt fills
run 1 eval fills labelled.jsonl
has err "'fills' is a model to fill, which is not measured; lines are for models that say the next token or have classes"
cp lines.jsonl lines.json
run 1 eval model lines.json
has err '^sigma eval: lines.json: the model takes lines of JSON, in a file whose name ends in .jsonl'
run 1 eval "$fixtures/gpt2" lines.jsonl
has err "there is no tokenizer.json, vocab.json or vocab.txt in '.*/gpt2'; put it there"
finish

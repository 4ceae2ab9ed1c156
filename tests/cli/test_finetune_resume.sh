#!/bin/bash
# sigma finetune --resume: what is left out is as the run has it, and which lines are held out does not change.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# shellcheck source=tests/cli/small_gpt2.sh
. "$SIGMA_SOURCE_DIR/tests/cli/small_gpt2.sh"
for i in a b c d e f g h; do
    echo "{\"prompt\": \"say $i\", \"completion\": \" yes\"}"
done >answers.jsonl
head -2 answers.jsonl >others.jsonl

# --- everything that was left out ---
options='--data answers.jsonl --validation 0.25 --context 16 --epochs 6 --batch 2 --lora=2 --learning-rate 0.01'
# shellcheck disable=SC2086 # a word for each option
run 0 finetune model $options --quiet --into whole
# shellcheck disable=SC2086
run 0 finetune model $options --quiet --into part iterations=7
run 0 finetune model --into part --resume --quiet
same "nothing changes" "$(grep -c 'goes on otherwise' err)" 0
cmp whole/checkpoint.safetensors part/checkpoint.safetensors
verdict "the rest is trained as the whole, without the lines that are held out" $?
has out '^validation: loss .*\(2 examples\)$'

# shellcheck disable=SC2086
run 0 finetune model $options --quiet --into forgotten iterations=7
run 0 finetune model --data answers.jsonl --context 16 --epochs 6 --lora --into forgotten --resume --quiet
cmp whole/checkpoint.safetensors forgotten/checkpoint.safetensors
verdict "a validation that was forgotten holds out the same lines" $?

# --- the split stays ---
# refused MESSAGE OPTIONS...: the run `whole` does not go on with these.
refused()
{
    local message=$1
    shift
    run 2 finetune model --into whole --resume --epochs 7 --quiet "$@"
    has err "$message"
}
remedy="leave --validation out, or begin another run, --into DIR"
refused "--validation 0.5: the run in 'whole' holds out the last 25 % of its lines, .*: $remedy" --validation 0.5
refused "--validation others.jsonl: the run in 'whole' holds out the last 25 % of its lines, .*: $remedy" --validation others.jsonl
refused "--data others.jsonl: the run in 'whole' holds out a share of '.*/answers.jsonl', .*: leave --data out" --data others.jsonl
refused "--context 8: the run in 'whole' has 16, .*: leave --context out" --context 8
refused "--packing: the run in 'whole' has rows of one example, .*: leave --packing out" --packing
run 0 finetune model --data answers.jsonl --context 16 --epochs 1 --quiet --into bare
run 2 finetune model --into bare --resume --epochs 2 --validation 0.25
has err "--validation 0.25: the run in 'bare' holds out nothing, .*: $remedy"
run 2 finetune model --into bare --resume --epochs 2 --validation answers.jsonl
has err "--validation answers.jsonl: the run in 'bare' holds out nothing"
run 0 finetune model --into bare --resume --epochs 2 --validation others.jsonl
has out '^validation: loss .*\(2 examples\)$'
run 2 finetune model --into bare --resume --epochs 3 --validation answers.jsonl
has err "--validation answers.jsonl: the run in 'bare' holds out /.*/others.jsonl, "

# --- what is learnt is not measured as if it were not ---
run 0 finetune model --data others.jsonl --context 16 --epochs 1 --quiet --into gone
cp others.jsonl moved.jsonl
mv others.jsonl kept.jsonl
run 2 finetune model --into gone --resume --epochs 2 --data moved.jsonl --validation moved.jsonl
has err '--data moved.jsonl: the validation measures on this file, and what is learnt is not held out'
mv kept.jsonl others.jsonl
run 2 finetune model --into bare --resume --epochs 3 --data others.jsonl
has err '--data others.jsonl: the validation measures on this file'
run 0 finetune model --data answers.jsonl --validation others.jsonl data.validation.begin=0.5 --context 16 --epochs 1 --quiet --into half
run 0 finetune model --into half --resume --epochs 2 --data moved.jsonl
has half/config.yaml 'chats: .*/moved.jsonl'
has half/config.yaml 'chats: .*/others.jsonl'
has out '^validation: loss .*\(1 examples\)$'

# --- lines of another kind ---
echo '{"anchor": "ab", "positive": "ba"}' >near.jsonl
echo '{"text": "ab", "label": "yes"}' >named.jsonl
refused "--data near.jsonl: these are pairs of texts, and the run in 'whole' learns chats, completions or texts: leave --data out" --data near.jsonl
refused "--data named.jsonl: these are texts with labels, and the run in 'whole' learns chats, " --data named.jsonl

# --- a path is a text, whatever YAML would read in it ---
cp answers.jsonl '[x].jsonl'
cp others.jsonl '{y}: z.jsonl'
run 0 finetune model --data others.jsonl --context 16 --epochs 1 --quiet --into signs
run 0 finetune model --into signs --resume --epochs 2 --data '[x].jsonl' --validation '{y}: z.jsonl'
has err '^  data.training.chats: was /.*/others.jsonl, is "/.*/\[x\].jsonl"$'
has out '^validation: loss .*\(2 examples\)$'

# --- prompts of samples are what they were ---
cp -r model chatty
# shellcheck disable=SC2016 # dollars of the template
template='{% for message in messages %}{{'"'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'"'}}{% endfor %}{% if add_generation_prompt %}{{ '"'<|im_start|>assistant\\n'"' }}{% endif %}'
sed -i 's/"decoder"/"added_tokens": [{"id": 58, "content": "<|im_start|>", "special": true}, {"id": 59, "content": "<|im_end|>", "special": true}], "decoder"/; s/"w58": 58, "w59": 59/"<|im_start|>": 58, "<|im_end|>": 59/' chatty/tokenizer.json
echo "{\"eos_token\": \"<|im_end|>\", \"chat_template\": \"$template\"}" >chatty/tokenizer_config.json
run 0 finetune chatty --data answers.jsonl --context 16 --epochs 1 --quiet --into talks --sample a sample.count=2 --chat
run 0 finetune chatty --into talks --resume --epochs 2 --quiet --sample b
has talks/config.yaml '^ *chat: true'

# --- what is given changes ---
ln -s "$PWD/answers.jsonl" linked.jsonl
run 0 finetune model --data linked.jsonl --validation 0.25 --context 16 --lora --into whole --resume --epochs 7 --batch 4
has err '^  data.batch: was 2, is 4$'
same "a file and a rank as they were are no change" "$(grep -c 'chats: was\|adapters: was' err)" 0
has whole/config.yaml 'lora\(2, alpha=4\)'

# --- another tokenizer than the model's, which the run keeps as well ---
awk 'BEGIN {
    printf "{\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"Ġ\": 59"
    for (i = 1; i < 27; i++) printf ", \"%c\": %d", 96 + i, 59 - i
    for (i = 27; i < 60; i++) printf ", \"w%d\": %d", i, 59 - i
    print "}}, \"decoder\": {\"type\": \"ByteLevel\"},"
    print "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}}" }' >reversed.json
run 0 finetune model --data answers.jsonl --context 16 --epochs 30 --learning-rate 0.01 --quiet --into reversed \
    --tokenizer reversed.json
run 0 generate reversed --text 'say d' --count 4 --greedy
has out '^say d yes'

# --- adapters of the run that it began with ---
for into in once twice; do
    run 0 finetune whole --data answers.jsonl --validation 0.25 --context 16 --lora --quiet --epochs 2 --into $into
done
run 0 finetune whole --lora --resume --epochs 3 --quiet --into once
run 0 finetune whole --resume --epochs 3 --quiet --into twice
cmp once/checkpoint.safetensors twice/checkpoint.safetensors
verdict "adapters of a run that was begun with are there once, with and without --lora" $?
run 2 finetune whole --data answers.jsonl --lora=3 --quiet --into thrice
has err "--lora=3: the run 'whole' has other adapters, lora\(2, alpha=4\): .*sigma export --hf FOLDER whole"
run 2 finetune whole --lora=3 --resume --epochs 4 --quiet --into once
other="others need another run, --into DIR"
has err "--lora=3: the run 'once' has other adapters, lora\(2, alpha=4\): .*$other"
refused "--lora=3: the run 'whole' has other adapters, lora\(2, alpha=4\): .*$other" --lora=3
refused "--lora --int8: the run 'whole' has other adapters, lora\(2, alpha=4\): .*$other" --lora --int8
run 2 finetune model --lora --resume --epochs 4 --into bare
has err "--lora: the run in 'bare' trains all parameters, and has no adapters in its checkpoint: .*begin another run, --into DIR"

mkdir elsewhere
cp answers.jsonl elsewhere
mv answers.jsonl away.jsonl
run 0 finetune model --data elsewhere/answers.jsonl --into whole --resume --epochs 8
has err '^  data.training.chats: was /.*/answers.jsonl, is /.*/elsewhere/answers.jsonl$'
has out '^validation: loss .*\(2 examples\)$'
mv away.jsonl answers.jsonl

# --- how to go on, where it was interrupted ---
"$sigma" finetune model --data answers.jsonl --context 16 --epochs 100000 --into long --quiet >out 2>err </dev/null &
process=$!
for _ in $(seq 400); do
    [ -s long/metrics.jsonl ] && break
    sleep 0.05
done
kill -INT "$process"
wait "$process"
code 130 $? 'an interrupted training'
process=
has out '^stopped; go on with: sigma finetune model --data answers.jsonl --into long --resume$'

# --- nothing to go on from ---
mkdir none
run 2 finetune model --into none --resume
has err "'none' has no checkpoint to go on from, so that the training begins anew: expected data to learn, --data FILE.jsonl"

# --- a folder that is taken is told of before anything is read ---
run 2 finetune model --data answers.jsonl --into whole
has err 'whole has a checkpoint already: --resume goes on from it, --into names another;'
same "before the model is loaded" "$(grep -c 'starting from' out)" 0

# --- a tokenizer of its own ---
mkdir apart
mv model/tokenizer.json apart
run 1 finetune model --data answers.jsonl --into told --epochs 1
has err "^sigma finetune: texts are read by the tokenizer of the model, and there is no tokenizer.json, vocab.json or vocab.txt in 'model'; put it there, or name another: --tokenizer FILE$"
run 0 import model --into imported
run 1 finetune imported --data answers.jsonl --into told --epochs 1
has err "in 'imported/model'; put it there, or name another: --tokenizer FILE$"
run 1 generate imported --text a
has err "in 'imported/model'; --tokenizer names"
for tokenizer in apart apart/tokenizer.json; do
    rm -rf told
    run 0 finetune imported --data answers.jsonl --tokenizer "$tokenizer" --into told --epochs 30 --learning-rate 0.02 --context 16 --quiet
    run 0 generate told --text 'say d' --count 4 --greedy
    same "the tokenizer $tokenizer" "$(cat out)" 'say d yes'
done
run 0 finetune told --data answers.jsonl --tokenizer apart --into told2 --epochs 1 --quiet
run 1 eval imported answers.jsonl
has err "there is no tokenizer.json, vocab.json or vocab.txt in 'imported/model'; put it there"
cp -r "$SIGMA_SOURCE_DIR/tests/models/fixtures/bert_classify" encoder
rm -f encoder/tokenizer.json encoder/vocab.txt
echo '[PAD] [UNK] [CLS] [SEP] [MASK] good bad day' | tr ' ' '\n' >apart/vocab.txt
mkdir words
mv apart/vocab.txt words
for i in 1 2 3 4; do
    echo '{"text": "good day", "label": "yes"}'
    echo '{"text": "bad day", "label": "no"}'
done >labels.jsonl
run 0 finetune encoder --data labels.jsonl --tokenizer words --into sorted --epochs 40 --learning-rate 0.01 --context 8 --quiet
run 0 predict sorted --text 'bad day'
has out '^no '

# --- what was left out, of an encoder ---
head -2 labels.jsonl >seen.jsonl
run 0 finetune encoder --data labels.jsonl --tokenizer words --into sorted2 --epochs 1 --context 8 --quiet
run 0 finetune encoder --into sorted2 --resume --epochs 2 --validation seen.jsonl
has out '^validation: loss .*\(2 examples\)$'
for i in 1 2 3 4 5 6 7 8; do
    echo '{"anchor": "good day", "positive": "bad day"}'
done >pairs.jsonl
run 0 finetune encoder --data pairs.jsonl --tokenizer words --into near --epochs 1 --batch 2 --context 8 --quiet
run 0 finetune encoder --into near --resume --epochs 2 --batch 4
has err '^  data.batch: was 4, is 8$'
run 2 finetune encoder --into near --resume --epochs 3 --data labels.jsonl
has err "--data labels.jsonl: these are texts with labels, and the run in 'near' learns pairs of texts: leave --data out"

# --- lines that are none ---
mv apart/tokenizer.json model
echo '[{"prompt": "a", "completion": "b"}]' >list.jsonl
printf '[\n  {"prompt": "a", "completion": "b"}\n]\n' >list.json
printf 'prompt,completion\na,b\n' >table.csv
for file in list.jsonl list.json; do
    run 1 finetune model --data $file --into none2
    has err "$file:1: this is a list of JSON, and a file of JSON Lines is wanted, one object on each line without the list around them"
done
run 1 finetune model --data table.csv --into none2
has err 'table.csv:1: this is a table, and a file of JSON Lines is wanted, an object for each row'
(cat answers.jsonl; echo '{"text": ""}') >hole.jsonl
run 0 finetune model --data hole.jsonl --context 16 --epochs 1 --quiet --into hole
has err 'hole.jsonl:9: no message of the assistant, no completion and no text, or an empty one; 1 line is left out'
(cat labels.jsonl; echo '{"text": "", "label": "no"}') >blank.jsonl
run 0 finetune encoder --data blank.jsonl --tokenizer words --into blank --epochs 1 --context 8 --quiet
has err '^warning: data.training: 1 of 9 texts are empty, and are learnt like others; take these lines out of /.*/blank.jsonl'
echo '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}' >chats.jsonl
run 1 finetune model --data chats.jsonl --into none2
has err 'chats.jsonl:1: the model has no chat template .*; write each chat as prompt and completion, with what the model wants around a message'
run 1 finetune sentence-transformers/all-MiniLM-L6-v2 --data labels.jsonl
has err "nothing is fetched from a network: download a model first, as by 'hf download OWNER/NAME --local-dir FOLDER'$"

# --- files with texts for an encoder ---
printf 'bad day\ngood day\n' >texts.txt
run 0 predict sorted texts.txt
cp out expected
printf '{"text": "bad day"}\n\n{"text": "good day", "label": "yes"}\n' >texts.jsonl
run 0 predict sorted texts.jsonl
same "lines of JSON are texts" "$(cat out)" "$(cat expected)"
echo '{"anchor": "a"}' >>texts.jsonl
run 1 predict sorted texts.jsonl
has err '^sigma predict: texts.jsonl:4: expected an object with a text, and all or none with a pair'
run 1 predict sorted table.csv
has err 'the network reads texts: --text TEXT, FILE.txt with a text on each line, or FILE.jsonl with'

# --- what a server of texts says ---
serve whole
same "no hint of a training" "$(grep -c 'packing' serve.err)" 0
has serve.err "^hint: 'whole' continues texts; 'sigma serve whole --openai' answers with texts"
end_serve
finish

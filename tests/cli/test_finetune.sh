#!/bin/bash
# sigma finetune: a small GPT-2 learns answers; what it wrote trains the same, is resumed, generates and is written back.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# --- a model with a tokenizer of letters, and data ---
# shellcheck source=tests/cli/small_gpt2.sh
. "$SIGMA_SOURCE_DIR/tests/cli/small_gpt2.sh"
for i in a b c d e f g h; do
    echo "{\"prompt\": \"say $i\", \"completion\": \" yes yes\"}"
done >answers.jsonl
head -2 answers.jsonl >others.jsonl

# --- a training ---
for _ in 1 2 3 4; do cat answers.jsonl; done >many.jsonl
run 0 finetune model --data many.jsonl --into warned --epochs 1 --quiet
same "tokens are not told to be what they are" "$(grep -v '^hint: the longest line of data.training has 12 tokens' err)" ''
run 0 finetune model --data answers.jsonl --validation others.jsonl --into run --epochs 12 --learning-rate 0.02 --context 16
has out '^starting from .*model: gpt2$'
has out '^epoch 12/12 loss 0\.[0-9]+ accuracy [0-9.]+ %, validation loss 0\.[0-9]+ '
has run/config.yaml 'chats: .*answers.jsonl'
has run/config.yaml 'window: 16'
has run/config.yaml 'softmax_cross_entropy\(ignore_negative\)'
run 0 generate run --text 'say d' --count 8 --greedy
same "it says what it learnt" "$(cat out)" 'say d yes yes'
run 0 export --hf back run
cmp -s back/config.json model/config.json
verdict "the model is written back" $?

run 0 eval run
has out '^validation: loss 0\.[0-9]+, accuracy 100.00 % \(2 examples\)$'

# --- a program ---
program=$SIGMA_BUILD_DIR/examples/generate_text
same "a program reads the run, with its tokenizer" "$("$program" run 'say d' 8)" 'say d yes yes'
run 0 generate model --text 'say d' --count 4 --greedy
same "and a folder of transformers" "$("$program" model 'say d' 4)" "$(cat out)"
"$program" none 2>err
code 1 $? 'a model that is not there'
has err "^generate_text: there is no folder 'none', and no file"
program=$SIGMA_BUILD_DIR/examples/finetune_chat
"$program" model answers.jsonl by-c 400 >out 2>err
code 0 $? 'a program trains adapters on the lines'
has out '^loss [0-9.]+, accuracy 100\.0 %$'
run 0 generate by-c --text 'say d' --count 8 --greedy
same "and writes a model that says what it learnt" "$(cat out)" 'say d yes yes'
"$program" model answers.jsonl by-c 1 >out 2>err
code 1 $? 'a folder that is there already'

# --- adapters over matrices of 8 bits ---
options='--data answers.jsonl --validation others.jsonl --lora=4 --int8 --learning-rate 0.05 --epochs 16'
# shellcheck disable=SC2086 # a word for each option
run 0 finetune model $options --into coded --quiet
has coded/config.yaml 'lora\(4, alpha=8, quantize=int8\)'
run 0 inspect coded
has out 'attention[0-9.]*\.weights_codes.*uint8'
# shellcheck disable=SC2086
run 0 finetune model $options --into coded2 --quiet iterations=9
# shellcheck disable=SC2086
run 0 finetune model $options --into coded2 --quiet --resume
cmp coded/checkpoint.safetensors coded2/checkpoint.safetensors
verdict "a resume of them is exact" $?
run 0 generate coded --text 'say d' --count 8 --greedy
same "it says what they learnt" "$(cat out)" 'say d yes yes'
run 0 export --hf back8 coded
cmp -s back8/config.json model/config.json
verdict "they are merged into floats" $?
run 0 finetune coded --data answers.jsonl --epochs 1 --into further --quiet
run 2 finetune model --data answers.jsonl --int8
has err '^sigma finetune: --int8: expected with --lora only'
run 2 finetune model --data answers.jsonl --lora=4 --int8 'adapters=lora(2)'
has err "^sigma finetune: --lora, --int8: expected without the key adapters, which says all of it: 'adapters=lora\\(4, alpha=8, quantize=int8\\)'"

# --- several examples in a row ---
options='--data answers.jsonl --validation others.jsonl --epochs 12 --learning-rate 0.02 --context 32 --batch 8 precision=float64'
losses() { grep -E '^epoch' out | sed -E 's/ \(.*//; s/, [0-9.]+ (s|ms).*//' | grep -oE 'loss [0-9.]+' ; }
# shellcheck disable=SC2086 # a word for each option
run 0 finetune model $options --into apart
losses >apart.txt
# shellcheck disable=SC2086
run 0 finetune model $options --into packed --packing
losses >packed.txt
same "losses are those of rows of one" "$(cat packed.txt)" "$(cat apart.txt)"
same "there are two for each epoch" "$(grep -c . packed.txt)" 24
has packed/config.yaml 'packing: true'
has packed/config.yaml 'starts=starts'
run 0 generate packed --text 'say d' --count 8 --greedy
same "it says what it learnt" "$(cat out)" 'say d yes yes'
run 0 eval packed
has out 'accuracy 100.00 %'
run 0 export --hf back9 packed
cmp -s back9/config.json model/config.json
verdict "a packed run is written back" $?
# shellcheck disable=SC2086
run 0 finetune model $options --into halved --packing --quiet iterations=5
# shellcheck disable=SC2086
run 0 finetune model $options --into halved --packing --quiet --resume
cmp packed/checkpoint.safetensors halved/checkpoint.safetensors
verdict "a resume of it is exact" $?
run 0 finetune packed --data answers.jsonl --epochs 1 --into unpacked --quiet
same "a run of it goes on without" "$(grep -c 'starts=starts' unpacked/config.yaml)" 0
run 2 finetune model --data answers.jsonl --into wrong 'data.validation.packing=true' 'data.validation.chats=others.jsonl'
has err 'data.validation.packing: the training data are not packed'

# --- samples while it learns ---
options='--data answers.jsonl --validation others.jsonl --epochs 12 --learning-rate 0.02 --context 16'
# shellcheck disable=SC2086 # a word for each option
run 0 finetune model $options --into said --sample 'say d' --sample 'say "b' 'sample.count=8' 'sample.greedy=true'
has err 'info finetune: epoch 1, iteration 2: "say d" goes on with "'
has err 'info finetune: epoch 12, iteration 24: "say d" goes on with " yes yes"$'
has said/log.txt 'epoch 12, iteration 24: "say \\"b" goes on with "'
same "a line for each prompt and epoch" "$(grep -c . said/samples.jsonl)" 24
same "the last line" "$(tail -2 said/samples.jsonl | head -1)" \
    '{"epoch":12,"iteration":24,"prompt":"say d","text":" yes yes","branch":0}'
run 0 generate said --text 'say d' --count 8 --greedy
same "as generate says it" "$(cat out)" 'say d yes yes'
run 0 export --weights bare.npz run
run 0 export --weights said.npz said
cmp bare.npz said.npz
verdict "sampling changes no bit of the training" $?
# shellcheck disable=SC2086
run 0 finetune model $options --into drawn --sample 'say d' sample.temperature=1.5 --quiet
# shellcheck disable=SC2086
run 0 finetune model $options --into halves --sample 'say d' sample.temperature=1.5 --quiet iterations=9
# shellcheck disable=SC2086
run 0 finetune model $options --into halves --sample 'say d' sample.temperature=1.5 --quiet --resume
cmp drawn/samples.jsonl halves/samples.jsonl && cmp drawn/checkpoint.safetensors halves/checkpoint.safetensors
verdict "a run that was resumed says the same" $?
# Tokens are drawn as `sigma generate` draws them, by the same options.
drawing='temperature=1.5 top_k=30 top_p=0.95 min_p=0.01 repetition_penalty=1.3 seed=7'
# shellcheck disable=SC2046,SC2086
run 0 finetune model $options --into options --sample 'say d' sample.count=8 $(printf 'sample.%s ' $drawing) --quiet
# shellcheck disable=SC2046,SC2086
run 0 generate options --text 'say d' --count 8 $(printf -- '--%s ' $drawing | tr _ -)
same "drawn as generate draws" "$(tail -1 options/samples.jsonl)" \
    "{\"epoch\":12,\"iteration\":24,\"prompt\":\"say d\",\"text\":\"$(sed 's/^say d//' out)\",\"branch\":0}"
run 2 finetune model --data answers.jsonl --sample 'say d' sample.top_p=1.5 --into none --quiet
has err 'sample.top_p'
run 2 generate run --text 'say d' --repetition-penalty 1e7
has err "repetition-penalty: expected a number from 1e-06 to 1000000, got '1e7'"
run 0 info sample
has out 'repetition_penalty'
run 0 replay drawn --into drawn-again --quiet
cmp drawn/samples.jsonl drawn-again/samples.jsonl
verdict "so does a replay" $?
[ ! -e run/samples.jsonl ]
verdict "nothing is said that was not asked for" $?
run 2 finetune model --data answers.jsonl --sample '#' --into none --quiet
has err "^sigma finetune: --sample: hook 'every epoch sample\(.#., count=40\)': the prompt has no tokens to begin with"
run 2 finetune model --data answers.jsonl --sample 'say d' --chat --into none --quiet
has err 'the model has no chat template'
run 2 finetune model --data answers.jsonl --chat --into none
has err '--chat: expected with --sample only'
run 2 finetune model --data answers.jsonl --sample '' --into none
has err "--sample: expected something to begin with, got ''"
run 2 finetune model --data answers.jsonl --sample $'a\xffb' --into none
has err '--sample: expected a text in UTF-8'
run 2 train run/config.yaml 'sample=[""]' --folder none
has err "sample: expected something to begin with, got ''"
run 2 train "$SIGMA_SOURCE_DIR/examples/iris.yaml" 'sample=[hello]' --folder none
has err "^sigma train: argument 'sample=\[hello\]': sample: hook 'every epoch sample\(.hello., count=40\)': .*sequences cannot be read step by step"
[ ! -e none ]
verdict "nothing is left of what was refused" $?
run 0 info sample
has out '^hook sample: says how a language model goes on with a text'

# --- the configuration does the same; a part, resumed, too ---
run 0 train run/config.yaml --folder again
cmp run/checkpoint.safetensors again/checkpoint.safetensors
verdict "config.yaml trains to the same bits" $?
options='--data answers.jsonl --validation others.jsonl --into parts --epochs 12 --learning-rate 0.02 --context 16'
# shellcheck disable=SC2086 # a word for each option
run 0 finetune model $options iterations=5
# shellcheck disable=SC2086
run 0 finetune model $options --resume
run 0 export --weights whole.npz run
run 0 export --weights parts.npz parts
cmp whole.npz parts.npz
verdict "a training that was resumed has the same bits" $?
# shellcheck disable=SC2086
run 2 finetune model $options
has err 'parts has a checkpoint already: --resume goes on from it, --into names another;'
# shellcheck disable=SC2086
run 0 finetune model $options --resume optimiser.weight_decay=0.5
has err '^sigma finetune: warning: this run goes on otherwise than it began:$'
# shellcheck disable=SC2086
run 0 finetune model ${options/--epochs 12/--epochs 13} --resume optimiser.weight_decay=0.5 data.batch=3
has err '^  data.batch: was 4, is 3$'
has err '^  epochs: was 12, is 13: the schedule cosine has no period and goes over the whole run, so the learning rate is from here on that of a run of the new length; optimiser.schedule.period=11.9 keeps the old one$'
# shellcheck disable=SC2086
run 0 finetune model ${options/--epochs 12/--epochs 14} --resume optimiser.weight_decay=0.5 optimiser.schedule.period=11.9 data.batch=3
same "a period has its own course" "$(grep -c 'epochs: was' err)" 0

# --- the end of a text, texts to stop at, chats ---
run 0 generate run --text 'say d' --count 8 --greedy --stop 's y'
same "it stops before a text" "$(cat out)" 'say d ye'
run 0 generate run --text 'say d' --count 4 --greedy --stop 'ses'
same "what only begins like that text is printed" "$(cat out)" 'say d yes'
cp -r model chatting
# shellcheck disable=SC2016 # dollars of the template
template='{% for message in messages %}{{'"'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'"'}}{% endfor %}{% if add_generation_prompt %}{{ '"'<|im_start|>assistant\\n'"' }}{% endif %}'
sed -i 's/"decoder"/"added_tokens": [{"id": 58, "content": "<|im_start|>", "special": true}, {"id": 59, "content": "<|im_end|>", "special": true}], "decoder"/; s/"w58": 58, "w59": 59/"<|im_start|>": 58, "<|im_end|>": 59/' chatting/tokenizer.json
echo "{\"eos_token\": \"<|im_end|>\", \"chat_template\": \"$template\"}" >chatting/tokenizer_config.json
for i in a b c d e f g h; do
    echo "{\"messages\": [{\"role\": \"user\", \"content\": \"$i\"}, {\"role\": \"assistant\", \"content\": \"yes\"}]}"
done >chats.jsonl
run 0 finetune chatting --data chats.jsonl --into chat --epochs 30 --learning-rate 0.02 --context 32 --quiet
run 0 generate chat --chat --text d --greedy
same "the answer ends by itself" "$(cat out)" 'yes'
run 0 generate chat --chat --text d --greedy --stop e
same "a stop ends the answer before it" "$(cat out)" 'y'
run 1 generate run --chat --text d
has err 'the model has no chat template in a tokenizer_config.json or a chat_template.jinja; known are ChatML .*; without --chat the text is read as it is: write it'
run 2 generate chat --chat
has err 'chat: expected what the user says, --text TEXT or --texts FILE, and no --numbers'
run 2 generate chat --text a --system b
has err 'system: expected with --chat only'
run 2 generate chat --stop ''
has err 'stop: expected a text that is not empty'

# --- texts that are too long ---
run 0 generate run --text 'abcdefghijklmno' --count 2
same "a text that fits with what follows is not warned of" "$(cat err)" ''
printf 'a\nsay abcdefghijklmnopqrstuv\n' >long.txt
run 0 generate run --texts long.txt --count 2
has err '^warning: line 2: the text has 25 tokens, but the network has room for 16 with what follows: its beginning is left out$'

# --- the last place ---
run 0 generate run --numbers --text '19 1 25' --count 99 --greedy
same "it ends when all places are taken" "$(wc -w <out)" 16
has err '^note: the text ends after 13 of 99 tokens: the network has 16 places, and all are taken$'
cp out whole
run 0 generate run --numbers --text '19 1 25' --count 13 --greedy
same "what was asked for is no early end" "$(cat err)" ''
same "it is the same text" "$(cat out)" "$(cat whole)"
run 0 generate run --numbers --text "$(cat whole) 7 8 9" --count 99 --greedy
has err '^warning: the text has 19 tokens, but the network has room for 16 with what follows'
has err '^note: the text ends after 8 of 99 tokens'
printf '19 1 25\n1 2\n' >numbers.txt
run 0 generate run --numbers --texts numbers.txt --count 14 --greedy
same "of several texts each ends there" "$(awk '{print NF}' out | tr '\n' ' ')" '16 16 '
has err '^note: line 1: the text ends after 13 of 14 tokens'
same "and only that is told" "$(wc -l <err)" 1

# --- adapters, a share for validation ---
run 0 finetune model --data answers.jsonl --validation 0.25 --into adapted --epochs 1 --lora=2
has adapted/config.yaml 'lora\(2, alpha=4\)'
has out 'validation: loss .*\(2 examples\)'
held_out=$(grep '^validation: ' out)
run 0 eval adapted
same "the lines that were held out are measured as after the training" "$(grep '^validation: ' out)" "$held_out"
has out '^  counted: the last 25 % of the 8 examples in /.*/answers.jsonl$'
tail -2 answers.jsonl >tail.jsonl
run 0 eval adapted tail.jsonl
same "they are the last two" "$(head -1 out | sed 's/^tail.jsonl/validation/')" "$held_out"
run 0 eval adapted --data training --json
has out '"examples": 6, "counted": \{"of": "/.*/answers.jsonl", "examples": 8, "begin": 0, "end": 0.75\}'
run 0 eval adapted answers.jsonl
has out '\(8 examples\)$'
has err "^hint: all examples of answers.jsonl are counted, and the run was trained on the first 75 % of them; 'sigma eval adapted' measures those that were held out$"
run 0 finetune model --data answers.jsonl --validation answers.jsonl --into all --epochs 1 --quiet
run 0 eval all answers.jsonl
same "nothing was held out of this file" "$(grep -c 'held out' err)" 0

# --- going on with adapters ---
run 0 finetune adapted --data answers.jsonl --into adapted-2 --epochs 1 --lora
has out '^its adapters are trained on: lora\(2, alpha=4\)$'
has adapted-2/config.yaml 'learning_rate: 0.0002'
run 0 inspect adapted-2
has out 'weights_lora_a +[0-9]+ .*\([0-9]+, 2\)'
run 0 finetune adapted --data answers.jsonl --into adapted-3 --epochs 1 --lora=2 --quiet
run 0 finetune adapted --data answers.jsonl --into adapted-4 --epochs 1 --quiet
cmp adapted-2/checkpoint.safetensors adapted-4/checkpoint.safetensors
verdict "with --lora and without it is the same training" $?
run 2 finetune adapted --data answers.jsonl --into none --epochs 1 --lora=4
has err "^sigma finetune: --lora=4: the run 'adapted' has other adapters, lora\(2, alpha=4\): without these options they are trained on"

# --- mistakes ---
run 2 finetune --data answers.jsonl
has err 'expected a model: a folder of transformers, or a run'
run 2 finetune model
has err 'expected data to learn: --data FILE.jsonl'
run 2 finetune model --data answers.jsonl --validation 2
has err "validation: expected a file, or a share between 0 and 1, got '2'"
run 2 finetune model --data answers.jsonl --lora=all
has err "lora: expected a rank of at least 1, got 'all'"
run 2 finetune model --data answers.jsonl --lora 4
has err "^sigma finetune: --lora takes its rank behind '=': --lora=4; see"
run 0 finetune run --data answers.jsonl --context 24 --epochs 1 --quiet --into longer
has longer/config.yaml 'network: "?input\(24\)'
run 0 generate longer --text 'say d' --count 8 --greedy
same "a run goes on with another context" "$(cat out)" 'say d yes yes'
run 2 finetune run --data answers.jsonl --context 4000
has err "model/config.json': a context of 4000 steps is wanted, but the model was trained for"
mkdir foreign
cp run/checkpoint.safetensors run/config.yaml foreign
run 2 finetune foreign --data answers.jsonl --context 8
has err "^sigma finetune: --context: 'foreign' is no run of a model that was imported"
run 0 finetune "$SIGMA_SOURCE_DIR/tests/models/gguf/llama.gguf" --data answers.jsonl --context 48 --epochs 1 --quiet --into of_gguf
has err '^hint: the longest line of data.training has [0-9]+ tokens, and each is trained as one of 48: --packing, or a --context of fewer'
has of_gguf/config.yaml 'network: "input\(48\)'
run 1 finetune "$SIGMA_SOURCE_DIR/tests/models/fixtures/llama" --data answers.jsonl
has err "^sigma finetune: texts are read by the tokenizer of the model, and there is no tokenizer.json, vocab.json or vocab.txt in '.*/llama'; put"
run 2 finetune model --data answers.jsonl --resume --into typo
has err "^sigma finetune: --resume: there is no folder 'typo' of a run; without --resume one begins there; see"
[ ! -e typo ]
verdict "nothing begins there" $?
run 1 finetune modle --data answers.jsonl
has err "^sigma finetune: there is no 'modle'; expected a folder of transformers, what 'sigma import' wrote, or a run; nothing is fetched from a network: download a model first, as by 'hf download OWNER/NAME --local-dir FOLDER'$"
printf '{"text": "a b", "label": "%s"}\n' good bad >labels.jsonl
run 2 finetune model --data labels.jsonl
has err "lines with a label are for encoders .BERT, RoBERTa, DistilBERT.; '.*/model' says the next token"
echo '{"anchor": "a b", "positive": "good"}' >pairs.jsonl
run 2 finetune model --data pairs.jsonl
has err "lines with anchor and positive are for encoders .*; '.*/model' says the next token"
echo '{"prompt": "say"}' >>others.jsonl
run 1 finetune model --data others.jsonl
has err 'others.jsonl:3: expected an object with messages, with prompt and completion, or with text'
run 0 finetune model --data answers.jsonl --context 6 --epochs 1 --quiet
has err 'warning: data.training: 8 of 8 examples are cut to 6 tokens; the longest line has [0-9]+: a longer --context of .sigma import. or .sigma finetune. takes more'
run 0 finetune model --data answers.jsonl --validation 0.25 --context 6 --epochs 1 --quiet --into shared
has err 'warning: data.validation: 8 of 8 examples of the whole file are cut to 6 tokens'
run 0 eval shared
same "tokens are too many classes for a confusion matrix, however few the steps are" "$(wc -l <out)" 2
run 0 eval shared answers.jsonl
has err 'warning: answers.jsonl: 8 of 8 examples are cut to 6 tokens'
(cat chats.jsonl; echo '{"messages": [{"role": "user", "content": "a"}]}') >asked.jsonl
run 0 finetune chatting --data asked.jsonl --context 32 --epochs 1 --quiet --into asked
has err 'warning: data.training: .*asked.jsonl:9: no message of the assistant, no completion and no text, or an empty one; 1 line is left out for that$'
echo '{"prompt": "a b c d e f g h i j k l m n o p", "completion": " yes"}' >>answers.jsonl
run 0 finetune model --data answers.jsonl --context 10 --epochs 1 --quiet --into behind
has err 'warning: data.training: .*answers.jsonl:9: the answer begins behind token 10; 1 line is left out for that, and the longest line has [0-9]+ tokens'
run 0 finetune model --data answers.jsonl --validation 0.5 --context 10 --epochs 1 --quiet --into behind-shared
has err 'warning: data.training: .*answers.jsonl:9: the answer begins behind token 10; 1 line of the whole file is left out for'
finish

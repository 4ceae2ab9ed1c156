#!/bin/bash
# Models of others from the command line: imported, generated with, trained on, written back.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"
fixtures=$SIGMA_SOURCE_DIR/tests/models/fixtures

# --- import ---
run 0 import "$fixtures/llama" --into llama
has out 'fixtures/llama: llama, to generate'
has out '^parameters: 4[0-9]*$'
has out '^context: 64 steps$'
has out '^tokens: 61, tokenizer: none is there$'
has out '^memory: [0-9.]+ k?B for its parameters, [0-9.]+ [kM]?B to train them with adamw, [0-9.]+ [kM]?B to train lora\(8\) instead, one example'
has out '^written: llama$'
has llama/config.yaml 'name: llama'
has llama/config.yaml 'key_heads=2'
run 0 import "$fixtures/gpt2" --context 13
run_folder=$(sed -n 's/^written: //p' out)
has out '^context: 13 steps; the model was trained for 32, which --context chooses$'
same "a folder in runs" "${run_folder%-*-*}" runs/gpt2

# --- everything takes it ---
run 0 generate llama --numbers --text '3 1 4' --count 6 --greedy
cp out first
run 0 generate "$fixtures/llama" --numbers --text '3 1 4' --count 6 --greedy
same "so it does the folder of others itself" "$(cat out)" "$(cat first)"
run 0 inspect llama
has out 'attention'
run 0 export --weights llama.npz llama
run 0 export --hf back llama
cmp -s back/config.json "$fixtures/llama/config.json"
verdict "config.json as it was" $?
run 0 import back --into again
run 0 generate again --numbers --text '3 1 4' --count 6 --greedy
same "the model that was written says the same" "$(cat out)" "$(cat first)"

# --- texts by the tokenizer of the folder ---
cp -r "$fixtures/gpt2" texts
# vocabulary FIRST: letters, a space (Ġ), "ab" and others, whose numbers begin with FIRST.
vocabulary()
{
    awk -v first="$1" 'BEGIN {
        printf "{\"model\": {\"type\": \"BPE\", \"merges\": [\"a b\"], \"vocab\": {\"Ġ\": %d, \"ab\": %d", first, first + 60
        for (i = 1; i < 27; i++) printf ", \"%c\": %d", 96 + i, first + i
        for (i = 27; i < 60; i++) printf ", \"w%d\": %d", i, first + i
        print "}}, \"decoder\": {\"type\": \"ByteLevel\"},"
        print "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}}" }'
}
vocabulary 0 >texts/tokenizer.json
run 0 import texts --into spoken
has out '^tokens: 61, tokenizer: tokenizer.json$'
run 0 generate spoken --numbers --text '60 0 3' --count 6 --greedy
cut -d ' ' -f 4- out | tr ' ' '\n' | while read -r number; do # as the vocabulary has them
    tr ',' '\n' <texts/tokenizer.json | sed -n 's/.*"\(.*\)": '"$number"'}*$/\1/p'
done | tr -d '\n' | sed 's/Ġ/ /g; s/^/ab c/' >expected
run 0 generate spoken --text 'ab c' --count 6 --greedy
same "tokens are texts on both sides" "$(cat out)" "$(cat expected)"
run 0 generate llama --tokenizer texts --text 'ab c' --count 2 --greedy
has out '^ab c'
cp -r "$fixtures/gpt2" old
echo '{"a": 0, "b": 1, "ab": 2}' >old/vocab.json
echo 'a b' >old/merges.txt
run 0 import old --into older
has out 'tokenizer: vocab.json$'
run 0 generate older --text 'ab' --count 1 --greedy
has out '^ab'
# --- a tokenizer that cannot be read: numbers go, texts do not ---
# refuses_texts FOLDER REASON: FOLDER is imported, with a warning and a report that say so.
refuses_texts()
{
    run 0 import "$1" --into "$1-run"
    has out "^tokens: 61, tokenizer: [a-z.]*, which cannot be read: no texts$"
    has err "^warning: the tokenizer cannot be read: $2; the model is imported for numbers of tokens only: generate, predict, serve and finetune will refuse texts$"
    run 0 generate "$1-run" --numbers --text '3 1 4' --count 2 --greedy
    run 1 generate "$1-run" --text ab
}
for kind in broken strange pieces; do cp -r "$fixtures/gpt2" $kind; done
echo '{"model": ' >broken/tokenizer.json
refuses_texts broken 'broken/tokenizer.json: line 2, column 0: no JSON: .*'
echo '{"model": {"type": "WordLevel"}}' >strange/tokenizer.json
refuses_texts strange "strange/tokenizer.json: model: the model 'WordLevel' is not supported; .*"
echo anything >pieces/tokenizer.model
refuses_texts pieces 'pieces/tokenizer.model: a model of SentencePiece is not read; .* writes tokenizer.json from it'
run 0 import texts --into spoken-again
[ ! -s err ]
verdict "no warning of one that is read" $?

mkdir larger && vocabulary 40 >larger/tokenizer.json
run 1 generate spoken --tokenizer larger --text 'ab c'
has err 'is no token: there are 61, .*; the tokenizer is of another model than the network: --tokenizer names'

# --- a network that gives vectors has no cost ---
run 0 import "$fixtures/bert_embed" --into vectors
has out '^.*/bert_embed: bert, to embed$'
run 0 inspect vectors
has out 'global_average_pooling'
has out '^memory of a prediction of [0-9]+ examples$'
run 0 export --hf vectors-back vectors
cmp -s vectors-back/config.json "$fixtures/bert_embed/config.json"
verdict "an encoder is written back" $?

# --- pictures by the model's processor, and a last layer for other classes ---
run 0 import "$fixtures/resnet" --into pictures
has out 'resnet: resnet, to classify$'
has out '^classes: 3$'
has out '^pictures: 32 x 32 pixels$'
has out '^parameters: 10859, and 224 numbers that are not trained, such as means of batch norms$'
has out '^memory: 44.3 kB for its parameters, .* to train them with adamw, one example at a time$'
run 0 inspect pictures
has out '^  all  *11,083  44.3 kB, 10,859 of them trained$'
run 0 import "$fixtures/mobilenet_v2" --into narrow
has out '^memory: 72.3 kB for its parameters, .* to train them with adamw, two examples at a time, as its batch norms need$'
run 0 predict pictures "$fixtures/picture.png"
has out 'picture.png: cat 0.[0-9]* \(crane 0.[0-9]*, crane \(2\) 0.[0-9]*\)$'
run 0 predict pictures "$fixtures/picture.png" --json
has out '"class": "cat", "probability": 0.99'
run 0 import "$fixtures/resnet" --into others --classes 4
run 0 predict others "$fixtures/picture.png" --json
has out '"LABEL_3"'

for class in cat dog; do
    mkdir -p pets/$class
    for i in 1 2 3 4 5; do cp "$fixtures/picture.png" pets/$class/$i.png; done
done
run 0 import "$fixtures/resnet" --into two --classes 2
run 0 train pets --from two --folder trained-pets epochs=1
has out '^starting from .*two/checkpoint.safetensors: parameters$'
has trained-pets/config.yaml 'name=stem_convolution'
run 1 train pets --from two --folder kept-network epochs=1 'network=input(3, 45, 70) + dense(2) + softmax_cross_entropy'
has err "does not fit the trainer: 'stem_convolution.weights' is surplus"

# --- texts through encoders: vectors, and classes by their names ---
cp -r "$fixtures/bert_classify" judged
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\n' >judged/vocab.txt
run 0 import judged --into judge
run 0 predict judge --text 'a b c'
has out '^LABEL_[0-2] 0\.[0-9]*$'
cp out first
printf 'a b c\nc\n' >lines.txt
run 0 predict judge lines.txt
same "a line for each text" "$(wc -l <out)" 2
same "the first as before" "$(head -1 out)" "$(cat first)"
printf 'a b c\r\nc' | "$sigma" predict judge --text - >piped
same "from the standard input, whatever the ends of lines" "$(cat piped)" "$(cat out)"
mkdir judge/checkpoints && cp judge/checkpoint.safetensors judge/checkpoints/1.safetensors
run 0 predict judge/checkpoints/1.safetensors --text 'a b c'
same "the tokenizer is found from a folder in the run's" "$(cat out)" "$(cat first)"

# Several labels: each has its probability, those of transformers 5.24 for the tokens 2 4 5 3.
sed -i 's/^{/{"problem_type": "multi_label_classification",/' judged/config.json
run 0 predict judged --text 'a b'
has out '^LABEL_1 0\.4941 LABEL_2 0\.4863 LABEL_0 0\.4718$'
run 0 predict judged --text 'a b' --json
has out '^\{"example": 0, "probabilities": \{"LABEL_0": 0\.47184[0-9]*, "LABEL_1": 0\.49409[0-9]*, "LABEL_2": 0\.48634[0-9]*\}, "outputs"'
run 0 predict judged --text 'a b' --output labels.csv
same "a column for each label" "$(cut -c-41 labels.csv | head -1)" 'probability_LABEL_0,probability_LABEL_1,p'
has labels.csv '^0\.47184[0-9]*,0\.49409[0-9]*,0\.48634[0-9]*$'

# --- words for what is masked, those that the same network has for the same numbers ---
cp -r "$fixtures/bert_fill" filling
(printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'; seq -f word%.0f 5 60) >filling/vocab.txt
run 0 import filling --into fill
printf '2,7,4,9,3%s\n' "$(yes ,0 | head -19 | tr -d '\n')" >ids.csv
echo 5 >lengths.csv
run 0 predict fill ids.csv --lengths lengths.csv
likeliest=$(cut -d' ' -f3 out)
run 0 predict fill --text 'word7 [MASK] word9'
same "a line for the token that is masked" "$(wc -l <out)" 1
same "its word" "$(cut -d' ' -f1 out)" "$(sed -n "$((likeliest + 1))p" filling/vocab.txt)"
has out '^[^ ]+ 0\.[0-9]{4} \([^ ]+ 0\.[0-9]{4}(, [^ ]+ 0\.[0-9]{4}){3}\)$'
run 0 predict fill --text '[MASK] word8 [MASK]'
same "one for each" "$(wc -l <out)" 2
run 0 predict fill --text 'word7 [MASK] word9' --json
has out "^\{\"example\": 0, \"masks\": \[\{\"place\": 2, \"tokens\": \[\{\"token\": \"[^\"]+\", \"id\": $likeliest, \"probability\": 0"
run 1 predict fill --text 'word7 word9'
has err "text 1 has no .MASK. among its first 24 tokens: this model says which word is masked"

run 1 predict llama --text 'a'
has err "^sigma predict: 'llama' continues texts: use 'sigma generate llama --text TEXT'$"
run 0 import "$fixtures/vit" --task embed --into views
run 0 predict views "$fixtures/picture.png"
has out '^[^ ]*/picture.png:( -?[0-9.e-]+){16}$'
run 0 predict views "$fixtures/picture.png" --json
has out '^\{"file": "[^"]*/picture.png", "outputs": \[(-?[0-9.e-]+, ){15}-?[0-9.e-]+\]\}$'
run 0 predict views "$fixtures/picture.png" --output views.csv
has views.csv '^file,prediction_0,'
run 1 predict pictures --text 'a'
has err "texts are for encoders that 'sigma import' read with their tokenizer"
run 1 generate fill --text a
has err "^sigma generate: 'fill' does not continue texts, it fills in words that are masked: use 'sigma predict'$"
run 1 generate pictures/checkpoint.safetensors
has err "'pictures/checkpoint.safetensors' does not continue texts, it tells classes of pictures: use 'sigma predict'$"
run 1 generate "$SIGMA_SOURCE_DIR/tests/models/onnx/signal.onnx"
has err "'.*signal.onnx' does not continue texts, it tells classes: use 'sigma predict'$"
run 1 generate judged
has err "'judged' does not continue texts, it tells classes of texts: use"
run 2 generate spoken 'ab c'
has err "got 'ab c' as well; a text to continue is given as --text 'ab c'; see"
run 1 serve pictures --openai
has err "'pictures' neither continues texts nor makes vectors of them, it tells classes of pictures: use 'sigma serve' without"
run 2 predict judge --data training --text a
has err 'expected --data or --text, got both'

serve fill
has serve.out '^curl .*paste|^curl .*"input.": \[\[0,'
line=$(grep '^curl' serve.out)
eval "$line -s" >out 2>err
has out '^\{"output":\[\['
curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' "$address/api/model" >out
! grep -q '"texts"' out
verdict "it does not say that it takes texts" $?
end_serve

# --- a training from it, and from the folder of others ---
awk 'BEGIN { for (row = 0; row < 24; row++) {
    line = ""
    for (k = 0; k < 13; k++) line = line (row + k * k) % 61 ","
    for (k = 1; k < 14; k++) line = line (row + k * k) % 61 (k < 13 ? "," : "")
    print line } }' >rows.csv
cat >train.yaml <<YAML
from: $run_folder
data:
  training: {csv: rows.csv, fields: {inputs: 0-12, targets: 13-25}}
  batch: 4
optimiser: {type: adamw, learning_rate: 0.01}
epochs: 3
YAML
run 0 train train.yaml --folder trained
has out "^starting from .*$run_folder"
run 0 export --hf trained-back trained
has trained-back/config.json '"model_type": "gpt2"'
run 0 import trained-back --into once-more --context 13
run 0 generate trained --numbers --text '0 1 4 9' --count 5 --greedy
cp out first
run 0 generate once-more --numbers --text '0 1 4 9' --count 5 --greedy
same "what was trained went with it" "$(cat out)" "$(cat first)"
run 0 train train.yaml "from=$fixtures/gpt2" "network=$(sed -n 's/^network: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$run_folder/config.yaml")" --folder direct
has out '^starting from .*/gpt2: gpt2$'
has direct/model/config.json gpt2
run 1 train train.yaml 'network=input(13) + embedding(61, 8, name=tokens) + dense(61, time_distributed) + softmax_cross_entropy' --folder other
has err "tokens.weights"

# --- files of ONNX ---
models=$SIGMA_SOURCE_DIR/tests/models/onnx
if "$sigma" import "$models/signal.onnx" --into signal >out 2>err; then
    has out 'signal.onnx: onnx, to classify$'
    has out '^parameters: 79$'
    for row in 0 1 2 3 4 5 6 7; do
        for k in $(seq 16); do echo "$(((row * 7 + k * k * 3) % 11)),"; done | tr -d '\n'
        echo "$((row % 3))"
    done >signals.csv
    cut -d, -f -16 signals.csv >inputs.csv
    outputs() { sed 's/.*"outputs"//' out; }
    run 0 predict signal inputs.csv --json
    outputs >first
    run 0 predict "$models/signal.onnx" inputs.csv --json
    same "the network says what the model says" "$(outputs)" "$(cat first)"
    run 0 inspect signal
    has out 'softmax_cross_entropy'
    run 0 export --weights signal.npz "$models/signal.onnx"
    run 1 eval "$models/mobile.onnx" --data digits
    has err 'shape'
    cat >signals.yaml <<YAML
from: $models/signal.onnx
data:
  training: {csv: signals.csv, fields: {inputs: 0-15, targets: 16}, classes: 3}
  validation: {csv: signals.csv, fields: {inputs: 0-15, targets: 16}, classes: 3}
  batch: 4
optimiser: {type: adam, learning_rate: 0.05}
epochs: 30
YAML
    run 0 train signals.yaml --folder signal-on
    has out "^starting from .*/signal.onnx: onnx$"
    run 0 eval signal-on
    run 0 export --onnx signal-on.onnx signal-on
    run 0 predict signal-on inputs.csv --json
    outputs >first
    run 0 predict signal-on.onnx inputs.csv --json
    same "what was trained is written as a model" "$(outputs)" "$(cat first)"
    run 0 train "$SIGMA_SOURCE_DIR/examples/iris.yaml" epochs=1 --quiet --folder rectified \
        'network=input(4) + dense(5, relu) + dense(3) + softmax_cross_entropy'
    run 0 export --onnx rectified.onnx rectified
    run 0 import rectified.onnx --into rectified-back
    run 0 inspect rectified-back
    has out 'activation\(relu\)|dense\(5, relu'
    run 0 import "$models/mobile.onnx" --into mobile
    has out '^parameters: 520, and 16 numbers that are not trained, such as means of batch norms$'
    has out '^memory: 2.1 kB for its parameters$'
    has out '^training: it has no cost to be trained by: --task classify adds one, where its output is one of scores'
    run 1 generate "$models/mobile.onnx" --text hi
    has err "mobile.onnx' takes numbers, not texts, as it has no layer embedding: use 'sigma predict'$"
    run 0 inspect mobile
    has out '^  all  *536  2.1 kB, 520 of them trained$'
    for from in "$models/mobile.onnx" mobile; do
        run 1 train signals.yaml "from=$from" --folder costless
        has err "from: the network of '.*$from' has no cost to train it by. Where it gives scores of classes, 'sigma import MODEL.onnx --task classify --into RUN' adds"
    done
    run 0 import "$models/mobile.onnx" --into mobile-classes --task classify
    has out '^memory: 2.1 kB for its parameters, .* to train them with adamw, '
    run 1 import "$models/signal.onnx" --into x --task generate
    has err "is an ONNX model, for 'classify' or 'predict', not 'generate'"
else
    has err 'built without ONNX'
fi

# --- files of GGUF ---
files=$SIGMA_SOURCE_DIR/tests/models/gguf
run 0 import "$files/llama.gguf" --into from-file
has out 'gguf/llama.gguf: llama, to generate'
has out '^tokens: 61, tokenizer: llama.gguf$'
run 0 generate llama --numbers --text '3 1 4' --count 6 --greedy
cp out first
run 0 generate from-file --numbers --text '3 1 4' --count 6 --greedy
same "a file of GGUF is the model that its folder is" "$(cat out)" "$(cat first)"
run 0 generate "$files/llama.gguf" --text 'ab cat' --count 4 --greedy
cp out first
run 0 generate from-file --text 'ab cat' --count 4 --greedy
same "the run has the tokenizer of the file" "$(cat out)" "$(cat first)"
has out '^ab cat'
run 0 generate llama --tokenizer "$files/llama.gguf" --text 'ab cat' --count 4 --greedy
same "so has --tokenizer" "$(cat out)" "$(cat first)"
sed "s|^from: .*|from: $files/gpt2.gguf|" train.yaml >from-file.yaml
run 1 train from-file.yaml --folder trained-file
has err "field 'inputs' has examples of the shape \(13,\), layer '0-input' wants \(32,\)"
run 0 import "$files/gpt2.gguf" --context 13 --into short
run 0 train from-file.yaml from=short --folder trained-file
run 0 generate trained-file --text 'ab cat' --count 4 --greedy
run 0 export --gguf back.gguf from-file
run 0 generate back.gguf --text 'ab cat' --count 4 --greedy
same "a run is written as a file of GGUF" "$(cat out)" "$(cat first)"
run 0 import back.gguf --into from-back
has out '^tokens: 61, tokenizer: back.gguf$'
run 0 export --gguf half.gguf llama --type f16
run 0 inspect half.gguf
run 0 export --hf from-file-back "$files/llama.gguf"
has err "^warning: no tokenizer is written, as that of '.*/llama.gguf' is in the form of GGUF: copy tokenizer.json and tokenizer_config.json of the original model into 'from-file-back'$"
run 0 export --hf from-run-back from-file
has err "^warning: no tokenizer is written, as that of 'from-file' is in the form of GGUF"
run 0 export --hf spoken-back spoken
[ -s spoken-back/tokenizer.json ] && [ ! -s err ]
verdict "a folder's tokenizer is written, without a warning" $?
run 0 generate from-file-back --numbers --text '3 1 4' --count 6 --greedy
cp out first
run 0 generate llama --numbers --text '3 1 4' --count 6 --greedy
same "a file of GGUF is written as a folder" "$(cat out)" "$(cat first)"
run 0 export --gguf trained.gguf trained-file
run 0 import trained.gguf --into from-trained --context 13
run 0 generate trained-file --text 'ab cat' --count 4 --greedy
cp out first
run 0 generate from-trained --text 'ab cat' --count 4 --greedy
same "what was trained is in the file" "$(cat out)" "$(cat first)"
run 1 export --gguf wrong.bin from-file
has err "'wrong.bin' must end in .gguf"
run 1 export --gguf wrong.gguf from-file --type q4_0
has err "tensors of the type 'q4_0' are not written; these are: f32, f16, bf16, q8_0"
[ ! -e wrong.gguf ] && [ ! -e wrong.gguf.tmp ]
verdict "nothing is left of a file that is not written" $?
run 2 export --hf x from-file --type f16
has err '--type is for --gguf'
run 1 export --gguf x.gguf vectors
has err "is not written as a file of GGUF; these are: llama, mistral, qwen2, qwen3, gpt2"

# --- adapters ---
run 0 import "$fixtures/llama" --peft "$fixtures/llama_peft" --into adapted
has adapted/config.yaml 'name=q_proj'
run 0 export --peft adapters adapted
has adapters/adapter_config.json '"r": 2,'
run 0 export --hf merged adapted
run 0 import merged --into merged-run
run 0 generate adapted --numbers --text '3 1 4' --count 6 --greedy
cp out first
cp -r "$fixtures/llama" together && cp "$fixtures/llama_peft"/adapter_* together # transformers computes with both
run 1 import together --into alone
has err "'together/adapter_config.json' says that the model has adapters .*: 'sigma import together --peft together' takes both"
run 1 generate together --numbers --text '3 1 4' --count 6 --greedy
has err "'together/adapter_config.json' says"
run 0 import together --peft together --into both
run 0 generate both --numbers --text '3 1 4' --count 6 --greedy
same "adapters beside the weights" "$(cat out)" "$(cat first)"
run 0 generate merged-run --numbers --text '3 1 4' --count 6 --greedy
same "a merged model says the same" "$(cat out)" "$(cat first)"
run 1 import "$fixtures/bert_classify" --classes 2 --peft "$fixtures/bert_classify_peft" --into two-classes
has err "classifier.weight' is float32 \(3, 16\), but floats of \(2, 16\) are wanted by the model; --classes of 'sigma import' begins it with another"
run 0 import "$fixtures/bert_embed" --task classify --classes 3 --peft "$fixtures/bert_classify_peft" --into three-classes
has three-classes/config.yaml "pooler.weights pooler.biases classifier.weights classifier.biases"
run 0 train train.yaml 'adapters=lora(2, on="attention*")' --folder tuned
run 0 export --peft tuned-adapters tuned
has tuned-adapters/adapter_config.json 'transformer.h.1.attn.c_attn'
run 1 export --peft other llama
has err 'has no adapters'

# --- tensors alone ---
run 0 export --weights tensors.npz trained
run 0 train train.yaml from=tensors.npz "network=$(sed -n 's/^network: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' trained/config.yaml)" --folder from-tensors
has out '^starting from .*tensors.npz: parameters$'
run 2 train train.yaml from=tensors.npz --folder x
has err "it has tensors, but no network; 'network' beside 'from' says which it is for"
run 1 import tensors.npz --into x
has err "'tensors.npz' is a file, where a folder with config.json, or a file of GGUF or ONNX, is expected"

# --- mistakes ---
run 1 import "$fixtures/llama" --into llama
has err "sigma import: 'llama' is there already; --into names another folder"
[ ! -s out ]
verdict "nothing was read before" $?
run 1 import nowhere --into llama
has err "sigma import: 'llama' is there already"
run 1 import nowhere
has err "^sigma import: there is no folder 'nowhere', and no file; nothing is fetched from a network: a model is downloaded before, as by 'hf download"
mkdir adapters && echo '{}' >adapters/adapter_config.json
run 1 import adapters
has err "there is no config.json in 'adapters'; .*, and this one has adapters of PEFT for a model: 'sigma import MODEL --peft FOLDER' takes both, each from its folder$"
run 1 import texts/config.json
has err "'texts/config.json' is a file of the model in the folder 'texts': name the folder$"
(cd texts && "$sigma" import config.json 2>../err >../out)
has err "'config.json' is a file of the model in the folder '.': name the folder$"
mkdir bare
run 1 import bare
has err "there is no config.json in 'bare'; a folder as the library transformers writes it is wanted"
run 1 generate "$fixtures/llama" --text a
has err "there is no tokenizer.json, vocab.json or vocab.txt in '.*/llama'; --tokenizer names the folder of one, --numbers"
run 1 generate trained --text a
has err "there is no tokenizer.json, vocab.json or vocab.txt in 'trained/model'; --tokenizer names"
run 1 predict "$fixtures/bert_classify" --text a
has err "and there is no tokenizer.json, vocab.json or vocab.txt in '.*/bert_classify'; put it there"
run 2 import
has err 'expected the folder of one model'
run 1 import "$fixtures/gpt2" --into x --context 33
has err 'a context of 33 steps is wanted, but the model was trained for 32'
run 1 import "$fixtures/resnet" --into x --context 7
has err "a context of 7 steps is wanted, but '.*/resnet' is a model of pictures \(resnet\), which has none: leave the context out$"
cp -r "$fixtures/llama" shards
truncate -s 3000 shards/model-00002-of-00003.safetensors
run 1 import shards --into x
has err "^sigma import: 'shards/model-00002-of-00003.safetensors': tensor .*: the file is cut off, by its header it has 8736 bytes, but there are 3000; 'shards/model.safetensors.index.json' names this file: download it again$"
rm shards/model-00002-of-00003.safetensors
run 1 import shards --into x
has err "^sigma import: 'shards/model-00002-of-00003.safetensors' is missing, which 'shards/model.safetensors.index.json' names: download this file$"
[ ! -e x ] && [ ! -e x.partial ]
verdict "nothing is left" $?
cp -r llama damaged && rm damaged/checkpoint.safetensors
for run_of in llama damaged; do # which is not read before
    run 1 export --hf back $run_of
    has err "^sigma export: --hf: 'back' has config.json already; choose another folder$"
done
run 1 export --hf rows.csv damaged
has err "^sigma export: --hf: 'rows.csv' is a file, where a folder is made; choose another name$"
run 1 export --peft adapters damaged
has err "^sigma export: --peft: 'adapters' has adapter_config.json already; choose another folder$"
run 1 export --hf other "$run_folder/checkpoint.safetensors"
has err "has no folder model, which 'sigma import' writes"

# --- chats, and words that are misspelt ---
has_template() { has out "^chat template: $1"; }
run 0 import texts --into unchatted
has_template 'none; lines with prompt and completion are learnt, messages are not$'
echo '{"eos_token": "a", "chat_template": "{{ strange }}"}' >texts/tokenizer_config.json
run 0 import texts --into strange-chats
has_template 'not known; lines with prompt and completion are learnt'
# shellcheck disable=SC2016 # dollars of the template
echo '{"eos_token": "a", "chat_template": "{% for message in messages %}{{'"'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'"'}}{% endfor %}{% if add_generation_prompt %}{{ '"'<|im_start|>assistant\\n'"' }}{% endif %}"}' >texts/tokenizer_config.json
run 0 import texts --into chatted
has_template 'chatml$'
run 1 import "$fixtures/bert_classify" --task clasify --into none
has err "the task 'clasify' is not one of this architecture; expected embed, classify, fill \\(did you mean 'classify'\\?\\)$"
run 1 generate unchatted --chat --text a
has err 'has no chat template'
echo 'ab c' | "$sigma" generate unchatted --text - --count 3 --greedy >out 2>err
cp out piped
run 0 generate unchatted --text 'ab c' --count 3 --greedy
same "the text is the standard input" "$(cat piped)" "$(cat out)"
run 1 generate unchatted --text -
has err '^sigma generate: --text -: the standard input is empty'
# A chat that cannot be written is told of before the parameters are read, which are damaged here.
cp -r unchatted unread
printf '\377\377' | dd of=unread/checkpoint.safetensors bs=1 conv=notrunc seek=$(($(stat -c %s unread/checkpoint.safetensors) - 2)) 2>/dev/null
run 1 generate unread --text a
has err 'checksum'
run 1 generate unread --chat --text a
has err 'has no chat template'
finish

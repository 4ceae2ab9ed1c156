#!/bin/bash
# sigma finetune of encoders: a small DistilBERT learns classes of texts, and vectors of pairs; what it wrote predicts, is
# measured, served, written back, and trained on.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# --- a model with a vocabulary of words, and data ---
fixtures=$SIGMA_SOURCE_DIR/tests/models/fixtures
cp -r "$fixtures/distilbert_embed" model
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' a b c d e f g h good bad >model/vocab.txt
for i in a b c d e f g h; do
    echo "{\"text\": \"good $i\", \"label\": \"praise\"}"
    echo "{\"text\": \"$i bad\", \"label\": \"a, \\\"blame\\\"\"}"
    echo "{\"anchor\": \"good $i\", \"positive\": \"$i\"}" >>pairs.jsonl
done >labelled.jsonl
sed 's/}$/, "negative": "bad"}/' pairs.jsonl >triples.jsonl
sed 's/"praise"/1/; s/"a, .*"/0/' labelled.jsonl >numbers.jsonl

# --- classes ---
options='--epochs 30 --batch 4 --learning-rate 0.003 --context 8'
# shellcheck disable=SC2086 # a word for each option
run 0 finetune model --data labelled.jsonl --validation labelled.jsonl --into run $options
has out '^starting from .*model: distilbert$'
has out '^epoch 30/30 loss 0\.[0-9]+ accuracy 100.0 %, validation loss 0\.[0-9]+ accuracy 100.0 %'
has out '^validation: loss 0\.[0-9]+, accuracy 100.00 % \(16 examples\)$'
has run/config.yaml 'labelled_texts: .*labelled.jsonl'
has run/config.yaml 'input\(8, lengths=lengths\) .*dense\(16, relu, name=pooler\) \+ dense\(2, name=classifier\) \+ softmax_cross_entropy'
run 0 predict run --text 'good c'
has out '^praise 0\.[5-9]'
echo 'good d' >texts.txt
echo 'd bad' >>texts.txt
run 0 predict run texts.txt --json
has out '"class": "praise"'
has out '"class": "a, ..blame.."'
same "of texts that fit nothing is said" "$(cat err)" ''
run 0 predict run --text 'good a b c d e f g h'
has err '^warning: the text has 11 tokens, and the network reads 8: the rest is left out$'
echo 'a b c d e f g h a b c' >>texts.txt
run 0 predict run texts.txt
has err '^warning: 1 of 3 texts have more tokens than the 8 that the network reads, the longest 13: the rest is left out$'
run 0 predict run texts.txt --count 2
same "only texts that are read are warned of" "$(cat err)" ''
sed -i 3d texts.txt
run 0 predict run --text bad --probabilities
has out '^a, "blame" 0\.[0-9]+ praise 0\.[0-9]+$'
run 0 eval run
has out '^validation: loss 0\.[0-9]+, accuracy 100.00 % \(16 examples\)$'
has out '1 praise  *\. +8 +8 +100.0 %'
run 0 eval run labelled.jsonl --json
has out '"accuracy": 1, "examples": 16, "classes": \["a, ..blame..", "praise"\]'
run 1 eval run numbers.jsonl
has err "numbers.jsonl:1: the label '1' is none of the 2 classes that are learnt"

run 0 export --hf back run
has back/config.json '"DistilBertForSequenceClassification"'
has back/config.json '"1": "praise"'
has back/config.json '"praise": 1'
run 0 predict run --text 'good c' --json
mv out first
run 0 predict back --text 'good c' --json
cmp out first
verdict "what was written back predicts the same" $?

# --- the same texts over HTTP ---
ask()
{
    curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' -H 'Content-Type: application/json' -d "$1" "$address/api/predict" >out
}
serve run
has serve.out '"input": \["Hello"\]'
ask '{"input": ["good d", "d bad", {"text": "good c"}]}'
has out '"label":\["praise","a, .*blame.*","praise"\]'
served=$(sed -E 's/.*"output":\[\[([0-9.,e-]+)\],\[([0-9.,e-]+)\],.*/\1 \2/; s/,/ /g' out)
run 0 predict run texts.txt --json
same "texts over HTTP have the numbers that predict prints" "$served" "$(sed -nE 's/.*"outputs": \[([0-9., e-]+)\].*/\1/p' out | tr -d , | paste -sd' ')"
ask '{"input": [[12, 4, 14, 0, 0, 0, 0, 0]], "lengths": [3]}'
has out '"class":\[[01]\]'
ask '{"input": ["good d", 5]}'
has out "example 1 of 'input': expected a text, as the first one is"
ask '{"input": [{"text": "a", "pair": 5}]}'
has out "example 0 of 'input': expected a text, or an object with text and pair: "
ask '{"input": ["good d", "a b c d e f g h"]}'
has out "^\{\"error\":\"'input': text 1 \(from 0\): it has 10 tokens, and the network reads 8 at most; shorten it\"\}$"
ask '{"input": [{"text": "a b c", "pair": "d e f"}]}'
has out "text 0 \(from 0\): it has 9 tokens, and the network reads 8 at most"
ask '{"input": ["a b c d e f"]}'
has out '"label":\['
ask '{"input": [{"txt": "a"}]}'
has out "example 0 of 'input': expected a text, or an object with text and pair: "
ask '{"input": ["good d"], "lengths": [1]}'
has out "'lengths': texts have lengths of their own; leave it out"
ask '{"input": []}'
has out 'an example has the shape \(8,\), or is a text'
curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' "$address/api/model" >out
has out '"texts":true'
end_serve

# --- the configuration does the same; a part, resumed, too ---
run 0 train run/config.yaml --folder again
cmp run/checkpoint.safetensors again/checkpoint.safetensors
verdict "config.yaml trains to the same bits" $?
# shellcheck disable=SC2086
run 0 finetune model --data labelled.jsonl --validation labelled.jsonl --into parts $options iterations=9
# shellcheck disable=SC2086
run 0 finetune model --data labelled.jsonl --validation labelled.jsonl --into parts $options --resume
run 0 export --weights whole.npz run
run 0 export --weights parts.npz parts
cmp whole.npz parts.npz
verdict "a training that was resumed has the same bits" $?

# --- going on: with the same classes, and with others ---
run 0 finetune run --data labelled.jsonl --validation labelled.jsonl --into on --epochs 1 --quiet
has out 'accuracy 100.00 %'
run 0 finetune run --data numbers.jsonl --into others --epochs 30 --batch 4 --learning-rate 0.003 --quiet
has others/config.yaml 'class_names: \["0", "1"\]'
run 0 predict others --text 'good c'
has out '^1 0\.'

# --- adapters ---
run 0 finetune model --data labelled.jsonl --validation 0.25 --into adapted --epochs 1 --lora=2 --quiet
has adapted/config.yaml 'lora\(2, alpha=4, on=..attention\* hidden\* projection\*..'
has out 'validation: loss .*\(4 examples\)'
run 0 inspect adapted
has out '^  classifier.weights +32  float32  \(16, 2\)$'
has out '^  tokens.weights .*, not trained$'
run 0 export --hf merged adapted
run 0 export --peft adapters adapted
has adapters/adapter_config.json '"modules_to_save": \['
has adapters/adapter_config.json '"pre_classifier",'
run 0 import merged --peft adapters --into with-adapters
run 0 inspect with-adapters
has out '^  classifier.weights +32  float32  \(16, 2\)$'

# --- a run with adapters is served, also of a BERT, whose network becomes another one for pairs of texts ---
cp -r "$fixtures/bert_embed" segments && cp model/vocab.txt segments
shares() { sed -nE 's/.*"outputs?": ?\[+([0-9.]+), ?([0-9.]+)\].*/\1 \2/p' out; }
for options in '--lora=2' '--lora=2 --int8'; do
    # shellcheck disable=SC2086 # one word or two
    run 0 finetune segments --data labelled.jsonl --into "by-segments ${options#--lora=}" --epochs 1 $options --learning-rate 0.01 --context 8 --quiet
    serve "by-segments ${options#--lora=}"
    ask '{"input": ["good c"]}'
    served=$(shares)
    run 0 predict "by-segments ${options#--lora=}" --text 'good c' --json
    same "a run with adapters answers what it predicts" "$served" "$(shares)"
    ask '{"input": [{"text": "good", "pair": "c"}]}'
    served=$(shares)
    run 0 predict "by-segments ${options#--lora=}" --text good --pair c --json
    same "of pairs, too" "$served" "$(shares)"
    end_serve
done
sed 's/, "label"/, "pair": "c", "label"/' labelled.jsonl >of-pairs.jsonl
run 0 eval 'by-segments 2' of-pairs.jsonl
has out '\(16 examples\)$'

# --- and trained on with them ---
run 0 predict adapted --text 'good c' --probabilities
mv out predicted
run 0 finetune adapted --data labelled.jsonl --into further --epochs 1 --learning-rate 1e-30
has out '^its adapters are trained on: lora\(2, "attention\* hidden\* projection\*", 4, train="pooler\.\* classifier\.\*"\)$'
run 0 predict further --text 'good c' --probabilities
same "a step of nothing changes nothing" "$(cat out)" "$(cat predicted)"
run 0 finetune adapted --data labelled.jsonl --into further-2 --epochs 30 --lora --batch 4 --learning-rate 0.01
has out '^epoch 30/30 .*accuracy 100.0 %'
run 0 inspect further-2
has out '^  tokens.weights .*, not trained$'
run 0 export --hf further-model further-2
run 2 finetune adapted --data labelled.jsonl --into none --lora=4
has err "^sigma finetune: --lora=4: the run 'adapted' has other adapters, lora\(2, .*\): without these options they are trained on; others begin with what 'sigma export --hf FOLDER adapted' writes"
run 2 finetune adapted --data labelled.jsonl --into none --lora --int8
has err "^sigma finetune: --lora --int8: the run 'adapted' has other adapters, lora\(2, "
run 0 finetune adapted --data labelled.jsonl --into further-3 --epochs 1 --quiet 'adapters=lora(2, alpha=4, on="attention* hidden* projection*", train="pooler.* classifier.*")'
has further-3/config.yaml '; lora\(2, '
has further-3/config.yaml 'learning_rate: 0.0002'
same "adapters that the run has are not added again" "$(grep -c '^adapters:' further-3/config.yaml)" 0
run 0 finetune adapted --data numbers.jsonl --into adapted-others --epochs 1 --quiet
run 0 predict adapted-others --text 'good c'
has out '^[01] 0\.'
run 0 finetune model --data labelled.jsonl --into coded --epochs 1 --lora=2 --int8 --quiet
run 0 finetune coded --data labelled.jsonl --into coded-2 --epochs 1 --lora --int8 --quiet
run 0 predict coded --text good --pair c
run 0 finetune model --data pairs.jsonl --into near-adapted --epochs 1 --lora=2 --quiet
run 0 finetune near-adapted --data triples.jsonl --into near-further --epochs 1 --quiet
has near-further/config.yaml 'info_nce\(group=3\); lora\(2, alpha=4\)'
run 0 predict near-further --text 'good c'
run 1 finetune near-adapted --data labelled.jsonl --into none --epochs 1
has err "'pooler.weights' begins anew, but the adapters of the run, lora\(2, alpha=4\), keep it as it is: begin with what 'sigma export --hf' writes"

# --- names of classes through PEFT's folder, whose model has no classes ---
has adapters/classes.json '"praise"'
run 0 import model --peft adapters --into by-peft
has out '^classes: 2$'
run 0 predict by-peft --text 'good c' --probabilities
same "the model with the adapters predicts what the run predicted, by name" "$(cat out)" "$(cat predicted)"
rm adapters/classes.json
run 0 import model --peft adapters --into without-names
run 0 predict without-names --text 'good c' --probabilities
same "without the names, too" "$(cat out)" "$(sed 's/a, "blame"/LABEL_0/; s/praise/LABEL_1/' predicted)"
echo '["x"]' >adapters/classes.json
run 1 import model --peft adapters --into none
has err "'adapters/classes.json': a list of the names of 2 classes"
echo '["x", "x"]' >adapters/classes.json
run 1 import model --peft adapters --into none
has err "'adapters/classes.json': a list of the names of 2 classes"
same "nothing was reported before" "$(cat out)" ''

# --- pairs ---
run 0 predict model --text 'good a'
mv out before
run 0 finetune model --data pairs.jsonl --validation pairs.jsonl --into near --epochs 30 --batch 4 --learning-rate 0.01 --context 8
has out 'validation: loss 0\.[01][0-9]+ \(16 examples\)$'
has near/config.yaml 'global_average_pooling\(steps\) \+ info_nce"'
has near/config.yaml 'batch: 8'
run 0 eval near
has out '^validation: loss 0\.[01]'
run 0 predict near --text 'good a'
! cmp -s out before
verdict "vectors have changed" $?
mv out vector
run 0 export --hf near-model near
run 0 predict near-model --text 'good a'
cmp out vector
verdict "vectors are those of the model that was written back" $?
cmp -s near-model/config.json model/config.json
verdict "what it is for has not changed" $?
run 0 finetune near --data triples.jsonl --into far --epochs 1 --quiet
has far/config.yaml 'info_nce\(group=3\)'
has far/config.yaml 'batch: 48'
run 0 finetune near --data labelled.jsonl --into told --epochs 1 --quiet
run 0 export --hf told-model told
run 0 predict told-model --text 'good a'
has out '^(praise|a, "blame") 0\.'

# --- what cannot be ---
run 1 eval near triples.jsonl
has err '3 texts of the data in a row belong together, and the cost takes 2: info_nce\(group=3\), or other data'
run 1 finetune model --data pairs.jsonl data.batch=7
has err '2 examples of "training" in a row belong together, and 7 is no multiple of that; 8 would do'
run 2 finetune run --data pairs.jsonl
has err "is of a run to classify, which has not all that the task 'embed' needs"
run 2 finetune "$fixtures/gpt2" --data labelled.jsonl
has err "^sigma finetune: --data: lines with a label are for encoders .BERT, RoBERTa, DistilBERT.; '.*/gpt2' says the next token"
run 2 finetune "$fixtures/resnet" --data labelled.jsonl
has err 'is a model of pictures; these are learnt by .sigma train. of a file'
echo '{"text": "good a"}' >texts.jsonl
run 2 finetune model --data texts.jsonl
has err 'texts alone are for models that say the next token; an encoder learns lines with text and label'
run 1 finetune model --data missing.jsonl
has err "cannot read 'missing.jsonl'"
run 1 finetune model --data labelled.jsonl --validation missing.jsonl
has err "cannot read '.*missing.jsonl'"
run 1 finetune nowhere --data labelled.jsonl
has err "^sigma finetune: there is no 'nowhere'; expected a folder"
run 2 finetune model --data labelled.jsonl --batch 99999999999
has err '^sigma finetune: --batch: expected a whole number from 1 to 10000000, got '
run 2 finetune model --data labelled.jsonl data.batch=0
has err "^sigma finetune: argument 'data.batch=0': data.batch: expected a whole number"
run 2 finetune model --data labelled.jsonl --epochs 99999999999
has err '^sigma finetune: --epochs: expected a whole number from 1 to 1000000000, got '
run 2 finetune model --data labelled.jsonl --context 100
has err "^sigma finetune: --data: '.*/config.json': a context of 100 steps is wanted"
echo '{"text": "a\u0000b", "label": "x"}' >zero.jsonl
run 1 finetune model --data zero.jsonl
has err 'zero.jsonl:1: byte 19: .u0000 is not allowed, as a text ends there; take it out; expected'
head -1 labelled.jsonl >one.jsonl
run 1 finetune model --data one.jsonl
has err '^sigma finetune: --data: .*one.jsonl: expected texts of at least 2 classes, got 1'
run 1 finetune model --data pairs.jsonl --validation labelled.jsonl
has err 'labelled.jsonl:1: expected an object with anchor and positive'
run 2 finetune model --data labelled.jsonl --sample 'good a' --into none --quiet
has err "^sigma finetune: --sample: 'model' does not continue texts, it makes vectors of texts: leave --sample out$"
run 0 finetune model --data pairs.jsonl --validation 0.5 --into halved --epochs 1 --batch 2 --quiet
run 0 eval halved
has out "^  counted: the last 50 % of the $(wc -l <pairs.jsonl) lines in /.*/pairs.jsonl$"
run 0 finetune model --data pairs.jsonl --into single --epochs 1 --batch 1 --quiet
has err '^warning: data.batch: a minibatch of one pair has no other text to tell its like from'
run 0 finetune model --data pairs.jsonl --into long --epochs 1 --quiet
! grep -q 'one pair' err
verdict "several pairs are not warned of" $?
has err '^hint: the longest text of data.training has 4 tokens, and each is trained as one of 24'
finish

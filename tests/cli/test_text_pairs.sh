#!/bin/bash
# Pairs of texts for encoders with classes: predict --pair, finetune and eval with lines that have a pair. Numbers are those of
# transformers (text_pairs.py).
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

fixtures=$SIGMA_SOURCE_DIR/tests/models/fixtures
for name in bert distilbert; do
    cp -r "$fixtures/${name}_classify" $name
    printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' a b c d e f g h >$name/vocab.txt
    run 0 import $name --into imported-$name
done
cp -r "$fixtures/roberta_classify" roberta
cp "$SIGMA_SOURCE_DIR/tests/cli/roberta_letters.json" roberta/tokenizer.json
run 0 import roberta --into imported-roberta
# A template that counts the second text to a second segment, which the model does not have.
cp -r roberta roberta-template
first='{"Sequence": {"id": "A", "type_id": 0}}' second='{"Sequence": {"id": "B", "type_id": 1}}'
begin='{"SpecialToken": {"id": "<s>", "type_id": 0}}' end='{"SpecialToken": {"id": "</s>", "type_id": 0}}'
template="{\"type\": \"TemplateProcessing\", \"single\": [$begin, $first, $end],"
template+=" \"pair\": [$begin, $first, $end, $end, $second, ${end/0/1}], \"special_tokens\": {"
template+='"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}, "<\/s>": {"id": "<\/s>", "ids": [2], "tokens": ["<\/s>"]}}}'
sed -i -E "s|\{\"type\":\"RobertaProcessing\"[^}]*\}|$template|" roberta-template/tokenizer.json
many='a b c d e f g h a b c d e f g h a b c d e f g h'

# --- predictions: of the folder, and of what was imported ---
for model in bert imported-bert; do
    run 0 predict $model --text 'a b' --pair 'c d e' --json
    has out '"outputs": \[0\.317107[01][0-9]*, 0\.346510[89][0-9]*, 0\.33638[12][0-9]*\]'
    run 0 predict $model --text h --pair "$many" --json
    has out '"outputs": \[0\.316969[34][0-9]*, 0\.346362[78][0-9]*, 0\.336667[89][0-9]*\]'
done
for model in distilbert imported-distilbert; do
    run 0 predict $model --text 'a b' --pair 'c d e' --json
    has out '"outputs": \[0\.64689[23][0-9]*, 0\.149943[78][0-9]*, 0\.203163[67][0-9]*\]'
    run 0 predict $model --text h --pair "$many" --json
    has out '"outputs": \[0\.638645[56][0-9]*, 0\.152185[45][0-9]*, 0\.209168[89][0-9]*\]'
done
# Two ends between the texts, positions from the third vector on, and 22 tokens: the longer text is cut first, then both.
for model in roberta imported-roberta roberta-template; do
    run 0 predict $model --text 'a b' --pair 'c d e' --json
    has out '"outputs": \[0\.362576[89][0-9]*, 0\.297270[67][0-9]*, 0\.340152[34][0-9]*\]'
    run 0 predict $model --text h --pair "$many" --json
    has out '"outputs": \[0\.362567[12][0-9]*, 0\.297343[01][0-9]*, 0\.340089[67][0-9]*\]'
    run 0 predict $model --text 'a b c d e f g h a b c d e f g h' --pair 'h g' --json
    has out '"outputs": \[0\.362489[23][0-9]*, 0\.297349[34][0-9]*, 0\.340161[34][0-9]*\]'
    run 0 predict $model --text 'a b c d e f g h a b c d e' --pair 'a b c d e f g h a b c' --json
    has out '"outputs": \[0\.362524[67][0-9]*, 0\.297351[67][0-9]*, 0\.340123[67][0-9]*\]'
done

# --- the same over HTTP, one pair and one text, and a model that was not imported ---
for model in bert imported-bert; do
    serve $model
    curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' -H 'Content-Type: application/json' \
        -d '{"input": [{"text": "a b", "pair": "c d e"}, "h"]}' "$address/api/predict" >out
    has out '"output":\[\[0\.317107[01][0-9]*,0\.346510[89][0-9]*,0\.33638[12][0-9]*\],'
    has out '"label":\["LABEL_1","LABEL_[012]"\]'
    end_serve
done
serve roberta-template
curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' -H 'Content-Type: application/json' \
    -d '{"input": [{"text": "a b", "pair": "c d e"}]}' "$address/api/predict" >out
has out '"output":\[\[0\.362576[89][0-9]*,0\.297270[67][0-9]*,0\.340152[34][0-9]*\]\]'
end_serve

# --- training: the losses of gradient descent ---
cat >pairs.jsonl <<'LINES'
{"text": "a b", "pair": "a b", "label": "LABEL_0"}
{"text": "c", "pair": "c", "label": "LABEL_0"}
{"text": "d e", "pair": "d e", "label": "LABEL_1"}
{"text": "a b", "pair": "c d", "label": "LABEL_1"}
{"text": "c", "pair": "h g", "label": "LABEL_2"}
{"text": "d e", "pair": "a", "label": "LABEL_2"}
LINES
cat >train.yaml <<'YAML'
from: bert
data: {training: {labelled_texts: pairs.jsonl}, batch: 6}
optimiser: {type: gradient_descent, learning_rate: 0.5}
epochs: 5
YAML
for model in bert imported-bert; do
    run 0 eval $model pairs.jsonl --json
    has out '"loss": 1\.0991208[0-9]*, '
done
run 0 train train.yaml --folder descent --quiet
has descent/config.yaml 'positions\(2, segments=segments, name=segments\)'
run 0 eval descent pairs.jsonl --json
has out '"loss": 1\.09838[12][0-9]*, '
for model in roberta imported-roberta roberta-template; do
    run 0 eval $model pairs.jsonl --json
    has out '"loss": 1\.101880[34][0-9]*, '
done
sed -i 's/^from: .*/from: roberta/' train.yaml
run 0 train train.yaml --folder descent-roberta --quiet
has descent-roberta/config.yaml 'positions\(24, first=2, name=positions\) \+ positions\(1, same, name=segments\)'
run 0 eval descent-roberta pairs.jsonl --json
has out '"loss": 1\.09850[12][0-9]*, '

# --- classes of one's own, and the way back ---
sed 's/LABEL_0/same/; 3s/LABEL_1/same/; s/LABEL_[12]/other/' pairs.jsonl >own.jsonl
for name in bert distilbert roberta; do
    run 0 finetune $name --data own.jsonl --validation own.jsonl --into $name-run --epochs 20 --batch 3 --learning-rate 0.005 --context 12
    run 0 eval $name-run
    run 0 predict $name-run --text 'd e' --pair 'd e' --json
    mv out first
    run 0 export --hf $name-back $name-run
    run 0 predict $name-back --text 'd e' --pair 'd e' --json
    cmp out first
    verdict "what was written back predicts the same" $?
    run 0 predict $name-run --text 'd e'
    has out '^(same|other) 0\.'
done
run 0 eval distilbert-run own.jsonl
has out 'accuracy 100.00 % \(6 examples\)'
run 0 finetune bert-run --data own.jsonl --into on --epochs 1 --quiet

# --- mistakes ---
echo '{"text": "a", "pair": "b", "label": "same"}' >mixed.jsonl
echo '{"text": "b", "label": "other"}' >>mixed.jsonl
run 1 finetune bert --data mixed.jsonl --into none
has err 'mixed.jsonl:2: expected a text as pair, as the first line has one'
tac mixed.jsonl >turned.jsonl
run 1 finetune bert --data turned.jsonl --into none
has err 'turned.jsonl:2: this line has a pair, and the first one has none'
sed '2s/"label"/"pair": 5, "label"/' mixed.jsonl >number.jsonl
run 1 finetune bert --data number.jsonl --into none
has err 'number.jsonl:2: expected a text as pair'
echo '{"text": "a", "label": "same"}' >single.jsonl
run 1 eval bert-run single.jsonl
has err 'there is no field "segments"'
run 2 predict bert --pair a
has err '.--pair: expected with --text TEXT, the first text of the pair|expected a checkpoint and --data NAME'
run 2 predict bert --text - --pair a
has err '^sigma predict: --pair: expected with --text TEXT, the first text of the pair'
finish

#!/bin/bash
# Texts with labels, in a column of a table: a file of a few lines trains, eval, predict, serve and the exported C take
# the texts as they are and say the same, and mistakes are told with what to do.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# Reviews in which the word alone does not tell: "not great".
awk 'BEGIN {
    srand(1); split("lovely great wonderful perfect", good, " "); split("awful cold terrible stale", bad, " ")
    split("the food|our waiter|this place|dessert", thing, "|"); split("was|seemed|is", verb, "|")
    split("and we stayed|on a rainy day|for the third time", more, "|")
    print "id,review,stars,verdict"
    for (i = 1; i <= 1200; i++) {
        is_good = rand() < 0.5; negated = rand() < 0.3
        word = is_good != negated ? good[1 + int(rand() * 4)] : bad[1 + int(rand() * 4)]
        printf "%d,\"%s %s %s%s, %s\",%d,%s\n", i, thing[1 + int(rand() * 4)], verb[1 + int(rand() * 3)],
               negated ? "not " : "", word, more[1 + int(rand() * 3)], 1 + int(rand() * 5), is_good ? "good" : "bad"
    }
}' >reviews.csv

cat >reviews.yaml <<'YAML'
data:
  training: {csv: reviews.csv, target: verdict, drop: [id], text_columns: [review]}
  split: 0.8
epochs: 12
seed: 1
YAML

# --- training ---
run 0 train reviews.yaml --folder run
has out '^network: branch0 = input\(51, name="review"\) \+ embedding\(257, 16\) \+ .*branch2 = input\(1\); others = branch2 \+ .*; concatenate\(branch0, others\) \+ dense\(2\) \+ softmax_cross_entropy$'
has out '^validation: .*accuracy (100\.00|9[5-9]\.[0-9]+) % \(240 examples\)$'
grep -aq 'review.*kind.":."text.*window' run/checkpoint.safetensors
verdict 'the checkpoint has the pipeline' $? out
run 0 train run --resume epochs=13 --quiet
run 0 data reviews.yaml
has out '^  review_length +\(\) +from [0-9]+ to 51,'

# --- asking ---
cat >new.csv <<'CSV'
stars,review
4,the food was great
2,the food was not great
5,"a text that is much longer than all others: this place is not awful, it seemed ""perfect"" for the third time, and so on"
1,
3,NA
CSV
run 0 predict run new.csv
same 'classes of texts' "$(head -2 out | cut -d' ' -f1 | paste -sd' ')" 'good bad'
same 'an answer for each, also without a text' "$(wc -l <out)" 5
same 'a missing text is an empty one' "$(sed -n 4p out | cut -c1-6)" "$(sed -n 5p out | cut -c1-6)"
printf 'stars,review\n3,\xff\xfe was great\n' | "$sigma" predict run - >out 2>err
code 0 $? 'bytes that are not UTF-8 are bytes'
printf 'stars,review\n3,a\0b\n' | "$sigma" predict run - >out 2>err
code 1 $? 'zero bytes'
has err 'a zero byte came at byte 16; the file is packed, UTF-16, or no text at all'
printf '{"stars": 2, "review": "our waiter is not terrible"}\n{"stars": 2, "review": null}\n' >new.jsonl
run 0 predict run new.jsonl
has out '^good '
run 0 predict run new.csv --output answers.csv --id stars
has answers.csv '^4,good,'
run 0 eval run reviews.csv
has out '^reviews.csv: .*\(1,200 examples\)$'
has out '^  0 bad '
printf 'stars\n3\n' >new2.csv
run 1 predict run new2.csv
has err "new2.csv has no column 'review'"

# --- JSONL as training data; a tokenizer, which the checkpoint keeps; a network with lengths ---
awk -F'"' 'NR > 1 { split($3, rest, ","); printf "{\"review\": \"%s\", \"verdict\": \"%s\"}\n", $2, rest[3] }' reviews.csv >reviews.jsonl
cut -d'"' -f2 reviews.csv >words.txt
run 0 tokenize words.txt --vocabulary 330 --output words.tokens
cat >lengths.yaml <<'YAML'
network: input(16, name=review, lengths=review_length) + embedding(331, 8) + gru(16, bidirectional) + global_max_pooling(steps) + dense(2) + softmax_cross_entropy
data:
  training: {csv: reviews.jsonl, target: verdict, text_columns: [review], tokenizer: words.tokens, window: 16}
  split: 0.8
epochs: 8
seed: 1
optimiser: {type: adam, learning_rate: 0.01}
YAML
run 0 train lengths.yaml --folder lengths
has out '^validation: .*accuracy (100\.00|9[5-9]\.[0-9]+) % \(240 examples\)$'
rm words.tokens
printf 'review\nthe food was great\nthe food was not great\n' >two.csv
run 0 predict lengths two.csv
same 'the tokenizer is in the checkpoint' "$(cut -d' ' -f1 out | paste -sd' ')" 'good bad'

# --- the same predictions everywhere ---
# numbers FILE: what stands in it, a number a line.
numbers()
{
    grep -oE -- '-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?' "$1"
}
# equal NAME FILE FILE: numbers that differ by 1e-6 at most.
equal()
{
    paste -d' ' "$2" "$3" | awk '{ d = $1 - $2 } NF != 2 || d > 1e-6 || d < -1e-6 { print "line " NR ": " $0; bad = 1 }
        END { exit bad || NR != 400 }' >unequal
    verdict "$1" $? unequal
}
sed -n 2,201p reviews.csv | cut -d'"' -f2 >lines
(echo review,stars; sed 's/.*/"&",2/' lines) >raw.csv
for each in run lengths; do
    run 0 predict "$each" raw.csv --json
    sed 's/.*"outputs": //' out >lists
    numbers lists >"$each.predicted"
    run 0 export --c "$each.c" "$each"
    [ "$each" = run ] && row='.stars = 2' || row='.review = line'
    cat >main.c <<END
#define ${each^^}_DECLARATIONS
#include "$each.c"
#include <stdio.h>
#include <string.h>

int main(void)
{
    char line[1000];
    while (fgets(line, sizeof line, stdin) != NULL) {
        double outputs[${each^^}_PREDICT_OUTPUTS];
        line[strcspn(line, "\\n")] = '\\0';
        ${each}_row row = {$row};
        row.review = line;
        if (${each}_predict_rows(&row, outputs, 0) != 0)
            return 1;
        for (int i = 0; i < ${each^^}_PREDICT_OUTPUTS; i++)
            printf("%.17g\\n", outputs[i]);
    }
    return 0;
}
END
    cc -std=c99 -pedantic -Wall -Wextra -Werror -O1 "$each.c" main.c -lm -o program 2>err
    code 0 $? "a program with $each.c compiles"
    ./program <lines >compiled
    equal "the exported C of $each predicts the same" compiled "$each.predicted"
done
echo '0123456789abcdef-secret' >token
"$sigma" serve run --token-file token >serve.out 2>serve.err </dev/null &
process=$!
for _ in $(seq 200); do
    grep -q '^Ctrl-C' serve.out && break
    sleep 0.05
done
has serve.out '"review":null'
address=$(sed -nE 's,^serve: (http://[^/]*)/.*,\1,p' serve.out)
sed 's/.*/{"review": "&", "stars": 2}/' lines | paste -sd, | sed 's/.*/{"input": [&]}/' >question
curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' -H 'Content-Type: application/json' \
    --data-binary @question "$address/api/predict" >served
sed 's/,"class":.*//' served >served.json
numbers served.json >served.numbers
equal 'serve predicts the same' served.numbers run.predicted
kill -INT "$process"
wait "$process"
process=

# --- folders ---
awk -F'"' 'NR > 1 && NR < 602 { split($3, rest, ","); file = "reviews/" rest[3] "/" NR ".txt"
    if (!(rest[3] in made)) { system("mkdir -p reviews/" rest[3]); made[rest[3]] = 1 }
    printf "%s", $2 >file; close(file) }' reviews.csv
cat >folder.yaml <<'YAML'
data: {training: {text_folder: reviews}, split: 0.8}
epochs: 25
seed: 1
YAML
run 0 data reviews
has out '^reviews: 600 texts in 2 classes, 30 to 51 bytes$'
run 0 train folder.yaml --folder folder
has out '^network: input\(51\) \+ embedding\(257, 16\) \+ .*dropout\(0\.5\) \+ dense\(2\) \+ softmax_cross_entropy$'
has out '^validation: .*accuracy (100\.00|9[0-9]\.[0-9]+) % \(120 examples\)$'
printf 'the food was great, on a rainy day' >letter.txt
printf '' >empty.txt
run 0 predict folder letter.txt empty.txt
has out '^letter\.txt: good 0\.[0-9]+ \(bad 0\.[0-9]+\)$'
has out '^empty\.txt: '
sed -nE 's/^letter\.txt: good ([0-9.]+) .*/\1/p' out >predicted
serve folder
curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' -H 'Content-Type: text/plain' --data-binary @letter.txt \
    "$address/api/predict" >out 2>err
has out '"label":\["good"\]'
same 'a text over HTTP has the probability of predict' \
    "$(sed -E 's/.*"output":\[\[[^,]*,([^]]*)\].*/\1/' out | awk '{printf "%.4f", $1}')" "$(cat predicted)"
end_serve
"$sigma" predict folder - <letter.txt >out 2>err
code 0 $? 'a text from the standard input'
has out '^-: good '
run 1 predict folder - -
has err 'the standard input can be named once'
run 0 eval folder reviews
has out '^reviews: .*\(600 examples\)$'
printf 'a\0b' >zero.txt
run 1 predict folder zero.txt
has err '^sigma predict: zero.txt: text was expected, a zero byte came at byte 1; the file is packed, UTF-16, or no text at all'
touch reviews/good/1.pdf
run 1 train folder.yaml --folder pdf
has err '1\.pdf: TXT texts are read; convert it, or take it out of the folder'
rm reviews/good/1.pdf

# --- mistakes ---
mistake() # PATTERN ARGUMENTS...
{
    local pattern=$1
    shift
    "$sigma" train reviews.yaml --folder mistake "$@" >out 2>err </dev/null
    [ $? -ne 0 ]
    verdict "train $*: an error" $?
    has err "$pattern"
}
mistake "text_columns: .*reviews.csv has no column 'reviews'; did you mean 'review'\?" 'data.training.text_columns=[reviews]'
mistake "column 'verdict' is a target, and named once more" 'data.training.text_columns=[verdict]'
mistake 'at most 8 targets, .* 3 text_columns, and .* were expected' 'data.training.text_columns=[a, b, c, d]'
mistake 'step and streams are for text$' data.training.step=4
mistake "cannot open '.*nothing.tokens'" data.training.tokenizer=nothing.tokens
mistake 'text_columns, tokenizer, window, .* stand in data.training' 'data.test={csv: reviews.csv, window: 4}'
awk 'BEGIN { print "story,y"; for (i = 0; i < 60; i++) print "a story about number " i "," (i % 2 ? "odd" : "even") }' >stories.csv
cat >stories.yaml <<'YAML'
data: {training: {csv: stories.csv, target: y}}
YAML
run 1 train stories.yaml --folder mistake
has err 'no column is left to predict the targets from; text_columns: \[story\] would read its texts as tokens$'
cat >twice.yaml <<'YAML'
data: {training: {csv: stories.csv, target: y, text_columns: [story]}, validation: {csv: stories.csv}}
epochs: 1
YAML
run 0 train twice.yaml --folder twice --quiet
has err 'warning: data.validation: 60 of the first 60 examples are in the training data, too'
finish

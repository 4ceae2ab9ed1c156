#!/bin/bash
# Parts of one source: data.split, folds, class weights, and what is warned of before training.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# 600 animals of 40 houses, sorted by kind: 360 cats, 200 dogs, 40 birds.
awk 'BEGIN {
    srand(7); print "house,weight,age,sold,kind,price"
    for (i = 0; i < 600; i++) {
        kind = i < 360 ? "cat" : i < 560 ? "dog" : "bird"; age = int(rand() * 10)
        weight = (kind == "cat" ? 4 : kind == "dog" ? 20 : 1) * (0.9 + 0.2 * rand())
        printf "h%d,%.4f,%d,20%02d-03-01,%s,%.2f\n", i % 40, weight, age, 10 + i % 12, kind, 100 * weight + 50 * age
    }
}' >pets.csv
cat >pets.yaml <<'YAML'
data:
  training: {csv: pets.csv, target: kind, drop: [house, sold, price]}
  split: 0.8
epochs: 2
YAML

# --- stratified by default for classes; the rest validates ---
run 0 data pets.yaml
same 'parts of a stratified split' "$(grep -c 'classes 0: 32, 1: 288, 2: 160' out) $(grep -c 'classes 0: 8, 1: 72, 2: 40' out)" '1 1'
run 0 train pets.yaml --folder pets --quiet
has out '^validation: .*\(120 examples\)$'
same 'nothing to warn of' "$(cat err)" ''
run 0 eval pets
has out '^validation: .*\(120 examples\)$'
run 0 eval pets pets.csv
has err "^hint: all examples of pets.csv are counted, and the run was trained on those that data.split chose of them; 'sigma eval pets' measures those that were held out$"
run 0 predict pets --data validation
same 'as many answers as examples' "$(wc -l <out)" 120
cp pets/config.yaml before.yaml
run 0 train pets --resume epochs=3 --quiet
same 'what is split stays split' "$(grep -A2 split: pets/config.yaml)" "$(grep -A2 split: before.yaml)"

# What is learnt of a table is learnt of its training rows: the mean of weights in them alone.
run 0 train pets.yaml 'data.split={share: [0.5, 0.25], time: sold}' --folder time --quiet
has out '^validation: .*\(150 examples\)$'
has out '^test: .*\(150 examples\)$'
# Of 600 rows by year the first 300 are those of 2010 to 2015.
mean=$(awk -F, 'NR > 1 && substr($4, 1, 4) <= 2015 { sum += $2; n++ } END { printf "%.3f", sum / n }' pets.csv)
kept=$(tr -d '\\"' <time/checkpoint.safetensors | grep -ao 'name:weight,offset:[0-9.]*' | head -1)
same 'mean of the training rows' "$(printf '%.3f' "${kept##*:}")" "$mean"

run 0 data pets.yaml
run 0 train pets.yaml 'data.split=[0.6, 0.2]' --folder list --quiet
has out '^test: .*\(120 examples\)$'

# --- groups ---
run 0 train pets.yaml 'data.split={share: 0.75, group: house}' 'data.training.drop=[sold, price, house]' --folder dropped --quiet
run 0 train pets.yaml 'data.split={share: 0.75, group: house}' 'data.training.drop=[sold, price]' --folder group --quiet
has out '^validation: .*\(150 examples\)$'
has group/config.yaml '^    group: house$'
run 0 predict group pets.csv --count 1
awk -F, 'BEGIN { OFS = "," } { print $2, $3 }' pets.csv >inputs.csv
run 0 predict group inputs.csv --count 1 # the group is no input

# --- arrays and tables by numbers: classes of the targets ---
awk -F, 'NR > 1 { print $2 "," $3 "," ($5 == "cat" ? 0 : $5 == "dog" ? 1 : 2) }' pets.csv >numbers.csv
cat >numbers.yaml <<'YAML'
network: "input(2) + dense(3) + softmax_cross_entropy"
data:
  training: {csv: numbers.csv, fields: {inputs: 0-1, targets: 2}, classes: 3}
  split: {share: [0.6, 0.2, 0.2]}
epochs: 1
YAML
run 0 data numbers.yaml
same 'stratified by the targets' "$(grep classes out | tr -d ' \n')" 'classes0:216,1:120,2:24classes0:72,1:40,2:8classes0:72,1:40,2:8'

# --- folds ---
cat >folds.yaml <<'YAML'
data:
  training: {csv: pets.csv, target: kind, drop: [house, sold, price]}
  split: {folds: 4}
epochs: 2
YAML
run 0 train folds.yaml --folder folds --quiet
same 'four trainings' "$(grep -c '^validation: .*(150 examples)$' out)" 4
expected=$(awk '{ gsub(/[^0-9.e-]+/, " "); l += $2; s += $2 * $2; n++ }
    END { m = l / n; printf "%.4f, deviation %.4f", m, sqrt((s - n * m * m) / (n - 1)) }' folds/folds.jsonl)
has out "^4 folds: loss $expected; accuracy [0-9.]+ %, deviation [0-9.]+ %$"
same 'a run of its own each' "$(find folds -name checkpoint.safetensors | sort | tr '\n' ' ')" \
    'folds/fold-0/checkpoint.safetensors folds/fold-1/checkpoint.safetensors folds/fold-2/checkpoint.safetensors folds/fold-3/checkpoint.safetensors '
grep '^4 folds' out >first
rm -r folds/fold-3
run 0 train folds --resume --quiet
same 'the missing one is trained again' "$(grep '^4 folds' out)" "$(cat first)"
run 2 train folds.yaml --folder folds --quiet
has err 'folds/fold-0 has a checkpoint already'
run 0 eval folds/fold-1
has out '^validation: .*\(150 examples\)$'
run 0 train folds.yaml data.split.fold=2 --folder one --quiet
"$sigma" eval folds/fold-2 >alone
same "one fold alone" "$(grep "^validation" out)" "$(grep "^validation" alone)"

# --- what contradicts itself ---
refused() { # words of the message, overrides
    local words=$1
    shift
    run 2 train pets.yaml --quiet --folder refused "$@"
    has err "$words"
}
refused 'data\.split: expected one of by, group and time' data.split.by=random data.split.time=sold
refused 'data\.split\.share: expected the share of training, such as 0\.8' 'data.split.share=[0.8, 0.3]'
refused "data\.split\.share: expected a share between 0 and 1, such as 0\.8, got '80'" data.split.share=80
refused 'data\.split: makes the validation data of data\.training; remove data\.validation' data.validation.csv=pets.csv
refused 'data\.split: takes the place of shuffled, begin and share' data.training.shuffled=true
run 2 train folds.yaml data.split.time=sold --folder refused
has err 'folds of a time would train on the future'
run 2 train folds.yaml data.split.fold=4 --folder refused
has err "data\.split\.fold: is one of .folds., which count from 0"
run 1 train pets.yaml data.split.group=hous --folder refused
has err "pets\.csv has no column 'hous'; did you mean 'house'\?"
run 1 train pets.yaml 'data.split={share: 0.8, time: house}' data.training.drop=sold --folder refused
has err 'pets\.csv, line 2: column .house. has "h0"; a split by time expects numbers alone, or dates alone'
run 2 train numbers.yaml data.split.group=house --folder refused
has err 'group and time are columns of a csv by their names'
head -2 pets.csv >two.csv
run 1 train pets.yaml data.training.csv=two.csv data.training.target=weight --folder refused
has err 'a split of 1 examples leaves none for part'

# --- class weights: N / (K n), and rare classes are found ---
awk 'BEGIN { srand(3); print "x,y,kind"
    for (i = 0; i < 2000; i++) { f = rand() < 0.03
        print rand() * 4 + (f ? 1.6 : 0) "," rand() * 4 + (f ? 1.2 : 0) "," (f ? "fraud" : "fine") } }' >fraud.csv
printf 'data:\n  training: {csv: fraud.csv, target: kind}\n  split: 0.75\nepochs: 10\n' >fraud.yaml
run 0 train fraud.yaml --folder plain --quiet
has err "warning: data\.training: class 'fine' has [0-9]+ examples and 'fraud' has [0-9]+: .*'class_weights: balanced'"
run 0 eval plain
plain=$(grep ' fraud ' out | grep -o '[0-9.]* %' | head -1)
run 0 train fraud.yaml --folder balanced --quiet class_weights=balanced
same 'no warning with weights' "$(cat err)" ''
fraud=$(awk -F, '$3 == "fraud"' fraud.csv | wc -l)
part=$(grep -o 'class_weights=([0-9.]*, [0-9.]*)' balanced/config.yaml)
weight=${part##*, }
# 1500 rows in training; of the rare class three quarters, to within one.
same 'weight of the rare class' "$(awk -v w="${weight%)}" -v f="$fraud" 'BEGIN { n = 1500 / (2 * w); d = n - 0.75 * f
    print (d < 1.01 && d > -1.01 && n - int(n + 0.5) < 0.01) ? "good" : w " " n }')" good
run 0 eval balanced
balanced=$(grep ' fraud ' out | grep -o '[0-9.]* %' | head -1)
same 'more of the rare class is found' "$(awk -v a="${plain% %}" -v b="${balanced% %}" 'BEGIN { print (b > a + 20) ? "yes" : a " " b }')" yes
run 2 train fraud.yaml --folder refused class_weights=balance
has err "class_weights: expected balanced, got 'balance'; weights of one's own are an argument of the cost"
run 2 train fraud.yaml --folder refused 'class_weights={fine: 1, fraud: 3}'
has err "class_weights: expected a text, got a map; the text is balanced; weights of one's own are an argument of the cost, in the order of the classes: softmax_cross_entropy\(class_weights=\(1, 2\.5\)\)"
run 1 train balanced/config.yaml --folder refused class_weights=balanced
has err 'softmax_cross_entropy has class_weights already'
run 1 train pets.yaml data.training.target=weight class_weights=balanced --folder refused
has err 'class_weights: expected a network with one softmax_cross_entropy'

# --- warnings ---
awk -F, 'NR == 1 { print $0 ",copy" } NR > 1 { print $0 "," $6 * 3 + 1 }' pets.csv >leak.csv
run 0 train pets.yaml data.training.csv=leak.csv data.training.target=price 'data.training.drop=[house, kind, sold]' \
    data.split.by=random --folder leak --quiet
has err "warning: data\.training: the input 'copy' has a correlation of 1\.0000 with the target: if it is not known"
awk -F, 'NR == 1 { print $0 ",code" } NR > 1 { print $0 "," ($5 == "dog" ? 9 : $5 == "cat" ? 3 : 4) }' pets.csv >code.csv
run 0 train pets.yaml data.training.csv=code.csv --folder code --quiet
has err "warning: data\.training: the input 'code' has a correlation of 1\.0000 with the target"
# Names become an input each, unless somebody says what to do with them.
awk -F, 'NR == 1 { print $0 ",name" } NR > 1 { print $0 ",name" NR % 120 }' pets.csv >named.csv
run 0 train pets.yaml data.training.csv=named.csv --folder named --quiet
has err "warning: data\.training: the column 'name' has 120 different values, .* 'embedding: \{name: 8\}' makes 8 numbers"
run 0 train pets.yaml data.training.csv=named.csv 'data.training.embedding={name: 8}' --folder embedded --quiet
same 'warnings of an embedding' "$(grep -c "different values" err)" 0
# Equal rows by chance, of a column with few digits, are no overlap.
awk 'BEGIN { srand(7); print "x,kind"; for (i = 0; i < 600; i++) printf "%.3f,%s\n", rand(), substr("abc", i % 3 + 1, 1) }' >round.csv
printf 'data: {training: {csv: round.csv, target: kind}, split: 0.8}\nepochs: 1\n' >round.yaml
run 0 train round.yaml --folder round --quiet
same 'equal rows by chance' "$(cat err)" ''
cat >same.yaml <<'YAML'
data:
  training: {csv: pets.csv, target: kind, drop: [house], scale: none}
  validation: {csv: pets.csv}
epochs: 1
YAML
run 0 train same.yaml --folder same --quiet
has err 'warning: data\.validation: 600 of the first 600 examples are in the training data, too'
has err "warning: data\.training: inputs are of very different sizes: 'sold' up to 1\.8.*e\+04, 'age' up to 9"
run 0 train pets.yaml 'network=input(2) + dense(8, relu) + dense(3, softmax) + softmax_cross_entropy' --folder twice --quiet
has err 'warning: network: softmax stands before softmax_cross_entropy, which has one of its own'
run 0 train pets.yaml 'network=input(2) + dense(8, softmax) + dense(3) + softmax_cross_entropy' --folder once --quiet
same 'a softmax elsewhere' "$(cat err)" ''

# --- a part without examples is an error, not a loss that is no number ---
printf 'x,y\n1,2\n2,3\n3,5\n4,7\n5,9\n' >few.csv
echo 'data: {training: {csv: few.csv, target: y}, validation: {csv: few.csv, begin: 0.9, share: 0.05}}' >few.yaml
run 1 train few.yaml --folder never
has err 'data\.validation: there are no examples; where data\.split, begin or share makes this part, give it a larger share, or more data'
finish

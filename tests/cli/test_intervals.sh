#!/bin/bash
# Regressions that know how sure they are (gaussian_nll): intervals in the units of the table that hold what they
# promise, the same in predict, serve and the exported C; and rows of a table that count more than others (weights).
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# A price that follows from the size, with normal noise of which the deviation grows with the size: 200 + 60 size.
make() # ROWS SEED
{
    awk -v rows="$1" -v seed="$2" 'BEGIN {
        srand(seed); pi = atan2(0, -1); print "id,size,town,price"
        for (i = 1; i <= rows; i++) {
            size = 20 * rand()
            normal = sqrt(-2 * log(1 - rand())) * cos(2 * pi * rand())
            printf "%d,%.4f,%s,%.2f\n", i, size, rand() < 0.5 ? "Ulm" : "Bonn", 100000 + 2000 * size + (200 + 60 * size) * 10 * normal
        }
    }'
}
make 3000 5 >houses.csv
make 2000 6 >new.csv
cat >price.yaml <<'YAML'
network: input(3) + dense(32, tanh) + dense(32, tanh) + dense(2) + gaussian_nll
data: {training: {csv: houses.csv, target: price, drop: [id]}, split: 0.8}
optimiser: {type: adam, learning_rate: 0.01, schedule: cosine}
epochs: 40
seed: 1
YAML
run 0 train price.yaml --folder price --quiet

run 0 predict price new.csv
has out '^1[0-9]{5}(\.[0-9])? \(95 %: 1?[0-9]{5}(\.[0-9]+)? to 1[0-9]{5}(\.[0-9]+)?\)$'
cp out printed
run 0 predict price new.csv --output answers.csv --id id,size,price
same 'the header' "$(head -1 answers.csv)" 'id,size,price,prediction,lower,upper'
# 95 % of 2000 have a deviation of 0.5 %; small and large houses are covered alike, so that widths follow the noise.
awk -F, 'NR > 1 { all++; inside = $3 >= $5 && $3 <= $6; good += inside; width = $6 - $5
        if ($2 < 5) { small++; covered += inside; narrow += width } if ($2 > 15) { large++; covers += inside; wide += width } }
    END { print good / all, covered / small, covers / large, wide / large / (narrow / small)
        exit !(good / all > 0.93 && good / all < 0.97 && covered / small > 0.9 && covers / large > 0.9 && wide / large > 2 * narrow / small) }' \
    answers.csv >coverage
verdict '95 % of the prices lie in the intervals, which are wider where there is more noise' $? coverage
paste -d' ' <(tail -n +2 answers.csv | cut -d, -f4-6 | tr ',' ' ') <(tr -d '(:)%' <printed) |
    awk '{ for (i = 1; i <= 3; i++) { other = i == 1 ? $4 : i == 2 ? $6 : $8; d = $i - other; if (d > 1 || d < -1) exit 1 } }'
verdict 'the table says what is printed' $?
run 0 predict price new.csv --json --count 1
has out '^\{"example": 0, "outputs": \[1[0-9.]+, [0-9.]+\], "lower": \[[0-9.]+\], "upper": \[[0-9.]+\]\}$'

# --- how well means are predicted is measured in the units of the table, though there are deviations beside them ---
run 0 eval price new.csv
has out 'mean_absolute_error [0-9.]+, .*r_squared 0\.[5-9]'
awk -F'mean_absolute_error ' '/mean_abs/ { split($2, error, ","); exit !(error[1] > 1000 && error[1] < 12000) }' out
verdict 'the mean absolute error is in the units of the price' $?

# --- serve ---
echo '0123456789abcdef-secret' >token
"$sigma" serve price --token-file token >serve.out 2>serve.err </dev/null &
process=$!
for _ in $(seq 200); do
    grep -q '^Ctrl-C' serve.out && break
    sleep 0.05
done
address=$(sed -nE 's,^serve: (http://[^/]*)/.*,\1,p' serve.out)
read -r size town <<<"$(sed -n 2p new.csv | awk -F, '{ print $2, $3 }')"
curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' -H 'Content-Type: application/json' \
    -d "{\"input\": [{\"size\": $size, \"town\": \"$town\"}]}" "$address/api/predict" >served
kill -INT "$process"
wait "$process"
code 0 $? 'serve ends by a signal'
process=
has served '"lower":\[\[[0-9.]+\]\],"upper":\[\[[0-9.]+\]\]'
(sed -E 's/.*"lower":\[\[([0-9.]+)\]\],"upper":\[\[([0-9.]+)\]\].*/\1,\2/' served; echo; sed -n 2p answers.csv | cut -d, -f5,6) |
    awk -F, 'NF == 2 { lower[++n] = $1; upper[n] = $2 } END { d = lower[1] - lower[2]; e = upper[1] - upper[2]; exit !(n == 2 && d < 1 && d > -1 && e < 1 && e > -1) }'
verdict 'serve gives the same interval' $? served

# --- the exported C gives means and deviations in the units of the table ---
run 0 export --c price.c price
has price.c 'factors\[\] = \{([0-9.]+), \1\};'
has price.c 'offsets\[\] = \{[0-9.]+, 0\.0\};'

# --- rows that count more: twins of each row with another price, of which one counts nothing ---
awk -F, 'NR == 1 { print $0 ",sure"; next } NR <= 601 { print $0 ",2"; print $1 "," $2 "," $3 "," $4 - 90000 ",0" }' houses.csv >twins.csv
cat >twins.yaml <<'YAML'
data: {training: {csv: twins.csv, target: price, drop: [id], weights: sure}, split: 0.8}
optimiser: {type: adam, learning_rate: 0.01}
epochs: 60
seed: 1
YAML
run 0 train twins.yaml --folder twins
has out '^network: input\(3\) \+ .* \+ mean_squared\(weights=weights\)$'
run 0 predict twins new.csv --output answers.csv --id price
awk -F, 'NR > 1 { d = $2 - $1; sum += d } END { mean = sum / (NR - 1); print mean; exit !(mean > -6000 && mean < 6000) }' answers.csv >mean
verdict 'rows of weight 0 are not learnt from' $? mean
run 0 eval twins new.csv
has out '^new\.csv: loss '
run 0 train twins.yaml --folder own --quiet epochs=1 'network=input(3) + dense(1) + huber(delta=2)'
has own/config.yaml 'huber\(delta=2, weights=weights\)'
run 0 train own --resume --quiet epochs=2
run 1 train twins.yaml --folder never 'network=h = input(3); h + dense(1) + huber; h + dense(1) + mean_squared'
has err 'weights: the network does not have one cost; give weights=weights to those that the weights are for'
sed 's/,0$/,-1/' twins.csv >negative.csv
run 1 train twins.yaml --folder never data.training.csv=negative.csv
has err "negative\.csv: (line 3, column 'sure': \"-1\" is below 0, and a weight is 0 or more|weights: column)"
run 0 train twins.yaml --folder workers --quiet epochs=2 'operator={type: gradients, workers: 2}'
finish

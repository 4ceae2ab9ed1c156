#!/bin/bash
# `sigma data FILE.csv`: what it prints of a table, and what it refuses.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# 40 rows: in 16 parts of a histogram are 2 or 3 values.
{
    echo 'id,species,age,price,born'
    for i in $(seq 40); do
        species=cat
        [ $((i % 4)) = 0 ] && species=dog
        price=$i
        [ "$i" = 9 ] && price=unknown
        echo "$i,$species,$([ "$i" = 3 ] || echo "$i.5"),$price,2026-01-$((10 + i / 2))"
    done
} >pets.csv

export LC_ALL=C.UTF-8
run 0 data pets.csv
has out "^pets\.csv: 40 rows, 5 columns, separated by ','$"
has out '^    0  id       number    -              █▆█▆█▆█▆▆█▆█▆█▆█  1 to 40, mean 20\.5, standard deviation 11\.54$'
has out '^    1  species  category  -              █▃                2 different: cat 75 %, dog 25 %$'
has out '^    2  age      number    1 \(2\.5 %\)      ▆▆█▆█▆█▆▆█▆█▆█▆█  1\.5 to 40\.5, mean 21\.45'
has out '^    3  price    text      -                                40 different: 1 2\.5 %, '
has out '^    4  born     date      -              ▆▄▄▄█▄▄▄█▄▄▄█▄▄▆  2026-01-10 to 2026-01-30$'
has out "^  price: line 10 has 'unknown' where the others are numbers or dates: correct it, leave it empty, or name it by --missing$"
run 0 data pets.csv --missing unknown
has out '^    3  price    number    1 \(2\.5 %\)'
LC_ALL=C run 0 data pets.csv
has out '^    0  id       number    -              @\*@\*@\*@\*\*@\*@\*@\*@  1 to 40'

gzip pets.csv
run 0 data pets.csv.gz
has out "^pets\.csv\.gz: 40 rows, 5 columns"

printf 'gr\xc3\xb6\xc3\x9fe;ort\n1,5;a\n2,5;a\n' >de.csv
run 0 data de.csv
has out "^  größe: '1,5' looks like a number with a decimal comma: try --decimal ,$"
has out '^  ort: all rows have the same value, from which nothing can be learnt$'
# also where whole numbers are more frequent, and where there are too many different ones to be kept
awk 'BEGIN { print "fee;price"; for (i = 0; i < 1500; i++) printf "%s;%d,5\n", i % 3 ? "0" : "9,5", i }' >many.csv
run 0 data many.csv
has out "^  fee: '9,5' looks like a number with a decimal comma: try --decimal ,$"
has out "^  price: '0,5' looks like a number with a decimal comma: try --decimal ,$"
run 0 data de.csv --decimal , --separator ';'
has out '^    0  größe   number    -              █              █  1\.5 to 2\.5, mean 2'
printf '2,setosa\n1,2\n' >sums.csv
run 0 data sums.csv
has out 'no header: columns are called by their numbers$'
run 0 data sums.csv --header yes
has out '^    1  setosa  number'
printf 'a\tb\n1,2\t3\n4\n' >ragged.tsv
run 1 data ragged.tsv
has err 'ragged\.tsv: line 3: 2 columns were expected as in line 1, 1 came'
run 0 data ragged.tsv --skip-ragged
has out '^ragged\.tsv: 1 row, 2 columns, separated by a tab$'
printf 'x,y,z\n1,,3\n2,NA,\n3,4,5\n4,5,\n' >lacking.csv
run 0 data lacking.csv
has out '^    1  y       number    2 \(50 %\) '
run 0 data lacking.csv --skip-missing y
has out '^lacking\.csv: 2 rows, 3 columns'
has out '^    2  z       number    1 \(50 %\) '
has out '^  2 rows without a value are left out$'
run 0 data lacking.csv --skip-missing y --skip-missing z
has out '^  3 rows without a value are left out$'
run 2 data lacking.csv --skip-missing why
has err "skip_missing: .*lacking\.csv has no column 'why'"
printf 'a\n\033]0;x\007\n' >steer.csv
run 0 data steer.csv
same 'escape characters in the output' "$(grep -c $'\033' out)" 0

run 2 data de.csv --decimal x
has err "--decimal expects '\.' or ',', got 'x'"
run 2 data de.csv --separator ab
has err "--separator expects one character or 'tab', got 'ab'"
run 2 data de.csv --header maybe
has err '--header expects yes or no, got .maybe.'
run 2 data iris --missing x
has err '--header, --skip-ragged and --skip-missing are for tables, \.csv, \.tsv or \.jsonl; iris is none'
run 2 data nowhere.csv
has err 'nowhere\.csv'
finish

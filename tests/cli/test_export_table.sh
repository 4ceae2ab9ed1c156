#!/bin/bash
# A network that was trained on a table, in each form in which it is used: sigma predict, sigma serve, a program with
# the exported C, the exported ONNX model (in ONNX Runtime, where that is installed), and a program that loads the
# checkpoint predict the same for 200 raw rows.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# Numbers with missing values, categories of texts and of numbers, dates, two targets in large and in small units.
awk 'BEGIN {
    srand(11); split("Ulm Bonn Kiel", towns, " "); split("flat house shed", kinds, " ")
    print "id,area,rooms,town,zip,built,class,price,rent,size"
    for (i = 1; i <= 600; i++) {
        area = 20 + int(rand() * 18000) / 100; rooms = 1 + int(rand() * 8)
        printf "%d,%s,%d,%s,%d,%s,%s,%.2f,%.3f,%s\n", i, i % 17 == 0 ? "" : area, rooms,
               i % 13 == 0 ? "NA" : towns[1 + int(rand() * 3)], 10000 + 5 * int(rand() * 4),
               i % 19 == 0 ? "" : sprintf("%d-%02d-%02d", 1950 + int(rand() * 70), 1 + int(rand() * 12), 1 + int(rand() * 28)),
               kinds[1 + int(rand() * 3)], 100000 + 3000 * area + 20000 * rooms, 0.01 * area + 0.1 * rooms,
               (area > 140 ? "large" : area > 70 ? "middle" : "small")
    }
}' >all.csv
(head -1 all.csv; sed -n 2,401p all.csv) >houses.csv
(head -1 all.csv; sed -n 402,601p all.csv) >new.csv

cat >price.yaml <<'YAML'
data:
  training: {csv: houses.csv, target: [price, rent], drop: [id, size], categorical: [zip], embedding: town, impute: flag,
             dates: {built: parts}}
epochs: 5
seed: 1
YAML
cat >size.yaml <<'YAML'
data: {training: {csv: houses.csv, target: size, drop: [id, price, rent], categorical: [zip], impute: most_frequent}}
epochs: 5
seed: 1
YAML
run 0 train price.yaml --folder price --quiet
run 0 train size.yaml --folder size --quiet

# numbers FILE: what stands in it, a number a line.
numbers()
{
    grep -oE -- '-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?' "$1"
}

# equal NAME FILE FILE COUNT: so many numbers, which differ by 1e-6 at most; relatively to those above 1. Networks
# compute in float32, whose digits end there: a price of 500,000 has 7 of them.
equal()
{
    paste -d' ' "$2" "$3" | awk -v wanted="$4" '
        { difference = $1 - $2; size = $2 < 0 ? -$2 : $2; limit = 1e-6 * (size > 1 ? size : 1) }
        NF != 2 || difference > limit || difference < -limit { print "line " NR ": " $0; bad = 1 }
        END { exit bad || NR != wanted }' >unequal
    verdict "$1" $? unequal
}

# predicted RUN: the outputs that sigma predict prints for the rows, a number a line.
predicted()
{
    run 0 predict "$1" new.csv --json
    sed 's/.*"outputs": //' out >lists
    numbers lists >"$1.predicted"
}
predicted price
predicted size

# --- sigma serve ---
ask() # RUN
{
    serve "$1"
    # numbers as numbers, texts as texts, null where there is no value
    awk -F, '
        function value(text) { return text == "" ? "null" : text + 0 == text ? text : "\"" text "\"" }
        BEGIN { printf "{\"input\": [" }
        NR == 1 { split($0, name, ","); next }
        { printf "%s", (NR > 2 ? ", {" : "{")
          for (i = 2; i <= 7; i++) printf "%s\"%s\": %s", (i > 2 ? ", " : ""), name[i], value($i)
          printf "}" }
        END { printf "]}" }' new.csv >question
    curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' -H 'Content-Type: application/json' \
        --data-binary @question "$address/api/predict" | sed 's/,"class":.*//' >served.json
    numbers served.json >"$1.served"
    end_serve
}
ask price
equal 'serve predicts the same numbers' price.served price.predicted 400
ask size
equal 'serve predicts the same classes' size.served size.predicted 600

# --- a category that no row had: refused, or what an empty cell is ---
sed '2s/,\(Ulm\|Bonn\|Kiel\|NA\),/,Rome,/' new.csv >rome.csv
sed '2s/,\(Ulm\|Bonn\|Kiel\|NA\),/,,/' new.csv >empty.csv
for command in predict eval; do
    run 1 $command price rome.csv
    has err 'rome.csv: line 2, column .town.: "Rome" is none of the 3 categories .*--unknown=ignore'
    run 0 $command price empty.csv --json
    sed 's/empty/rome/' out >expected
    run 0 $command price rome.csv --json --unknown=ignore
    same "$command takes Rome for an empty cell" "$(cat out)" "$(cat expected)"
    run 2 $command price rome.csv --unknown=maybe
    has err "--unknown: expected ignore or refuse, got 'maybe'"
done
run 2 eval price --unknown=ignore
has err '--unknown is for a table that is named, as in sigma eval price FILE.csv'
ask_town() # TOWN, in JSON
{
    curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' -H 'Content-Type: application/json' "$address/api/predict" \
        -d '{"input": [{"area": 80, "rooms": 3, "town": '"$1"', "zip": 10000, "built": "1980-01-01", "class": "flat"}]}' >out
}
serve price
ask_town '"Rome"'
has out 'row 1, column .town.: ..Rome.. is none of the 3 categories'
end_serve
serve price --unknown=ignore
ask_town null
cp out expected
ask_town '"Rome"'
same 'serve takes Rome for null' "$(cat out)" "$(cat expected)"
has out '"output"'
end_serve

# --- C ---
run 0 export --c price.c price
run 0 export --c size.c size
has price.c '^/\* What the network predicts for PRICE_ROWS rows: price, rent in the units of the table'
# program RUN OUTPUTS: reads rows of the table, splits them at commas, and prints the outputs.
program()
{
    cat >"$1-main.c" <<END
#define ${1^^}_DECLARATIONS
#include "$1.c"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    char line[1000], *cells[10];
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *rest = line;
        for (int i = 0; i < 10; i++) {
            cells[i] = rest;
            rest += strcspn(rest, ",\\n");
            *rest++ = '\\0';
        }
        $1_row row = {.area = *cells[1] != '\\0' ? atof(cells[1]) : (double)NAN, .rooms = atof(cells[2]),
                      .town = cells[3], .zip = cells[4], .built = cells[5], .column_class = cells[6]};
        double outputs[${1^^}_PREDICT_OUTPUTS];
        const char *problem;
        if ($1_predict_rows(&row, outputs, &problem) != 0) {
            fprintf(stderr, "%s\\n", problem);
            return 1;
        }
        for (int i = 0; i < ${1^^}_PREDICT_OUTPUTS; i++)
            printf("%.17g\\n", outputs[i]);
    }
    return 0;
}
END
    cc -std=c99 -pedantic -Wall -Wextra -Werror -O1 "$1.c" "$1-main.c" -o "$1-program" 2>err
    code 0 $? "a program with $1.c compiles, and links without the library of mathematics"
    tail -n +2 new.csv | "./$1-program" >"$1.compiled" 2>err
    code 0 $? "the program with $1.c predicts"
}
program price
equal 'the exported C predicts the same numbers' price.compiled price.predicted 400
program size
equal 'the exported C predicts the same classes' size.compiled size.predicted 600
echo '1,80,3,Rome,10000,1980-01-01,flat,,,' | ./price-program >out 2>err
code 1 $? 'a town that no row had'
has err "^column 'town': the text is none of the 3 categories that the network knows \(Bonn, Kiel, \.\.\.\)"
cc -x c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -DSIZE_DECLARATIONS size.c 2>err
code 0 $? 'C++ reads the declarations, though a column is called class'

# Names of columns that are taken in C, in C++ or by gcc's own macros, or that meet each other, and categories that quote.
cat >odd.csv <<'END'
linux,not_eq,typeof,NULL,zip,zip_numbers,"a ""b""",a_b,"new
line",*/ evil,price
END
for i in $(seq 40); do
    printf '%d,%d,%d,%d,%d,%d%s,%d,%d,%d,%s,%d\n' "$i" $((i % 7)) $((i % 5)) $((i % 3)) $((10000 + i % 4)) $((i % 3)) \
        "$([ $((i % 2)) = 0 ] && echo a)" $((i % 9)) $((i % 8)) $((i % 6)) "\"$([ $((i % 2)) = 0 ] && echo '*/ ""q""' || echo '\??/')\"" $((i * 3))
done >>odd.csv
echo 'data: {training: {csv: odd.csv, target: price, categorical: [zip]}}' >odd.yaml
run 0 train odd.yaml --folder odd --quiet epochs=1
run 0 export --c odd.c odd
for standard in c99 gnu17; do
    cc -std=$standard -Wall -Wextra -Werror -c odd.c -o odd.o 2>err
    code 0 $? "odd names compile as $standard"
done
cc -x c++ -std=gnu++20 -Wall -Wextra -Werror -fsyntax-only -DODD_DECLARATIONS odd.c 2>err
code 0 $? 'odd names are names in C++, too'

# A decimal comma: 5,5 in a row is the category 5.5, however it is written.
(echo 'zip;price'; for i in $(seq 20); do echo "5,5;$i,25"; echo "7;$((2 * i)),5"; done) >comma.csv
echo 'data: {training: {csv: comma.csv, target: price, categorical: [zip], decimal: ","}}' >comma.yaml
run 0 train comma.yaml --folder comma --quiet epochs=1
run 0 export --c comma.c comma
cat >comma-main.c <<'END'
#include "comma.c"
int main(void)
{
    const comma_row rows[] = {{"5,5"}, {"5.5"}, {"05,50"}, {"7"}, {"5,6"}};
    double outputs[5] = {0};
    const char *problem = 0;
    for (int i = 0; i < 4; i++)
        if (comma_predict_rows(&rows[i], &outputs[i], &problem) != 0)
            return i + 1;
    return outputs[0] != outputs[1] || outputs[0] != outputs[2] || outputs[0] == outputs[3] ||
           comma_predict_rows(&rows[4], &outputs[4], &problem) != 1;
}
END
cc -std=c99 -Wall -Wextra -Werror comma-main.c -o comma-main 2>err && ./comma-main
verdict 'numbers with a comma are categories in C' $?

# --- a program that loads the run ---
cat >load.c <<'END'
#include <math.h>
#include <sigma/sigma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"area", "rooms", "town", "zip", "built", "class"};

int main(int argc, char **argv)
{
    char line[1000];
    sgm_env *env = sgm_env_create("loaded");
    sgm_model *model = argc == 2 ? sgm_model_load(env, argv[1]) : NULL;
    while (model != NULL && fgets(line, sizeof line, stdin) != NULL) {
        char *rest = line, *text[7];
        for (int i = 0; i < 7; i++) {
            text[i] = rest;
            rest += strcspn(rest, ",\n");
            *rest++ = '\0';
        }
        const sgm_cell row[] = {sgm_cell_of_text(text[1]), sgm_cell_of_number(atof(text[2])),
                                sgm_cell_of_text(text[3]), sgm_cell_of_number(atof(text[4])),
                                sgm_cell_of_text(text[5]), sgm_cell_of_text(text[6])};
        sgm_tensor *outputs = sgm_model_predict_rows(model, names, 6, row, 1);
        if (outputs == NULL)
            break;
        const double *numbers = sgm_tensor_const_data(outputs);
        for (long i = 0; i < sgm_tensor_shape(outputs)->dims[1]; i++)
            printf("%.17g\n", numbers[i]);
        sgm_tensor_free(outputs);
    }
    if (sgm_last_status() != SGM_OK)
        fprintf(stderr, "%s\n", sgm_last_error());
    sgm_env_free(env);
    return sgm_last_status() != SGM_OK;
}
END
if compile_with_library load.c load; then
    for each in price size; do
        tail -n +2 new.csv | ./load "$each" >"$each.loaded" 2>err
        code 0 $? "a program loads $each"
    done
    equal 'a program that loads the run predicts the same numbers' price.loaded price.predicted 400
    equal 'a program that loads the run predicts the same classes' size.loaded size.predicted 600
fi

# --- ONNX ---
cat >predict.py <<'END'
import csv, datetime, json, sys
import numpy, onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1])
pipeline = json.loads(session.get_modelmeta().custom_metadata_map["sigma.pipeline"])
columns = {column["name"]: column for column in pipeline["columns"]}
rows = list(csv.DictReader(open(sys.argv[2])))

def value(column, cell):
    if column["kind"] == "category":
        return column["categories"].index(cell) if cell not in ("", "NA") else -1
    if cell in ("", "NA"):
        return numpy.nan
    if column["kind"] == "date":
        return (datetime.date.fromisoformat(cell) - datetime.date(1970, 1, 1)).days
    return float(cell)

inputs = {}
for each in session.get_inputs():
    dtype = numpy.int64 if each.type == "tensor(int64)" else numpy.float64
    inputs[each.name] = numpy.array([[value(columns[each.name], row[each.name])] for row in rows], dtype)
for number in session.run(None, inputs)[0].ravel():
    print("%.17g" % number)
END
skipped=0
skip()
{
    skipped=$((skipped + 1))
    echo "test_export_table.sh: skipped: $1"
}
if ! "$sigma" export --onnx price.onnx price 2>err; then
    has err 'built without ONNX'
    skip "ONNX models: built without ONNX"
elif ! python3 -c 'import onnxruntime' 2>/dev/null; then
    skip "ONNX models in ONNX Runtime: Python has no onnxruntime (tests/training/test_export_table.c runs them here)"
else
    run 0 export --onnx size.onnx size
    for each in price size; do
        python3 predict.py "$each.onnx" new.csv >"$each.onnxruntime" 2>err
        code 0 $? "ONNX Runtime runs $each.onnx"
    done
    equal 'ONNX Runtime predicts the same numbers' price.onnxruntime price.predicted 400
    equal 'ONNX Runtime predicts the same classes' size.onnxruntime size.predicted 600
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

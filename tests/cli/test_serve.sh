#!/bin/bash
# sigma serve: predictions of a trained network, by the requests that a program sends.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

run 0 serve --help
has out '^Usage: sigma serve CHECKPOINT\|FOLDER'
run 2 serve
has err 'expected one checkpoint or folder, got 0'
run 2 serve run --port 70000
has err '--port: expected a whole number from 1 to 65535, got .70000.'
run 1 serve missing
has err '^sigma serve: '
run 1 serve run --token-file missing
has err 'missing'

run 0 train "$examples/iris.yaml" epochs=3 --quiet --folder run
serve run --log-level debug
has serve.out '^serve: http://127\.0\.0\.1:[0-9]+/\?token=0123456789abcdef-secret$'

# The line for curl that was printed: as it stands, and with another example in it.
line=$(grep '^curl' serve.out)
eval "$line -s" >out 2>err
has out '"class": ?\[[0-2]\]'
eval "${line/0,0,0,0/0.1, 0.2, 0.3, 0.4} -s" >out 2>err
has out '"output": ?\[\[[0-9.e-]+, ?[0-9.e-]+, ?[0-9.e-]+\]\]'
has out '"class": ?\[[0-2]\]'
has out '"label": ?\["(setosa|versicolor|virginica)"\]'
class=$(sed -nE 's/.*"class": ?\[([0-2])\].*/\1/p' out)
echo '0.1,0.2,0.3,0.4' >table.csv
run 0 predict run table.csv
has out "^$class "
eval "${line/0,0,0,0/0.1} -s" >out 2>err
has out 'expected the shape \(4,\)'
eval "${line/0,0,0,0/0,0,1e39,0} -s" >out 2>err
has out "example 0 of 'input', number 2 \(from 0\): 1e\+39 is too large for float32"
has serve.err 'debug serve: predicted 1 example in'
has serve.err 'debug serve: refused: example 0'
[ "$(curl -s -o /dev/null -w '%{http_code}' "$address/api/model")" = 401 ]
verdict "without the token there is no prediction" $?

end_serve
finish

# What the scripts of this folder share: they source it, and end with `finish`. All happens in a temporary folder; a
# process whose number is in `process` is ended with the script.
# shellcheck shell=bash
set -u
passed=0 failed=0
folder=$(mktemp -d) || exit 1
process=
trap '[ -z "$process" ] || kill -KILL "$process" 2>/dev/null; rm -rf "$folder"' EXIT
sigma=$SIGMA_BUILD_DIR/sigma
# shellcheck disable=SC2034 # for those who source it
examples=$SIGMA_SOURCE_DIR/examples
export SIGMA_DATA_DIR=$SIGMA_SOURCE_DIR/data SIGMA_CACHE_DIR=${SIGMA_CACHE_DIR:-$folder/.cache}
cd "$folder" || exit 1

# verdict NAME STATUS [FILES...]: one test; the files (if none are named: out err) are shown when it fails.
verdict()
{
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    printf '%s: FAILED: %s\n' "${0##*/}" "$1"
    shift 2
    [ $# -gt 0 ] || set -- out err
    cat "$@" 2>/dev/null
}

# code CODE STATUS NAME: an exit code must be CODE.
code()
{
    [ "$2" -eq "$1" ]
    verdict "$3: exit code $2, expected $1" $?
}

# compile_with_library SOURCE PROGRAM: with the shared library of this build and its sanitizers. 1: there is no such library.
compile_with_library()
{
    local library compiler sanitizers cache=$SIGMA_BUILD_DIR/CMakeCache.txt
    library=$(find "$SIGMA_BUILD_DIR" -maxdepth 2 -name 'libsigma.so' | head -1)
    [ -n "$library" ] || return 1
    compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$cache")
    sanitizers=$(sed -n 's/^SIGMA_SANITIZE:STRING=\(..*\)/-fsanitize=\1/p' "$cache")
    # shellcheck disable=SC2086 # one word or none
    "${compiler:-cc}" -std=c11 -Wall -Wextra -Werror $sanitizers -I"$SIGMA_SOURCE_DIR/include" "$1" -o "$2" "$library" \
        -Wl,-rpath,"${library%/*}" 2>err
    code 0 $? "$2 is compiled"
}

# run CODE ARGUMENTS...: the command's exit code must be CODE.
run()
{
    local wanted=$1
    shift
    "$sigma" "$@" >out 2>err </dev/null
    code "$wanted" $? "sigma $*"
}

# has FILE PATTERN: a line of FILE (out, err, ...) matches.
has()
{
    grep -qE -- "$2" "$1"
    verdict "nothing in $1 matches \"$2\"" $? "$1"
}

# wait_for PATTERN [FOLDER]: the status of the run in FOLDER (run) comes to have such a line.
wait_for()
{
    for _ in $(seq 200); do
        "$sigma" ctl "${2:-run}" status >out 2>err
        grep -qE -- "$1" out && break
        sleep 0.05
    done
    has out "$1"
}

# serve RUN [OPTIONS]: the run answers questions at $address, with the token in `token`, until end_serve.
serve()
{
    echo '0123456789abcdef-secret' >token
    "$sigma" serve "$@" --token-file token >serve.out 2>serve.err </dev/null &
    process=$!
    for _ in $(seq 1200); do
        grep -q '^Ctrl-C' serve.out && break
        sleep 0.05
    done
    # shellcheck disable=SC2034 # for those who source this
    address=$(sed -nE 's,^serve: (http://[^/]*)/.*,\1,p' serve.out)
}

end_serve()
{
    kill -INT "$process"
    wait "$process"
    code 0 $? 'serve ends by a signal'
    process=
}

# same NAME VALUE EXPECTED
same()
{
    [ "$2" = "$3" ]
    verdict "$1: got \"$2\", expected \"$3\"" $?
}

finish()
{
    echo "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ]
}

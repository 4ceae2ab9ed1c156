#!/bin/bash
# What a computer with a GPU needs to test and measure the handler 'cuda', as one folder and one archive.
set -u

here=$(cd "$(dirname "$0")/.." && pwd)

usage()
{
    cat <<'END'
usage: bench/pack.sh [FOLDER]

Builds the command, the tests of devices and the benchmark's programs, and puts them into FOLDER (build/pack) with the
libraries that they need, the scripts, the data and bench/results of nobody; then makes FOLDER.tar.xz of it. For a computer
with a GPU that has neither our sources nor Debian's packages, but a C library at least as new as this one's. There:

  tar xf pack.tar.xz && pack/run test && pack/run bench

run test      tests of devices on the GPU, and compute-sanitizer if it is there (tests/cuda.sh)
run bench     training steps, beside PyTorch's if PYTHON (python3) has it (bench/device.sh; its WORKLOADS and so on hold)
run sigma     the command
END
}

case "${1:-}" in
-h | --help)
    usage
    exit 0
    ;;
esac
folder=${1:-$here/build/pack}
build=$here/build/for-pack
mapfile -t tests < <("$here/tests/cuda.sh" --list)
targets=(sigma_cli sigma_plugin_cuda bench_step)
for test in "${tests[@]}"; do
    target=${test/\/test_/_}
    targets+=("test_$target")
done

# Libraries are looked for beside the programs, those that libraries need, too.
cmake --preset release -B "$build" -DCMAKE_BUILD_RPATH="\$ORIGIN/lib;\$ORIGIN/../lib;\$ORIGIN/../../lib" \
    -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags >/dev/null &&
    cmake --build "$build" --target "${targets[@]}" >/dev/null || exit 1
rm -rf "$folder" "$folder.tar.xz"
mkdir -p "$folder"/{lib,plugins,bench/results,tests} || exit 1
cp "$build/sigma" "$folder/" && cp "$build"/plugins/libsigma-cuda.so "$folder/plugins/" && cp "$build/bench/step" "$folder/bench/" || exit 1
for test in "${tests[@]}"; do
    mkdir -p "$folder/tests/${test%/*}"
    cp "$build/tests/$test" "$here/tests/$test.c" "$folder/tests/${test%/*}/" || exit 1
done
cp "$here"/bench/{device.sh,workloads.sh,bench_torch.py,device_torch.py} "$folder/bench/"
cp "$here"/tests/{run.sh,cuda.sh} "$folder/tests/"
cp -r "$here/data" "$folder/" || exit 1
git -C "$here" describe --always --dirty >"$folder/REVISION" 2>/dev/null

# All but what belongs to the C library.
find "$folder" -type f -perm -u+x ! -name '*.sh' ! -name '*.py' -exec ldd {} \; 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so[^/]*$' | while read -r library; do
    cp -L "$library" "$folder/lib/" || exit 1
done
find "$folder" -type f \( -name '*.so*' -o -perm -u+x \) ! -name '*.sh' ! -name '*.py' -exec strip {} \; 2>/dev/null

cat >"$folder/run" <<'END'
#!/bin/bash
# run test|bench|sigma ...; see bench/pack.sh of the project
pack=$(cd "$(dirname "$0")" && pwd)
export SIGMA_PLUGIN_PATH=$pack/plugins SIGMA_DATA_DIR=${SIGMA_DATA_DIR:-$pack/data}
word=${1:-}
[ $# -gt 0 ] && shift
case $word in
test) exec "$pack/tests/cuda.sh" "$pack" "$@" ;;
bench) exec "$pack/bench/device.sh" "${1:-cuda}" "$pack" ;;
sigma) exec "$pack/sigma" "$@" ;;
*)
    echo "usage: run test|bench|sigma ..." >&2
    exit 2
    ;;
esac
END
chmod +x "$folder/run"
tar -C "$(dirname "$folder")" -cJf "$folder.tar.xz" "$(basename "$folder")" || exit 1
du -sh "$folder" "$folder.tar.xz"

#!/usr/bin/env bash
# Every example that is a test of itself runs and succeeds.
set -u
passed=0 failed=0
for name in composed_op native_op custom_layer ctc; do
    if output=$(cd "$SIGMA_SOURCE_DIR" && "$SIGMA_BUILD_DIR/examples/$name" 2>&1); then
        passed=$((passed + 1))
    else
        echo "FAILED: $name: $output"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]

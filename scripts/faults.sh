#!/usr/bin/env bash
# Plants the faults of tests/faults one at a time in a copy of the tree: each must be found by the command that LIST
# names for it, within a minute, and that command must pass without it.
#
#   faults.sh              all of them
#   faults.sh rotating     two, others from day to day; FAULTS_DAY (of the year, from `date`) chooses
#   faults.sh NAME...      those whose names contain NAME
set -uo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh cc patch || exit 1
work="${CARGO_TARGET_DIR:-$PWD/target}/faults"
tree="$work/tree"
mkdir -p "$tree"
source scripts/gate.sh

list() { sed '/^#/d; /^$/d; s/ *| */|/g' tests/faults/LIST; }

# Makes the copy what the working tree is, and leaves alone what is so already: cargo looks at times.
sync_tree() {
    local file
    git ls-files -co --exclude-standard -- Cargo.toml Cargo.lock cache-core ffi kernels tests examples xtask |
        while read -r file; do
            [ -f "$file" ] || continue
            cmp -s "$file" "$tree/$file" || install -D -m 644 "$file" "$tree/$file"
        done
}
build() {
    (cd "$tree" && CARGO_TARGET_DIR="$work/build" cargo build -q --profile faults -p kvfolio-tests \
        --bin kvf-replay --bin kvf-soak)
}
# try COMMAND: runs it in the copy, for a minute at most; what it printed is in $work/printed.
try() { (cd "$tree" && PATH="$work/build/faults:$PATH" timeout 60 $1) >"$work/printed" 2>&1; }
passes() { try "$1" || { tail -n 5 "$work/printed"; return 1; }; }

# found NAME COMMAND TEXT: plants one fault. Looks at the text too: a command may fail for another reason.
found() {
    sync_tree || return
    patch -d "$tree" -p1 -F3 --no-backup-if-mismatch <"tests/faults/$1.patch" || return
    build || { echo "does not build"; return 1; }
    local start=$SECONDS status=0
    try "$2" || status=$?
    took=$((SECONDS - start))
    if [ $status -eq 0 ] || [ $status -eq 124 ]; then
        echo "not found by: $2 (status $status)"
        return 1
    fi
    grep -qE "$3" "$work/printed" || { echo "does not print: $3"; cat "$work/printed"; return 1; }
}

mapfile -t names < <(list | cut -d '|' -f 1)
if [ "${1:-}" = rotating ]; then
    day=${FAULTS_DAY:-$(date +%j)}
    first=$((10#$day * 2 % ${#names[@]}))
    chosen=("${names[first]}" "${names[(first + 1) % ${#names[@]}]}")
elif [ $# -gt 0 ]; then
    chosen=($(for name in "$@"; do printf '%s\n' "${names[@]}" | grep -F -- "$name" || echo "$name"; done))
else
    chosen=("${names[@]}")
fi

gate "each patch is listed, and each listed one is there" \
    same <(printf '%s\n' "${names[@]}") <(cd tests/faults && ls -- *.patch | sed 's/\.patch$//')
gate "the copy builds" eval "sync_tree && build" || { summary; exit 1; }
while read -r command; do
    gate "without a fault passes: $command" passes "$command"
done < <(list | grep -E "^($(IFS='|'; echo "${chosen[*]}"))\|" | cut -d '|' -f 2 | sort -u)
for name in "${chosen[@]}"; do
    IFS='|' read -r _ command text < <(list | grep "^$name|")
    took=0
    gate "$name: $command" found "$name" "$command" "$text" &&
        echo "      $took s: $(grep -m 1 -E "$text" "$work/printed" | cut -c 1-140)"
done
summary

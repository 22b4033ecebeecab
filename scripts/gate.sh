# Counted checks; other scripts source this. One line for each, then "N passed, N failed, N skipped".
# `work` names the folder for logs.
passed=0 failed=0 skipped=0

# gate NAME COMMAND...: runs a command quietly; shows its output only if it fails.
gate() {
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok    $name"
    else
        failed=$((failed + 1))
        echo "FAIL  $name"
        tail -n 25 "$work/log" | sed 's/^/      /'
        return 1
    fi
}

summary() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}

# fails COMMAND...: succeeds if the command fails.
fails() { ! "$@"; }

# empty COMMAND...: what it prints is what is wrong.
empty() {
    local found
    found=$("$@") || return 1
    [ -z "$found" ] || { echo "$found"; return 1; }
}

# same FILE FILE: both list the same lines.
same() { diff <(sort -u "$1") <(sort -u "$2"); }

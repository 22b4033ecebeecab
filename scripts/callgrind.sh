# Instructions of single functions; other scripts source this, in the root of the repository. `work` names the folder for
# what valgrind writes.

# instructions PATTERN COMMAND...: for each function of a program whose path matches the pattern, its name and the
# instructions that it and what it calls took, all calls together.
instructions() {
    local pattern=$1
    shift
    valgrind --tool=callgrind --callgrind-out-file="$work/out" --collect-atstart=no --toggle-collect="$pattern" \
        "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
    local path=${pattern//\*/[a-z_]+}
    # A function has a line for each file that was inlined into it; the first one has the most.
    callgrind_annotate --inclusive=yes --threshold=100 "$work/out" 2>/dev/null |
        sed -nE "s/^ *([0-9,]+) [^:]*:($path)( \[.*)?\$/\2 \1/p" | tr -d , |
        awk '{ sub(/.*::/, "", $1) } $2 > most[$1] { most[$1] = $2 } END { for (name in most) print name, most[name] }' |
        sort
}

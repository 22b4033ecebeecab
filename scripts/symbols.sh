# What is in an archive of ours; other scripts source this. `work` names the folder for its objects.

panics() { nm "$1" 2>/dev/null | awk '/panicking|slice_index_fail|unwrap_failed|expect_failed/ { print $NF }'; }
# The one object in an archive that is not the compiler's runtime.
own_object() {
    local object
    object=$(ar t "$1" | grep '^kvfolio_ffi') && ar p "$1" "$object" >"$work/own.o"
}
defines() { own_object "$1" && nm -g --defined-only "$work/own.o" | awk '{ print $3 }' | sort; }
# What it takes from elsewhere, but for the functions that every C compiler asks for by itself.
imports() {
    own_object "$1" || return
    nm -u "$work/own.o" | awk '$2 !~ /^(memcpy|memmove|memset|memcmp|bcmp)$/ && $2 !~ /^_GLOBAL_OFFSET_TABLE_$/ { print $2 }'
}
# Of these, arithmetic on floats.
floats() {
    imports "$1" | grep -E '^__aeabi_(f|d|i2f|i2d|ui2|l2|ul2|h2)|^__(add|sub|mul|div|neg|fix|float|extend|trunc|eq|ne|lt|le|gt|ge|unord)[a-z]*[sdt]f' || true
}
# Of these, what is neither memory nor integer arithmetic.
others() { imports "$1" | grep -vE '^__aeabi_(mem|u?ldivmod|u?idiv|lmul|llsl|llsr|lasr|ulcmp|lcmp)|^__(u?div|u?mod|mul|ashl|lshr|ashr)di3$' || true; }

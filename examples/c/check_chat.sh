#!/bin/sh
# Checks kvf-chat from outside, with the random model: command lines that are wrong, and that texts do not depend on
# pages, drafts, chunks or room.
#
#     check_chat.sh PROGRAM
set -u

chat=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
failures=0

# wrong WORD ARGUMENT...: the program ends with 2, and says WORD on stderr.
wrong() {
    word=$1
    shift
    "$chat" "$@" </dev/null >"$work/out" 2>"$work/err"
    status=$?
    if [ "$status" -ne 2 ] || ! grep -q -e "$word" "$work/err"; then
        echo "chat: status $status for: $*"
        cat "$work/err"
        failures=$((failures + 1))
    fi
}

# texts FILE ARGUMENT...: what five prompts give, in an order that does not depend on when a line was complete.
texts() {
    file=$1
    shift
    "$chat" --model random --raw --quiet --max-new 60 --prompts "$work/prompts" "$@" >"$work/out" 2>"$work/err"
    status=$?
    LC_ALL=C sort -s -k1,1 "$work/out" >"$work/$file"
    if [ "$status" -ne 0 ] || [ ! -s "$work/$file" ]; then
        echo "chat: status $status for: $*"
        cat "$work/err"
        failures=$((failures + 1))
    fi
}

# same ARGUMENT...: the texts of these arguments are those of file contiguous.
same() {
    texts paged "$@"
    if cmp -s "$work/paged" "$work/contiguous"; then
        echo "chat $*: $(wc -l <"$work/paged") lines as without pages"
    else
        echo "chat $*: not the text that is made without pages"
        failures=$((failures + 1))
    fi
}

wrong 'no option' --bogus x
wrong 'power of two' --page 3 x
wrong 'needs a value' --page
wrong 'whole number' --pages 0 x
wrong 'whole number' --max-new many x
wrong 'f32' --kv f8 x
wrong 'at least 32' --model random --kv kivi2 --page 16 x
wrong 'LAYER=FORMAT' --model random --kv-layer 9=f16 x
wrong 'layer 0 can be' --model random --kv-layer 0=f8 x
wrong 'f32, f16 or bf16' --kv kivi2 --kv-exact int8 x
wrong 'number' --temperature nan x
wrong 'fetch_model' --model "$work/absent.gguf" x
wrong 'fetch_model' --model "$work/other.bin" x
: >"$work/empty.gguf"
wrong 'is empty' --model "$work/empty.gguf" x
wrong 'is empty' --prompts "$work/empty.gguf" --model random
printf '\n\n' >"$work/empty"
wrong 'no prompts' --prompts "$work/empty" --model random
wrong 'No such file' --prompts "$work/absent" --model random
wrong 'not from both' --prompts "$work/empty" x
wrong 'empty prompt' --model random --raw ''
random='--model random --raw --evict'
# shellcheck disable=SC2086
{
    wrong 'needs --budget' $random h2o x
    wrong 'h2o, streaming' $random h3 --budget 64 x
    wrong 'go with --evict' --model random --budget 64 x
    wrong 'budget: at least' $random h2o --budget 8 --recent 6 x
    wrong 'recent: at least 1' $random tova --budget 8 --recent 0 x
    wrong 'need each other' $random learned --budget 64 x
    wrong 'need each other' $random h2o --evict-weights "$work/out" --budget 64 x
    wrong 'no weights' $random learned --evict-weights "$work/out" --budget 64 x
    wrong 'is --evict streaming' $random window --budget 64 --sinks 4 x
    wrong 'does not go with' $random h2o --budget 64 --draft 2 x
    wrong 'at most 64' $random h2o --budget 64 --page 128 x
    wrong 'group' $random h2o --budget 64 --kv int4-channel --removal replace x
    wrong 'reads f32' $random h2o --budget 64 --kv int4-channel --removal hole x
}
echo 'chat: wrong command lines end with 2 and a reason'

cat >"$work/prompts" <<'TEXT'
A shared beginning that is longer than two pages of sixteen tokens: one.
A shared beginning that is longer than two pages of sixteen tokens: two, two, two, two.
Something else, something else, something else.
A shared beginning that is longer than two pages of sixteen tokens: one, and more.
x
TEXT
texts contiguous --contiguous --pages 2000 --samples 3 --temperature 1
for arguments in '' '--draft 4' '--page 1 --pages 4000 --draft 4' '--page 64' '--pages 26' '--pages 14 --draft 4' \
    '--chunk 1' '--chunk 7 --batch 3' '--threads 3'; do
    # shellcheck disable=SC2086
    same --samples 3 --temperature 1 $arguments
done

for kv in int8 fp8 nvfp4 int4-had int4-channel 'int4-channel --kv-exact f16 --kv-layer 1=int8'; do
    # shellcheck disable=SC2086
    texts contiguous --contiguous --pages 2000 --samples 3 --temperature 1 --kv $kv
    # With slots that are used again while a step leaves them out.
    # shellcheck disable=SC2086
    same --contiguous --pages 2000 --samples 3 --temperature 1 --kv $kv --chunk 7 --batch 3
    for arguments in '' '--draft 4' '--chunk 7 --batch 3'; do
        # shellcheck disable=SC2086
        same --samples 3 --temperature 1 --kv $kv $arguments
    done
done

# Tokens are evicted: the text does not depend on pages or threads, nor on whether holes are closed.
for policy in h2o streaming window random tova snapkv keydiff knorm; do
    texts contiguous --evict $policy --budget 40
    for arguments in '--removal hole' '--page 4 --pages 2000' '--threads 3' '--endless'; do
        # shellcheck disable=SC2086
        texts paged --evict $policy --budget 40 $arguments
        if ! cmp -s "$work/paged" "$work/contiguous"; then
            echo "chat --evict $policy $arguments: another text"
            failures=$((failures + 1))
        fi
    done
done
"$chat" --model random --raw --max-new 1000 --evict h2o --budget 40 --removal replace x >"$work/out" 2>"$work/err"
if LC_ALL=C grep -a -q '^pages of a head *12 at the end of the chats, 12 without holes' "$work/out"; then
    echo 'chat --evict: 1,000 tokens in the pages of 40 for each of four heads'
else
    echo 'chat --evict: another number of pages in use'
    LC_ALL=C grep -a '^pages' "$work/out"
    failures=$((failures + 1))
fi

printf 'first line\nof one prompt\n\nanother prompt\n' >"$work/paragraphs"
lines=$("$chat" --model random --raw --quiet --max-new 1 --prompts "$work/paragraphs" | grep -c '^\[[12]\] > ')
if [ "$lines" -ne 2 ]; then
    echo "chat: $lines prompts in a file of two paragraphs"
    failures=$((failures + 1))
fi

printf 'one\ntwo\nthree\n' | "$chat" --model random --max-new 8 >"$work/out" 2>"$work/err"
hits=$(sed -n 's/^hit tokens *\([0-9]*\).*/\1/p' "$work/out")
if [ "${hits:-0}" -lt 64 ]; then
    echo "chat: a conversation of three turns found ${hits:-no} tokens of what was said before"
    failures=$((failures + 1))
else
    echo "chat: a conversation of three turns found $hits tokens of what was said before"
fi

[ "$failures" -eq 0 ] && echo 'ok: chat' || echo "FAILED: chat, $failures times"
[ "$failures" -eq 0 ]

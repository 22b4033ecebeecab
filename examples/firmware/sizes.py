"""Keeps SIZES.md.

    sizes.py SIZES.md FACTS           fails where a number is more than 5 % above the table's, stands in only one of both,
                                     or is a stack above the budget
    sizes.py --write SIZES.md FACTS   writes the table

A line of FACTS is "TARGET BUILD WHAT BYTES"; WHAT is archive, minimal, text, data, bss, memory, or a function, whose bytes are
stack.
"""

import re
import sys

NO_INDEX = ("small", "narrow")
STACK = 512
EXEMPT = {"kvf_cache_required_size", "kvf_cache_init", "kvf_cache_digest"}
SIZES = ["archive", "minimal", "text", "data", "bss", "memory"]
HEAD = """# Sizes of the firmware, in bytes

Written by `scripts/firmware.sh --write`; a build that is more than 5 % above a number fails. `small` is the library without
the index, `narrow` that with 16-bit ids, `full` the library with an index; all are optimised for size. `archive` is the code
and constants of the whole library. `text`, `data` and `bss` are those of the program, which calls nearly everything and links
what it calls; 40 KiB of `bss` are lent to the cache, which needs `memory` of them. `minimal` is the text of a program that
calls only what decoding needs (`minimal.c`): init, open, plans, append, fork, truncate, slots and table, close.

{sizes}
Budgets on Cortex-M: 100 KiB for the archive of `full`, which is {full}; 32 KiB without an index, which is {minimal} by
`minimal` with `small` and `narrow`, and {small} by their archives.

## Stack

The most that a call of each function used in 10,000 operations: the stack is painted before each call. The budget is
512 bytes per call for `small` and `narrow`, and more fails. Exempt are `kvf_cache_required_size` and `kvf_cache_init`, which
run once, and keep a configuration with its arrays and, in init, the cache itself on the stack, since safe code cannot build it
in place; and `kvf_cache_digest`, a tool of tests, which takes more on RISC-V, where the hash has too few registers.

{stack}"""


def rows(columns, keys, numbers):
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for key in keys:
        cells = [str(numbers.get((column, key), "")) for column in columns]
        lines.append(f"| {key} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def read_table(path):
    numbers, columns = {}, []
    for line in open(path, encoding="utf-8"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| | "):
            columns = cells[1:]
        elif line.startswith("| "):
            for column, cell in zip(columns, cells[1:]):
                if re.fullmatch(r"\d+", cell):
                    numbers[column, cells[0]] = int(cell)
    return numbers


def read_facts(path):
    numbers = {}
    for line in open(path, encoding="utf-8"):
        target, build, what, number = line.split()
        numbers[f"{target.split('-')[0]} {build}", what] = int(number)
    return numbers


def write(path, numbers):
    columns = list(dict.fromkeys(column for column, _ in numbers))
    functions = [what for what in dict.fromkeys(what for _, what in numbers) if what not in SIZES]

    def kept(what, builds, most):
        sizes = [numbers[f"{target} {build}", what] for target in ("thumbv7em", "thumbv8m.main") for build in builds]
        return "kept" if max(sizes) <= most else "not kept"

    text = HEAD.format(
        sizes=rows(columns, SIZES, numbers),
        full=kept("archive", ["full"], 100 << 10),
        minimal=kept("minimal", NO_INDEX, 32 << 10),
        small=kept("archive", NO_INDEX, 32 << 10),
        stack=rows(columns, sorted(functions), numbers),
    )
    open(path, "w", encoding="utf-8").write(text)


def check(committed, numbers):
    faults = [f"{' '.join(key)}: only in one of both" for key in sorted(committed.keys() ^ numbers.keys())]
    for key in sorted(committed.keys() & numbers.keys()):
        if numbers[key] * 100 > committed[key] * 105:
            faults.append(f"{' '.join(key)}: {numbers[key]}, was {committed[key]}")
    for (column, what), number in sorted(numbers.items()):
        if column.endswith(NO_INDEX) and what not in EXEMPT and what not in SIZES and number > STACK:
            faults.append(f"{column} {what}: {number} bytes of stack, at most {STACK}")
    return faults


def main():
    if sys.argv[1] == "--write":
        write(sys.argv[2], read_facts(sys.argv[3]))
        return 0
    faults = check(read_table(sys.argv[1]), read_facts(sys.argv[2]))
    print("\n".join(faults))
    return 1 if faults else 0


sys.exit(main())

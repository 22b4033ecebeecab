"""Keeps SIZES.md.

    sizes.py SIZES.md FACTS           fails where a number is more than 5 % above the table's, or stands in only one of both
    sizes.py --write SIZES.md FACTS   writes the table

A line of FACTS is "TARGET BUILD WHAT BYTES"; WHAT is archive, text, data, bss, memory, or a function, whose bytes are stack.
"""

import re
import sys
import textwrap

SIZES = ["archive", "text", "data", "bss", "memory"]
HEAD = """# Sizes of the firmware, in bytes

Written by `scripts/firmware.sh --write`; a build that is more than 5 % above a number fails. `small` is the library without
the index, `full` with all features; both are optimised for size. `archive` is the code and constants of the whole library,
`text`, `data` and `bss` are those of the program, which links what it calls; 40 KiB of `bss` are lent to the cache, which needs
`memory` of them.

{sizes}
Budgets of the archive on Cortex-M: 100 KiB for `full`, which is {full}, and 32 KiB for `small`, which is {small}.

## Stack

The most that a call of each function used in 10,000 operations: the stack is painted before each call. The budget is
512 bytes per call for `small`; above it {above}.

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

    def kept(build, most):
        sizes = [numbers[column, "archive"] for column in columns if column in (f"thumbv7em {build}", f"thumbv8m.main {build}")]
        return "kept" if max(sizes) <= most else "not kept yet"

    small = [column for column in columns if column.endswith("small")]
    above = [f"`{name}`" for name in sorted(functions) if max(numbers.get((column, name), 0) for column in small) > 512]
    above = "are\n" + textwrap.fill(", ".join(above), 120) if above else "is none"
    text = HEAD.format(
        sizes=rows(columns, SIZES, numbers),
        full=kept("full", 100 << 10),
        small=kept("small", 32 << 10),
        above=above,
        stack=rows(columns, sorted(functions), numbers),
    )
    open(path, "w", encoding="utf-8").write(text)


def check(committed, numbers):
    faults = [f"{' '.join(key)}: only in one of both" for key in sorted(committed.keys() ^ numbers.keys())]
    for key in sorted(committed.keys() & numbers.keys()):
        if numbers[key] * 100 > committed[key] * 105:
            faults.append(f"{' '.join(key)}: {numbers[key]}, was {committed[key]}")
    return faults


def main():
    if sys.argv[1] == "--write":
        write(sys.argv[2], read_facts(sys.argv[3]))
        return 0
    faults = check(read_table(sys.argv[1]), read_facts(sys.argv[2]))
    print("\n".join(faults))
    return 1 if faults else 0


sys.exit(main())

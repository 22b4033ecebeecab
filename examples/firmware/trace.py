#!/usr/bin/env python3
"""trace.py TRACE COUNT: writes the first requests of a trace (a JSON object a line) as the C source that trace.h declares."""
import json
import sys

SCALE = 16  # tokens of the trace for each token here
BLOCK = 512 // SCALE


def main() -> None:
    if len(sys.argv) != 3 or not sys.argv[2].isdigit():
        sys.exit(__doc__)
    path, count = sys.argv[1], int(sys.argv[2])
    with open(path, encoding="utf-8") as lines:
        requests = [json.loads(line) for _, line in zip(range(count), lines)]
    if len(requests) < count:
        sys.exit(f"{path} has {len(requests)} requests, fewer than {count}")
    rows, blocks = [], []
    for request in requests:
        ids = request["hash_ids"]
        prompt = max(1, min(-(-request["input_length"] // SCALE), BLOCK * len(ids)))
        reply = max(1, -(-request["output_length"] // SCALE))
        rows.append(f"    {{{prompt}, {reply}, {len(blocks)}}},")
        blocks += ids
    print('#include "trace.h"\n')
    print(f"const uint32_t trace_requests_count = {count};")
    print("const trace_request trace_requests[] = {", *rows, "};", sep="\n")
    lines = [", ".join(map(str, blocks[at : at + 16])) for at in range(0, len(blocks), 16)]
    print("const uint32_t trace_blocks[] = {", *(f"    {line}," for line in lines), "};", sep="\n")


if __name__ == "__main__":
    main()

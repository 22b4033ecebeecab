#!/usr/bin/env python3
"""Turns data/text/gsm8k-fewshot.jsonl into prompts that a C program reads without a JSON parser.

    scripts/fewshot_to_txt.py data/text/gsm8k-fewshot.jsonl > gsm8k-fewshot.txt

The result has one line a question, "x" and the prompt in hexadecimal: the worked examples, then the question.
"""
import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.strip()]
    prefix = lines[0]["shared_prefix"]
    for line in lines[1:]:
        print("x" + (prefix + "Question: " + line["question"] + "\nAnswer:").encode("utf-8").hex())


if __name__ == "__main__":
    main()

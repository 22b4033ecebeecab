#!/usr/bin/env python3
"""Turns a model's reference JSON into words that a C program reads without a JSON parser.

    scripts/reference_to_txt.py data/models/stories260K.reference.json > stories260K.txt

The result is a list of records; every word is free of spaces, texts are in hexadecimal after an "x":

    generation NAME TEXT  prompt N ids...  greedy N ids...
    window FILE START COUNT SHA256 MEAN_NLL  top N (POSITION (ID LOGIT) x 5)...
    case TEXT N ids...
    end
"""
import json
import re
import sys


def text(value):
    return "x" + value.encode("utf-8").hex()


def numbers(values):
    return " ".join(str(value) for value in [len(values), *values])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        reference = json.load(file)
    for run in reference["generation"]:
        name = (run.get("name") or run.get("prompt") or "empty").replace(" ", "_")
        print("generation", name, text(run["text"]))
        print("prompt", numbers(run["prompt_ids"]))
        print("greedy", numbers(run["greedy_ids"]))
    for name, window in reference["perplexity"].items():
        file, start = re.fullmatch(r"(\S+) (?:tokens )?(\d+)\.\.\d*", name).groups()
        print("window", file, start, window["tokens"], window["ids_sha256"], window["mean_nll"])
        top = window["top5_logits_at_position"]
        print("top", len(top))
        for position, best in top.items():
            print(position, *(f"{token} {logit}" for token, logit in best))
    for case in reference["tokenizer"]:
        print("case", text(case["text"]), numbers(case["ids"]))
    print("end")


if __name__ == "__main__":
    main()

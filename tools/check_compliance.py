#!/usr/bin/env python3
"""Checks docs/compliance.md: each line of its tables has a state, and names tests that exist.

A test is named as `tests/room/file.cpp: Suite.Name`, which must be a TEST, TEST_F or TEST_P of that file, or as
`tests/packets/folder/script.pkt`. Only a line that says "left out" may name none. Exit 0 and one line if all is well,
else one line for each fault.
"""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = "docs/compliance.md"
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
NAMED = re.compile(r"`([^`]+)`")
STATES = ("holds", "deviates", "left out")


@functools.cache
def tests_of(path):
    return {f"{suite}.{name}" for suite, name in TEST.findall((ROOT / path).read_text())}


def fault_of(name):
    path, _, test = name.partition(": ")
    if not path.startswith("tests/") or not (ROOT / path).is_file():
        return f"no such file: {path}"
    if path.endswith(".pkt"):
        return f"a script has no tests in it: {name}" if test else None
    if test not in tests_of(path):
        return f"{path} has no test {test or '(none named)'}"
    return None


def faults_of(line):
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if len(cells) != 3:
        return [f"{len(cells)} columns instead of 3"]
    behaviour, state, tests = cells
    faults = [] if state.startswith(STATES) else [f"no state: {state}"]
    if state.startswith("deviates") and ":" not in state and "only" not in state:
        faults.append(f"deviates without a reason: {behaviour}")
    names = NAMED.findall(tests)
    if not names and not state.startswith("left out"):
        faults.append(f"no test: {behaviour}")
    return faults + [fault for fault in map(fault_of, names) if fault]


def main():
    lines = named = 0
    faults = []
    for number, line in enumerate((ROOT / DOCUMENT).read_text().splitlines(), 1):
        if not line.startswith("|") or line.startswith(("| ---", "| behaviour")):
            continue
        lines += 1
        named += len(NAMED.findall(line.rsplit("|", 2)[-2]))
        faults += [f"{DOCUMENT}:{number}: {fault}" for fault in faults_of(line)]
    if lines == 0:
        faults.append(f"{DOCUMENT}: no table")
    for fault in faults:
        print(fault)
    print(f"check_compliance: {lines} lines, {named} tests named, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

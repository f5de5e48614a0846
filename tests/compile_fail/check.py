#!/usr/bin/env python3
"""check.py CASE COMPILER...: the compiler must refuse each line of CASE that ends in "// error: PATTERN", and say
something that matches the pattern. An error may be found deep in a header; the compiler then names the line as where
it came from."""
import re
import subprocess
import sys

case, command = sys.argv[1], sys.argv[2:]
said = subprocess.run(command + [case], capture_output=True, text=True, check=False)
marks = []
with open(case, encoding="utf-8") as file:
    for number, line in enumerate(file, 1):
        if match := re.search(r"// error: (.*)$", line):
            marks.append((number, match.group(1), line.strip()))

if not marks:
    sys.exit(f"{case}: no line is marked")
faults = 0
for number, pattern, line in marks:
    at = rf"{re.escape(case)}:{number}:"
    if not re.search(at, said.stderr) or not re.search(pattern, said.stderr):
        print(f"{case}:{number}: compiles, or fails for another reason than it should: {line}")
        faults += 1
if faults or said.returncode == 0:
    sys.exit(f"{said.stderr}\n{faults} of {len(marks)} lines compile that must not")

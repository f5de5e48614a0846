#!/usr/bin/env python3
"""check_schema.py SCHEMA.json DOCUMENT.json: prints each fault with its place and exits 1, else exits 0.

Exits 77 if Debian's python3-jsonschema is not installed. Python's parser takes NaN and Infinity: here they are faults.
"""
import json
import sys


def refuse_constant(name):
    raise ValueError(f"{name} is not a JSON number")


def main():
    try:
        import jsonschema
    except ImportError:
        print("python3-jsonschema is not installed")
        return 77
    with open(sys.argv[1]) as file:
        schema = json.load(file)
    with open(sys.argv[2]) as file:
        document = json.load(file, parse_constant=refuse_constant)
    jsonschema.Draft202012Validator.check_schema(schema)
    faults = list(jsonschema.Draft202012Validator(schema).iter_errors(document))
    for fault in faults[:20]:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault.absolute_path)
        print(f"document{place}: {fault.message[:300]}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

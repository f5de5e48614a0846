#!/usr/bin/env python3
"""check_schema.py SCHEMA.json DOCUMENT.json: the part of JSON Schema that docs/compare.schema.json uses.

Prints each fault with its place and exits 1, else exits 0. Python's parser takes NaN and Infinity: here they are faults.
"""
import json
import sys

TYPES = {"object": dict, "array": list, "string": str, "null": type(None), "boolean": bool}


def is_type(value, name):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def check(value, schema, root, where, faults):
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        check(value, target, root, where, faults)
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_type(value, name) for name in names):
        faults.append(f"{where}: {value!r} is not {' or '.join(names)}")
        return
    if "const" in schema and value != schema["const"]:
        faults.append(f"{where}: {value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        faults.append(f"{where}: {value!r} is none of {schema['enum']}")
    if is_type(value, "number"):
        if value < schema.get("minimum", value):
            faults.append(f"{where}: {value} is below {schema['minimum']}")
        if value > schema.get("maximum", value):
            faults.append(f"{where}: {value} is above {schema['maximum']}")
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                faults.append(f"{where}: no member {key}")
        for key, inner in schema.get("properties", {}).items():
            if key in value:
                check(value[key], inner, root, f"{where}.{key}", faults)
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            check(item, schema["items"], root, f"{where}[{i}]", faults)


def refuse_constant(name):
    raise ValueError(f"{name} is not a JSON number")


def main():
    with open(sys.argv[1]) as file:
        schema = json.load(file)
    with open(sys.argv[2]) as file:
        document = json.load(file, parse_constant=refuse_constant)
    faults = []
    check(document, schema, schema, "document", faults)
    for fault in faults[:20]:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

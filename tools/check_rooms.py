#!/usr/bin/env python3
"""Checks the includes of every file against the table of rooms in docs/architecture.md.

The table is the one whose header starts with "| room | may use". A room is a folder of src/; public headers belong to
the room that the table "header | room" names. Exit 0 and one line if all is well, else one line for each fault.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
OS_HEADERS = re.compile(r'^(sys|linux|net|netinet|arpa|asm)/|^(unistd|fcntl|poll|pthread|signal|errno|time)\.h$')


def tables():
    rooms, headers, section = {}, {}, None
    for line in (ROOT / "docs/architecture.md").read_text().splitlines():
        cells = [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]
        if line.startswith("| room | may use"):
            section = rooms
        elif line.startswith("| public header | room"):
            section = headers
        elif not line.startswith("|"):
            section = None
        elif section is rooms and not cells[0].startswith("---"):
            uses = re.sub(r"\(.*?\)", "", cells[1])
            for name in cells[0].split(","):
                rooms[name.strip()] = {use.strip() for use in uses.split(",") if use.strip() not in ("", "-")}
        elif section is headers and not cells[0].startswith("---"):
            for name in cells[0].split(","):
                headers[name.strip().strip("`")] = cells[1]
    return rooms, headers


def room_of_include(path, headers):
    if path.startswith("netchannel/wire/"):
        return "wire"
    if path.startswith("netchannel/"):
        return headers.get(path.removeprefix("netchannel/"), "?")
    folder = path.split("/")[0]
    return folder if (ROOT / "src" / folder).is_dir() and "/" in path else None


def room_of_file(path, headers):
    parts = path.relative_to(ROOT).parts
    if parts[0] == "src":
        return parts[1]
    return room_of_include("/".join(parts[1:]), headers)


def main():
    rooms, headers = tables()
    faults = []
    files = sorted([*ROOT.glob("src/**/*.[ch]pp"), *ROOT.glob("include/**/*.hpp")])
    for path in files:
        room = room_of_file(path, headers)
        where = path.relative_to(ROOT)
        if room not in rooms:
            faults.append(f"{where}: belongs to no room of docs/architecture.md")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            target = room_of_include(found[2], headers)
            if room in ("wire", "proto") and OS_HEADERS.match(found[2]):
                faults.append(f"{where}:{number}: {room} includes the OS header {found[2]}")
            if target in (None, room, "base") or target in rooms[room]:
                continue
            faults.append(f"{where}:{number}: {room} may not use {target} ({found[2]})")
    for fault in faults:
        print(fault)
    print(f"check_rooms: {len(files)} files, {len(rooms)} rooms, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/bin/sh
# man_pages.sh PROGRAM FOLDER: writes netchannel.1 and one page a command, netchannel-COMMAND.1, from what --help
# says, so that they cannot differ.
set -eu
program=$1 folder=$2
version=$("$program" --version)
mkdir -p "$folder"

# Reads --help: a description, "usage: ...", then sections whose heads end with a colon, with entries that begin with
# two spaces and go on further in, and at last paragraphs.
to_man() { # NAME
  "$program" ${1#netchannel} --help | awk -v name="$1" -v version="$version" '
    function text(line) { gsub(/\\/, "\\e", line); gsub(/-/, "\\-", line); sub(/^\./, "\\\\\\&.", line); return line }
    function head(title) { print ".SH " toupper(title) }
    BEGIN { page = name; gsub(/ /, "-", page); print ".TH " toupper(page) " 1 \"\" \"" version "\" \"netchannel\"" }
    /^usage: / && !usage { usage = 1; sub(/^usage: /, ""); synopsis = $0; next }
    !usage { description = description (description == "" ? "" : " ") $0; next }
    usage == 1 && /^       / { sub(/^ +/, " "); synopsis = synopsis $0; next }
    usage == 1 {
      usage = 2
      head("name"); print text(page) " \\- " text(description)
      head("synopsis"); print text(synopsis)
    }
    /^$/ { paragraph = 1; next }
    /^[A-Z][A-Za-z ]*:$/ { sub(/:$/, ""); section = $0; example = section == "Example"; head(section); paragraph = 0; next }
    /^Example/ { head("example"); example = 1; print text($0); paragraph = 0; next }
    example && /^  / { print ".PP"; print ".RS"; print ".nf"; sub(/^  /, ""); print text($0); print ".fi"; print ".RE"; next }
    section != "" && !example && /^  [^ ]/ {
      line = substr($0, 3); at = match(line, /  +/)
      print ".TP"
      if (at) { print ".B " text(substr(line, 1, at - 1)); print text(substr(line, at + RLENGTH)) } else print ".B " text(line)
      next
    }
    { if (paragraph) print ".PP"; paragraph = 0; sub(/^ +/, ""); print text($0) }
    END { head("see also"); print "The documents in /usr/share/doc/netchannel." }
  '
}

to_man netchannel >"$folder/netchannel.1"
for command in $("$program" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p'); do
  to_man "netchannel $command" >"$folder/netchannel-$command.1"
done

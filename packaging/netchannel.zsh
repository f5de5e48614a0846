#compdef netchannel
# zsh completion for netchannel(1): the commands and options that the program's own --help says.
local command=${words[2]} help
[[ $CURRENT -eq 2 || $command != [a-z]* ]] && command=
help=$($words[1] $command --help 2>/dev/null)
if [[ $CURRENT -eq 2 && $words[CURRENT] != -* ]]; then
  compadd -- $(sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\+\) .*/\1/p' <<<"$help")
elif [[ $words[CURRENT] == -* ]]; then
  compadd -- $(grep -oE -- '(^|[ ,])--?[a-z][a-z-]*' <<<"$help" | tr -d ' ,')
else
  _files
fi

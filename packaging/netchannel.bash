# bash completion for netchannel(1): the commands and options that the program's own --help says.
_netchannel() {
  local word=${COMP_WORDS[COMP_CWORD]} command=() i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} == -- ]] && return
    [[ ${COMP_WORDS[i]} =~ ^[a-z]+$ && ${#command[@]} -eq 0 ]] && command=("${COMP_WORDS[i]}")
  done
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    --out | --json) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --device) COMPREPLY=($(compgen -W "$(ls /sys/class/net)" -- "$word")); return ;;
  esac
  local help
  help=$("${COMP_WORDS[0]}" "${command[@]}" --help 2>/dev/null)
  if [[ ${#command[@]} -eq 0 && $word != -* ]]; then
    COMPREPLY=($(compgen -W "$(sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\+\) .*/\1/p' <<<"$help")" -- "$word"))
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$(grep -oE -- '(^|[ ,])--?[a-z][a-z-]*' <<<"$help" | tr -d ' ,')" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -F _netchannel netchannel

# parts.sh, to be sourced: runs the parts of something long, each a function, and tells for how long.
#
# run_parts TITLE PART..: one after the other, up to the first that fails; of PART+PART both beside each
# other, with the second one's name before its lines. At the end, or when it is interrupted, a table says
# what has run and how long it took. What a part notes in $times, lines of "  NAME<tab>SECONDS<tab>WORD",
# follows it there.

minutes() {
  printf '%d min %02d s' $(($1 / 60)) $(($1 % 60))
}

parts_end() {
  local name took word
  [ -z "$parts_second" ] || kill -- "-$parts_second" 2>/dev/null || true
  cat "$times" >>"$parts_table"
  echo
  echo "== $parts_title: $(minutes $SECONDS)"
  # A tab is no blank here: names may begin with blanks.
  while IFS=$'\t' read -r name took word; do
    printf '  %-24s %3d:%02d  %s\n' "$name" $((took / 60)) $((took % 60)) "$word"
  done <"$parts_table"
  rm -f "$parts_table" "$times"
}

# part NAME: runs it, and notes how long it took.
part() {
  local begun=$SECONDS word=ok
  "$1" || word=FAILED
  printf '%s\t%d\t%s\n' "$1" $((SECONDS - begun)) "$word" >>"$parts_table"
  [ "$word" = ok ] || echo "== $1 FAILED after $(minutes $((SECONDS - begun)))" >&2
  [ "$word" = ok ]
}

# beside NAME: runs a part with its name before its lines.
beside() {
  part "$1" 2>&1 | sed -u "s/^/$1: /"
}

run_parts() {
  local part number=0 word
  parts_title=$1 parts_second='' parts_table=$(mktemp) times=$(mktemp)
  shift
  SECONDS=0
  trap parts_end EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  for part in "$@"; do
    number=$((number + 1)) word=ok
    echo "== $number of $#: $part, after $(minutes $SECONDS)"
    if [ "${part#*+}" != "$part" ]; then
      # In a process group of its own: what runs in the background does not hear Ctrl-C.
      set -m
      beside "${part#*+}" &
      parts_second=$!
      set +m
    fi
    part "${part%+*}" || word=FAILED
    [ -z "$parts_second" ] || wait "$parts_second" || word=FAILED
    parts_second=''
    cat "$times" >>"$parts_table"
    : >"$times"
    [ "$word" = ok ] || exit 1
  done
}

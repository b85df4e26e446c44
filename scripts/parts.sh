# parts.sh, to be sourced: runs the parts of something long, each a function, and tells for how long.
#
# run_parts TITLE PART..: one after the other, up to the first that fails. At the end, or when it is
# interrupted, a table says what has run and how long it took. What a part notes in $times, lines of
# "  NAME<tab>SECONDS<tab>WORD", follows it there.

minutes() {
  printf '%d min %02d s' $(($1 / 60)) $(($1 % 60))
}

parts_end() {
  local name took word
  cat "$times" >>"$parts_table"
  echo
  echo "== $parts_title: $(minutes $SECONDS)"
  # A tab is no blank here: names may begin with blanks.
  while IFS=$'\t' read -r name took word; do
    printf '  %-24s %3d:%02d  %s\n' "$name" $((took / 60)) $((took % 60)) "$word"
  done <"$parts_table"
  rm -f "$parts_table" "$times"
}

run_parts() {
  local part begun number=0 word
  parts_title=$1 parts_table=$(mktemp) times=$(mktemp)
  shift
  SECONDS=0
  trap parts_end EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  for part in "$@"; do
    number=$((number + 1)) begun=$SECONDS word=ok
    echo "== $number of $#: $part, after $(minutes $SECONDS)"
    "$part" || word=FAILED
    printf '%s\t%d\t%s\n' "$part" $((SECONDS - begun)) "$word" >>"$parts_table"
    cat "$times" >>"$parts_table"
    : >"$times"
    if [ "$word" = FAILED ]; then
      echo "== $part FAILED after $(minutes $((SECONDS - begun)))" >&2
      exit 1
    fi
  done
}

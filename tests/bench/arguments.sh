#!/usr/bin/env bash
# What launch/dev/never-slower and slow-wire cannot measure they refuse before they measure: a bar that is no number would find no cell below it.
set -u
dev=$(cd "$(dirname "$0")/../../launch/dev" && pwd)
failed=0
refuses() { # WORDS COMMAND...
    local words=$1 said code
    shift
    said=$("$@" 2>&1 </dev/null)
    code=$?
    [ "$code" = 64 ] && [[ $said == *"$words"* ]] || { echo "$*: exit $code, expected 64 and '$words': $said"; failed=1; }
}
refuses "--bar is 'abc', expected a number" "$dev/never-slower" --bar abc
refuses "--bar is '', expected a number" "$dev/never-slower" --bar ''
refuses "--repeat is '0', expected a whole number" "$dev/never-slower" --repeat 0
refuses "a list is empty" "$dev/never-slower" --draft ''
refuses "--ranks has '3', expected drafters and verifiers" "$dev/never-slower" --ranks 3
refuses "/nowhere/tandem-verifier is not there" "$dev/never-slower" --build /nowhere
refuses "it lacks a value" "$dev/never-slower" --repeat
refuses "--delay is 'soon', expected whole numbers" "$dev/slow-wire" --delay soon
refuses "--repeat is 'x', expected a whole number" "$dev/slow-wire" --repeat x
refuses "--length is empty" "$dev/slow-wire" --length ''
exit $failed

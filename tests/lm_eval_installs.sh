#!/usr/bin/env bash
# lm-eval finds our tasks, with nothing said, however the two are installed; and uninstalling ours leaves it as it was.
# Six combinations of installer, kind of install and order, each in an environment of its own; a line for each.
# Needs uv and a package index. Usage: tests/lm_eval_installs.sh [release of lm-eval]
set -euo pipefail
release=${1:-0.4.13}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cp -r "$root" checkout && rm -rf checkout/.venv checkout/uv.lock
uv build --quiet --wheel --out-dir dist checkout
uv venv --quiet --seed tools && tools/bin/python -m pip download --quiet --no-deps --no-binary lm-eval --dest . "lm-eval==$release" 2> /dev/null
tar xzf lm_eval-*.tar.gz && mv lm_eval-*/ harness
find harness/lm_eval/tasks -mindepth 1 -maxdepth 1 -type d ! -name arc -exec rm -rf {} +  # reading 14,000 files takes long
uv build --quiet --wheel --out-dir harness-dist harness 2> /dev/null

cat > summeval.json <<'DATA'
[{"doc_id": "a", "system_id": "x", "source": "Rain fell.", "system_output": "It rained.", "scores": {"coherence": 5}},
 {"doc_id": "a", "system_id": "y", "source": "Rain fell.", "system_output": "Rain it me.", "scores": {"coherence": 1}}]
DATA

listed() { "$env/bin/python" -c "
from lm_eval.tasks import TaskManager
names = TaskManager().all_tasks
print('arc_easy' in names, 'summeval_geval' in names)"; }

files() { find "$env/lib" harness -type f ! -name '*.pyc' ! -path '*egg-info*' ! -path '*/harness/build/*' | sort; }

fail() { echo "FAILED: $*" >&2; exit 1; }

try() {  # installer, ours (wheel or editable), theirs, which first
    local installer=$1 ours=$2 theirs=$3 first=$4 what
    env=$work/env-$installer-$ours-$theirs-$first
    uv venv --quiet --seed "$env"
    case $installer in
        pip) add=("$env/bin/python" -m pip install -qq --no-deps); remove=("$env/bin/python" -m pip uninstall -qq --yes) ;;
        uv) add=(uv pip install --quiet --no-deps --python "$env"); remove=(uv pip uninstall --quiet --python "$env") ;;
    esac
    # What both need is there already, so that each combination takes seconds.
    uv pip install --quiet --python "$env" harness-dist/*.whl dist/*.whl
    uv pip uninstall --quiet --python "$env" lm-eval geval-adapters
    case $ours in wheel) mine=(dist/*.whl) ;; editable) mine=(--editable ./checkout) ;; esac
    case $theirs in wheel) harness=(harness-dist/*.whl) ;; editable) harness=(--editable ./harness) ;; esac

    if [ "$first" = theirs ]; then
        "${add[@]}" "${harness[@]}"; files > before; "${add[@]}" "${mine[@]}"
    else
        "${add[@]}" "${harness[@]}"; files > before; "${remove[@]}" lm-eval
        "${add[@]}" "${mine[@]}"; "${add[@]}" "${harness[@]}"
    fi
    what="$installer: lm-eval $release ($theirs), ours ($ours), $first first"
    [ "$(listed)" = "True True" ] || fail "$what: not listed"
    [ "$(GEVAL_LM_EVAL=0 listed)" = "True False" ] || fail "$what: GEVAL_LM_EVAL=0 does not turn it off"
    "$env/bin/lm_eval" --model dummy --tasks summeval_geval_coherence --metadata "{\"data\": \"$work/summeval.json\"}" \
        > out 2> err || { tail -20 err >&2; fail "$what: the task does not run"; }
    grep -q 'unread' out || fail "$what: no figures"
    uv pip check --quiet --python "$env" || fail "$what: pip check"
    "${remove[@]}" geval-adapters
    [ "$(listed)" = "True False" ] || fail "$what: lm-eval is not as it was"
    files > after
    diff before after > changed || { head -5 changed >&2; fail "$what: files are left, or gone"; }
    echo "ok  $what"
    rm -rf "$env"
}

try pip wheel wheel theirs
try pip wheel wheel ours
try pip wheel editable theirs
try pip editable editable ours
try uv wheel editable ours
try uv editable wheel theirs

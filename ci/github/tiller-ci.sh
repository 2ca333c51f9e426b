#!/usr/bin/env bash
# The steps of the action. All they are given comes by the environment: what a stranger wrote is never part of a script.
set -euo pipefail

folder="${RUNNER_TEMP:?}/tiller-review"
tiller="${RUNNER_TEMP}/tiller-venv/bin/tiller"

output() { printf '%s=%s\n' "$1" "$2" >> "$GITHUB_OUTPUT"; }

skip() {
  output skipped "$1"
  printf '::notice title=No review::%s\n' "$1"
}

prepare() {
  mkdir -p "$folder"
  output folder "$folder"
  # A pull request from a fork gets no secrets, so there is no key to review it with: that is how it should be.
  if [[ "${GITHUB_EVENT_NAME:-}" == pull_request && "${TILLER_CI_FROM:-}" != "${GITHUB_REPOSITORY:-}" ]]; then
    skip "the pull request comes from a fork, which gets no secrets; docs/ci/github.md says how forks are reviewed"
    return
  fi
  if ! git rev-parse --git-dir > /dev/null 2>&1; then
    printf '::error title=No repository::put actions/checkout with fetch-depth: 0 before this step\n'
    exit 2
  fi
  fetch_head
}

# The head of a fork is not part of the clone. Only its objects are fetched: nothing of it is checked out, and nothing runs.
fetch_head() {
  if git cat-file -e "${TILLER_CI_HEAD:?}^{commit}" 2> /dev/null || [[ ! "${TILLER_CI_NUMBER:-}" =~ ^[0-9]+$ ]]; then
    return
  fi
  # By the environment: the arguments of a process can be read by every other one.
  GIT_CONFIG_COUNT=1 \
    GIT_CONFIG_KEY_0="http.${GITHUB_SERVER_URL:?}/.extraheader" \
    GIT_CONFIG_VALUE_0="AUTHORIZATION: basic $(printf 'x-access-token:%s' "${TILLER_CI_TOKEN:?}" | base64 | tr -d '\n')" \
    git fetch --quiet --no-tags --no-recurse-submodules origin "refs/pull/${TILLER_CI_NUMBER}/head"
}

install() {
  [[ -x "$tiller" ]] && return
  python3 -I -m venv "${RUNNER_TEMP}/tiller-venv"
  "${RUNNER_TEMP}/tiller-venv/bin/python" -I -m pip install --quiet --disable-pip-version-check "${TILLER_CI_PACKAGE:?}"
}

review() {
  local code=0 word previous="${folder}/previous.json" given=()
  rm -f "$previous"
  if [[ -s "${folder}/review.json" ]]; then mv "${folder}/review.json" "$previous"; fi
  while IFS= read -r line; do
    if [[ -n "$line" ]]; then given+=("$line"); fi
  done <<< "${TILLER_CI_ARGUMENTS:-}"
  # What a model wrote must not begin a command of the runner: until the word comes again it reads none.
  word="tiller-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
  printf '::stop-commands::%s\n' "$word"
  CI=true "$tiller" review \
    ${TILLER_CI_BASE:+"--base=${TILLER_CI_BASE}"} "--head=${TILLER_CI_HEAD:?}" "--model=${TILLER_CI_MODEL:?}" \
    "--fail-on=${TILLER_CI_FAIL_ON:-error}" "--on-partial=${TILLER_CI_ON_PARTIAL:-fail}" \
    "--max-findings=${TILLER_CI_MAX_FINDINGS:-20}" ${TILLER_CI_BUDGET_USD:+"--budget-usd=${TILLER_CI_BUDGET_USD}"} \
    "--max-minutes=${TILLER_CI_MAX_MINUTES:-20}" "--previous=${previous}" "--save-session=${folder}/session.jsonl" \
    "--output=json=${folder}/review.json" "--output=md=${folder}/review.md" \
    "--output=sarif=${folder}/review.sarif" "--output=github=${folder}/annotations.txt" \
    ${given[@]+"${given[@]}"} || code=$?
  printf '::%s::\n' "$word"
  output code "$code"
  [[ -s "${folder}/review.json" ]] || return 0
  output report "${folder}/review.json"
  if grep -q '"executionSuccessful": true' "${folder}/review.sarif"; then
    output sarif "${folder}/review.sarif"
  fi
}

tell() {
  cat "${folder}/review.md" >> "${GITHUB_STEP_SUMMARY:?}"
  if [[ "${TILLER_CI_POST:-true}" == true && "${TILLER_CI_NUMBER:-}" =~ ^[0-9]+$ ]]; then
    TILLER_PULL_REQUEST="$TILLER_CI_NUMBER" "$tiller" review "--from=${folder}/review.json" --fail-on=never \
      --on-partial=pass --post > /dev/null
    return
  fi
  cat "${folder}/annotations.txt"
}

case "${1:-}" in
  prepare | install | review | tell) "$1" ;;
  *)
    printf 'tiller-ci.sh: %s is no step; it takes prepare, install, review or tell\n' "${1:-nothing}" >&2
    exit 2
    ;;
esac

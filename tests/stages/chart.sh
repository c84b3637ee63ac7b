#!/usr/bin/env bash
# The Helm chart: linted, rendered with every values file of charts/redrive/ci and examples, and what comes out
# is checked against the Kubernetes schemas and against what a native sidecar must be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/stages/python.sh

"$PYTHON" tests/stages/helm.py target/tools/helm
for values in charts/redrive/ci/*-values.yaml examples/*.values.yaml; do
    target/tools/helm lint --strict --quiet --values "$values" charts/redrive
done
"$PYTHON" tests/stages/chart.py --verbose

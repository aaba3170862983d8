"""What pip asks to build the package (PEP 517): make builds it, and this puts it into a wheel. Needs a C compiler, the headers of python3 and what `make setup` names; no network."""
import base64
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def _version():
    return re.search(r'^#define STET_VERSION *"(.*)"', (ROOT / "include/stet.h").read_text(), re.M).group(1)


def _metadata():
    return (ROOT / "python/METADATA.in").read_text().replace("@VERSION@", _version())


def _tag():
    """The extension uses the limited interface of CPython 3.11."""
    return "cp311-abi3-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = os.environ.get("BUILD", "build")
    # What make says belongs to the log; a parent make's flags are its own.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "PYTHONPATH")}
    subprocess.run(["make", "-C", str(ROOT), "python", f"PYTHON={sys.executable}", f"BUILD={build}"], check=True, stdout=sys.stderr, env=environment)
    name, info = f"stet-{_version()}-{_tag()}.whl", f"stet-{_version()}.dist-info"
    package = ROOT / build / "python/stet"
    files = {f"stet/{p.name}": p.read_bytes() for p in sorted(package.iterdir()) if p.is_file()}
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: stet {_version()}\nRoot-Is-Purelib: false\nTag: {_tag()}\n".encode()
    files[f"{info}/entry_points.txt"] = (ROOT / "python/entry_points.txt").read_bytes()
    record = io.StringIO()
    for path, data in files.items():
        record.write(f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n")
    record.write(f"{info}/RECORD,,\n")
    files[f"{info}/RECORD"] = record.getvalue().encode()
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))  # the same bytes from the same tree
            entry.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    top = f"stet-{_version()}"
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-coz", "--exclude-standard"], capture_output=True)
    if listed.returncode == 0 and listed.stdout:
        names = sorted(n for n in listed.stdout.decode().split("\0") if n and (ROOT / n).is_file())
    else:  # from an unpacked sdist
        names = sorted(os.fspath(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file() and p.relative_to(ROOT).parts[0] not in ("build", "PKG-INFO"))
    name = f"{top}.tar.gz"
    with tarfile.open(os.path.join(sdist_directory, name), "w:gz", format=tarfile.PAX_FORMAT) as tar:
        data = _metadata().encode()
        info = tarfile.TarInfo(f"{top}/PKG-INFO")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
        for one in names:
            tar.add(ROOT / one, f"{top}/{one}", recursive=False)
    return name

"""Disks that refuse: small and read-only ones, mounted in a mount namespace that nobody else sees."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def in_mount_namespace(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a mount namespace of its own; `arguments` are its ``$1`` and so on.

    Raises AssertionError where this machine allows no such namespace: a missing proof is a failure.
    """
    tool = shutil.which("unshare")
    assert tool, "unshare (util-linux) is not installed: without a mount namespace this cannot be tested"
    unshare = [tool, "-m" if os.geteuid() == 0 else "-rm"]
    allowed = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    assert allowed.returncode == 0, (
        f"this machine allows no mount namespace ({allowed.stderr.strip()}): run the tests as root, in a container "
        "with CAP_SYS_ADMIN, or where unprivileged user namespaces are enabled"
    )
    command = [*unshare, "sh", "-euc", script, "sh", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def on_a_small_disk(
    folder: Path, size: str, commands: Sequence[Sequence[str]], *, roomy: Sequence[Sequence[str]]
) -> list[Ended]:
    """Run `commands` on a disk of `size`, then, when it was made larger, `roomy`; how each of them ended.

    The disk is mounted at `folder`/disk while they run; afterwards its content lies there as ordinary files.
    """
    disk, kept = folder / "disk", folder / "kept"
    disk.mkdir()
    told = json.dumps([list(commands), list(roomy)])
    result = in_mount_namespace('exec "$@"', sys.executable, __file__, disk, size, kept, told)
    assert result.returncode == 0, result.stderr
    disk.rmdir()
    kept.rename(disk)
    return [Ended(**ended) for ended in json.loads(result.stdout)]


def on_a_failing_disk(folder: Path, command: Sequence[str], pages_bytes: int = 10_000) -> Ended:
    """Run a command on a disk that refuses everything from a moment on in which so much is archived on it.

    It is a file system in a file, shut down as its kernel does when the device below it fails. What it holds lies at
    `folder`/disk afterwards, read again after its journal was replayed. Needs a loop device, and root.
    """
    disk, kept, image = folder / "disk", folder / "kept", folder / "image"
    disk.mkdir()
    with image.open("wb") as stream:
        stream.truncate(256 << 20)
    told = json.dumps([list(command), pages_bytes])
    result = in_mount_namespace('exec "$@"', sys.executable, __file__, "fail", disk, image, kept, told)
    assert result.returncode == 0, result.stderr
    disk.rmdir()
    kept.rename(disk)
    return Ended(**json.loads(result.stdout))


_SHUT_DOWN = 0x8004587D
"""FS_IOC_SHUTDOWN, with 0: what was written is written out, then everything is refused."""


def _fail(disk: str, image: str, kept: str, told: str) -> None:
    command, size = json.loads(told)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, disk], check=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while sum(path.stat().st_size for path in Path(disk).glob("*/warc/**/*.warc.gz")) < size:
            if time.monotonic() > deadline or process.poll() is not None:
                break
            time.sleep(0.01)
        top = os.open(disk, os.O_RDONLY)
        fcntl.ioctl(top, _SHUT_DOWN, struct.pack("I", 0))
        os.close(top)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
    subprocess.run(["umount", disk], check=True)
    subprocess.run(["mount", "-o", "loop", image, disk], check=True)
    shutil.copytree(disk, kept, ignore=shutil.ignore_patterns("lost+found"))
    subprocess.run(["umount", disk], check=True)
    sys.stdout.write(json.dumps({"code": process.returncode, "out": out, "err": err}))


def _main(disk: str, size: str, kept: str, told: str) -> None:
    commands, roomy = json.loads(told)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk], check=True)
    ended = [_run(command) for command in commands]
    subprocess.run(["mount", "-o", "remount,size=1g,nr_inodes=100k", disk], check=True)
    ended += [_run(command) for command in roomy]
    shutil.copytree(disk, kept)
    sys.stdout.write(json.dumps(ended))


def _run(command: Sequence[str]) -> dict[str, int | str]:
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return {"code": result.returncode, "out": result.stdout, "err": result.stderr}


if __name__ == "__main__":
    if sys.argv[1] == "fail":
        _fail(*sys.argv[2:])
    else:
        _main(*sys.argv[1:])

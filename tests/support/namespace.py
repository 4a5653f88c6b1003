"""A network of its own for what must never leave the machine: a namespace with loopback and nothing else.

Tests whose links, redirects, name servers or proxies point at addresses outside of loopback run here and only here. The
test calls `run_alone`, which starts a program in a new network namespace; the program calls `enter` before anything
else. `enter` looks around first and ends the program where there is any way out: another interface than loopback, or a
default route. Then it gives the wanted addresses to the namespace's own loopback, so that listeners can be bound to
them. Only ioctls are used: iproute2 need not be installed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

LOOPBACK = "lo"

READY_S = 10.0
"""An address of IPv6 becomes usable a moment after it was added."""

# From linux/sockios.h, linux/if.h, linux/route.h.
_GET_FLAGS, _SET_FLAGS, _SET_ADDRESS, _SET_NETMASK = 0x8913, 0x8914, 0x8916, 0x891C
_UP = 0x1
_REJECT = 0x0200
# From linux/netlink.h and linux/rtnetlink.h.
_NEW_ROUTE, _REQUEST_ACK_CREATE, _OUT_INTERFACE = 24, 0x405, 4
_MAIN_TABLE, _BOOT, _LINK_SCOPE, _UNICAST = 254, 3, 253, 1


def run_alone(program: Sequence[str | Path], *, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a Python program in a network namespace of its own, and wait for its end.

    Raises AssertionError with a sentence where this machine allows no such namespace: the proof is then missing, and a
    missing proof is a failure.
    """
    tool = shutil.which("unshare")
    assert tool, "unshare (util-linux) is not installed: without a network namespace this cannot be tested safely"
    unshare = [tool, "-n" if os.geteuid() == 0 else "-rn"]
    allowed = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    assert allowed.returncode == 0, (
        f"this machine allows no network namespace ({allowed.stderr.strip()}): run the tests as root, in a container "
        "with CAP_SYS_ADMIN, or where unprivileged user namespaces are enabled"
    )
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [*unshare, sys.executable, *map(str, program)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, check=False)


def way_out(interfaces: Iterable[str], routes: str, routes_6: str) -> str:
    """Why this is no place for bait, in a sentence; empty where there is no way out.

    `routes` and `routes_6` are the texts of /proc/net/route and /proc/net/ipv6_route.
    """
    others = sorted(set(interfaces) - {LOOPBACK})
    if others:
        return f"there are other interfaces than loopback: {', '.join(others)}"
    for line in routes.splitlines()[1:]:
        fields = line.split()
        if int(fields[1], 16) == int(fields[7], 16) == 0:
            return f"there is a default route over {fields[0]}"
    for line in routes_6.splitlines():
        fields = line.split()
        if int(fields[0], 16) == int(fields[1], 16) == 0 and not int(fields[8], 16) & _REJECT:
            return f"there is a default route for IPv6 over {fields[9]}"
    return ""


def enter(addresses: Iterable[str]) -> None:
    """Make sure that there is no way out, then bring loopback up with these addresses. Ends the program otherwise."""
    # Not /sys/class/net: that shows the namespace in which it was mounted.
    interfaces = [name for _, name in socket.if_nameindex()]
    danger = way_out(interfaces, Path("/proc/net/route").read_text(), Path("/proc/net/ipv6_route").read_text())
    if danger:
        raise SystemExit(f"refused to start: {danger}; bait is served only where nothing can leave the machine")
    bring_up()
    wanted = list(addresses)
    for number, address in enumerate(wanted):
        _add_address(address, number)
    deadline = time.monotonic() + READY_S
    for address in wanted:
        while not _is_ready(address):
            if time.monotonic() > deadline:
                raise SystemExit(f"refused to start: loopback does not take the address {address}")
            time.sleep(0.01)


def bring_up() -> None:
    """Bring loopback up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", LOOPBACK.encode(), 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(any_socket, _GET_FLAGS, request), 16)
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", LOOPBACK.encode(), flags | _UP))


def _add_address(address: str, number: int) -> None:
    if ":" in address:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as any_socket:
            packed = socket.inet_pton(socket.AF_INET6, address)
            fcntl.ioctl(any_socket, _SET_ADDRESS, packed + struct.pack("Ii", 128, socket.if_nametoindex(LOOPBACK)))
        return
    alias = f"{LOOPBACK}:{number}".encode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for request, value in ((_SET_ADDRESS, address), (_SET_NETMASK, "255.255.255.255")):
            fcntl.ioctl(any_socket, request, struct.pack("16sH2x4s8x", alias, socket.AF_INET, socket.inet_aton(value)))


def _is_ready(address: str) -> bool:
    try:
        bound(address, 0).close()
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            return False
        raise
    return True


def bound(address: str, port: int) -> socket.socket:
    """A socket for streams that is bound to an address of this namespace."""
    family, kind, *_, where = socket.getaddrinfo(scoped(address), port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(where)
    except OSError:
        listener.close()
        raise
    return listener


def scoped(address: str) -> str:
    """The address as it is bound or connected to: a link-local one says on which interface."""
    return f"{address}%{LOOPBACK}" if address.startswith("fe80:") else address


def add_default_route() -> None:
    """Route everything over loopback, which leads nowhere: for the test that `enter` refuses where a route exists."""
    route = struct.pack("=8BI", socket.AF_INET, 0, 0, 0, _MAIN_TABLE, _BOOT, _LINK_SCOPE, _UNICAST, 0)
    over = struct.pack("=HHI", 8, _OUT_INTERFACE, socket.if_nametoindex(LOOPBACK))
    header = struct.pack("=IHHII", 16 + len(route + over), _NEW_ROUTE, _REQUEST_ACK_CREATE, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.send(header + route + over)
        (code,) = struct.unpack_from("=i", kernel.recv(4096), 16)
    if code:
        raise OSError(-code, os.strerror(-code))

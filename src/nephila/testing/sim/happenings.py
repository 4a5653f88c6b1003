"""The kinds of faults, and the count of those that really happened.

Planned is not happened: a reset is counted when a server resets, an unsynced byte when a power loss has taken it.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum


class Happening(StrEnum):
    """One kind of fault."""

    # The network
    CONNECT_REFUSED = "connect refused"
    CONNECT_HANGS = "connect hangs"
    RESET_BEFORE_HEAD = "reset before the head"
    RESET_IN_HEAD = "reset in the head"
    RESET_IN_BODY = "reset in the body"
    CUT_IN_HEAD = "cut in the head"
    CUT_IN_BODY = "cut in the body"
    HANG_BEFORE_HEAD = "hang before the head"
    HANG_IN_HEAD = "hang in the head"
    HANG_IN_BODY = "hang in the body"
    SLOW = "slow answer"
    DRIBBLED = "dribbled bytes"
    OVERLOADED = "slower under load"
    WALL_TOLD = "429/503 with Retry-After"
    WALL_SILENT = "429/503 without a word"
    SHARED_ADDRESS = "hosts on one address"
    # Names
    DNS_SILENT = "name server silent"
    DNS_FAILS = "name server fails"
    NO_SUCH_NAME = "name gone for a while"
    ADDRESS_CHANGED = "address changed"
    # robots.txt
    ROBOTS_ERROR = "robots.txt 500"
    ROBOTS_BUSY = "robots.txt 429"
    ROBOTS_HANGS = "robots.txt hangs"
    ROBOTS_CHANGED = "robots.txt changed"
    ROBOTS_MISSING = "robots.txt went missing"
    # Clocks
    CLOCK_FORWARD = "wall clock forward"
    CLOCK_BACK = "wall clock back"
    REBOOT = "reboot"
    # The disk
    WRITE_ERROR = "write error"
    TORN_WRITE = "torn write"
    SYNC_ERROR = "sync error"
    DISK_FULL = "disk full"
    BYTES_LOST = "unsynced bytes lost"
    NAME_LOST = "unsynced name lost"
    CATALOGUE_STALLS = "catalogue stalls"
    INDEX_STALLS = "index stalls"
    # Processes
    KILLED = "killed"
    KILLED_IN_WRITE = "killed inside a write"
    POWER_LOSS = "power loss"
    KILLED_IN_RECOVERY = "killed in recovery"
    STOPPED = "stopped and begun again"
    FROZEN = "frozen"
    FROZEN_PAST_LEASE = "frozen past its lease"
    WORKER_KILLED = "worker killed"
    LEASE_REAPED = "lease reaped under a slow worker"
    LATE_RESULT = "late result refused"


Happened = Counter[Happening]

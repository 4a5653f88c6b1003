"""A seeded simulated web: thousands of hosts that do to a crawler what real ones do, and know the truth."""

from .alias_sites import Decorated, Meaningful, Moved, MovedMissing, OneShell, Referring, SoftMissing
from .audit_report import AuditReport, HostFigures, Violation, ViolationKind
from .auditor import Arrival, Auditor
from .hosts import Door, Host
from .inprocess import SimulatedNetwork
from .listed_sites import Dates, ListedSite, Naming
from .robots import Ruling
from .roles import Role
from .script_sites import BundleSite, FramedSite, ScriptSite
from .simulated import SimulatedWeb
from .sockets import WebServer
from .spec import HostMix, PageMix, RobotsKind, Timing, WebSpec, WireMix
from .trap_hosts import TrapFigures, TrapHost
from .trap_sites import Calendar, EndlessPath, RandomLinks, SessionMaze, Shop, SitePage, TrapSite
from .truth import Expect, TruePage, Truth, WalkPolicy
from .wire import Fault, ServedAnswer

__all__ = [
    "Arrival",
    "AuditReport",
    "Auditor",
    "BundleSite",
    "Calendar",
    "Dates",
    "Decorated",
    "Door",
    "EndlessPath",
    "Expect",
    "Fault",
    "FramedSite",
    "Host",
    "HostFigures",
    "HostMix",
    "ListedSite",
    "Meaningful",
    "Moved",
    "MovedMissing",
    "Naming",
    "OneShell",
    "PageMix",
    "RandomLinks",
    "Referring",
    "RobotsKind",
    "Role",
    "Ruling",
    "ScriptSite",
    "ServedAnswer",
    "SessionMaze",
    "Shop",
    "SimulatedNetwork",
    "SimulatedWeb",
    "SitePage",
    "SoftMissing",
    "Timing",
    "TrapFigures",
    "TrapHost",
    "TrapSite",
    "TruePage",
    "Truth",
    "Violation",
    "ViolationKind",
    "WalkPolicy",
    "WebServer",
    "WebSpec",
    "WireMix",
]

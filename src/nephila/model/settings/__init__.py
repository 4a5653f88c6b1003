"""Every setting there is, in small groups: each stage is given its own group and never the whole.

A field says all that is to be said of a setting: default, meaning, range, and the flag of `nephila crawl` that sets it.
`config` reads these declarations to build the configuration file, the environment variables, the flags and `config
show`; a setting that is not here does not exist. SPEC ids name where a default comes from.
"""

from __future__ import annotations

from dataclasses import dataclass

from .asking import DnsSettings, FetchSettings, PolitenessSettings, RobotsSettings
from .choosing import (
    BudgetSettings,
    FrontierSettings,
    PrioritySettings,
    RankSettings,
    RecrawlSettings,
    SitemapSettings,
    TrapSettings,
)
from .declaration import setting
from .keeping import ArchiveSettings, CatalogueSettings, RetentionSettings, S3Settings, SpoolSettings, StreamSettings
from .operating import AlertSettings, FleetSettings, ObserveSettings
from .reach import LimitSettings, ScopeSettings, UrlSettings
from .reading import OfficeSettings, PdfSettings, PluginSettings, RenderSettings
from .sameness import AliasSettings, DedupSettings

__all__ = [
    "AlertSettings",
    "AliasSettings",
    "ArchiveSettings",
    "BudgetSettings",
    "CatalogueSettings",
    "DedupSettings",
    "DnsSettings",
    "FetchSettings",
    "FleetSettings",
    "FrontierSettings",
    "LimitSettings",
    "ObserveSettings",
    "OfficeSettings",
    "PdfSettings",
    "PluginSettings",
    "PolitenessSettings",
    "PrioritySettings",
    "RankSettings",
    "RecrawlSettings",
    "RenderSettings",
    "RetentionSettings",
    "RobotsSettings",
    "S3Settings",
    "ScopeSettings",
    "Settings",
    "SitemapSettings",
    "SpoolSettings",
    "StreamSettings",
    "TrapSettings",
    "UrlSettings",
]


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole, built by `config` and taken apart by `node`; nobody else sees it."""

    scope: ScopeSettings = ScopeSettings()
    limits: LimitSettings = LimitSettings()
    urls: UrlSettings = UrlSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    robots: RobotsSettings = RobotsSettings()
    fetch: FetchSettings = FetchSettings()
    dns: DnsSettings = DnsSettings()
    frontier: FrontierSettings = FrontierSettings()
    priority: PrioritySettings = PrioritySettings()
    rank: RankSettings = RankSettings()
    budget: BudgetSettings = BudgetSettings()
    traps: TrapSettings = TrapSettings()
    dedup: DedupSettings = DedupSettings()
    aliases: AliasSettings = AliasSettings()
    recrawl: RecrawlSettings = RecrawlSettings()
    sitemaps: SitemapSettings = SitemapSettings()
    archive: ArchiveSettings = ArchiveSettings()
    retention: RetentionSettings = RetentionSettings()
    s3: S3Settings = S3Settings()
    spool: SpoolSettings = SpoolSettings()
    catalogue: CatalogueSettings = CatalogueSettings()
    stream: StreamSettings = StreamSettings()
    fleet: FleetSettings = FleetSettings()
    observe: ObserveSettings = ObserveSettings()
    alerts: AlertSettings = AlertSettings()
    pdf: PdfSettings = PdfSettings()
    office: OfficeSettings = OfficeSettings()
    render: RenderSettings = RenderSettings()
    plugins: PluginSettings = PluginSettings()
    random_seed: int = setting(0, "seed of every draw; the same seed gives the same order", flag="random-seed", low=0)
    processes: int = setting(
        1, "processes that share the crawl; auto (or 0) is one for each core", flag="processes", low=0, high=64
    )

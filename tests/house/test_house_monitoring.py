"""The files for Prometheus and Grafana speak of metrics that there are, and of every alert."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from nephila.control.exposition import WORKERS_SHOWN, expose
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.node.alarms import RULES
from nephila.node.desk import WorkerSeen
from nephila.node.logbook import Alert, Growth, Present

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring"
METRIC = re.compile(r"\b(?:nephila|process)_[a-z_]+")
LABEL = re.compile(r'(\w+)\s*(?:=~|=|!=)\s*"')


def present() -> Present:
    errors = {"timeout": 1}
    return Present(
        run=Growth(errors=errors, statuses={"2xx": 1, "429": 1}, latencies=[1] * 11),
        refused={"robots": 1},
        alerts=[Alert("latency", 1, 4, 3, "slow")],
    )


def text() -> str:
    frontier = FrontierSnapshot(
        1, 1, {"high": 1}, {"retry": 1}, {"dead": 1}, 1, 1, 1, 1, 1, 1, 1, 0, {"paused": 1}, {"high": 1}, {"trap": 1}
    )
    workers = [WorkerSeen(f"{number}", f"w{number:04d}", "working", pages=number) for number in range(1500)]
    return expose(present(), frontier, workers, running=True, now=5, outside=1)


def exposed() -> tuple[set[str], set[str]]:
    """The names of all metrics and labels."""
    names = {line.split("{")[0].split(" ")[0] for line in text().splitlines() if not line.startswith("#")}
    return names, set(re.findall(r'(\w+)="', text()))


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def expressions() -> list[str]:
    dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return [rule["expr"] for rule in rules()] + shown


def test_rules_and_dashboard_use_metrics_that_exist() -> None:
    """O2: no expression that could never have a value."""
    names, labels = exposed()
    for expression in expressions():
        bare = re.sub(r'"[^"]*"', '""', expression)
        used = set(METRIC.findall(bare))
        assert used, expression
        assert used <= names, expression
        assert set(LABEL.findall(expression)) <= labels | {"instance"}, expression


def test_there_is_a_rule_for_every_alert() -> None:
    """O2: the alerts that a crawl judges itself, by their names."""
    assert {rule["labels"]["nephila"] for rule in rules() if "nephila" in rule["labels"]} == set(RULES)
    assert all(rule["annotations"]["summary"] for rule in rules())


def test_names_and_units_follow_the_conventions() -> None:
    """O2: counters end in _total, times are seconds, sizes bytes; help and type come first; labels are bounded."""
    kinds = dict(re.findall(r"# TYPE (\S+) (\S+)", text()))
    for name, kind in kinds.items():
        assert (kind == "counter") == name.endswith("_total"), name
        assert not name.endswith(("_ms", "_kb", "_mb")), name
    assert len(kinds) == text().count("# HELP")
    assert 'nephila_alert{alert="latency"} 1' in text()
    assert 'nephila_alert{alert="error_rate"} 0' in text()
    assert 'nephila_fetch_duration_seconds_bucket{le="+Inf"} 11' in text()
    assert "host=" not in text()
    assert text().count("nephila_worker_up{") == WORKERS_SHOWN


def test_the_scrape_job_reads_the_rules() -> None:
    """O2: what is in the folder is used."""
    job = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    assert job["rule_files"] == ["alerts.yml"]
    assert job["scrape_configs"][0]["scrape_interval"] == "5s"

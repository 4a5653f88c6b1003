"""What is said to containers and clusters is what the program understands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from nephila.cli.main import cli
from nephila.config import load
from nephila.node.fleet.access import check_fleet

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy"
MANIFESTS = sorted((FOLDER / "kubernetes").glob("*.yaml"))
SETTINGS_FILE = "/etc/nephila/fleet.toml"


def documents(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one is not None]


def pod_of(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document.get("spec", {}).get("template", {}).get("spec", {})
    return found


def containers(document: dict[str, Any]) -> list[dict[str, Any]]:
    pod = pod_of(document)
    return [*pod.get("initContainers", ()), *pod.get("containers", ())]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command line of ours, by where it stands."""
    services = documents(FOLDER / "compose.yaml")[0]["services"]
    yield from ((f"compose {name}", one["command"]) for name, one in services.items() if one["image"] == "nephila")
    for path in MANIFESTS:
        for document in documents(path):
            yield from ((f"{path.name} {one['name']}", one["args"]) for one in containers(document))
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    yield "Dockerfile", yaml.safe_load(re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)[0])
    guide = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
    for line in re.findall(
        r"^\./nephila ((?:worker|seed|fleet|check|frontier|pages|why|dead) .*?)(?: +#.*)?$", guide, re.MULTILINE
    ):
        yield f"docs/fleet.md: {line}", line.split()


@pytest.mark.parametrize(("where", "arguments"), list(commands()), ids=lambda one: one if isinstance(one, str) else "")
def test_commands_and_flags_exist(where: str, arguments: list[str]) -> None:
    """N3: parsed by the program itself, which is not run."""
    context, command = click.Context(cli), cli
    rest = list(arguments)
    while isinstance(command, click.Group):
        found = command.get_command(context, rest.pop(0))
        assert found is not None, f"{where}: there is no such command"
        context, command = click.Context(found, parent=context), found  # type: ignore[assignment]
    parser = command.make_parser(context)
    parser.parse_args(args=rest)


def test_the_sample_and_the_settings_in_the_manifests_are_whole() -> None:
    """N1, C4: every setting is known, and all that a fleet needs is there."""
    texts = {"deploy/fleet.toml": (FOLDER / "fleet.toml").read_text(encoding="utf-8")}
    for document in documents(FOLDER / "kubernetes" / "settings.yaml"):
        texts["settings.yaml"] = document["data"]["fleet.toml"]
    for text in texts.values():
        assert check_fleet(load(stored=text).settings) == "web"


def test_workers_are_stateless_and_bounded() -> None:
    """N3: a Deployment with a spool, limits, a probe that no engine can fail, time to end, and no rights."""
    (worker,) = documents(FOLDER / "kubernetes" / "worker.yaml")
    assert worker["kind"] == "Deployment"
    pod = pod_of(worker)
    (container,) = pod["containers"]
    spool = next(one for one in pod["volumes"] if one["name"] == "spool")
    assert "emptyDir" in spool
    assert pod["terminationGracePeriodSeconds"] >= 120
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert {"requests", "limits"} <= container["resources"].keys()
    assert "livenessProbe" in container
    mounted = {one["mountPath"] for one in container["volumeMounts"]}
    assert (
        load(
            stored=documents(FOLDER / "kubernetes" / "settings.yaml")[0]["data"]["fleet.toml"]
        ).settings.fleet.directory
        in mounted
    )


def test_a_spool_is_full_before_its_volume_is() -> None:
    """N3, W2: fetching waits then; a volume that is over its limit is taken away, with what was not uploaded."""
    (worker,) = documents(FOLDER / "kubernetes" / "worker.yaml")
    volume = next(one for one in pod_of(worker)["volumes"] if one["name"] == "spool")["emptyDir"]["sizeLimit"]
    settings = load(stored=documents(FOLDER / "kubernetes" / "settings.yaml")[0]["data"]["fleet.toml"]).settings
    assert volume.endswith("Gi")
    assert settings.spool.max_bytes <= 0.8 * int(volume.removesuffix("Gi")) * 2**30, "what is leased still arrives"


def test_the_image_has_the_extension() -> None:
    """N3: it is compiled where the image is built, into where the package is."""
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    (package,) = re.findall(r"cp -r src/nephila (\S+?)/? ", text)
    assert re.findall(r"python tools/native\.py (\S+)", text) == [package]
    assert text.index("COPY . .") < text.index("tools/native.py") < text.index("COPY --from=build")
    assert (ROOT / "tools" / "native.py").is_file()


def test_a_fleet_in_containers_can_be_started_a_second_time() -> None:
    """N3: the bucket is made where it is not there; making it again would fail, and all would wait for it for ever."""
    bucket = documents(FOLDER / "compose.yaml")[0]["services"]["bucket"]
    assert bucket["entrypoint"] == ["/bin/sh", "-c"]
    (command,) = bucket["command"]
    looks, makes = command.split("||")
    assert "head-bucket --bucket crawls" in looks
    assert "mb s3://crawls" in makes


def test_no_secret_stands_in_a_file() -> None:
    """N2: they come from the environment or from a Secret."""
    for path in (*FOLDER.glob("*"), *MANIFESTS):
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                bare = line.split("#")[0]
                if re.search(r"(PASSWORD|SECRET_ACCESS_KEY|REDISCLI_AUTH):", bare):
                    assert "${" in bare, f"{path.name}: {line}"


def test_selectors_find_their_pods() -> None:
    """N3: what is selected is what is labelled; names of volumes and mounts agree."""
    every = [document for path in MANIFESTS for document in documents(path)]
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in every if pod_of(one)]
    for path in MANIFESTS:
        for document in documents(path):
            assert {"apiVersion", "kind", "metadata"} <= document.keys()
            if document["kind"] == "Service":
                assert document["spec"]["selector"] in labels
            elif "selector" in document.get("spec", {}):
                assert document["spec"]["selector"]["matchLabels"] == document["spec"]["template"]["metadata"]["labels"]
            volumes = {one["name"] for one in pod_of(document).get("volumes", ())}
            for container in containers(document):
                assert {one["name"] for one in container["volumeMounts"]} <= volumes


def test_containers_may_do_nothing_that_they_need_not() -> None:
    """N3, K4: no root, no rights, a root file system that is only read: as strict clusters demand of all."""
    for path in MANIFESTS:
        for document in documents(path):
            for container in containers(document):
                pod, own = pod_of(document)["securityContext"], container["securityContext"]
                assert (pod["runAsNonRoot"], pod["seccompProfile"]["type"]) == (True, "RuntimeDefault")
                assert (own["allowPrivilegeEscalation"], own["readOnlyRootFilesystem"]) == (False, True)
                assert own["capabilities"] == {"drop": ["ALL"]}


def test_the_dashboard_of_a_fleet_is_asked_for_its_health_without_a_token() -> None:
    """C2, N3: outside its pod it needs one, and probes have none; ports agree; the name of a Service is no setting."""
    serve, service = documents(FOLDER / "kubernetes" / "serve.yaml")
    (container,) = containers(serve)
    (port,) = container["ports"]
    assert container["args"][-1] == str(port["containerPort"]) == str(service["spec"]["ports"][0]["port"])
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": port["name"]}
    name = service["metadata"]["name"].upper().replace("-", "_")  # what every other pod finds in its environment
    told = {f"{name}_{rest}": "tcp://10.0.0.1:8470" for rest in ("PORT", "SERVICE_HOST", "PORT_8470_TCP_ADDR")}
    assert load(environ=told).settings == load().settings

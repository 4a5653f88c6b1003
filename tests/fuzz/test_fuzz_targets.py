"""Every fuzz target with the inputs that were kept, and with a fixed number of mutations of them.

`tools/fuzz` looks for inputs by coverage; here nothing is guided and nothing random: the same inputs each time.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fuzzing import TARGETS, Target

CORPUS = Path(__file__).parents[1] / "corpus"
TOOL = Path(__file__).parents[2] / "tools" / "fuzz_command.py"
MUTATIONS = 150
CORPUS_BYTES = 2_000_000


def kept(name: str) -> list[Path]:
    return sorted((CORPUS / name).iterdir())


def mutations(target: Target, count: int) -> Iterator[bytes]:
    """Inputs changed here and there, always the same ones."""
    chance = random.Random(f"fuzz {target.name}")
    pool = [*target.seeds, *(path.read_bytes() for path in kept(target.name))]
    pieces = [*target.words, b"\0", b"\xff", b"\n", b" "]
    for _ in range(count):
        data = bytearray(chance.choice(pool))
        for _ in range(chance.randrange(1, 12)):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(5):
                case 0:
                    data[at:at] = chance.choice(pieces)
                case 1:
                    del data[at : at + chance.randrange(1, 20)]
                case 2:
                    data[at : at + 1] = bytes([chance.randrange(256)])
                case 3:
                    data[at:at] = data[at : at + chance.randrange(40)]
                case _:
                    data[at:at] = chance.choice(pool)[: chance.randrange(200)]
        yield bytes(data[: target.longest])


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_that_were_kept_break_nothing(name: str) -> None:
    """Q5: what coverage found, and everything that ever broke something."""
    files = kept(name)
    assert files
    for path in files:
        TARGETS[name].check(path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_break_nothing(name: str) -> None:
    """Q5: a fixed number of them, from a fixed seed."""
    for data in mutations(TARGETS[name], MUTATIONS):
        TARGETS[name].check(data)


@pytest.mark.parametrize("name", TARGETS)
def test_time_grows_with_the_length_of_an_input_and_not_with_its_square(name: str) -> None:
    """Q5: the costliest input that was kept, repeated; eight times as long may not take fifty times as long."""
    target = TARGETS[name]

    def took(data: bytes) -> float:
        def once() -> float:
            begun = time.process_time()
            target.check(data)
            return time.process_time() - begun

        return min(once() for _ in range(2))

    inputs = [path.read_bytes() for path in kept(name)][:12]
    costliest = max(inputs, key=lambda data: took(data) / (len(data) + 100))
    base = costliest * (2_000 // (len(costliest) + 1) + 1)
    short, long = took(base), took(base * 8)
    assert long < max(50 * short, 0.5), (short, long)


def test_the_corpus_is_small_and_every_target_has_one() -> None:
    """Q5: it is in the repository for good."""
    assert {path.name for path in CORPUS.iterdir() if path.is_dir()} == set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*")) < CORPUS_BYTES


def test_what_was_spent_on_each_target_is_recorded(say: Callable[[str], None]) -> None:
    """Q5: CPU minutes, as tools/fuzz measured them."""
    spent = tomllib.loads((CORPUS / "ACCUMULATED.toml").read_text(encoding="utf-8"))
    assert set(spent) == set(TARGETS)
    least = min(spent, key=lambda name: spent[name]["cpu_minutes"])
    total = sum(entry["cpu_minutes"] for entry in spent.values())
    say(f"{total:.0f} CPU minutes in all; least had {least}, {spent[least]['cpu_minutes']:.1f}")
    assert all(entry["cpu_minutes"] > 0 and entry["runs"] > 0 for entry in spent.values())


def test_the_command_names_its_targets_and_refuses_others() -> None:
    """Q5: without arguments it lists them; a target that is not there is one clear sentence."""
    listed = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, check=False)
    assert listed.returncode == 0
    assert all(name in listed.stdout for name in TARGETS)
    refused = subprocess.run([sys.executable, TOOL, "nonsense"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.startswith("There is no target 'nonsense'; there are answer")

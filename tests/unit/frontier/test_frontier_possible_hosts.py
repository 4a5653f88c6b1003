"""Names that are too long for any server, in frontiers of versions that queued links to them."""

from __future__ import annotations

from nephila.frontier.moving import DomainRow, HostRow, MarkRow, Row, TallyRow
from nephila.frontier.redis.importing import _of_possible_hosts
from nephila.model.record import SegmentId


def test_a_fleet_is_given_no_host_that_its_records_have_no_room_for() -> None:
    """Q5, N8: left out with all that is theirs; what belongs to no host stays."""
    good, bad, mark = "a.test", f"{'a' * 300}.test", MarkRow(SegmentId("one"), 7)
    ours: list[Row] = [DomainRow(name=good), HostRow(name=good), TallyRow({})]
    theirs: list[Row] = [DomainRow(name=bad), HostRow(name=bad), TallyRow({}), HostRow(name=f"www.{bad}"), TallyRow({})]
    assert list(_of_possible_hosts([*theirs, *ours, *theirs, mark])) == [*ours, mark]

"""ClaimChannel: a claim whose caller reads and writes the socket itself, answered exactly once across reconnects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.lua.rig import Rig, outcome

from tidegate.domain.errors import StoreRefused
from tidegate.domain.job import SettleWord
from tidegate.domain.states import State
from tidegate.store import ClaimChannel, ClaimReply, ClaimRequest


class Wire:
    """A connection that can be cut after a command was sent."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.connection: Any = rig.store.target.connect(2.0)
        self.connection.connect()

    @property
    def run_id(self) -> str:
        found: str = self.connection.run_id
        return found

    def ask(self, command: tuple[Any, ...]) -> Any:
        self.connection.send_command(*command)
        return self.connection.read_response()

    def cut(self, command: tuple[Any, ...]) -> None:
        """The command is carried out, its reply never arrives, and the connection is a new one."""
        self.ask(command)
        self.connection.disconnect()
        self.connection.connect()


@pytest.fixture
def wire(rig: Rig) -> Iterator[Wire]:
    wire = Wire(rig)
    yield wire
    wire.connection.disconnect()


@pytest.fixture
def channel(rig: Rig) -> ClaimChannel:
    return ClaimChannel(rig.store, "w1")


def request(slots: int = 1, *outcomes: Any) -> ClaimRequest:
    return ClaimRequest("w1", ("default",), slots, outcomes)


def claim(channel: ClaimChannel, wire: Wire, asked: ClaimRequest) -> ClaimReply:
    return channel.parse(wire.ask(channel.command(asked, wire.run_id)))


def test_jobs_arrive(rig: Rig, channel: ClaimChannel, wire: Wire) -> None:
    rig.put("a", "b")
    assert [job.operation_id for job in claim(channel, wire, request(2)).jobs] == ["a", "b"]
    assert not channel.unanswered
    assert channel.replay(wire.run_id) is None


def test_a_cut_claim_is_answered_again(rig: Rig, channel: ClaimChannel, wire: Wire) -> None:
    rig.put("done", "a", "b", "c")
    done = rig.one()
    wire.cut(channel.command(request(2, outcome(done)), wire.run_id))
    assert channel.unanswered
    again = channel.replay(wire.run_id)
    assert again is not None
    reply = channel.parse(wire.ask(again))
    assert [job.operation_id for job in reply.jobs] == ["a", "b"]
    assert reply.words == (SettleWord.OK,)
    assert [job.operation_id for job in claim(channel, wire, request(2)).jobs] == ["c"]


def test_a_cut_before_the_claim_arrived_is_its_first_arrival(
    rig: Rig, channel: ClaimChannel, wire: Wire
) -> None:
    rig.put("a")
    channel.command(request(), wire.run_id)
    again = channel.replay(wire.run_id)
    assert again is not None
    assert [job.operation_id for job in channel.parse(wire.ask(again)).jobs] == ["a"]


def test_an_abandoned_claim_gives_its_outcomes_back(rig: Rig, channel: ClaimChannel, wire: Wire) -> None:
    rig.put("a", "b")
    job = rig.one()
    channel.command(request(1, outcome(job)), wire.run_id)
    assert channel.abandon() == (outcome(job),)
    assert channel.abandon() == ()
    assert [job.operation_id for job in claim(channel, wire, request(1, outcome(job))).jobs] == ["b"]
    assert rig.state("a") is State.SUCCEEDED


def test_a_server_without_our_scripts_gets_the_source(rig: Rig, channel: ClaimChannel, wire: Wire) -> None:
    rig.put("a")
    rig.forget_scripts()
    command = channel.command(request(), wire.run_id)
    with pytest.raises(Exception, match=r"(?i)not found|no matching") as unknown:
        wire.ask(command)
    assert channel.is_unknown(unknown.value)
    again = channel.replay(wire.run_id)
    assert again is not None
    assert [job.operation_id for job in channel.parse(wire.ask(again)).jobs] == ["a"]
    assert not channel.is_unknown(ValueError("something else"))


def test_two_channels_do_not_share_a_request(rig: Rig, wire: Wire) -> None:
    rig.put("a", "b")
    one, two = ClaimChannel(rig.store, "w1"), ClaimChannel(rig.store, "w1")
    replies = [claim(channel, wire, request()).jobs for channel in (one, two)]
    assert [job.operation_id for jobs in replies for job in jobs] == ["a", "b"]


def test_a_flushed_fleet_is_refused(rig: Rig, channel: ClaimChannel, wire: Wire) -> None:
    meta = f"{rig.store.key_prefix}meta"
    saved = rig.client.dump(meta)
    rig.client.delete(meta)
    with pytest.raises(StoreRefused, match="records are gone"):
        claim(channel, wire, request())
    assert saved
    rig.client.restore(meta, 0, saved)


def test_waiting_ends_at_a_wake_or_in_time(rig: Rig, channel: ClaimChannel, wire: Wire) -> None:
    assert wire.ask(channel.wait_command(("default", "other"), 20)) is None
    assert not rig.claim().jobs
    rig.put("a", queue="other")
    assert wire.ask(channel.wait_command(("default", "other"), 1_000)) is not None

"""What goes wrong in production, as functions: the scaled tests and `make faults` call them with their own figures.

Each leaves the fleet alive; the verdict is drawn afterwards, from the ledger alone (`settle_accounts`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.harness.processes import Proc, freeze, thaw
from tests.harness.procfs import boot_time
from tests.harness.proxy import Proxy
from tests.harness.verifier import Verifier
from tests.harness.wait import wait_until
from tests.integration.lease.stage import QUEUE, Stage, bodies

#: seconds between the end of a body and its report: it waits 0.2 s for a claim to ride on, and the machine is busy.
#: What a server forgets is the report
REPORT_DELAY = 0.5


def crash(stage: Stage, *, seconds: float, kill_after: float, spare: bool) -> float:
    """SIGKILL to the worker's main process at `kill_after` of a job; seconds until the job runs again.

    spare: another worker is alive already; else one is started at once.
    """
    worker = stage.worker("prefork", 1)
    (job,) = stage.send(1, seconds)
    stage.wait_running(1)
    if spare:
        stage.worker("prefork", 1)
    began = boot_time()
    pass_time(kill_after)
    assert stage.begun(job) == 1, "not started twice while its worker lives"
    worker.kill9()
    killed = boot_time()
    assert killed - began < kill_after + 2
    if not spare:
        stage.worker("prefork", 1)
    why = "the job to start again"
    wait_until(lambda: stage.begun(job) == 2, lambda: f"{why}\n{stage.processes.logs()}", 60)
    again = max(entry.at for entry in stage.entries() if entry.kind == "begin")
    return again - killed


def freezes(stage: Stage, *, rounds: int, seconds: float, child_rounds: int, long: float) -> None:
    """In each round SIGSTOP two of three worker mains for `seconds`, and in the first `child_rounds` a child of the
    third. The load: short bodies, bodies about as long as the fence, and `long` ones that outlast the freeze.
    """
    workers = [stage.worker("prefork", 2) for _ in range(3)]
    durations = (0.2, seconds / 15, seconds / 4, 0.2, seconds / 15, long)
    for number in range(rounds):
        for duration in durations:
            stage.send(3, duration)
        wait_until(
            lambda: stage.counts()[1] >= 5, lambda: f"load: {stage.counts()}\n{stage.processes.logs()}", 60
        )
        *frozen, third = workers[number % 3 :] + workers[: number % 3]
        for worker in frozen:
            worker.freeze()
        child = bodies(third)[number % 2] if number < child_rounds else None
        if child is not None:
            freeze(child, stage.book.record_process)
        pass_time(seconds)
        if child is not None:
            thaw(child, stage.book.record_process)
        for worker in frozen:
            worker.thaw()
        thawed = boot_time()
        wait_until(
            lambda: all(worked_after(stage, worker, thawed) for worker in workers) or not stage.counts()[0],  # noqa: B023
            lambda: f"all three workers to work again\n{stage.processes.logs()}",
            60,
        )
        assert all(worker.alive for worker in workers)


def freeze_whole(stage: Stage, *, seconds: float) -> None:
    """Freeze everything of one worker, guards and watchdog included, while another takes over; then thaw it."""
    worker = stage.worker("prefork", 2)
    stage.send(2, seconds + 4)
    stage.wait_running(2)
    everything = worker.family()
    for process in everything:
        freeze(process, stage.book.record_process)
    stage.worker("prefork", 2)
    pass_time(seconds)
    wait_until(lambda: stage.running() == 4, lambda: f"both to run again\n{stage.processes.logs()}", 30)
    for process in everything:
        thaw(process, stage.book.record_process)


def worked_after(stage: Stage, worker: Proc, instant: float) -> bool:
    """True if a body has begun in this worker since."""
    return any(
        entry.kind == "begin" and entry.at > instant and worker.id in (entry.worker, entry.process)
        for entry in stage.entries()
    )


def restarts(stage: Stage, *, cycles: int, down: float) -> list[float]:
    """Stop the server, let it be down, start it; for each cycle the seconds until a body begins."""
    return [_restart(stage, down) for _ in range(cycles)]


def _restart(stage: Stage, down: float) -> float:
    stage.top_up(100, 0.1)
    stage.server.stop()
    pass_time(down)
    stage.server.start()
    return stage.consumes_after(boot_time())


def half_opens(stage: Stage, proxy: Proxy, *, times: int) -> list[float]:
    """All connections of the moment swallow everything and stay open; seconds until a body begins, each time."""
    found = []
    for _ in range(times):
        stage.top_up(300, 0.1)
        before = stage.server.client().info("stats")["total_connections_received"]
        proxy.half_open()
        at = boot_time()
        # bodies of jobs that were claimed before may still begin: wait for new connections, then for bodies
        wait_until(
            lambda: stage.server.client().info("stats")["total_connections_received"] > before + 2,  # noqa: B023
            lambda: f"new connections\n{stage.processes.logs()}",
            40,
        )
        stage.consumes_after(boot_time())
        found.append(boot_time() - at)
    return found


def client_kills(stage: Stage, *, times: int, within: float) -> float:
    """Cut every client connection `times` times `within` seconds; seconds until a body begins afterwards."""
    stage.top_up(200, 0.1)
    admin = stage.server.client()
    for _ in range(times):
        admin.client_kill_filter(_type="normal", skipme=True)
        pass_time(within / times)
    return stage.consumes_after(boot_time())


def forgetful_kills(stage: Stage, *, times: int, forget: float, killed_with: Sequence[int]) -> None:
    """kill -9 the server, and let it forget what it took in the last `forget` seconds, which no fsync has promised to
    keep (everysec). Two workers; in the rounds `killed_with` one of them dies together with the server.
    """
    workers = [stage.worker("prefork", 2) for _ in range(2)]
    for number in range(times):
        stage.top_up(
            100, 0.2
        )  # before the mark: what was accepted within the time to be forgotten is forgotten
        mark = stage.server.aof_mark()
        lost_after = boot_time()
        pass_time(forget)
        dies = number in killed_with
        if dies:
            workers[0].kill9()
        stage.server.kill9_losing_since(mark)
        stage.book.record_server_kill(lost_after - REPORT_DELAY, boot_time())
        stage.server.start()
        stage.consumes_after(boot_time(), timeout=60)
        if dies:
            # not within the time to be forgotten: a worker's registration is made durable before its first claim
            workers = [*workers[1:], stage.worker("prefork", 2)]


def settle_accounts(stage: Stage, jobs: Sequence[str], *, timeout: float) -> Verifier:
    """Wait until nothing waits or runs any more, then judge: no overlap, nothing lost.

    A job whose worker was lost twice is recorded as failed and waits for the authority: it is not lost.
    """

    def quiet() -> bool:
        now = stage.snapshot()
        if now is None:
            return False
        count = now.queues[QUEUE]
        return count.waiting == count.delayed == count.running == 0

    wait_until(quiet, lambda: f"quiet: {stage.snapshot()}\n{unfinished(stage, jobs)}", timeout, interval=0.2)
    verdict = stage.verdict()
    assert verdict.overlaps(possible=True) == []
    open_jobs = unfinished(stage, jobs)
    assert {job: why for job, why in open_jobs.items() if "worker_lost" not in why} == {}
    assert verdict.lost(jobs) <= set(open_jobs)
    fences = stage.fences()
    assert len(set(fences)) == len(fences), "a fencing token was given twice"
    for attempts in verdict.by_job().values():
        own = [int(str(attempt.info["fence"])) for attempt in attempts]
        assert own == sorted(own), "a later attempt has the larger token"
    return verdict


def explained(verdict: Verifier) -> str:
    """Every duplicate that no pair (server kill, process kill) accounts for, in words; empty is good."""
    duplicates = verdict.unexplained_duplicates()
    if not duplicates:
        return ""
    kills = [f"forgot {kill.lost_after:.3f} to {kill.killed_at:.3f}" for kill in verdict.server_kills]
    lines = [
        f"{job}: "
        + ", ".join(
            f"{one.begin:.3f} to {one.end:.3f} in {one.process.pid} of {one.worker.pid}" for one in found
        )
        for job, found in duplicates.items()
    ]
    return "\n".join([*lines, *kills])


def unfinished(stage: Stage, jobs: Sequence[str]) -> dict[str, str]:
    """What the store still holds: state, reason and detail of each job."""
    views = {job: stage.store.job(job) for job in jobs}
    return {job: f"{view.state.name} {view.reason} {view.detail}" for job, view in views.items() if view}


def pass_time(seconds: float) -> None:
    """Let real time pass: what is tested here is time itself."""
    until = boot_time() + seconds
    wait_until(lambda: boot_time() >= until, "time to pass", seconds + 30)

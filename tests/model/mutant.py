"""Seeded mistakes: one rule of a script broken at a time. A suite that does not notice one of them proves nothing.

The loader replaces a piece of text in every script that contains it (`load(name, mutation)`). A mutated script is
called by its source, so the library of functions on the server stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.store.script import Script, load


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` is replaced by `new` wherever it stands. test: the one test of tests/lua that must fail, if it is named."""

    name: str
    old: str
    new: str
    test: str = ""

    def load(self, command: str) -> Script:
        """In the place of `tidegate.store.script.load`."""
        try:
            return load(command, (self.old, self.new))
        except ValueError:  # nothing to mutate in this one
            return load(command)


#: the machine finds these
COMMON = [
    Mutant("limit off by one", "lib.in_use(r) >=", "lib.in_use(r) >"),
    Mutant("wake dropped", "if who[1] then call('ZADD'", "if false then call('ZADD'"),
    Mutant(
        "charge without lease",
        "  call('ZADD', P .. 'leases', NOW + meta.lease, lease)\n  local p",
        "  local p",
    ),
    Mutant("token not taken", "b.tokens = b.tokens - TOKEN", "b.tokens = b.tokens"),
    Mutant("dedup skipped", "local s = call('GET', P .. 'key:' .. a.key)", "local s = nil"),
    Mutant("conflict unseen", "if hash ~= a.hash then", "if false then"),
    Mutant("tenant turn ignored", "p = p + lib.charged(j) / lib.limit('tenant:' .. t).weight", "p = p + 0"),
    Mutant("uncount forgotten", "P .. 'key:' .. j.key) end\n  lib.uncount(j)", "P .. 'key:' .. j.key) end"),
    Mutant("timer not set", "if until_ms then\n", "if false then\n"),
    Mutant("reply not kept", "'EX', 600)\n  return reply", "'PX', 1)\n  return reply"),
]

#: meetings so rare that the machine may need minutes: the test of the rule finds these at once
RARE = [
    Mutant(
        "bound counts what waits only",
        "return b.took - b.out\n",
        "return b.took - b.out - b.R\n",
        "test_enqueue:test_a_running_job_counts_in_the_bound",
    ),
    Mutant(
        "decided twice",
        "if j and j.state == S.FAILED and lib.lease_of(j) == ARGV[i] then",
        "if j and lib.lease_of(j) == ARGV[i] then",
        "test_decide:test_a_second_decision_about_the_same_attempt_is_too_late",
    ),
    Mutant(
        "retry starts at once",
        "j.eligible = tonumber(ARGV[i + 2])",
        "j.eligible = NOW",
        "test_decide:test_a_retry_waits_for_its_instant_and_then_stands_in_line",
    ),
    Mutant(
        "expired job started",
        "  local why = lib.expired(j)\n  if why then\n    lib.leave_head",
        "  local why\n  if why then\n    lib.leave_head",
        "test_claim:test_an_expired_job_is_never_started",
    ),
    Mutant(
        "bucket time moves back",
        "if NOW > stamp then",
        "if NOW ~= stamp then",
        "test_bucket:test_tokens_that_are_there_stay_when_the_clock_goes_back",
    ),
    Mutant(
        "lost reply charged at once",
        "j.lost < 2",
        "j.lost < 0",
        "test_lease:test_a_lost_claim_reply_is_not_charged_twice_and_then_it_is",
    ),
    Mutant(
        "pulse gap ignored",
        "if NOW - meta.pulse > 2000 then",
        "if false then",
        "test_lease:test_after_a_gap_in_the_pulse_nothing_is_judged_for_one_lease",
    ),
    Mutant(
        "newcomer starts at nought",
        "math.max(known or lib.least_pass(q), lib.vt(q) - 5)",
        "known or 0",
        "test_fairness:test_a_newcomer_starts_where_the_others_are",
    ),
    Mutant(
        "stale accepted",
        "lease) == 1 and lib.job_read(id)",
        "lease) and lib.job_read(id)",
        "test_settle:test_a_report_after_a_give_back_is_stale",
    ),
    Mutant(
        "release charged",
        "elseif kind == 'release' then",
        "elseif kind == 'release' then j.charged = j.charged + 1",
        "test_settle:test_a_released_job_goes_back_to_its_place_and_is_not_charged",
    ),
    Mutant(
        "release keeps its token",
        "do lib.bucket_refund(r) end",
        "do local _ = r end",
        "test_bucket:test_what_was_given_back_before_it_started_gives_its_token_back",
    ),
    Mutant(
        "group closed by another's blocker",
        "if m == '!' .. r and where == 'same'",
        "if m:sub(1, 1) == '!'",
        "test_claim:test_a_group_is_not_closed_by_a_waiter_that_something_else_blocks",
    ),
    Mutant(
        "at most once runs twice",
        "local again = j.flags % 2 ~= AT_MOST_ONCE",
        "local again = true",
        "test_lease:test_a_first_heartbeat_never_came_and_the_body_may_have_started",
    ),
    Mutant(
        "replay uncounted",
        "lib.move(j, S.WAITING)\n  lib.take_in(j)",
        "lib.move(j, S.WAITING)",
        "test_replay:test_one_death_is_replayed_once",
    ),
    Mutant(
        "another death replayed",
        "if lib.int(lib.generation(j)) ~= generation then",
        "if false then",
        "test_replay:test_one_that_has_died_anew_is_another_death",
    ),
    Mutant(
        "replayed and still told of",
        "  call('ZREM', P .. 'untold', j.id)\n  call('UNLINK'",
        "  call('UNLINK'",
        "test_replay:test_a_dead_letter_waits_again_with_all_its_attempts_before_it",
    ),
    Mutant(
        "stale cursor taken",
        "or lib.int(s.cursor) ~= ARGV[6]",
        "",
        "test_fire:test_of_two_who_planned_the_same_one_is_late",
    ),
    Mutant(
        "mark not looked at",
        "fate == 'emitted' and lib.fired(name, time)",
        "false",
        "test_fire:test_a_clock_that_was_far_ahead_silences_no_schedule_and_fires_nothing_twice",
    ),
]

#: only a server that comes back can show these
FORGETFUL = [
    Mutant("epoch not bumped", "meta.run = meta.epoch + 1, 0, RUN", "meta.run = meta.epoch, 0, RUN"),
    Mutant("hold ignored by claim", "known == 1 and lib.held() == 0 and 4 * n", "known == 1 and 4 * n"),
    Mutant("report before reassertion", "words[i] = wait and 'held' or", "words[i] ="),
    Mutant("older attempt wins", "and j.fence < mine.fence", "and j.fence > mine.fence"),
    Mutant("lost success forgotten", "lib.remember(lib.step_name(mine), S.SUCCEEDED)", "local _"),
    Mutant("copy kept", "if copy then lib.drop_copy(copy) end", ""),
]

MUTANTS = [*COMMON, *RARE, *FORGETFUL]

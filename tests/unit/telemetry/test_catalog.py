"""The catalogue: complete, well named, bounded. The list below is the agreed one; a release may add, never drop."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tidegate.telemetry.catalog import CATALOG, OTHER, Kind, Metric, Unit, as_markdown, metric

#: every metric that was agreed, with its labels
AGREED = (
    "tidegate_queue_depth{queue,state}",
    "tidegate_queue_limit{queue}",
    "tidegate_queue_oldest_age_seconds{queue,cause}",
    "tidegate_tenant_oldest_age_seconds{queue,tenant}",
    "tidegate_queue_oldest_unfinished_seconds{queue}",
    "tidegate_queue_pressure{queue}",
    "tidegate_enqueues_total{queue,result}",
    "tidegate_claims_total{queue}",
    "tidegate_attempts_total{task,outcome}",
    "tidegate_jobs_finished_total{queue,task,state}",
    "tidegate_wait_seconds{queue,cause}",
    "tidegate_run_seconds{task}",
    "tidegate_resource_in_use{resource}",
    "tidegate_resource_limit{resource}",
    "tidegate_bucket_tokens{resource}",
    "tidegate_resource_closed_seconds{resource}",
    "tidegate_parked_lanes{reason}",
    "tidegate_retries_total{task,reason}",
    "tidegate_retry_waiting{reason}",
    "tidegate_retry_budget_ratio{scope}",
    "tidegate_dead_letters{queue}",
    "tidegate_dead_letter_oldest_age_seconds{queue}",
    "tidegate_dead_letters_total{queue,reason}",
    "tidegate_replays_total{result}",
    "tidegate_leases_expired_total",
    "tidegate_stale_reports_total",
    "tidegate_fires_total{schedule,fate}",
    "tidegate_fire_lag_seconds",
    "tidegate_worker_up{worker}",
    "tidegate_worker_last_claim_age_seconds{worker}",
    "tidegate_leader{component}",
    "tidegate_store_memory_ratio",
    "tidegate_store_reset_total",
    "tidegate_queue_paused{queue}",
    "tidegate_override_expires_seconds{resource}",
    "tidegate_reconciling",
    "tidegate_budget_spent_ratio{scope}",
    "tidegate_queue_slots_wanted{queue}",
    "tidegate_build_info",
)

#: ours alone: a store that is down must be a number too, and the release needs a label to stand in
LABELS_ADDED = {"tidegate_build_info": ("version",)}
ADDED = {"tidegate_store_up"}

each = pytest.mark.parametrize("one", CATALOG, ids=lambda one: one.name)


def labels(one: Metric) -> tuple[str, ...]:
    return tuple(label.name for label in one.labels)


@pytest.mark.parametrize("written", AGREED)
def test_every_agreed_metric_is_there_with_its_labels(written: str) -> None:
    name, _, inside = written.rstrip("}").partition("{")
    agreed = tuple(inside.split(",")) if inside else ()
    assert labels(metric(name)) == LABELS_ADDED.get(name, agreed)


def test_nothing_else_is_there() -> None:
    agreed = {written.partition("{")[0] for written in AGREED}
    assert {one.name for one in CATALOG} == agreed | ADDED


def test_names_are_unique() -> None:
    names = [one.name for one in CATALOG]
    assert len(names) == len(set(names))


@each
def test_the_name_says_kind_and_unit(one: Metric) -> None:
    assert re.fullmatch(r"tidegate(_[a-z]+)+", one.name)
    assert one.name.endswith("_total") == (one.kind is Kind.COUNTER)
    assert one.name.endswith("_seconds") == (one.unit is Unit.SECONDS)
    assert one.name.endswith("_ratio") == (one.unit is Unit.RATIO)
    assert not one.name.endswith(("_count", "_sum", "_bucket", "_created")), "Prometheus makes these itself"


@each
def test_every_label_is_bounded_and_says_of_what(one: Metric) -> None:
    for label in one.labels:
        assert re.fullmatch(r"[a-z]+", label.name)
        assert label.most >= 1
        assert bool(label.of) != bool(label.values), "either open with a source, or a closed set"
        if label.values:
            assert label.most == len(set(label.values)) == len(label.values)
            assert "" not in label.values
        elif label.most >= 100:
            assert f"`{OTHER}`" in label.of, "where the rest of an open set goes"
    assert len(set(labels(one))) == len(one.labels)


@each
def test_the_bound_on_series_is_the_product(one: Metric) -> None:
    if one.labels:
        assert one.most_series == replace(one, labels=one.labels[1:]).most_series * one.labels[0].most
    else:
        assert one.most_series == 1


@each
def test_the_meaning_is_one_line_of_whole_sentences(one: Metric) -> None:
    assert one.help.endswith(".")
    assert "\n" not in one.text
    assert one.exported or not one.note, "what this release does not tell is said of what it exports"


def test_a_name_that_is_not_in_the_catalogue_is_refused() -> None:
    with pytest.raises(KeyError):
        metric("tidegate_invented")


def test_the_page_names_every_metric_once() -> None:
    page = as_markdown()
    now, _, later = page.partition("## Reserved")
    for one in CATALOG:
        place = now if one.exported else later
        cell = "| `" + one.name + ("{" if one.labels else "`")
        assert (page.count(cell), place.count(cell)) == (1, 1)


def test_the_page_has_a_row_for_each_label_set() -> None:
    rows = as_markdown().partition("## Labels")[2]
    for label in {label for one in CATALOG for label in one.labels}:
        values = label.of or ", ".join(f"`{value}`" for value in label.values)
        assert f"| `{label.name}` | {label.most:,} | {values} |" in rows

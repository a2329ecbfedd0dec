"""The pages over the tables of a job that follows a real Kafka broker, in a real Chromium."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Watch
from tests.job.commands import ManyRuns
from tests.kit.brokers import Broker
from tests.kit.chromium import chromium
from tests.kit.members import Member, wait_until_assigned
from tests.kit.topics import create_topic
from tests.live.job import CLUSTER, running_job
from tests.live.pages import WAIT_MS, LivePages, server_over
from tests.live.story import partitions

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

# Far apart, so that the time from a batch to the page can be counted in batches.
_SLOWLY = {"REBALANCE_MONITOR_JOB__TRIGGER_INTERVAL_MS": "5000"}


def test_rebalances_of_a_real_group_appear_on_an_open_page_also_when_its_server_was_away(
    kafka41: Broker, new_member: Callable[..., Member], runs: ManyRuns, tmp_path: Path
) -> None:
    create_topic(kafka41, "paged", 4)
    watch = Watch()
    with running_job(runs, kafka41, tmp_path, settings=_SLOWLY) as job, chromium() as browser:
        first = new_member(kafka41, "watching", ["paged"], client_id="first")
        wait_until_assigned([first], partitions("paged", 4))
        job.wait_for_generation("watching", 1)
        job.wait_for(lambda: any(row["group_id"] == "watching" for row in job.rows("groups")), "the group's row")
        page = browser.new_page()
        watch.page(page)
        rebalances = page.locator('[aria-label="Rebalances"] tbody tr')
        owners = page.locator('[aria-label="Queues and their owners"] tbody tr')
        server = server_over(job.tables)
        with server.in_background():
            page.goto(f"{server.url}group?cluster={CLUSTER}&group=watching")
            expect(page.locator("#live-state")).to_have_text("live")
            expect(owners).to_have_count(4, timeout=WAIT_MS)
            page.evaluate("window.isTheSamePage = true")
            shown = rebalances.count()

            second = new_member(kafka41, "watching", ["paged"], client_id="second")
            generation = wait_until_assigned([first, second], partitions("paged", 4))
            expect(rebalances).not_to_have_count(shown, timeout=WAIT_MS)
            last = max(int(entry.name) for entry in (tmp_path / "checkpoint/query/commits").glob("[0-9]*"))
            decided = max(row["batch"] for row in job.rows("changes") if row["group_id"] == "watching")
            assert last - decided <= 2
            expect(rebalances.first).to_contain_text("joined")
            # The page shows the assignment that the members report themselves.
            for member in (first, second):
                held = owners.filter(has=page.locator(f'a[href*="{member.member_id}"]'))
                expect(held).to_have_count(len(member.owned), timeout=WAIT_MS)
            assert generation in job.generations("watching")
            other = browser.new_page()
            watch.page(other)
            LivePages(other, server.url.rstrip("/"), job.tables, (CLUSTER, "watching")).every_page()
            other.close()
        watch.allows_lost_connections = True
        expect(page.locator("#live-state")).to_have_text("reconnecting")
        shown = rebalances.count()
        second.kill()
        with server_over(job.tables, server.port).in_background():
            expect(rebalances).not_to_have_count(shown, timeout=WAIT_MS)
            expect(page.locator("#live-state")).to_have_text("live")
            assert page.evaluate("window.isTheSamePage") is True
        assert job.stop() == 0
    assert watch.wrong == []

"""The whole job beside a real Kafka 1.0 broker and consumers of that age."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.job.commands import ManyRuns
from tests.kit.brokers import Broker
from tests.kit.members import Member
from tests.live.checks import check_story
from tests.live.job import running_job
from tests.live.story import dynamic_members

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]


def test_each_generation_is_one_row_with_its_cause(
    kafka10: Broker, new_member: Callable[..., Member], runs: ManyRuns, tmp_path: Path
) -> None:
    with running_job(runs, kafka10, tmp_path) as job:
        story = dynamic_members(kafka10, "dynamic", new_member)
        job.wait_for_generation(story.group, story.steps[-1].generation)
        assert job.stop() == 0
    check_story(job, story)

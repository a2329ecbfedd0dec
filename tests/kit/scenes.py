"""Which tests are left to `make scenes`: each begins like a test's id, and has what `make test` has of its kind.

They play real systems, or take long for what something quicker covers as well. Together with `make test` they are
everything but what takes hours (`make soak`).
"""

from __future__ import annotations

SCENES = {
    # Ways to become blind: a broker, a job and a store are in `make test`.
    "tests/live/test_blind_kafka.py::test_a_broker_that_hangs": "a broker that is killed",
    "tests/live/test_blind_kafka.py::test_if_one_of_three": "the same of RocketMQ's routes, with recorded answers",
    "tests/live/test_blind_disk.py": "the full disk of tests/crash/test_disk.py",
    "tests/live/test_blind_others.py": "Kafka's; the readers are the same",
    # Real groups.
    "tests/live/test_departures.py": "tests/live/test_kafka_log.py: a leave, a kill, a poll timeout",
    "tests/live/test_kafka41.py::test_a_broker_that_stops": "blindness and what it ends with",
    "tests/live/test_kafka41_compacted.py": "the reader of records, with records that are missing",
    "tests/live/test_kafka41_costs.py": "MetaQ's and RocketMQ's; the sums have corners of their own",
    "tests/live/test_kafka41_own_tool.py": "each column has its own live test",
    "tests/live/test_kafka41_pages.py": "the page that follows MetaQ, and tests/browser/test_live.py",
    "tests/live/test_metaq.py::test_queues_come_and_go": "RocketMQ's",
    "tests/live/test_metaq.py::test_zookeeper_comes_back": "the collector of ZooKeeper, with one that ends",
    "tests/live/test_metaq_outages.py": "RocketMQ's",
    "tests/live/test_outages.py": "the cost of crashes in tests/corners and in test_kafka41_standstills.py",
    "tests/live/test_rocketmq_brokers.py::test_a_second_broker": "unit tests of routes without a broker",
    "tests/kit/test_rocketmq.py::test_brokers_and_name_server_come_back": "tests of the kit, not of the product",
    # Crashes.
    "tests/crash/test_chaos.py": "kills of the job, and blindness",
    "tests/crash/test_disk.py::test_tables_that_may_not": "the full disk",
    "tests/crash/test_leftovers.py": "test_writer.py and test_crash.py",
    "tests/job/test_scratch.py": "the unit tests of scratch folders",
    "tests/cluster/test_spark_cluster.py::test_a_custom_strategy": "the files that spark-submit packs",
    "tests/cluster/test_spark_cluster.py::test_packages_missing": "the files that spark-submit packs",
    # Spark's writer of tables; that of delta-rs has them all.
    **{
        f"tests/streaming/tables/test_writer.py::{name}[delta-spark-": less
        for name, less in (
            ("test_two_writers_on_one_table_lose_nothing", "a lost race"),
            ("test_many_small_files_become_few_and_the_log_gets_checkpoints", "upkeep that commits nothing"),
            ("test_rows_are_dropped_beside_a_job_that_appends_and_changes", "old rows that go"),
            ("test_added_rows_are_read_by_version_and_upkeep_adds_none", "upkeep that commits nothing"),
            ("test_a_merge_of_many_rows_is_a_merge_of_few", "a merge"),
            ("test_history_loses_old_rows_once_it_no_longer_promises_to_be_append_only", "old rows that go"),
        )
    },
    "tests/streaming/tables/test_delta_spark_table.py::test_on_s3_it_keeps_the_contract_of_writers[two-writers]": (
        "a lost race on S3"
    ),
    "tests/streaming/tables/test_executor_projector.py::test_spans_that_are_over": "a crash in executors",
    "tests/streaming/tables/test_schema.py::test_spark_reads_the_same_tables": "readers in test_writer.py",
    "tests/streaming/pipeline/test_sink.py::test_one_journal_cut_into_batches_in_two_ways": "the laws of cuts",
    "tests/dashboard/questions/test_answer.py::test_spark_gives_the_same_answers": "the answers of DuckDB",
    "tests/laws/test_same_answers.py::test_each_filter_chooses_the_same[write_demo": "two smaller fleets",
    # Pages of the browser whose templates other pages share.
    "tests/browser/test_access.py::test_axe_finds_no_violation[question": "one page of a listing, one of a group",
    "tests/browser/test_access.py::test_the_pages_work_with_reduced_motion": "axe in both themes",
}


def is_scene(nodeid: str) -> bool:
    """Return whether a test is left to `make scenes`."""
    return nodeid.startswith(tuple(SCENES))

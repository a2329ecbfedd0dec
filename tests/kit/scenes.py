"""Which tests are left to `make scenes`: each begins like a test's id, and has what `make test` has of its kind.

They play real systems, or take long for what something quicker covers as well. Together with `make test` they are
everything but what takes hours (`make soak`).
"""

from __future__ import annotations

SCENES = {
    # Ways to become blind: a broker and a job are in `make test`.
    "tests/live/test_blind_kafka.py::test_a_broker_that_hangs": "a broker that is killed",
    "tests/live/test_blind_kafka.py::test_if_one_of_three": "the same of RocketMQ's routes, with recorded answers",
    "tests/live/test_blind_disk.py": "the full disk of tests/crash/test_disk.py",
    "tests/live/test_blind_others.py": "Kafka's; the readers are the same",
    "tests/live/test_blind_store.py": "tables that are gone or refused, with a store of tests/streaming/stores",
    # Real groups.
    "tests/live/test_departures.py": "tests/live/test_kafka_log.py: a leave, a kill, a poll timeout",
    "tests/live/test_kafka10.py": "Kafka 4.1, and the departures of test_kafka_log.py with both",
    "tests/live/test_kafka41.py::test_a_broker_that_stops": "blindness and what it ends with",
    "tests/live/test_kafka41_away.py": "the job of two clusters, which continues after a stop",
    "tests/live/test_kafka41_compacted.py": "the reader of records, with records that are missing",
    "tests/live/test_kafka41_costs.py": "MetaQ's and RocketMQ's; the sums have corners of their own",
    "tests/live/test_kafka41_lag_in_time.py": "the search for times in logs of the test, with brokers that it plays",
    "tests/live/test_kafka41_logins.py::test_without_the_right": "unit tests of permissions",
    "tests/live/test_kafka41_own_tool.py": "each column has its own live test",
    "tests/live/test_kafka41_pages.py": "the page that follows MetaQ, and tests/browser/test_live.py",
    "tests/live/test_kafka41_predictions.py": "the laws of policies and of what-if, with groups of the core",
    "tests/live/test_kafka41_standstills.py": "corners, and a log that overtakes one that stands",
    "tests/live/test_kafka_log.py::test_a_job_distinguishes_a_leave_a_kill_and_a_poll_timeout[sent": (
        "the log that the job reads itself"
    ),
    "tests/live/test_metaq.py::test_queues_come_and_go": "RocketMQ's",
    "tests/live/test_metaq.py::test_zookeeper_comes_back": "the collector of ZooKeeper, with one that ends",
    "tests/live/test_metaq_outages.py": "outages in tests/corners",
    "tests/live/test_outages.py": "outages in tests/corners",
    "tests/live/test_rocketmq_brokers.py::test_a_second_broker": "unit tests of routes without a broker",
    "tests/live/test_rocketmq_lag_in_time.py": "its answers with their times, and ages by messages in tables",
    "tests/live/test_rocketmq_outages.py": "outages in tests/corners",
    "tests/live/test_rocketmq_predictions.py": "the laws of policies, with groups of the core",
    "tests/live/test_several_clusters.py::test_one_complete_poll": "the job of two clusters",
    # RocketMQ 4.9, where 5.5 answers the same.
    **{
        f"tests/{test}": "RocketMQ 5.5"
        for test in (
            "live/test_rocketmq_collector.py::test_brokers_and_name_servers_that_start_anew_are_no_departure[rocketmq49",
            "live/test_rocketmq_collector.py::test_the_growing_backlog_of_a_stuck_member_is_reported[rocketmq49",
            "live/test_rocketmq_costs.py::test_messages_that_are_read_twice_and_that_wait_are_those"
            "_that_members_count[rocketmq49",
            "streaming/collectors/rocketmq/remoting/test_client.py::test_a_real_cluster_with_access_control_and_tls[4.9",
        )
    },
    # The kit, which live tests use as it is.
    "tests/kit/test_brokers.py": "live tests",
    "tests/kit/test_metaq.py": "live tests",
    "tests/kit/test_rocketmq.py": "live tests",
    # Crashes.
    "tests/crash/test_chaos.py": "kills of the job, and blindness",
    "tests/crash/test_disk.py::test_tables_that_may_not": "the full disk",
    "tests/crash/test_churn.py": "no generation is lost in test_crash.py",
    "tests/crash/test_disk.py::test_a_full_disk_stops_the_job_with_a_clear_message_and_room_lets_it_go_on"
    "[of the tables, soon": "a disk that is full later",
    "tests/crash/test_leftovers.py": "test_writer.py and test_crash.py",
    "tests/streaming/replays/test_killed_replay.py": "kills of the job, and test_replay_run.py",
    "tests/job/test_scratch.py": "the unit tests of scratch folders",
    "tests/job/test_stopping.py::test_a_stop_that_ends_java_too": "Ctrl-C, which reaches Java too",
    "tests/job/test_stores.py::test_a_job_that_is_killed_on_a_store": "kills on a disk, and writers on a store",
    "tests/cluster/test_spark_cluster.py::test_a_custom_strategy": "the files that spark-submit packs",
    "tests/cluster/test_spark_cluster.py::test_packages_missing": "the files that spark-submit packs",
    "tests/cluster/test_spark_cluster.py::test_spark_submit": "a worker of a cluster, with the dependencies alone",
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
            ("test_rows_are_found_by_keys_with_nulls_quotes_and_long_texts", "a merge"),
            ("test_a_table_of_an_older_release_gets_the_columns_that_it_lacks", "tables of 0.2.0"),
            ("test_open_spans_stay_and_the_feed_has_those_that_were_dropped", "old rows that go"),
            ("test_columns_that_somebody_added_stay", "a merge"),
            ("test_a_merge_under_one_mark_is_done_once", "rows under one mark"),
            ("test_an_older_mark_writes_nothing", "rows under one mark"),
            ("test_only_one_of_two_racing_commits_with_the_same_mark_is_written", "a lost race"),
            ("test_a_stream_of_rows_is_one_commit", "rows under one mark"),
            ("test_texts_that_hardly_repeat_have_no_dictionary", "the other writer"),
            ("test_a_log_that_reaches_back_no_further_is_an_error", "the other writer"),
        )
    },
    **{
        f"tests/streaming/tables/test_writer.py::test_delta_rs_and_duckdb_read_every_table_even_empty"
        f"[delta-spark-disk-{table}": "three tables"
        for table in (
            *("annotations", "assignments", "audits", "changes", "episodes", "group_minutes", "groups"),
            *("queue_progress", "rejected_events", "topics"),
        )
    },
    "tests/streaming/tables/test_delta_spark_table.py::test_on_s3": "delta-rs on S3, and Spark on a disk",
    "tests/streaming/tables/test_engine.py::test_on_s3_only_one_process": "its lock in tests/streaming/stores",
    "tests/streaming/tables/test_executor_projector.py::test_spans_that_are_over": "each part, without Spark",
    "tests/streaming/tables/test_executor_projector.py::test_tables_are_those": "executors in test_sink.py",
    "tests/streaming/tables/test_schema.py::test_spark_reads_the_same_tables": "readers in test_writer.py",
    "tests/streaming/pipeline/test_sink.py::test_one_journal_cut_into_batches_in_two_ways": "the laws of cuts",
    "tests/dashboard/questions/test_answer.py::test_spark_gives_the_same_answers": "the answers of DuckDB",
    "tests/docs/test_queries_page.py::test_the_queries_run_in_spark": "the answers of DuckDB",
    "tests/laws/test_same_answers.py::test_each_filter_chooses_the_same[write_demo": "two smaller fleets",
    # Pages of the browser whose templates other pages share.
    "tests/browser/test_access.py::test_axe_finds_no_violation[question": "one page of a listing, one of a group",
    "tests/browser/test_access.py::test_the_pages_work_with_reduced_motion": "axe in both themes",
}


def is_scene(nodeid: str) -> bool:
    """Return whether a test is left to `make scenes`."""
    return nodeid.startswith(tuple(SCENES))

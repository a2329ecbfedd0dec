"""Why a job failed, out of Spark's errors."""

from __future__ import annotations

from py4j.protocol import Py4JNetworkError

from streaming.spark.root_cause import is_java_ended, reason, reason_in, state_error

# Texts of Spark 4.2, shortened.
IN_PYTHON = """[STREAM_FAILED] Query [id = 94f0106a] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] \
An error occurred in the user provided function in foreach batch sink. Reason: An exception was raised by the Python \
Proxy. Return Message: Traceback (most recent call last):
  File "streaming/tables/delta_rs_table.py", line 263, in _write
    pq.write_table(part, self.folder / path, compression="zstd", row_group_size=ROWS_PER_FILE // 4)
  File "pyarrow/error.pxi", line 92, in pyarrow.lib.check_status
OSError: [Errno 30] Failed to open local file '/t/rebalances/p.parquet'. Detail: [errno 30] Read-only file system
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Current State: ACTIVE
java.lang.NotTheCauseException: this is the plan
"""
IN_JAVA = """[STREAM_FAILED] Query [id = cff3abd8] terminated with exception: Traceback (most recent call last):
    raise Py4JJavaError(
py4j.protocol.Py4JJavaError: An error occurred while calling o225.count.
: org.apache.spark.SparkException: [CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing. SQLSTATE: 58030
\tat org.apache.spark.util.SparkErrorUtils.tryWithSafeFinally(SparkErrorUtils.scala:86)
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\t... 73 more
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\t... 73 more
"""


def test_the_root_cause_is_reported_and_not_the_stack_above_it() -> None:
    assert reason(RuntimeError(IN_PYTHON)) == (
        "OSError: [Errno 30] Failed to open local file '/t/rebalances/p.parquet'."
        " Detail: [errno 30] Read-only file system"
    )
    assert reason(RuntimeError(IN_JAVA)) == "java.io.IOException: No space left on device"


def test_the_first_line_is_reported_if_no_error_is_named() -> None:
    assert reason(OSError(28, "No space left on device", "/t/x")) == "[Errno 28] No space left on device: '/t/x'"
    assert reason(RuntimeError("\n[STREAM_FAILED] Query ended. SQLSTATE: XXKST\nmore")) == (
        "[STREAM_FAILED] Query ended."
    )
    assert reason(RuntimeError()) == "RuntimeError"


def test_a_file_that_cannot_be_read_is_named() -> None:
    message = """[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call last):
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file \
file:///events/2.jsonl.gz.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:856)
Caused by: java.io.EOFException: Unexpected end of input stream
"""
    assert reason(RuntimeError(message)) == (
        "java.io.EOFException: Unexpected end of input stream (file:///events/2.jsonl.gz)"
    )


def test_the_reason_of_a_java_that_ended_at_once_is_in_its_log() -> None:
    heap = "Invalid maximum heap size: -Xmxlots\nError: Could not create the Java Virtual Machine.\n"
    assert reason_in(heap) == "Invalid maximum heap size: -Xmxlots"
    submit = """WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" org.apache.spark.SparkException: Driver memory must be a positive number
\tat org.apache.spark.deploy.SparkSubmitArguments.error(SparkSubmitArguments.scala:670)
"""
    assert reason_in(submit) == "org.apache.spark.SparkException: Driver memory must be a positive number"
    assert reason_in("WARNING: Using incubator modules: jdk.incubator.vector\n") == ""


def test_a_java_that_has_ended_differs_from_other_failures() -> None:
    away = OSError("while sending")
    away.__context__ = ConnectionRefusedError(111, "Connection refused")
    assert is_java_ended(away)
    assert is_java_ended(Py4JNetworkError("Answer from Java side is empty"))
    assert not is_java_ended(OSError(28, "No space left on device"))


def test_the_error_of_a_damaged_state_is_reported_whole() -> None:
    message = f"checkpoint /c, cluster 'c1', shard 3: the state does not match its checksum{' and so on' * 100}"
    reported = (
        "[STREAM_FAILED] Query terminated: Traceback (most recent call last):\n  File x\n"
        f"udfs.model.errors.StateDamagedError: {message}\n SQLSTATE: XXKST\n\tat org.apache.spark.X\n"
    )
    assert state_error(RuntimeError(reported)) == message
    assert state_error(RuntimeError(IN_JAVA)) is None

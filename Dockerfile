# One image for a laptop and for a cluster; the command says what it runs: run, collect, serve, alerts, check, …
#   docker build -t rebalance-monitor:0.2.0 .
#   docker build --target spark -t rebalance-monitor-spark:0.2.0 .   (driver and executors of Spark on Kubernetes)
# For a build that can be repeated, pin the bases: --build-arg PYTHON=python:3.11-slim-bookworm@sha256:…
ARG PYTHON=python:3.11-slim-bookworm
ARG SPARK=apache/spark:4.2.0

FROM ${SPARK} AS scripts

FROM ${PYTHON} AS packages
WORKDIR /source
COPY requirements/build.lock requirements/image.lock requirements/
RUN python -m venv /opt/rebalance-monitor \
 && /opt/rebalance-monitor/bin/pip install --no-cache-dir --require-hashes -r requirements/build.lock \
 && /opt/rebalance-monitor/bin/pip install --no-cache-dir --require-hashes --no-build-isolation -r requirements/image.lock
COPY pyproject.toml LICENSE NOTICE ./
COPY udfs udfs
COPY streaming streaming
COPY dashboard dashboard
COPY conf conf
RUN /opt/rebalance-monitor/bin/python -m hatchling build -t wheel -d /tmp/wheel \
 && /opt/rebalance-monitor/bin/pip install --no-cache-dir --no-deps /tmp/wheel/*.whl

FROM ${PYTHON} AS java
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless tini \
 && rm -rf /var/lib/apt/lists/* \
 && ln -s /usr/lib/jvm/java-17-openjdk-* /usr/lib/jvm/java-17 \
 && useradd --uid 185 --home-dir /data --create-home spark
COPY --from=packages /opt/rebalance-monitor /opt/rebalance-monitor
ENV PATH=/opt/rebalance-monitor/bin:$PATH \
    JAVA_HOME=/usr/lib/jvm/java-17

# Spark's own scripts start driver and executors; the monitor's jars are among Spark's own.
FROM java AS spark
COPY --from=scripts /opt/spark /opt/spark
COPY --from=scripts /opt/entrypoint.sh /opt/
ENV SPARK_HOME=/opt/spark \
    PYSPARK_PYTHON=/opt/rebalance-monitor/bin/python \
    PYSPARK_DRIVER_PYTHON=/opt/rebalance-monitor/bin/python
RUN REBALANCE_MONITOR_CACHE=/tmp/jars rebalance-monitor pack --out /tmp/packed --store s3 \
 && mv /tmp/packed/rebalance_monitor.py /opt/rebalance-monitor/ \
 && mv /tmp/packed/jars/*.jar /opt/spark/jars/ \
 && rm -r /tmp/jars /tmp/packed
USER 185
WORKDIR /opt/rebalance-monitor
ENTRYPOINT ["/opt/entrypoint.sh"]

FROM java AS monitor
# Jars, and the archive of the JVM's classes, are inside: a start needs no network.
ENV REBALANCE_MONITOR_CACHE=/opt/rebalance-monitor/cache
RUN rebalance-monitor setup --store s3 --class-archive
# The root may be read-only: what is written goes to /data, a volume, and to /tmp.
ENV REBALANCE_MONITOR_JOB__TABLES=/data/tables \
    REBALANCE_MONITOR_JOB__CHECKPOINT=/data/checkpoint \
    REBALANCE_MONITOR_ALERTS__STATE_FILE=/data/alerts.json \
    PYTHONDONTWRITEBYTECODE=1
USER 185
WORKDIR /data
VOLUME /data
EXPOSE 8687 9188
# Unhealthy is what shows no present (3); findings (1, 2) are no illness of the container.
HEALTHCHECK --interval=60s --timeout=30s --start-period=120s CMD ["sh", "-c", "rebalance-monitor check; test $? -ne 3"]
ENTRYPOINT ["tini", "--", "rebalance-monitor"]
CMD ["--help"]

"""Shell: examples in the help of each command, by its name; each is a line that can be typed as it is."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "run": (
        "run --kafka localhost:9092 --cluster shop",
        'run --kafka localhost:9092 --cluster shop --kafka-log "/var/log/kafka/server.log*"',
        "run --kafka broker:9092 --rocketmq 10.0.0.1:9876 --cluster kafka=shop --cluster rocketmq=orders",
        "run --events events/ --once --flush",
    ),
    "demo": ("demo", "demo --for 60s"),
    "simulate": ("simulate --out fleet --seed 1 --duration 10m",),
    "collect": (
        "collect --rocketmq 10.0.0.1:9876 --cluster orders --out events/",
        "collect --kubernetes --cluster k8s-prod --out kafka:broker:9092/rebalance-events",
    ),
    "annotate": ('annotate "orders 2.4.1 deployed" --out events/',),
    "allocate": (
        "allocate --all --queues 8 --members 3",
        "allocate --strategy rocketmq.AVG --queues 8 --members 3 --before 4",
    ),
    "show groups": ("show groups --health warning --health critical", "show groups --cluster shop --watch"),
    "show group": ("show group orders", "show group orders --cluster shop --json"),
    "show members": ("show members --group orders", "show members --client consumer-3 --at 2026-11-21T03:12:00Z"),
    "show rebalances": (
        "show rebalances --since 15m",
        "show rebalances --group orders --since 2026-11-21T03:10 --until 2026-11-21T03:20",
    ),
    "show episodes": ("show episodes --since 1d",),
    "show assignments": ("show assignments --group orders", "show assignments --topic payments --at 15m"),
    "show audits": ("show audits --group orders",),
    "show annotations": ("show annotations --since 1d",),
    "show findings": ("show findings", "show findings --kind flapping --all"),
    "who-owned": ("who-owned payments 7", "who-owned payments 7 --at 2026-11-21T03:12:00Z"),
    "explain": ("explain 3f2a", "explain --group orders --last", "explain --group orders --since 1h"),
    "what-if": ("what-if --group orders --add 2", "what-if --group orders --remove 1 --strategy all"),
    "replay": (
        "replay --group orders",
        "replay --group orders --since 1d --all-strategies",
        "replay --all --policy static",
    ),
    "advise": ("advise --group orders", "advise --all --days 30"),
    "serve": ("serve", "serve --tables s3://lake/tables --port 8080"),
    "mcp": ("mcp --tables /var/lib/rebalance-monitor/tables",),
    "query": ("query", "query most-rebalances", "query most-rebalances --sql trino"),
    "check": (
        "check",
        "check --group orders --objective rebalances_per_hour=5:20",
        "check --json",
        "check --plan plan.toml",
    ),
    "alerts": ("alerts --config monitor.toml",),
    "state show": ("state show --checkpoint checkpoints/default",),
    "state rollback": ("state rollback --checkpoint checkpoints/default",),
    "state export": ("state export --checkpoint checkpoints/default --out events/",),
    "optimize": ("optimize --dry-run", "optimize --tables s3://lake/tables"),
    "setup": ("setup", "setup --store s3 --class-archive"),
    "pack": ("pack --out packed --store s3",),
}

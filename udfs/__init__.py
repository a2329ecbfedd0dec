"""The core: plain values in, plain values out; no Spark, no clock, no disk, no environment."""

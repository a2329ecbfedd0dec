"""Records that Kafka 4.1.1's own classes wrote, by name."""

from pathlib import Path

GOLDEN = {
    name: bytes.fromhex(hexadecimal)
    for name, hexadecimal in (
        line.split("\t")
        for line in (Path(__file__).parent / "consumer_offsets_golden" / "records.tsv").read_text().splitlines()
    )
}
AT = 1_700_000_001_000

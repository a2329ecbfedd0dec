"""The name nodes that a URI of HDFS stands for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from streaming.stores.name_nodes import name_nodes

NAMESERVICE = {
    "dfs.ha.namenodes.prod": "nn1,nn2,nn3",
    "dfs.namenode.rpc-address.prod.nn1": "one:8020",
    "dfs.namenode.rpc-address.prod.nn2": "two:9000",
}


def write_site(file: Path, properties: Mapping[str, str]) -> None:
    """Write settings as Hadoop has them."""
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"<?xml version='1.0'?>\n<configuration>{''.join(lines)}</configuration>\n")


def test_a_port_means_one_name_node_whatever_the_settings_are() -> None:
    assert name_nodes("prod:8020", {"HADOOP_CONF_DIR": "/nowhere"}) == ["prod:8020"]


@pytest.mark.parametrize(("variable", "below"), [("HADOOP_CONF_DIR", ""), ("HADOOP_HOME", "etc/hadoop")])
def test_a_name_alone_is_a_nameservice_of_hadoops_settings(variable: str, below: str, tmp_path: Path) -> None:
    write_site(tmp_path / below / "core-site.xml", NAMESERVICE)
    env = {variable: str(tmp_path)}
    assert name_nodes("prod", env) == ["one:8020", "two:9000"]
    write_site(tmp_path / below / "hdfs-site.xml", {"dfs.ha.namenodes.prod": "nn2"})
    assert name_nodes("prod", env) == ["two:9000"]


def test_a_name_that_is_none_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"^HADOOP_CONF_DIR is not set, .*: let HADOOP_CONF_DIR name .*hdfs://one:8020$"
    ):
        name_nodes("one", {})
    write_site(tmp_path / "hdfs-site.xml", NAMESERVICE)
    with pytest.raises(ValueError, match=rf"^hdfs-site\.xml in {tmp_path} has no nameservice dev \("):
        name_nodes("dev", {"HADOOP_CONF_DIR": str(tmp_path)})


def test_settings_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "hdfs-site.xml").write_text("not xml")
    with pytest.raises(ValueError, match=rf"^{tmp_path}/hdfs-site\.xml cannot be read \(.*\): correct it"):
        name_nodes("prod", {"HADOOP_CONF_DIR": str(tmp_path)})

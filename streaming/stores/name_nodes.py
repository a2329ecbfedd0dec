"""Shell: the name nodes of an HDFS URI, as delta-rs finds them: by its port, or by the settings of Hadoop.

A name without a port is a nameservice. Unlike Hadoop, delta-rs knows no default port, nor ``dfs.nameservices``.
Source: hdfs-native 0.13, ``Configuration``, ``NameServiceProxy::new``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

_FILES = ("core-site.xml", "hdfs-site.xml")
DEFAULT_PORT = 8020


def name_nodes(authority: str, env: Mapping[str, str]) -> list[str]:
    """Return HOST:PORT of each name node of a URI.

    Args:
        authority: The URI's authority: with a port, one name node; otherwise the name of a nameservice.

    Raises:
        ValueError: They are not configured; the message has the remedy.
    """
    if ":" in authority:
        return [authority]
    folder = _settings_folder(env)
    settings = _settings(folder)
    ids = settings.get(f"dfs.ha.namenodes.{authority}", "").split(",")
    addresses = (settings.get(f"dfs.namenode.rpc-address.{authority}.{name}") for name in ids)
    found = [address for address in addresses if address]
    if not found:
        where = f"hdfs-site.xml in {folder} has" if folder else "HADOOP_CONF_DIR is not set, so there is"
        raise ValueError(
            f"{where} no nameservice {authority} (dfs.ha.namenodes.{authority} and the addresses of its name nodes):"
            f" let HADOOP_CONF_DIR name the folder of an hdfs-site.xml that has it, or, if {authority} is the host of a"
            f" name node, write its port, mostly hdfs://{authority}:{DEFAULT_PORT}"
        )
    return found


def _settings_folder(env: Mapping[str, str]) -> Path | None:
    folder, home = env.get("HADOOP_CONF_DIR"), env.get("HADOOP_HOME")
    return Path(folder) if folder is not None else Path(home, "etc/hadoop") if home is not None else None


def _settings(folder: Path | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in (folder / name for name in _FILES) if folder else ():
        if file.exists():
            try:
                properties = ElementTree.parse(file).getroot().iter("property")
            except (ElementTree.ParseError, OSError) as error:
                raise ValueError(f"{file} cannot be read ({error}): correct it, or HADOOP_CONF_DIR") from error
            found |= {each.findtext("name", ""): each.findtext("value", "") for each in properties}
    return found

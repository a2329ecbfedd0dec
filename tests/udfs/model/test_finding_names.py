"""What findings speak of: the fields of the core are the columns of the table."""

from __future__ import annotations

from streaming.tables.schema import FINDINGS
from udfs.model.finding_names import NAMES, NamedClient, NamedMember, NamedQueue, NamedSubscription

ITEMS = {"queues": NamedQueue, "members": NamedMember, "clients": NamedClient, "subscriptions": NamedSubscription}


def test_each_name_is_a_column_and_each_list_has_the_number_of_those_left_out() -> None:
    assert set(NAMES) <= set(FINDINGS.names)
    for name, item in ITEMS.items():
        assert f"{name}_left_out" in NAMES
        fields = [field.name for field in FINDINGS.schema.field(name).type.value_type]
        assert tuple(fields) == item.__struct_fields__

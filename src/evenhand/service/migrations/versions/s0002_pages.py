"""What pages read: thin points over time, terms and rosters by plan, sessions."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make tables for pages. Points written before were whole reports, and are dropped."""
    big, number, text, data = sa.BigInteger(), sa.Double[float](), sa.Text(), sa.LargeBinary()

    def table(name: str, keys: tuple[str, ...], **columns: sa.types.TypeEngine[Any]) -> None:
        made = [sa.Column(column, kind, nullable=False) for column, kind in columns.items()]
        op.create_table(name, *made, sa.PrimaryKeyConstraint(*keys), sqlite_with_rowid=False)

    op.drop_table("stats")
    # single numbers at a time, as JSON; and per block of arms their shares and merits, as bytes
    table("stats", ("exp", "at"), exp=big, at=number, queries=big, data=text)
    table("traces", ("exp", "block", "at"), exp=big, block=big, at=number, data=data)
    # from this epoch on: terms, arms and paused arms, as JSON, compressed
    table("agreements", ("exp", "epoch"), exp=big, epoch=big, at=number, data=data)
    # who has logged in to the pages: only hashes, as of keys
    table("sessions", ("hash",), hash=data, key=big, created=number, expires=number)
    with op.batch_alter_table("latest") as latest:
        latest.add_column(sa.Column("summary", text, nullable=True))
    with op.batch_alter_table("demand") as demand:
        demand.add_column(sa.Column("unlearnt", big, nullable=False, server_default="0"))
    with op.batch_alter_table("experiments") as experiments:
        # rows that were handed out, never told, and can be told no more
        experiments.add_column(sa.Column("expired", big, nullable=False, server_default="0"))
    op.create_index("audit_of", "audit", ["exp", "id"])
    op.create_index("changes_of", "changes", ["exp", "id"])

"""The first schema."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make all tables.

    Times are seconds since 1970. Whole numbers are 64 bits wide, but for the primary keys that
    SQLite fills in by itself.
    """
    big, key = sa.BigInteger(), sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    number, text, data = sa.Double[float](), sa.Text(), sa.LargeBinary()

    def column(
        name: str, kind: sa.types.TypeEngine[Any], default: str | None = None
    ) -> sa.Column[Any]:
        return sa.Column(name, kind, nullable=False, server_default=default)

    def maybe(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
        return sa.Column(name, kind, nullable=True)

    def table(name: str, *columns: sa.Column[Any], keys: tuple[str, ...]) -> None:
        op.create_table(name, *columns, sa.PrimaryKeyConstraint(*keys), sqlite_with_rowid=False)

    op.create_table(
        "experiments",
        sa.Column("id", key, primary_key=True),
        sa.Column("name", text, nullable=False, unique=True),
        column("config", text),  # JSON: all that the learner's state depends on besides the log
        column("rewards", text),  # JSON: range and mode
        column("secrets", text),  # JSON: keys that sign receipts, newest first
        column("created", number),
        maybe("archived", number),
        column("paused", big, "0"),
        column("version", big, "1"),  # counts changes that web workers must see
        column("floor", big, "0"),  # rows of epochs before this one are handed out no more
        column("oldest", big, "0"),  # rows of epochs before this one can be told no more
        maybe("broken", text),  # why the folder cannot go on
    )
    table("folders", column("exp", big), maybe("holder", text), column("fence", big, "0"),
          column("until", number, "0"), keys=("exp",))  # fmt: skip
    table("arms", column("exp", big), column("id", big), maybe("name", text),
          column("joined", number), maybe("retired", number), column("paused", big, "0"),
          keys=("exp", "id"))  # fmt: skip
    op.create_index("arm_names", "arms", ["exp", "name"])
    table("epochs", column("exp", big), column("number", big), column("first", big),
          column("n", big), column("leased", big, "0"), maybe("plan", data), maybe("rows", data),
          column("crc", big), column("at", number), keys=("exp", "number"))  # fmt: skip
    free = sa.text("leased < n")
    op.create_index("stock", "epochs", ["exp", "number"], sqlite_where=free, postgresql_where=free)
    table("leases", column("exp", big), column("epoch", big), column("first", big),
          column("stop", big), column("worker", text), column("at", number),
          keys=("exp", "epoch", "first"))  # fmt: skip
    table("demand", column("exp", big), column("worker", text), column("rate", number),
          column("at", number), keys=("exp", "worker"))  # fmt: skip
    table("shown", column("exp", big), column("epoch", big), column("row", big),
          column("at", number), column("settled", big, "0"),
          keys=("exp", "epoch", "row"))  # fmt: skip
    waiting = sa.text("settled = 0")
    op.create_index(
        "waiting", "shown", ["exp", "at"], sqlite_where=waiting, postgresql_where=waiting
    )
    table("tells", column("exp", big), column("epoch", big), column("row", big),
          maybe("reward", number), column("at", number), column("by_default", big, "0"),
          maybe("fold", big), keys=("exp", "epoch", "row"))  # fmt: skip
    unfolded = sa.text("fold IS NULL")
    op.create_index(
        "inbox", "tells", ["exp", "epoch", "row"], sqlite_where=unfolded, postgresql_where=unfolded
    )
    table("log", column("exp", big), column("seq", big), column("kind", text),
          column("payload", data), column("crc", big), column("at", number),
          keys=("exp", "seq"))  # fmt: skip
    table("snapshots", column("exp", big), column("seq", big), column("data", data),
          column("extra", text), column("crc", big), column("release", text), column("at", number),
          keys=("exp", "seq"))  # fmt: skip
    table("latest", column("exp", big), column("at", number), column("data", data), keys=("exp",))
    table("stats", column("exp", big), column("at", number), column("data", data),
          keys=("exp", "at"))  # fmt: skip
    op.create_table(
        "changes",  # asked for; done by the folder, in this order
        sa.Column("id", key, primary_key=True),
        column("exp", big), column("call", text), column("arguments", text), column("key", text),
        column("at", number), maybe("done", number), maybe("answer", text),
    )  # fmt: skip
    undone = sa.text("done IS NULL")
    op.create_index("undone", "changes", ["id"], sqlite_where=undone, postgresql_where=undone)
    table("requests", column("exp", big), column("key", text), column("digest", data),
          column("answer", data), column("at", number), keys=("exp", "key"))  # fmt: skip
    op.create_table(
        "keys",
        sa.Column("id", key, primary_key=True),
        column("name", text),
        sa.Column("hash", data, nullable=False, unique=True),
        column("scopes", text), maybe("exp", big), column("created", number),
        maybe("expires", number), maybe("revoked", number),
    )  # fmt: skip
    op.create_table(
        "audit",
        sa.Column("id", key, primary_key=True),
        column("at", number), column("key", text), column("action", text), maybe("exp", big),
        column("detail", text),
    )  # fmt: skip

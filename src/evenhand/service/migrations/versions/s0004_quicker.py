"""Rewards in a table that SQLite changes in place."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Store rewards by when they came, with an index of their places.

    Every reward is marked once, when it is folded in. In a table without row ids, SQLite takes a
    row out and puts it back for that, which took twice as long; PostgreSQL has none.
    """
    if op.get_bind().dialect.name != "sqlite":
        return
    op.execute("drop table if exists moved")  # of a migration that was interrupted
    op.execute(
        "create table moved (exp bigint not null, epoch bigint not null, row bigint not null, "
        "reward double, at double not null, by_default bigint not null default 0, fold bigint, "
        "primary key (exp, epoch, row))"
    )
    op.execute("insert into moved select exp, epoch, row, reward, at, by_default, fold from tells")
    op.execute("drop table tells")
    op.execute("alter table moved rename to tells")
    op.execute("create index inbox on tells (exp, epoch, row) where fold is null")

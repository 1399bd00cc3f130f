"""Rewards recorded by PostgreSQL in one trip."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make a function that inserts the first reward of rows that have none, and returns those rows.

    It takes shared locks on the experiments first, by the number that all our advisory locks have,
    so that no epoch expires until the transaction ends. As it is volatile, its second statement
    sees what those who held the locks before have written. SQLite needs no function for that.
    """
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(
        """
        create function record_tells(
            experiments_ bigint[], epochs_ bigint[], rows_ bigint[], rewards_ double precision[]
        ) returns table(exp_ bigint, epoch_ bigint, row_ bigint) language plpgsql volatile as $$
        begin
            perform pg_advisory_xact_lock_shared(25960, x::int)
                from (select distinct x from unnest(experiments_) x order by x) ordered;
            return query
                insert into tells(exp, epoch, row, reward, at)
                select w.exp, w.epoch, w.row, w.reward,
                    extract(epoch from clock_timestamp())::double precision
                from unnest(experiments_, epochs_, rows_, rewards_) w(exp, epoch, row, reward)
                join experiments e on e.id = w.exp
                where w.epoch >= e.oldest
                on conflict do nothing
                returning tells.exp, tells.epoch, tells.row;
        end $$
        """
    )

"""The schema of the service's database, step by step (Alembic)."""

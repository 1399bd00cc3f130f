"""The API keeps to its description, whatever is sent to it."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_schemathesis_finds_nothing(service):
    """All checks, a thousand examples per operation; keys are not revoked meanwhile."""
    new = {"name": "d", "arms": ["a", "b", "c", "d"], "k": 2, "seed": 1}
    assert service.call("POST", "/v1/experiments", new)[0] == 201
    assert service.call("POST", "/v1/experiments/d/ask", {"n": 5})[0] == 200
    command = [str(Path(sys.executable).with_name("schemathesis")), "run"]
    command += [f"http://127.0.0.1:{service.port}/openapi.json", "--checks", "all", "-n", "1000"]
    command += ["-H", f"Authorization: Bearer {service.key}", "--exclude-method", "DELETE"]
    command += ["--phases", "examples,coverage,fuzzing", "--generation-deterministic"]
    command += ["--suppress-health-check=all"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout[-5000:]
    assert '"level": "error"' not in service.said()

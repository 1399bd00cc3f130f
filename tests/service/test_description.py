"""The API keeps to its description, whatever is sent to it."""

import subprocess
import sys
from pathlib import Path

import pytest

NEW = {"arms": ["a", "b", "c", "d"], "k": 2, "seed": 1}
NAMED = """
[parameters]
"path.experiment" = "named"
"path.arm" = "a"
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["any", "named"])
def test_schemathesis_finds_nothing(service, tmp_path, name):
    """All checks, a thousand examples per operation; keys are not revoked meanwhile.

    Once with names of any kind, most of which do not exist, and once with an experiment that is
    there and stays open.
    """
    assert service.call("POST", "/v1/experiments", NEW | {"name": name})[0] == 201
    assert service.call("POST", f"/v1/experiments/{name}/ask", {"n": 5})[0] == 200
    settings = tmp_path / "schemathesis.toml"
    settings.write_text(NAMED if name == "named" else "")
    command = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(settings)]
    command += ["run", f"http://127.0.0.1:{service.port}/openapi.json"]
    command += ["--checks", "all", "-n", "1000", "--exclude-method", "DELETE"]
    command += ["-H", f"Authorization: Bearer {service.key}"]
    command += ["--phases", "examples,coverage,fuzzing", "--generation-deterministic"]
    command += ["--suppress-health-check=all"]
    if name == "named":
        command += ["--exclude-path", "/v1/experiments/{experiment}/archive"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    print(done.stdout[-1500:])
    assert done.returncode == 0, done.stdout[-5000:]
    assert '"level": "error"' not in service.said()

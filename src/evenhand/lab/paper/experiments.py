"""The experiments that come with the package."""

from importlib.resources import files

from evenhand.lab.experiments import Experiment, nearest, parse

GROUPS = {  # asked for by one name
    "deployments": ["rare-rewards", "full-pages", "evenhand"],
    "drift": ["drift-still", "drift-changes", "drift-smooth", "drift-facebook"],
}
FOLDER = files("evenhand.lab.paper").joinpath("presets")


def preset_names() -> list[str]:
    """Names of the experiments that come with the package."""
    return sorted(
        f.name.removesuffix(".toml") for f in FOLDER.iterdir() if f.name.endswith(".toml")
    )


def load_preset(name: str) -> Experiment:
    """Load an experiment that comes with the package."""
    if name not in preset_names():
        raise ValueError(
            f"unknown experiment {name!r}{nearest(name, ['fig3', *preset_names(), *GROUPS])}"
        )
    return parse(FOLDER.joinpath(f"{name}.toml").read_text(), f"{name}.toml")

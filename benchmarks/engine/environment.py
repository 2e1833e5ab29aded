"""The environment of the figures."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

from benchmarks.engine import flink_environment

PACKAGES = ("millstream", "pyspark", "pyarrow", "pandas", "numpy", "numba")


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def megabytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def environment() -> dict[str, str]:
    return {
        "CPU": _processor(),
        "Cores": str(cores()),
        "Memory": f"{megabytes() / 1024:.0f} GB",
        "System": f"{platform.system()}, {platform.machine()}",
        "Java": _java(),
        "Python": platform.python_version(),
        "Packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "Flink": flink_environment.VERSION,
    }


def _processor() -> str:
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or "unknown"


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        return "none"
    try:
        asked = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return "none"
    found = re.search(r'version "([^"]+)"', asked.stderr)
    return found[1] if found else "unknown"

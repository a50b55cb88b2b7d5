"""The actor that stands for a run in a Ray cluster: it starts the worker and ends with it.

Ray is sent this module's code rather than its name (`ray_queue` sees to that): nothing of the
program is imported in Ray's own processes, so they need not know where it lies.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

LACKS = "this machine lacks"  # in an error, before what it lacks


class FacsimileRun:
    """Stands for a run in the cluster while the run waits or its worker works.

    Args:
      home: the workspace, where the machine's FACSIMILE_HOME names no other.
      program: the folder that it is started in.
      variables: of the worker's environment, whatever the machine's own say.

    Raises:
      RuntimeError: this machine has no such folder or no such variable.
    """

    def __init__(
        self,
        run_id: str,
        home: str,
        worker: list[str],
        program: str,
        variables: dict[str, str],
        needed: list[str],
    ) -> None:
        home = os.environ.get("FACSIMILE_HOME") or home
        absent = [name for name in needed if not os.environ.get(name)]
        self._environment = {**os.environ, **variables}
        # with an object store the workspace's folder is each machine's own, made when needed
        shared = not self._environment.get("FACSIMILE_STORAGE")
        folders = [program, home] if shared else [program]
        absent += [folder for folder in folders if not os.path.isdir(folder)]
        if absent:
            raise RuntimeError(f"{LACKS} {', '.join(absent)}")
        self._command = [*worker, run_id, "--home", home, "--supervisor", str(os.getpid())]
        self._program = program
        self._log = os.path.join(home, "runs", run_id, "worker.log")
        # Ray takes an actor whose constructor has not returned for one that is still being made
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        import ray  # an extra: machines of the cluster have it, this module's other readers do not

        here = ray.get_runtime_context()
        try:
            os.makedirs(os.path.dirname(self._log), mode=0o700, exist_ok=True)
            # not to Ray's own logs, which its dashboard shows: a traceback may quote a value
            log = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            subprocess.run(
                [sys.executable, *self._command],
                cwd=self._program,
                env={**self._environment, "RAY_ADDRESS": here.gcs_address},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
            )
        finally:
            ray.kill(here.current_actor, no_restart=True)

"""A worker process of --runner=DirectRunner with --direct_running_mode=multi_processing.

It is Beam's own, which says nothing of itself, and leaves signals to the process that it works for:
it ends when that one is gone.
"""

import logging
import os
import signal
import sys
import threading
import time

from electra_tf.platform.signals import STOPPING

_LOOK_SECONDS = 1.0
"""Between two looks at the parent."""


def main() -> None:
    """Works until Beam has no more work or the parent is gone."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, args=(os.getppid(),), daemon=True).start()
    # What goes wrong is in the exception that the parent gets; native code still has stderr.
    logging.disable(logging.ERROR)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")
    # Here, so that what Beam says on import isn't shown either.
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)
    os._exit(0)  # TensorFlow's threads may be at work for a build that was stopped.


def _follow_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()

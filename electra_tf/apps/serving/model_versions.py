"""The versions of one model that are served, and how a new one takes over.

A directory is looked at again and again. A new version is loaded and warmed while the old one goes
on answering; then it takes over, and the old one is let go when its last request is answered. A
version that can't be loaded is told of in one line, once; what is served stays served.
"""

import contextlib
import dataclasses
import enum
import gc
import pathlib
from collections.abc import Callable, Iterator

from starlette.concurrency import run_in_threadpool

from electra_tf.apps.serving import saved_models
from electra_tf.apps.serving.errors import RequestError
from electra_tf.apps.serving.saved_models import ServedModel
from electra_tf.platform.errors import UserError

_REMEMBERED = 20  # Versions that are no longer served.

Load = Callable[[pathlib.Path, str], ServedModel]
"""Returns a warm model from a version's directory and a model's name."""
Files = tuple[tuple[str, int, int], ...]
"""Names, sizes and times of a version's files: another value when something is still written."""


class State(enum.StrEnum):
    """As TensorFlow Serving calls them."""

    LOADING = enum.auto()
    AVAILABLE = enum.auto()
    UNLOADING = enum.auto()
    END = enum.auto()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelSource:
    """Where a model's versions are, and how many of them are served."""

    name: str
    directory: pathlib.Path
    num_versions: int = 1
    """The newest so many; 0 for all."""


@dataclasses.dataclass(kw_only=True, eq=False)
class Version:
    """What is known of a version."""

    number: int
    state: State = State.LOADING
    error: str = ""
    model: ServedModel | None = None
    in_use: int = 0


class ModelVersions:
    """One model."""

    def __init__(self, source: ModelSource, load: Load, report: Callable[[str], None]):
        """Loads nothing yet.

        Args:
            source: which versions.
            load: is called in threads.
            report: is told one line of whatever changes.
        """
        self.source = source
        self.known: dict[int, Version] = {}
        self._load = load
        self._report = report
        self._seen: dict[int, Files] = {}
        self._broken: dict[int, Files] = {}

    def start(self) -> None:
        """Loads the newest versions.

        Raises:
            UserError: the newest one, or the directory, is unusable.
        """
        found = saved_models.versions(self.source.directory)
        for number in self._newest(set(found)):
            self.known[number] = Version(number=number)
            try:
                self._arrived(number, self._load(found[number], self.source.name))
            except UserError as error:
                if number == max(found):
                    raise
                self._refuse(number, _files(found[number]), error)

    async def refresh(self) -> None:
        """Looks at the directory once: loads what is new, lets go of what has been replaced."""
        try:
            found = await run_in_threadpool(saved_models.versions, self.source.directory)
        except (UserError, OSError):
            return  # Nothing to be served instead of what is.
        settled = await run_in_threadpool(self._settled, found)
        for number in self._newest(settled):
            if not self._is_loaded(number):
                await self._bring(number, found[number])
        wanted = self._newest({number for number in settled if self._is_loaded(number)})
        if wanted:
            self._let_go_of_all_but(wanted)

    def find(self, number: int | None) -> Version:
        """Returns a version that answers: this one, or the newest.

        Raises:
            RequestError: there is none.
        """
        numbers = [each for each in self.known if self._is_loaded(each)]
        if number is None and numbers:
            return self.known[max(numbers)]
        if number in numbers:
            return self.known[number]
        wanted = "any version" if number is None else f"version {number}"
        raise RequestError(
            f"Servable not found for request: {wanted} of {self.source.name!r}; this server has "
            f"version {', '.join(map(str, sorted(numbers))) or 'none'}", 404)

    @contextlib.contextmanager
    def using(self, version: Version) -> Iterator[ServedModel]:
        """Keeps a version in memory meanwhile."""
        version.in_use += 1
        try:
            yield version.model
        finally:
            version.in_use -= 1
            self._end_if_unused(version)

    def _is_loaded(self, number: int) -> bool:
        return number in self.known and self.known[number].state is State.AVAILABLE

    def _newest(self, numbers: set[int]) -> set[int]:
        count = self.source.num_versions or len(numbers)
        return set(sorted(numbers)[-count:])

    def _settled(self, found: dict[int, pathlib.Path]) -> set[int]:
        """Versions that are loaded, or whose files are as they were and aren't known as broken."""
        now = {number: _files(path) for number, path in found.items()
               if not self._is_loaded(number)}
        before, self._seen = self._seen, now
        return {number for number in found if self._is_loaded(number) or (
            now[number] and now[number] == before.get(number) != self._broken.get(number))}

    async def _bring(self, number: int, path: pathlib.Path) -> None:
        self.known[number] = Version(number=number)
        files = self._seen[number]
        try:
            model = await run_in_threadpool(self._load, path, self.source.name)
        except UserError as error:
            self._refuse(number, files, error)
        else:
            self._arrived(number, model)
            self._report(f"{self.source.name}, version {number}: loaded and warm")

    def _arrived(self, number: int, model: ServedModel) -> None:
        self.known[number].model = model
        self.known[number].state = State.AVAILABLE

    def _refuse(self, number: int, files: Files, error: UserError) -> None:
        self.known[number].state, self.known[number].error = State.END, str(error)
        self._broken[number] = files
        others = ", ".join(str(each) for each in sorted(self.known) if self._is_loaded(each))
        self._report(f"{self.source.name}, version {number} isn't served"
                     f"{f' (version {others} stays)' if others else ''}: {error}")

    def _let_go_of_all_but(self, wanted: set[int]) -> None:
        for number in [each for each in self.known if self._is_loaded(each)]:
            if number not in wanted:
                self.known[number].state = State.UNLOADING
                self._end_if_unused(self.known[number])

    def _end_if_unused(self, version: Version) -> None:
        if version.state is not State.UNLOADING or version.in_use:
            return
        version.state, version.model = State.END, None
        gc.collect()  # A graph refers to itself.
        self._report(f"{self.source.name}, version {version.number}: unloaded")
        ended = [each for each in self.known if self.known[each].state is State.END]
        for number in sorted(ended)[:-_REMEMBERED]:
            del self.known[number]


def _files(path: pathlib.Path) -> Files:
    try:
        return tuple(sorted((str(each), (status := each.stat()).st_size, status.st_mtime_ns)
                            for each in path.rglob("*")))
    except OSError:
        return ()  # Something is being moved.

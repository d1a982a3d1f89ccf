"""What the console writes: the access of agents in the project file, and tokens; nothing else of the file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from starlette.requests import Request

from toolgrove.config import ConfigError, ConfigFile
from toolgrove.errors import AgentNotFound, Conflict, InvalidArgument, NotFound, ToolNotFound
from toolgrove.reload import take_change
from toolgrove.store.state import OPERATOR, hashed, token_id
from toolgrove.web import schemas
from toolgrove.web.http_json import body_of
from toolgrove.web.project import Project
from toolgrove.web.routing import Handlers

if TYPE_CHECKING:
    from toolgrove.access_plan import AccessPlan

_BY = "operator"
_UNDOABLE = 20
_DAY = 86_400.0


class AccessApi:
    """`/api/access…` and `/api/tokens…`, for the operator's token only."""

    def __init__(self, project: Project, tokens_changed: Callable[[], None]) -> None:
        """`tokens_changed` has whoever looks tokens up look again."""
        self._project, self._tokens_changed = project, tokens_changed
        self._before: OrderedDict[str, tuple[str, str, str]] = OrderedDict()
        """What the file was before each change, by the digest that the change made: agent, tool, text."""

    def handlers(self) -> Handlers:
        """What answers each operation."""
        return {
            "preview_access": self._preview,
            "change_access": self._change,
            "undo_access": self._undo,
            "tokens": self._tokens,
            "new_token": self._new_token,
            "revoke_token": self._revoke_token,
        }

    async def _preview(self, request: Request) -> schemas.AccessPreview:
        wish = await body_of(request, schemas.AccessWish)
        file = self._file()
        text, digest = _text(file)
        plan = await self._plan(file, text, wish)
        why = self._why_not()
        return schemas.AccessPreview(
            file=file.path.name,
            digest=digest,
            diff=self._project.secrets.scrub_text(plan.diff),
            steps=list(plan.steps),
            effects=[schemas.AccessEffect(tool=one.tool, before=one.before, after=one.after) for one in plan.effects],
            writable=why == "",
            why=why,
        )

    async def _change(self, request: Request) -> schemas.AccessWritten:
        wish = await body_of(request, schemas.AccessChange)
        file = self._writable()
        text, digest = _text(file)
        if digest != wish.digest:
            raise Conflict("The project file has changed since you looked at it. Look again.", reason="file_changed")
        plan = await self._plan(file, text, wish)
        if not plan.steps:
            raise InvalidArgument("Nothing has to change for that.", reason="nothing_to_change")
        written = _write(file, plan.text, over=digest)
        self._before[written] = wish.agent, wish.tool, text
        while len(self._before) > _UNDOABLE:
            self._before.popitem(last=False)
        diff = self._project.secrets.scrub_text(plan.diff)
        facts = {"want": wish.want, "steps": list(plan.steps), "diff": diff, "before": digest, "after": written}
        return await self._taken(file, "access.changed", wish.agent, wish.tool, written, facts)

    async def _undo(self, request: Request) -> schemas.AccessWritten:
        said = await body_of(request, schemas.AccessUndo)
        file = self._writable()
        if said.digest not in self._before:
            raise NotFound("There is no such change to take back; the gateway may have been started again since.")
        agent, tool, text = self._before[said.digest]
        written = _write(file, text, over=said.digest)
        del self._before[said.digest]
        facts = {"before": said.digest, "after": written}
        return await self._taken(file, "access.undone", agent, tool, written, facts)

    async def _taken(
        self, file: ConfigFile, operation: str, agent: str, tool: str, digest: str, facts: Mapping[str, object]
    ) -> schemas.AccessWritten:
        """Put on record who did it, and go on with the new file at once."""
        await self._project.recorder.record(
            "configuration", operation, by=_BY, agent=agent, targets=(tool,), details=facts
        )
        await take_change(file, self._project)
        return schemas.AccessWritten(digest=digest, taken=file.digest == digest and not file.problems)

    async def _plan(self, file: ConfigFile, text: str, wish: schemas.AccessWish) -> AccessPlan:
        if wish.agent not in self._project.config.agents:
            raise AgentNotFound(wish.agent, list(self._project.config.agents))
        offers = (await self._project.pool.snapshot()).offers
        if wish.tool not in offers:
            raise ToolNotFound(wish.tool, list(offers))
        planner = import_module("toolgrove.access_plan").AccessPlanner(  # only those who edit pay for its import
            path=file.path, offers=offers, outlook=self._project.outlook
        )
        plan: AccessPlan = planner.plan(text, wish.agent, wish.tool, wish.want)
        return plan

    def _file(self) -> ConfigFile:
        if self._project.file is None:
            raise Conflict("This project was not started from a file, so there is none to change.", reason="no_file")
        return self._project.file

    def _writable(self) -> ConfigFile:
        why = self._why_not()
        if why:
            raise Conflict(why, reason="not_written_here")
        return self._file()

    def _why_not(self) -> str:
        """Why the file is not written from here; empty if it is."""
        if self._project.config.workspace.store.startswith(("postgres:", "postgresql:")):
            return (
                "This project is kept in PostgreSQL, where several replicas may serve it, each with its own copy of "
                "the file. Make this change where you deploy from."
            )
        return ""

    # Tokens -----------------------------------------------------------------------------------------

    async def _tokens(self, request: Request) -> schemas.TokenList:
        tokens, agents = self._project.tokens, self._project.config.agents
        good, unused, ends = tokens.holders(), set(tokens.unused()), tokens.expiries()
        items = [
            schemas.TokenSummary(
                id=token_id(kept),
                holder=_BY if holder == OPERATOR else holder,
                standing="expired"
                if kept not in good
                else "good"
                if holder == OPERATOR or holder in agents
                else "agent_gone",
                used=kept not in unused,
                expires_at=ends.get(kept),
                current=kept == request.user.token,
            )
            for kept, holder in tokens.holders(also_expired=True).items()
        ]
        return schemas.TokenList(items=sorted(items, key=lambda one: (one.holder, one.id)))

    async def _new_token(self, request: Request) -> schemas.NewToken:
        """Make a token of an agent; one of the operator is made at a terminal alone."""
        wish = await body_of(request, schemas.TokenWish)
        if wish.agent not in self._project.config.agents:
            raise AgentNotFound(wish.agent, list(self._project.config.agents))
        lifetime = None if wish.days is None else wish.days * _DAY
        token = self._project.tokens.issue(wish.agent, by=_BY, lifetime=lifetime)
        self._tokens_changed()
        return schemas.NewToken(id=token_id(hashed(token)), holder=wish.agent, token=token)

    async def _revoke_token(self, request: Request) -> schemas.RevokedToken:
        known = request.path_params["id"]
        for kept in self._project.tokens.holders(also_expired=True):
            if token_id(kept) == known:
                if kept == request.user.token:
                    raise Conflict("This is the token that you are signed in with. Use another one to revoke it.")
                self._project.tokens.revoke(kept, by=_BY)
                self._tokens_changed()
                return schemas.RevokedToken(id=known)
        raise NotFound(f"There is no token {known!r}. It may have been revoked already.")


def _text(file: ConfigFile) -> tuple[str, str]:
    try:
        return file.text()
    except ConfigError as problem:
        raise Conflict(f"The project file cannot be read: {problem.problems[0]}", reason="file") from None


def _write(file: ConfigFile, text: str, *, over: str) -> str:
    try:
        return file.write(text, over=over)
    except OSError as problem:
        raise Conflict(
            f"The project file cannot be written: {problem.strerror}. Copy the change and make it by hand.",
            reason="not_written_here",
        ) from None

"""Who may call what, and a person who says yes: apcore's rules, in force for every MCP client."""

from pathlib import Path

from apcore import ACL, ACLRule, ApprovalRequest, ApprovalResult, CallbackApprovalHandler, Executor, Registry

from apcore_mcp import elicit, serve

CONSENT = {
    "type": "object",
    "properties": {"yes": {"type": "boolean", "title": "Go ahead?", "default": False}},
    "required": ["yes"],
}


async def ask_the_user(request: ApprovalRequest) -> ApprovalResult:
    """Ask through the MCP client that made the call; no answer is a no."""
    answer = await elicit(request.context, f"Run {request.module_id} with {request.arguments}?", CONSENT)
    return ApprovalResult(status="approved" if answer and answer["yes"] else "rejected")


def executor_for(registry: Registry) -> Executor:
    rules = [
        ACLRule(callers=["@external"], targets=["stories.*"], effect="deny"),
        ACLRule(callers=["@external"], targets=["*"], effect="allow"),
    ]
    return Executor(registry, acl=ACL(rules), approval_handler=CallbackApprovalHandler(ask_the_user))


if __name__ == "__main__":
    registry = Registry(extensions_dir=str(Path(__file__).parent / "extensions"))
    registry.discover()
    serve(executor_for(registry), name="governed")

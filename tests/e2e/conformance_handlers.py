"""What an apcore module has no way to say, added to an endpoint so that the conformance suite sees a whole server.

That is images, audio, prompts, resources of its own, sampling, roots and log messages.
"""

import asyncio
import base64
import json
from typing import Any

import mcp_types as types
from mcp.server.subscriptions import PromptsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from e2e.conformance_modules import NAME, module, test_simple_text
from mcp_serve.endpoint import Endpoint
from mcp_serve.sdk_server import SdkServer

PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
    )
).decode()
WAV = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00").decode()


def text(value: str) -> types.TextContent:
    return types.TextContent(text=value)


def resource(uri: str, value: str, mime_type: str = "text/plain") -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=value))


IMAGE = types.ImageContent(data=PNG, mime_type="image/png")
ELICIT_NAME = types.ElicitRequest(
    params=types.ElicitRequestFormParams(message="What is your name?", requested_schema=NAME)
)
SAMPLE = types.CreateMessageRequest(
    params=types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=text("What is the capital of France?"))], max_tokens=100
    )
)
CONTENT: dict[str, list[Any]] = {
    "test_image_content": [IMAGE],
    "test_audio_content": [types.AudioContent(data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [resource("test://embedded-resource", "This is an embedded resource content.")],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ],
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "test_input_required_result_sampling": {"capital_question": SAMPLE},
    "test_input_required_result_list_roots": {"client_roots": types.ListRootsRequest()},
    "test_input_required_result_multiple_inputs": {
        "user_name": ELICIT_NAME,
        "greeting": SAMPLE,
        "client_roots": types.ListRootsRequest(),
    },
    "test_input_required_result_capabilities": {"user_name": ELICIT_NAME, "capital_question": SAMPLE},
}
CAPABILITIES = {
    "user_name": types.ClientCapabilities(elicitation=types.ElicitationCapability()),
    "capital_question": types.ClientCapabilities(sampling=types.SamplingCapability()),
}
OTHERS = ("test_tool_with_logging", "test_logging_tool", "test_missing_capability", "test_trigger_prompt_change")
BRIDGE_KEY = "answer"


def register_special_tools() -> None:
    """Have the tools that the handlers answer listed beside the modules."""
    for name in (*CONTENT, *QUESTIONS, *OTHERS):
        module(name=name)(test_simple_text)
    module({"type": "object", "properties": {"prompt": {"type": "string"}}}, "test_sampling")(test_simple_text)


def complete(endpoint: Endpoint) -> None:
    """Add to the endpoint's server all that the suite looks for and modules cannot say."""
    server, calls, documents = endpoint.server, Calls(endpoint), Documents(endpoint)
    server.add_request_handler("tools/call", types.CallToolRequestParams, calls.call)
    server.add_request_handler("prompts/list", types.PaginatedRequestParams, calls.list_prompts)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, get_prompt)
    server.add_request_handler("resources/list", types.PaginatedRequestParams, documents.list)
    handling(endpoint)._prompts = None  # the suite's own take their place
    server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, list_templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, documents.read)
    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, nothing)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, nothing)
    server.add_request_handler("completion/complete", types.CompleteRequestParams, suggest)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, nothing)


def handling(endpoint: Endpoint) -> SdkServer:
    """What answers the SDK for the endpoint."""
    assert endpoint.server is not None
    assert endpoint._sdk is not None
    return endpoint._sdk


def handler_of(endpoint: Endpoint, method: str) -> Any:
    """The endpoint's own handler, which still answers what is not special."""
    entry = endpoint.server.get_request_handler(method)
    assert entry is not None, method
    return entry.handler


class Calls:
    """The special tools, and the prompts that one of them changes."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint, self._call = endpoint, handler_of(endpoint, "tools/call")
        self._prompts = ["test_simple_prompt", "test_prompt_with_image", "test_input_required_result_prompt"]

    async def call(self, ctx: Any, params: types.CallToolRequestParams) -> Any:
        name = params.name
        if name in CONTENT:
            return result(*CONTENT[name])
        if name in ("test_tool_with_logging", "test_logging_tool"):
            await log(ctx)
            return result(text("logged"))
        if name == "test_sampling":
            prompt = str((params.arguments or {}).get("prompt"))
            asked = [types.SamplingMessage(role="user", content=text(prompt))]
            answer = await ctx.session.create_message(asked, max_tokens=100, related_request_id=ctx.request_id)
            return result(text(f"LLM response: {answer.content.text}"))
        if name == "test_missing_capability":
            needed = CAPABILITIES["capital_question"]
            if not ctx.session.check_client_capability(needed):
                data = types.MissingRequiredClientCapabilityErrorData(required_capabilities=needed)
                dumped = data.model_dump(by_alias=True, exclude_none=True)
                raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "Sampling is needed", dumped)
            return result(text("sampling is there"))
        if name == "test_trigger_prompt_change":
            self._prompts.append(f"test_extra_{len(self._prompts)}")
            await handling(self._endpoint)._bus.publish(PromptsListChanged())
            return result(text("changed"))
        if name in QUESTIONS:
            return ask(ctx, params)
        if name == "test_input_required_result_elicitation":
            return await self._call_with_named_question(ctx, params, "user_name")
        return await self._call(ctx, params)

    async def list_prompts(self, ctx: Any, params: Any) -> types.ListPromptsResult:
        arguments = {
            "test_prompt_with_arguments": ["arg1", "arg2"],
            "test_prompt_with_embedded_resource": ["resourceUri"],
            **{name: [] for name in self._prompts},
        }
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=name,
                    description=f"The prompt {name}",
                    arguments=[types.PromptArgument(name=argument, required=True) for argument in names],
                )
                for name, names in sorted(arguments.items())
            ]
        )

    async def _call_with_named_question(self, ctx: Any, params: types.CallToolRequestParams, key: str) -> Any:
        """The suite insists on the key of this one question; what the bridge calls its questions is its own affair."""
        if params.input_responses is not None:
            renamed = {BRIDGE_KEY if name == key else name: answer for name, answer in params.input_responses.items()}
            params = params.model_copy(update={"input_responses": renamed})
        outcome = await self._call(ctx, params)
        if isinstance(outcome, types.InputRequiredResult):
            [question] = (outcome.input_requests or {}).values()
            return outcome.model_copy(update={"input_requests": {key: question}})
        return outcome


def result(*content: Any) -> types.CallToolResult:
    return types.CallToolResult(content=list(content))


async def log(ctx: Any) -> None:
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await ctx.session.send_log_message("info", step, related_request_id=ctx.request_id)
            await asyncio.sleep(0.05)


def ask(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    questions = {
        key: question
        for key, question in QUESTIONS[params.name].items()
        if not params.name.endswith("capabilities") or ctx.session.check_client_capability(CAPABILITIES[key])
    }
    answers = params.input_responses or {}
    if not questions.keys() <= answers.keys():
        return types.InputRequiredResult(input_requests=questions, request_state="asked")
    return result(text(json.dumps({key: str(answer) for key, answer in answers.items()})))


async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> Any:
    given = params.arguments or {}
    match params.name:
        case "test_prompt_with_arguments":
            content: list[Any] = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            embedded = resource(given["resourceUri"], "Embedded resource content for testing.")
            content = [embedded, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            content = [IMAGE, text("Please analyze the image above.")]
        case "test_input_required_result_prompt" if not params.input_responses:
            schema = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
            form = types.ElicitRequestFormParams(message="What context should the prompt use?", requested_schema=schema)
            return types.InputRequiredResult(input_requests={"user_context": types.ElicitRequest(params=form)})
        case _:
            content = [text("This is a simple prompt for testing.")]
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=item) for item in content])


class Documents:
    """The suite's resources beside the endpoint's own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._list, self._read = handler_of(endpoint, "resources/list"), handler_of(endpoint, "resources/read")

    async def list(self, ctx: Any, params: Any) -> types.ListResourcesResult:
        own = await self._list(ctx, params)
        names = {"static-text": "text/plain", "static-binary": "image/png", "watched-resource": "text/plain"}
        theirs = [
            types.Resource(uri=f"test://{name}", name=name, description=f"The resource {name}", mime_type=mime_type)
            for name, mime_type in names.items()
        ]
        return types.ListResourcesResult(resources=[*own.resources, *theirs])

    async def read(self, ctx: Any, params: types.ReadResourceRequestParams) -> Any:
        uri = params.uri
        if uri == "test://static-binary":
            blob = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
            return types.ReadResourceResult(contents=[blob])
        if uri.startswith("test://template/") and uri.endswith("/data"):
            number = uri.split("/")[3]
            data = json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})
            content = types.TextResourceContents(uri=uri, mime_type="application/json", text=data)
            return types.ReadResourceResult(contents=[content])
        if uri in ("test://static-text", "test://watched-resource"):
            value = "This is the content of the static text resource."
            content = types.TextResourceContents(uri=uri, mime_type="text/plain", text=value)
            return types.ReadResourceResult(contents=[content])
        return await self._read(ctx, params)


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template",
        description="Data by id",
        mime_type="application/json",
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def suggest(ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=["paris", "park", "party"], has_more=False))


async def nothing(ctx: Any, params: Any) -> types.EmptyResult:
    return types.EmptyResult()

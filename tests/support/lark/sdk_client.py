"""A bot made with the official SDK, as its users write one: `python -P sdk_client.py URL APP SECRET`.

It makes an answer in a card through the REST API, then serves messages and clicks over the long connection.
"""

import json
import sys
from typing import Any

import lark_oapi as lark
from lark_oapi.api.cardkit.v1 import (
    ContentCardElementRequest,
    ContentCardElementRequestBody,
    CreateCardRequest,
    CreateCardRequestBody,
    SettingsCardRequest,
    SettingsCardRequestBody,
)
from lark_oapi.api.im.v1 import (
    CreateMessageRequest,
    CreateMessageRequestBody,
    ListMessageRequest,
    ReplyMessageRequest,
    ReplyMessageRequestBody,
)
from lark_oapi.event.callback.model.p2_card_action_trigger import (
    P2CardActionTriggerResponse,
)

CARD = {
    "schema": "2.0",
    "config": {"streaming_mode": True, "summary": {"content": "sdk"}},
    "body": {"elements": [{"tag": "markdown", "element_id": "md", "content": "…"}]},
}


def checked(response: Any) -> Any:
    if not response.success():
        raise SystemExit(f"refused: {response.code} {response.msg}")
    return getattr(response, "data", None)


def answer_in_a_card(client: Any) -> None:
    body = CreateCardRequestBody.builder().type("card_json").data(json.dumps(CARD)).build()
    made = client.cardkit.v1.card.create(CreateCardRequest.builder().request_body(body).build())
    card = checked(made).card_id
    content = json.dumps({"type": "card", "data": {"card_id": card}})
    message = (
        CreateMessageRequestBody.builder()
        .receive_id("oc_group").msg_type("interactive").content(content).uuid("sdk-1").build()
    )  # fmt: skip
    request = CreateMessageRequest.builder().receive_id_type("chat_id").request_body(message)
    checked(client.im.v1.message.create(request.build()))
    text = ContentCardElementRequestBody.builder().content("from the SDK").sequence(1).build()
    element = ContentCardElementRequest.builder().card_id(card).element_id("md")
    checked(client.cardkit.v1.card_element.content(element.request_body(text).build()))
    closed = json.dumps({"config": {"streaming_mode": False}})
    settings = SettingsCardRequestBody.builder().settings(closed).sequence(2).build()
    request = SettingsCardRequest.builder().card_id(card).request_body(settings).build()
    checked(client.cardkit.v1.card.settings(request))
    listing = ListMessageRequest.builder().container_id_type("chat").container_id("oc_group")
    print("listed", len(checked(client.im.v1.message.list(listing.build())).items), flush=True)


def main(url: str, app: str, secret: str) -> None:
    client: Any = lark.Client.builder().app_id(app).app_secret(secret).domain(url).build()
    answer_in_a_card(client)

    def reply(data: Any) -> None:
        message = data.event.message
        text = json.dumps({"text": f"echo {json.loads(message.content)['text']}"})
        body = ReplyMessageRequestBody.builder().content(text).msg_type("text").build()
        request = ReplyMessageRequest.builder().message_id(message.message_id).request_body(body)
        checked(client.im.v1.message.reply(request.build()))

    def click(data: Any) -> P2CardActionTriggerResponse:
        option = data.event.action.value["o"]
        return P2CardActionTriggerResponse({"toast": {"type": "info", "content": option}})

    handler = (
        lark.EventDispatcherHandler.builder("", "")
        .register_p2_im_message_receive_v1(reply)
        .register_p2_card_action_trigger(click)
        .build()
    )
    lark.ws.Client(app, secret, event_handler=handler, domain=url).start()


if __name__ == "__main__":
    main(*sys.argv[1:])

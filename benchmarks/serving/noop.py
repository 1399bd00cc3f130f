"""No-ops that answer a fixed body: the least that any service on this server does."""

import sys
from typing import Any

import uvicorn

BODY = b'{"decisions":[{"id":"123.4567.q7ht1_hrn1FlyX18","arms":["arm 1","arm 2","arm 3"]}]}'
HEAD = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]


async def raw(scope: Any, receive: Any, send: Any) -> None:
    """Answer, with nothing between the server and this."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": HEAD})
    await send({"type": "http.response.body", "body": BODY})


def fastapi() -> Any:
    """Return the same in FastAPI, with a body that it reads and one that it writes."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Ask(BaseModel):
        n: int = 1

    app = FastAPI()

    @app.post("/")
    async def ask(body: Ask) -> dict[str, Any]:
        return {"decisions": [{"id": "123.4567.q7ht1_hrn1FlyX18", "arms": ["a", "b", "c"]}]}

    return app


if __name__ == "__main__":
    uvicorn.run(
        fastapi() if sys.argv[1] == "fastapi" else raw,
        port=int(sys.argv[2]),
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
    )

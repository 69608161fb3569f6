// A job as a stream of events, a JSON object per line. Aborting the signal cancels the job on the server.

export class Refusal extends Error {
  constructor({ asked, found, change }) {
    super(`${asked}: ${found}`);
    Object.assign(this, { asked, found, change });
  }
}

// The server has gone, or cannot be reached.
export class Silence extends Refusal {
  constructor() { super({ asked: "an answer of the server", found: "none", change: "start it again" }); }
}

const heard = (waiting) => waiting.catch((error) => { throw error.name === "AbortError" ? error : new Silence(); });

async function sent(path, body, signal) {
  const response = await heard(fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
  }));
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new Refusal(told.error ?? { asked: "an answer", found: `status ${response.status}`, change: "try again" });
}

export async function answer(path, body, signal) {
  return heard((await sent(path, body, signal)).json());
}

export async function* events(path, body, signal) {
  const reader = (await sent(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await heard(reader.read());
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      signal.throwIfAborted(); // what had arrived before is not wanted any more
      yield JSON.parse(line);
    }
  }
}

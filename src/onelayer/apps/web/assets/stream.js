// A job as a stream of events, a JSON object per line. Aborting the signal cancels the job on the server.

export class Refusal extends Error {
  constructor({ asked, found, change }) {
    super(`${asked}: ${found}`);
    Object.assign(this, { asked, found, change });
  }
}

// The server cannot be reached.
export class NoAnswer extends Refusal {
  constructor() { super({ asked: "an answer from the server", found: "none", change: "start it again" }); }
}

const orNoAnswer = (promise) => promise.catch((error) => { throw error.name === "AbortError" ? error : new NoAnswer(); });

// Ask for something; without a body it is there already.
async function ask(path, body, signal) {
  const sent = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await orNoAnswer(fetch(path, { ...sent, signal }));
  if (response.ok) return response;
  const refused = await response.json().catch(() => ({}));
  throw new Refusal(refused.error ?? { asked: "an answer", found: `status ${response.status}`, change: "try again" });
}

export async function answer(path, body, signal) {
  return orNoAnswer((await ask(path, body, signal)).json());
}

export async function* events(path, body, signal) {
  const reader = (await ask(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await orNoAnswer(reader.read());
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      signal.throwIfAborted(); // whatever has already arrived is no longer wanted
      yield JSON.parse(line);
    }
  }
}

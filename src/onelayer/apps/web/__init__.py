"""The explorer: the theorem in a browser. `onelayer serve` starts it.

    page (assets) → request (`input`) → `job_queue` → a fork of the `worker` (`job`) → what the page shows (`view`)

The server only reads requests and forwards lines; building, proving and training happen in processes that can be killed. The
page follows what is typed (assets: `form` → `live` → `layer_view`, `state`; `point` and `here` for one point).
"""

// The report: everything is in this file, no request.

"use strict";

show(JSON.parse(document.getElementById("data").textContent)).then(() => { document.body.dataset.ready = "yes"; });

"""Hostile requests for the explorer: bytes that are no HTTP, foreign requests, bodies that are no wish, wishes that ask too much.

Every entry is (name, bytes of a whole connection); all of them are to be refused with a 4xx. Loopback only.
"""

import json

GOOD = {"formula": "sin(x1) + sin(x2)", "domain": "0:2*pi", "tolerance": 1e-2}
POWERS = "(" * 60 + "2" + "**1000)" * 60  # a number of 10^180 digits


def request(host, line="POST /api/parse HTTP/1.1", body=b"", headers=(), kind="application/json"):
    given = [line, f"Host: {host}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close"]
    return "\r\n".join([*given, *headers, "", ""]).encode("latin-1") + body


def wish(host, record, path="/api/build"):
    return request(host, f"POST {path} HTTP/1.1", record if isinstance(record, bytes) else json.dumps(record).encode())


def malformed(host):
    """Bytes that are not HTTP/1.1, or not quite."""
    h = f"Host: {host}\r\n".encode()
    post = b"POST /api/parse HTTP/1.1\r\n" + h + b"Content-Type: application/json\r\n"
    chunked = post + b"Transfer-Encoding: chunked\r\n\r\n"
    return [
        ("http/0.9", b"GET /\r\n\r\n"),
        ("nothing but line ends", b"\r\n" * 50_000),
        ("a null byte", b"GET /\x00 HTTP/1.1\r\n" + h + b"\r\n"),
        ("null bytes", b"\x00" * 1000 + b"\r\n\r\n"),
        ("random bytes", bytes(range(256)) * 40),
        ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 500 + b"\r\n\r\n"),
        ("http/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("http/9.9", b"GET / HTTP/9.9\r\n" + h + b"\r\n"),
        ("no version", b"GET / \r\n" + h + b"\r\n"),
        ("two blanks", b"GET  / HTTP/1.1\r\n" + h + b"\r\n"),
        ("no method", b"/ HTTP/1.1\r\n" + h + b"\r\n"),
        ("a method of brackets", b"G(E)T / HTTP/1.1\r\n" + h + b"\r\n"),
        ("bytes beyond ASCII in the target", b"GET /\xff\xfe HTTP/1.1\r\n" + h + b"\r\n"),
        ("a header without a colon", b"GET / HTTP/1.1\r\n" + h + b"nonsense\r\n\r\n"),
        ("a blank before a colon", b"GET / HTTP/1.1\r\n" + h + b"X : 1\r\n\r\n"),
        ("a folded first header", b"GET / HTTP/1.1\r\n X: 1\r\n" + h + b"\r\n"),
        ("a null byte in a header", b"GET / HTTP/1.1\r\n" + h + b"X: a\x00b\r\n\r\n"),
        ("an empty header name", b"GET / HTTP/1.1\r\n" + h + b": 1\r\n\r\n"),
        ("no Host", b"GET / HTTP/1.1\r\n\r\n"),
        ("two Hosts", b"GET / HTTP/1.1\r\n" + h + h + b"\r\n"),
        ("own Host, then a foreign one", b"GET / HTTP/1.1\r\n" + h + b"Host: evil.example\r\n\r\n"),
        ("a flood of headers", b"GET / HTTP/1.1\r\n" + h + b"".join(b"X-%d: 1\r\n" % i for i in range(50_000))),
        ("one long header", b"GET / HTTP/1.1\r\n" + h + b"X: " + b"a" * 500_000),
        ("a long target", b"GET /" + b"a" * 500_000),
        ("a long method", b"A" * 500_000),
        ("Content-Length: -1", post + b"Content-Length: -1\r\n\r\n{}"),
        ("Content-Length: 1e3", post + b"Content-Length: 1e3\r\n\r\n{}"),
        ("Content-Length of 400 digits", post + b"Content-Length: " + b"9" * 400 + b"\r\n\r\n{}"),
        ("two Content-Lengths", post + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
        ("Content-Length: 2, 3", post + b"Content-Length: 2, 3\r\n\r\n{}"),
        ("an unknown coding", post + b"Transfer-Encoding: gzip\r\n\r\n"),
        ("two codings", post + b"Transfer-Encoding: gzip, chunked\r\n\r\n"),
        ("a chunk of size zz", chunked + b"zz\r\n{}\r\n0\r\n\r\n"),
        ("a chunk of size -1", chunked + b"-1\r\n{}\r\n0\r\n\r\n"),
        ("a chunk of 30 digits", chunked + b"f" * 30 + b"\r\n{}\r\n0\r\n\r\n"),
        ("a chunk longer than it says", chunked + b"1\r\n{}}}}}\r\n0\r\n\r\n"),
        ("a chunk size without end", chunked + b"1" * 100_000),
        ("a chunk extension without end", chunked + b"1;" + b"a" * 100_000),
    ]


def slow(host):
    """The beginnings of requests that never end."""
    h = f"Host: {host}\r\nContent-Type: application/json\r\n".encode()
    return [
        ("silence", b""),
        ("half a line", b"GET / HT"),
        ("half the headers", b"GET / HTTP/1.1\r\n" + h),
        ("a body that does not come", b"POST /api/parse HTTP/1.1\r\n" + h + b"Content-Length: 10\r\n\r\n"),
        ("a body that stops", b"POST /api/build HTTP/1.1\r\n" + h + b'Content-Length: 90\r\n\r\n{"formula":'),
        ("a body of a petabyte", b"POST /api/build HTTP/1.1\r\n" + h + b"Content-Length: 1000000000000000\r\n\r\n{"),
        (
            "a chunk that does not come",
            b"POST /api/train HTTP/1.1\r\n" + h + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
        ),
        ("continue?", b"POST /api/parse HTTP/1.1\r\n" + h + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"),
    ]


def foreign(host):
    """Requests in good HTTP that come from elsewhere, go elsewhere or look for what is not there."""
    port = host.rpartition(":")[2]
    names = ["evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port}.evil.example", f"127.0.0.2:{port}"]
    names += [f"user@127.0.0.1:{port}", f"127.0.0.1:{port}/", "", "[", "[::1", f"0x7f.1:{port}", f"2130706433:{port}"]
    names += [f"127.1:{port}", f"localhost.:{port}", f"127.0.0.1:0{port}", f"127.0.0.1:{port},evil", "*", "a" * 5000]
    found = [(f"Host {name[:40]!r}", request(name, "GET / HTTP/1.1")) for name in names]
    origins = [
        "null",
        "http://evil.example",
        f"https://{host}",
        f"http://{host}.evil.example",
        f"http://localhost:{port}",
    ]
    origins += ["", f"http://user@{host}", f"http://{host}/", "file://", "chrome-extension://a"]
    body = json.dumps(GOOD).encode()
    found += [(f"Origin {name!r}", request(host, body=body, headers=[f"Origin: {name}"])) for name in origins]
    found += [
        (f"Sec-Fetch-Site {name!r}", request(host, body=body, headers=[f"Sec-Fetch-Site: {name}"]))
        for name in ("cross-site", "same-site", "SAME-ORIGIN, cross-site", "", "null")
    ]
    found += [
        ("two Origins", request(host, body=body, headers=[f"Origin: http://{host}", "Origin: http://evil.example"])),
        (
            "a cross-site script",
            request(host, "GET /assets/plotly.js HTTP/1.1", headers=["Sec-Fetch-Site: cross-site"]),
        ),
        ("a layer that is not on the menu", request(host, "GET /api/sequences/balanced HTTP/1.1")),
        ("a layer of another size", request(host, "GET /api/sequences/sort/8 HTTP/1.1")),
        (
            "a cross-site layer for sequences",
            request(host, "GET /api/sequences/depth HTTP/1.1", headers=["Sec-Fetch-Site: cross-site"]),
        ),
        (
            "a cross-site navigation to data",
            request(
                host, "GET /api/about HTTP/1.1", headers=["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"]
            ),
        ),
    ]
    targets = [
        "http://evil.example/",
        f"http://{host}/",
        "*",
        "[",
        "%E2%84%80",
        "//evil.example/",
        "///",
        "/\\..\\..",
        "?",
    ]
    targets += [
        "/assets/../app.py",
        "/assets/..%2fapp.py",
        "/assets/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/assets/",
        "/assets",
    ]
    targets += [
        "/assets//etc/passwd",
        "/assets/%00",
        "/assets/explorer.js%00.css",
        "/assets/explorer.js/",
        "/assets/%ff%fe",
    ]
    targets += [
        "/assets/index.html",
        "/assets/..;/app.py",
        "/assets/%252e%252e%252f",
        "/assets/C:%5cwindows",
        "/assets/.",
    ]
    targets += [
        "/etc/passwd",
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/api/about/",
        "/API/ABOUT",
        "/api",
    ]
    targets += ["/api/folders/", "/api/folders/..", "/api/folders/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/api/folders/%00"]
    targets += ["/api/folders/__class__", "/api/folders/" + "a" * 20_000, "/" + "a/" * 10_000, "/.git/config", "/.env"]
    targets += ["/api/folders/a?key=../../etc/passwd", "/favicon.ico/..%2f", "/assets/~root", "/assets/${HOME}", "/%"]
    found += [(f"target {target[:50]}", request(host, f"GET {target} HTTP/1.1")) for target in targets]
    methods = ["TRACE /", "CONNECT /", "OPTIONS /", "OPTIONS *", "PUT /", "DELETE /api/folders/x", "PATCH /api/build"]
    methods += ["POST /", "GET /api/build", "GET /api/train", "GET /api/parse", "PROPFIND /", "get /", "X" * 500 + " /"]
    methods += [f"CONNECT {host}", "CONNECT evil.example:443", "POST /assets/explorer.js", "POST /api/about"]
    found += [(f"method {line[:40]}", request(host, f"{line} HTTP/1.1")) for line in methods]
    upgrade = ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    found += [
        (f"a websocket at {path}", request(host, f"GET {path} HTTP/1.1", headers=[*upgrade, "Connection: Upgrade"]))
        for path in ("/ws", "/api/build")
    ]
    kinds = [
        "text/plain",
        "",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=a",
        "application/jsonp",
    ]
    kinds += ["text/plain; application/json", "application/json, text/plain"]
    found += [(f"Content-Type {kind!r}", request(host, body=body, kind=kind)) for kind in kinds]
    return found


def bodies():
    """Bodies that are no JSON object, or one that is no wish."""
    text = json.dumps(GOOD)
    return {
        "empty": b"", "half": text[:-5].encode(), "twice": (text * 2).encode(), "null": b"null", "true": b"true",
        "number": b"3", "string": b'"x1"', "list": b"[]", "list of wishes": f"[{text}]".encode(), "object": b"{}",
        "byte order mark": b"\xef\xbb\xbf" + text.encode() + b"}", "UTF-7": b"+AHs-+AH0-",
        "bad UTF-8": b'{"formula": "\xff\xfe"}', "UTF-16 cut": text.encode("utf-16")[:-1], "null bytes": b"\x00" * 64,
        "deep lists": b"[" * 60_000, "deep and closed": b"[" * 30_000 + b"]" * 30_000,
        "deep objects": b'{"a":' * 10_000, "single quotes": b"{'formula': 'x1'}",
        "a comment": b'{"formula": "x1" /* */}',
        "an integer of 60,000 digits": b'{"tolerance": ' + b"9" * 60_000 + b"}",
        "1e999999": b'{"formula": "x1", "domain": "0:1", "tolerance": 1e999999}', "form": b"formula=x1&domain=0:1",
        "NaN": b'{"formula": "x1", "domain": "0:1", "tolerance": NaN}',
        "XML": b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///'>]>",
        "Infinity": b'{"formula": "x1", "domain": "0:1", "tolerance": -Infinity}', "pickle": b"\x80\x04\x95\x00.",
        "a megabyte": b'{"formula": "' + b"x" * 2**20 + b'"}', "a megabyte of blanks": b" " * 2**20,
        "a huge key": b'{"' + b"k" * 60_000 + b'": 1}',
        "many keys": json.dumps({f"k{i}": i for i in range(4000)}).encode(),
        "the last of two keys counts": b'{"formula": "x1", "domain": "0:1", "tolerance": 0.1, "tolerance": 0}',
        "prototypes": b'{"__proto__": {}, "formula": "x1", "domain": "0:1"}',
        "self": b'{"self": 1, "formula": "x1", "domain": "0:1"}',
    }  # fmt: skip


FORMULAS = [
    "", " ", "(" * 2000, "(" * 1000 + "x1" + ")" * 1000, "-" * 1999 + "x1", "10**10**10", "x1**10**10**10",
    "x1**1001", "9**9**9**9*x1", "x1**(" + "9*" * 900 + "9)", "1/" * 900 + "x1", "x1**" * 600 + "x1",
    "x1*" * 1500 + "x1", ";" * 100, ";;;;", "x1;;x1", "x1;", "x1000000", "x0", "x" * 2000, "x10000",
    "x99999999999999999999", "x1 + z9", "__import__('os').system('true')", "__class__", "x1.__class__",
    "().__class__.__bases__", "lambda: 1", "[x1 for x1 in (1,)]", "open('/etc/passwd')", "eval('1')", "exec('1')",
    "f'{x1}'", "(x1 := 3)", "x1 if x1 else 2", "x1[0]", "x1, x2", "*x1", "**x1", "x1 = 2", "import os", "yield x1",
    "await x1", "x1 and x2", "not x1", "x1 == 2", "x1 < 2", "'x1'", "b'x1'", "True", "None", "...", "1j*x1", "0x10",
    "1_000", "0b1", "1e400", "1e-400", "9" * 1500, "1e99999999999", "sin", "sin()", "sin(x1, x2)", "sin(x=x1)",
    "sin(*x1)", "max(x1)", "where(x1)", "where(x1, 1, 2)", "gamma(x1)", "factorial(100000)", "x1!", "x1 ^ y",
    "x1 % 2", "x1 // 2", "x1 @ x1", "x1 << 99999999", "~x1", "x1 & 1", "х1", "sіn(x1)", "∑x1", "2x y", "1/2x", "|x",
    "x²^2", "f(x) =", "x = x",
    "²", "sin²", "x^", "^x", "||||", "f(f(x)) = x", "x" * 30 + "y(1)", "x½", "2" * 300 + "x" * 300,
    "x1\u2028+1", "\ud800", "\x00", "x1\x00", "\u202ex1", "x1 # comment", "x1 \\\n", "`x1`", "$x1", "${x1}",
    "<script>", "' OR 1=1", "../../etc/passwd", "%00", "x1 +", "+", ")", "x1)", "((x1)", "1 2", "x1 x2", "\ufeffx1",
]  # fmt: skip
DOMAINS = [
    "", "nan:1", "0:nan", "0:inf", "-inf:inf", "-(inf):1", "1:0", "0:0", "1:1", "1e308:1e309", "-1e300:1e300",
    "0:10**10**10", f"0:{POWERS}", "0:1/0", "exp(exp(exp(100))):1", "0:exp(exp(exp(100)))", "0:log(0)", "0:sqrt(-1)",
    "0:asin(2)", ",".join(["0:1"] * 500), ",".join(["0:1"] * 7), "0:1,", ",,,", ":", "::", "0", "0:1:2", "a:b",
    "0:x1", "if=0:1", "sin=0:1", "pi=0:1", "a=0:1, a=0:1", "a=0:1, 0:1", "=0:1", "a==0:1", "1a=0:1", "a.b=0:1",
    "\ud800=0:1", "0:1;2", "(" * 500, "0:" + "1+" * 998, "0:1e-300", "0:" + "9" * 1000, "0:tan(1e300)",
    "__class__=0:1", "0:1" + " " * 3000, "0:open('a')",
]  # fmt: skip
FIELDS = {
    "tolerance": [0, -1, -0.0, 1e-300, 1e300, 10**400, "0.1", "", True, False, None, [], [0.1], {}, {"a": 1}, 1e-13],
    "units": [10**9, 0, -1, 1.5, 2001, "10", True, [], {}, 10**400, 1e308],
    "method": ["", "magic", None, 1, [], ["polished"], {}, "Polished", "trained", "a" * 60_000],
    "construction": ["", "magic", None, 1, ["gates"], "__class__"],
    "dtype": ["", "float16", "object", None, 64, ["float64"], "float64\x00"],
    "formula": [None, 1, 1.5, True, [], ["x1"], {}, {"x1": 1}],
    "domain": [None, 1, True, [], [[0, 1]], {"x1": [0, 1]}],
    "coarse": [0, 1, "yes", None, [], {}, 1e308],
    "tab": [1, None, True, [], ["a"], {}, "a" * 41, "é", "\ud800", "a" * 60_000],
    "folder": ["../../etc/passwd"],
    "seconds": [1e9],
}
PARAMETERS = [0, -1, 1e9, 10**400, 1.5, "100", None, True, [], {}]


def wishes():
    """(name, path, record) of wishes that are to be refused before any work."""
    found = [(f"body {name}", "/api/build", body) for name, body in bodies().items()]
    found += [(f"formula {text[:40]!r}", "/api/build", {**GOOD, "formula": text}) for text in FORMULAS]
    found += [(f"domain {text[:40]!r}", "/api/build", {"formula": "x1", "domain": text}) for text in DOMAINS]
    for field, values in FIELDS.items():
        found += [(f"{field} {str(value)[:30]!r}", "/api/build", {**GOOD, field: value}) for value in values]
    found += [(f"parameters {str(value)[:30]!r}", "/api/train", {**GOOD, "parameters": value}) for value in PARAMETERS]
    return found

"""Strangers stay outside; what is shown cannot act; nothing beyond the folder is there."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tessella.app import make_app
from tessella.app.folder import Folder
from tessella.app.serving import OPENING, AccessKeys
from tessella.exceptions import BadFileError, TessellaError
from tessella.planfile import parse_plan

from .conftest import ADDRESS, Client, Visitor

PAGES = ["/", "/files/firms.csv", "/verify", "/static/app.css", "/nothing"]
PLAN = """
[input]
file = "{input}"
[[steps]]
method = "protect"
k = 3
[measures]
risk = "none"
[output]
file = "{output}"
"""


@pytest.fixture
def stranger(folder):
    return Client(make_app(folder, port=8000))


# Who may come in.


@pytest.mark.parametrize("path", PAGES)
def test_without_the_key_nothing_is_answered(folder, path):
    app = make_app(folder, port=8000)
    stranger = Client(app)
    for answer in (
        stranger.get(path),
        stranger.post(path, data={"k": "3"}),
        stranger.get(path, headers={"Cookie": "tessella-8000=guess"}),
        stranger.get(f"{path}?token=guess"),
        stranger.get(app.keys.at + path),
        stranger.post(app.keys.at + path, data={"k": "3"}),
        stranger.get(app.keys.at + path, headers={"Cookie": "tessella-8000=guess"}),
        stranger.get(path, headers={"Cookie": f"tessella-8000={app.keys.session}"}),
    ):
        assert answer.status_code == 403
        assert "firms" not in answer.text


def test_the_printed_address_opens_again_and_again(folder):
    app = make_app(folder, port=8000)
    for _ in range(2):
        client = Client(app)
        answer = client.get("/enter", params={"token": app.keys.printed})
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert f"path={app.keys.at}".lower() in cookie  # not given to other ports of the machine
        assert app.keys.printed not in answer.text + cookie
        assert client.get(f"{app.keys.at}/").status_code == 200


def test_the_address_given_to_the_browser_opens_once(folder):
    app = make_app(folder, port=8000)
    client = Client(app)
    assert client.get("/enter", params={"token": app.keys.opening}).status_code == 200
    assert client.get(f"{app.keys.at}/").status_code == 200
    other = Client(app)
    assert other.get("/enter", params={"token": app.keys.opening}).status_code == 403
    assert other.get(f"{app.keys.at}/").status_code == 403


def test_the_address_given_to_the_browser_grows_old():
    keys = AccessKeys()
    keys.made -= OPENING + 1
    assert not keys.opens(keys.opening)
    assert keys.opens(keys.printed)


def test_keys_differ():
    one, two = AccessKeys(), AccessKeys()
    own = {one.printed, one.opening, one.session, one.form}
    assert len(own) == 4
    assert not own & {two.printed, two.opening, two.session, two.form}
    assert not one.opens(one.session)
    assert not one.opens("")
    assert not one.opens("é\x00")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:8001",
     "127.0.0.1:8000.evil.example", "127.0.0.1.evil.example:8000", "0.0.0.0:8000", "",
     "localhost:8000@evil.example"],
)  # fmt: skip
def test_other_names_of_the_machine_are_refused(visitor, host):
    """DNS rebinding: somebody's name that points to this machine."""
    answer = visitor.get("/", headers={"Host": host})
    assert answer.status_code == 421
    entry = visitor.get(f"/enter?token={visitor.app.keys.printed}", headers={"Host": host})
    assert entry.status_code == 421
    assert "set-cookie" not in entry.headers


def test_own_names_are_answered(visitor):
    for host in ("127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000"):
        answer = visitor.get("/", headers={"Host": host, "Cookie": cookie(visitor)})
        assert answer.status_code == 200, host


def cookie(visitor: Visitor) -> str:
    return f"tessella-8000={visitor.app.keys.session}"


# Requests that other pages make.


@pytest.mark.parametrize(
    "path", ["/files/firms.csv/start", "/plans/p.toml/toml", "/upload", "/bring", "/verify"]
)
def test_a_form_of_somebody_else_is_refused(visitor, path):
    for token in ({}, {"token": ""}, {"token": "guess"}, {"token": visitor.app.keys.session}):
        answer = visitor.client.post(visitor.at(path), data={"k": "3", "plan": "p.toml", **token})
        assert answer.status_code == 403
    assert not list(visitor.folder.glob("*.toml"))


def test_a_request_of_another_page_is_refused(visitor):
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"},
    ):
        assert visitor.post("/verify", headers=headers).status_code == 403
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert visitor.get("/", headers=embedded).status_code == 403
    ours = {"Origin": ADDRESS, "Sec-Fetch-Site": "same-origin"}
    assert visitor.post("/verify", headers=ours).status_code == 400  # no files were chosen


def test_get_changes_nothing(visitor):
    before = sorted(visitor.folder.iterdir())
    for path in (
        "/files/firms.csv/start",
        "/plans/x.toml/move",
        "/plans/x.toml/estimate",
        "/upload",
    ):
        assert visitor.get(path).status_code == 405
    assert sorted(visitor.folder.iterdir()) == before


def test_a_form_without_end_is_refused(visitor):
    headers = {"Content-Length": "999999999999", "Cookie": cookie(visitor)}
    assert visitor.post("/verify", headers=headers).status_code == 413


# What pages may do.


def test_every_answer_has_the_headers(visitor, stranger):
    for answer in (
        *(visitor.get(path) for path in PAGES),
        visitor.get("/", headers={"Host": "evil.example"}),
        stranger.get("/"),
    ):
        headers = answer.headers
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert "access-control-allow-origin" not in headers


def test_pages_ask_nothing_from_outside(visitor):
    (visitor.folder / "p.toml").write_text(PLAN.format(input="firms.csv", output="r.csv"))
    plan = visitor.start()
    pages = [f"{plan}{one}" for one in ("", "/data", "/rules", "/map", "/toml", "/history", "/run")]
    for path in ("/", "/files/firms.csv", "/plans/p.toml", "/verify", *pages):
        text = visitor.get(path).text
        assert "http:" not in text
        assert "https:" not in text
        assert "<script>" not in text
        assert "style=" not in text
        assert " on" + "click=" not in text


HOSTILE = "<script>alert(1)</script>"
QUOTES = "\"'><img src=x onerror=alert(2)>"


def test_names_of_columns_and_files_are_text(visitor):
    name = "<img src=x onerror=alert(3)>.csv"
    table = f'"{HOSTILE}","{QUOTES.replace(chr(34), chr(34) * 2)}"\n' + "1,2\n3,5\n2,4\n9,8\n" * 5
    (visitor.folder / name).write_text(table)
    answer = visitor.post(f"/files/{name}/start", k="3")
    assert answer.status_code == 303, answer.text
    plan = unquote(answer.headers["location"].removesuffix("/data"))
    said = visitor.change(f"{plan}/rules", rules=f"`{HOSTILE}` >>= 0").text
    assert "mistake" in said
    visitor.change(f"{plan}/rules", rules=f"`{HOSTILE}` >= 0")
    result = visitor.run(plan).text
    pages = ["", "/data", "/rules", "/rules/suggestions", "/toml", "/history", "/explanation",
             "/look/columns", "/compare", "/publish", "/map"]  # fmt: skip
    texts = [visitor.get(f"{plan}{one}").text for one in pages]
    texts += [visitor.get("/").text, visitor.get(f"/files/{name}").text, said, result]
    assert "&lt;script&gt;alert(1)" in texts[1]
    assert "&lt;img src=x onerror=alert(3)&gt;.csv" in texts[-4]
    for text in texts:
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "style=" not in re.sub(r"<textarea.*?</textarea>", "", text, flags=re.S)


def test_a_report_can_do_nothing(visitor):
    (visitor.folder / "bad.html").write_text("<script>alert(1)</script>")
    answer = visitor.get("/reports/bad.html")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "sandbox" in policy
    assert "script-src" not in policy


# What lies beyond the folder.

BEYOND = [
    "../secret.csv", "..%2Fsecret.csv", "%2e%2e/secret.csv", "..%5Csecret.csv", "/etc/passwd",
    "%2Fetc%2Fpasswd", "....//secret.csv", "..", ".", ".hidden.csv", "a%00.csv", "link.csv",
]  # fmt: skip


@pytest.mark.parametrize("name", BEYOND)
def test_no_name_leads_out_of_the_folder(visitor, name):
    (visitor.folder / "link.csv").symlink_to(visitor.folder.parent / "secret.csv")
    (visitor.folder / ".hidden.csv").write_text("a,b\n1,2\n")
    for place in ("files", "plans", "reports"):
        answer = visitor.client.get(f"{ADDRESS}{visitor.app.keys.at}/{place}/{name}")
        # A client that resolves the dots itself asks for a page outside of the app's path.
        assert answer.status_code in (400, 404) or not below(answer, visitor)
        assert "secret.csv cannot" not in answer.text
        assert "root:" not in answer.text


def below(answer: Any, visitor: Visitor) -> bool:
    return bool(answer.url.path.startswith(f"{visitor.app.keys.at}/"))


def test_a_link_out_of_the_folder_is_not_listed(visitor):
    (visitor.folder / "link.csv").symlink_to(visitor.folder.parent / "secret.csv")
    (visitor.folder / "inner.csv").symlink_to(visitor.folder / "firms.csv")
    (visitor.folder / "loop.csv").symlink_to(visitor.folder / "loop.csv")
    names = {entry.name for entry in Folder(visitor.folder).entries()}
    assert names == {"firms.csv", "rules.txt", "inner.csv"}


@pytest.mark.parametrize(
    "name", ["../x.csv", "/tmp/x.csv", "..\\x.csv", "out/b.csv", "x" * 300 + ".csv", "link.csv"]
)
def test_a_release_is_written_into_the_folder_only(visitor, name):
    outside = visitor.folder.parent
    (visitor.folder / "link.csv").symlink_to(outside / "made.csv")
    (visitor.folder / "out").symlink_to(outside)
    plan = visitor.start()
    before = sorted(outside.rglob("*"))
    answer = visitor.change(plan, **{"output-file": name})
    if "Kept" in answer.text:  # a name of which only its last part counts
        visitor.run(plan)
        key = visitor.app.site.runs.of("firms-plan.toml")[0].key
        visitor.post(f"{plan}/publish", run=key)
    assert sorted(outside.iterdir()) == [p for p in before if p.parent == outside]


@pytest.mark.parametrize(
    ("read", "written"),
    [("../secret.csv", "r.csv"), ("firms.csv", "../r.csv"), ("firms.csv", "ABSOLUTE/r.csv"),
     ("link.csv", "r.csv"), ("firms.csv", "out/r.csv"), ("firms.csv", "made.csv")],
)  # fmt: skip
def test_a_plan_that_leaves_the_folder_is_not_run(visitor, read, written):
    outside = visitor.folder.parent
    (visitor.folder / "link.csv").symlink_to(outside / "secret.csv")
    (visitor.folder / "made.csv").symlink_to(outside / "made.csv")
    (visitor.folder / "out").symlink_to(outside)
    text = PLAN.format(input=read, output=written.replace("ABSOLUTE", outside.as_posix()))
    (visitor.folder / "p.toml").write_text(text)
    page = visitor.get("/plans/p.toml")
    assert "outside of the folder" in page.text
    answer = visitor.post("/plans/p.toml/run")
    assert "cannot be run" in answer.text
    assert not visitor.app.jobs.latest()
    assert sorted(p.name for p in outside.iterdir()) == ["data", "secret.csv", "secret.html"]


@pytest.mark.slow
def test_the_work_looks_itself_whether_a_plan_leaves_the_folder(visitor):
    """What the page has let through by mistake is refused by the process that would do it."""
    text = PLAN.format(input="../secret.csv", output="r.csv")
    job = visitor.app.jobs.start(
        "protect", folder=str(visitor.folder), plan=text, origin="p.toml",
        run=str(visitor.app.site.runs.make().relative_to(visitor.folder)),
    )  # fmt: skip
    visitor.wait(f"/work/{job.key}")
    assert job.state == "refused"
    assert "outside of the folder" in job.why


def test_rules_and_catalogues_stay_inside(folder):
    home = Folder(folder)
    text = PLAN.format(input="firms.csv", output="r.csv")
    for line in ('[rules]\nfile = "../rules.txt"',):
        with pytest.raises(BadFileError, match="outside"):
            home.check_plan(parse_plan(text + line, folder=folder))
    sas = text.replace('"firms.csv"', '"firms.sas7bdat"\ncatalog = "../c.sas7bcat"')
    with pytest.raises(BadFileError, match="outside"):
        home.check_plan(parse_plan(sas, folder=folder))


def test_a_file_as_folder_is_refused(folder):
    for path in (folder / "firms.csv", folder / "nowhere"):
        with pytest.raises(TessellaError, match="folder"):
            make_app(path)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_plan_can_be_read_by_its_owner_only(visitor: Visitor):
    """It may hold a seed."""
    assert visitor.post("/files/firms.csv/start").status_code == 303
    path = visitor.folder / "firms-plan.toml"
    assert path.stat().st_mode & 0o077 == 0
    visitor.change("/plans/firms-plan.toml", k="4")
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_a_module_in_the_folder_is_not_run(visitor: Visitor, monkeypatch: pytest.MonkeyPatch):
    """A file numpy.py beside the data is data, not the package."""
    (visitor.folder / "numpy.py").write_text("raise SystemExit('taken')")
    monkeypatch.chdir(visitor.folder)
    job = visitor.app.jobs.start(
        "verify", folder=str(visitor.folder), original="firms.csv", release="firms.csv", k=None,
        rules=None, strata=None, id=None, manifest=None,
    )  # fmt: skip
    visitor.wait(f"/work/{job.key}")
    assert job.state == "done", job.why
    assert Path.cwd() == visitor.folder


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_what_the_app_keeps_can_be_read_by_its_owner_only(visitor: Visitor):
    """Results that are not published, histories with seeds."""
    plan = visitor.start()
    visitor.change(plan, k="4")
    visitor.run(plan)
    state = visitor.folder / ".tessella"
    assert state.stat().st_mode & 0o077 == 0
    assert any(path.name == "run.json" for path in state.rglob("*"))
    for path in (state / "runs", state / "history", *(state / "runs").iterdir()):
        assert path.stat().st_mode & 0o077 == 0


def test_the_apps_own_folder_cannot_lead_out(visitor: Visitor):
    plan = visitor.start()
    (visitor.folder / ".tessella").symlink_to(visitor.folder.parent)
    answer = visitor.change(plan, k="4")
    assert answer.status_code < 500
    assert sorted(p.name for p in visitor.folder.parent.iterdir()) == [
        "data", "secret.csv", "secret.html",
    ]  # fmt: skip

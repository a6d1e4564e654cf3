"""Every page of the app, one after the other, each as it is shown with something on it."""

from __future__ import annotations

from collections.abc import Iterator

from .browsing import PATIENCE, Watched, free_point


def hold(watched: Watched, pattern: str) -> None:
    """Let the questions of a page remain without an answer, so that it stays as it is."""
    watched.page.route(pattern, lambda route: route.fulfill(status=204))


def tour(watched: Watched, file: str, *, points: int = 6) -> Iterator[str]:
    """Go from a file to a verified release; give the name of each page while it is shown."""
    page = watched.page
    yield "files"
    hold(watched, "**/waiting/*")
    page.goto(f"{watched.home}/files/{file}")
    if page.locator(".progress").count():
        yield "waiting"
    page.unroute("**/waiting/*")
    page.goto(f"{watched.home}/files/{file}")
    page.wait_for_selector("button:text-is('Use this table')")
    yield "file"
    plan = watched.draft(file)
    yield "data"
    page.goto(watched.plan(plan, "/rules"))
    page.wait_for_selector(".suggestions button", timeout=PATIENCE)
    page.click(".suggestions button")
    page.wait_for_selector("#judged tbody tr")
    page.wait_for_selector("#suggested .soft:not(:has(.spin))")
    yield "rules"
    page.fill("#rules", page.input_value("#rules") + "turnover = = 2\n")
    page.wait_for_selector("#judged .mistakes")
    yield "rules-mistaken"
    page.click("#undo button[value=undo]")
    page.wait_for_selector("#undo button[value=redo]:not([disabled])")
    page.click("#undo button[value=redo]")
    page.goto(watched.plan(plan))
    page.wait_for_selector("#estimate dd")
    page.wait_for_selector("#explanation pre")
    yield "plan"
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
    yield "plan-open"
    page.goto(watched.plan(plan, "/map"))
    page.fill("[name=budget]", str(points))
    page.click("button:text-is('Explore')")
    page.wait_for_selector("#map .draw-hit", timeout=PATIENCE)
    page.wait_for_selector("#map:not(:has(progress))", timeout=PATIENCE)
    page.reload()
    yield "map"
    page.click(free_point(page))
    page.wait_for_selector("#chosen table")
    yield "map-chosen"
    page.goto(watched.plan(plan, "/run"))
    yield "run"
    hold(watched, "**/progress")
    page.click("button:text-is('Run')")
    page.wait_for_selector(".progress")
    yield "working"
    page.unroute("**/progress")
    page.reload()
    look_at(watched)
    yield "look"
    page.goto(watched.plan(plan))
    page.fill("#f-k", "6")
    page.press("#f-k", "Tab")
    page.wait_for_selector(".kept")
    page.click("main button.go:text-is('Run')")
    look_at(watched)
    page.click("a:text-is('Compare with another result')")
    page.wait_for_selector("h1:text-is('Two results, side by side')")
    yield "compare"
    page.goto(watched.plan(plan, "/publish"))
    yield "publish"
    page.click("button:text-is('Publish')")
    page.wait_for_selector("h1:has-text('Published')")
    yield "published"
    for name in ("toml", "history"):
        page.goto(watched.plan(plan, f"/{name}"))
        yield name
    page.goto(f"{watched.home}/verify")
    yield "verify"
    page.goto(watched.plan(plan, "/publish"))
    page.click("a.button:text-is('Verify')")
    page.select_option("[name=original]", file)
    page.click("button:text-is('Verify')")
    page.wait_for_selector("h1:has-text('verified')", timeout=PATIENCE)
    yield "verified"
    page.goto(f"{watched.home}/plans/none.toml")
    yield "problem"
    page.goto(watched.plan(plan))
    page.fill("#f-k", "4000")
    page.press("#f-k", "Tab")
    page.wait_for_selector(".kept:has-text('4000')")
    page.click("main button.go:text-is('Run')")
    page.wait_for_selector("h1:text-is('No release')", timeout=PATIENCE)
    yield "refused"
    page.goto(watched.home)
    yield "files-after"


def look_at(watched: Watched) -> None:
    """Wait for a result with all its pictures."""
    page = watched.page
    page.wait_for_selector("h1:text-is('Result')", timeout=PATIENCE)
    page.wait_for_selector(".grid figure svg", timeout=PATIENCE)
    page.click("#pair ~ h2 >> nth=0")
    page.select_option("[name=x]", index=3)
    page.wait_for_selector("#pair svg")

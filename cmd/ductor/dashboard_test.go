package main

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"ductor/web/browsertest"
)

// The dashboard of a running ductor fits the screen in each size and theme, works with the keyboard, and has no
// serious problem of accessibility.
func TestTheDashboardOfARunningDuctor(t *testing.T) {
	town := surroundings(t, nil)
	town.permission = "ask"
	path := town.writeConfig()
	appendTo(t, path, "\n[jobs.report]\nschedule = \"every day at 8:30\"\nprompt = \"Report.\"\n")
	startDaemon(t, "run", "-c", path)
	town.say(`Look at the tests [[usage in=12000 out=700 cost=0.42]] [[text "an answer"]]`)
	town.awaitDone(1)
	town.say(`[[ask cmd="touch made"]] [[text "done"]]`)
	town.await("May Claude")
	page := browsertest.Open(t, startPage(t, "dashboard", "-c", path, "--open=false"), browsertest.Desktop)
	page.AwaitText("#health", "runs as process")
	page.AwaitText("#conversations", "Look at the tests")
	page.AwaitText("#conversations", "$0.42")
	page.AwaitText("#processes", "claude live")
	page.AwaitText("#jobs", "report")
	page.AwaitText("#approvals", "waits")
	page.AwaitText("#agents", "claude")
	if n := browsertest.Eval[int](page, `document.querySelectorAll("#plots svg rect").length`); n != 3*plotDays {
		t.Errorf("the plots have %d bars", n)
	}
	page.Do(chromedp.Focus("#theme"))
	page.Keys(kb.Enter)
	page.Await(`document.documentElement.dataset.theme === "light"`)
	page.Keys(kb.Enter + kb.Enter)
	page.Await(`document.documentElement.dataset.theme === undefined`)
	for name, size := range map[string]browsertest.Size{"phone": browsertest.Phone, "desktop": browsertest.Desktop} {
		page.Resize(size)
		for _, scheme := range []string{"light", "dark"} {
			page.Dark(scheme)
			page.Shoot("dashboard-" + name + "-" + scheme)
			if browsertest.Eval[bool](page, `document.documentElement.scrollWidth > innerWidth`) {
				t.Errorf("the page is wider than the %s", name)
			}
			for _, v := range page.Audit(axeScript) {
				t.Errorf("%s, %s: %v", name, scheme, v)
			}
		}
	}
	for _, problem := range page.ConsoleErrors() {
		t.Errorf("the console says: %s", problem)
	}
}

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"ductor/cli/clitest"
	"ductor/web/browsertest"
)

const axeScript = "../../test/agents/node_modules/axe-core/axe.min.js"

var pageAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\S+`)

// startPage starts a command of ductor that serves a page, and gives its address.
func startPage(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(clitest.Program(t), args...)
	cmd.Env = append(os.Environ(), beDuctor+"=1", "HOME="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = testWriter{t}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v ended with %v", args, err)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address := pageAddress.FindString(lines.Text()); address != "" {
			go func() { // until the program ends
				for lines.Scan() {
				}
			}()
			return address
		}
	}
	t.Fatal("it printed no address")
	return ""
}

// stopDone is true in the page once a stop of the tour is ticked off.
func stopDone(n int) string {
	return fmt.Sprintf(`document.querySelectorAll(".stop")[%d]?.classList.contains("done") === true`, n)
}

// key is the button of a text below the newest message that contains another.
func key(within, text string) string {
	return fmt.Sprintf(`[...[...document.querySelectorAll(".message.in")].filter((m) => m.innerText.includes(%q)).at(-1)?.querySelectorAll(".key") ?? []]`+
		`.find((k) => k.textContent.includes(%q))`, within, text)
}

// The tour of the demo is finished with the keyboard alone: each stop begins with Enter on its button, and where it wants a
// decision, the button in the chat gets one. The console stays empty, and nothing serious hinders anyone.
func TestTheTourOfTheDemoIsFinishedByKeyboard(t *testing.T) {
	page := browsertest.Open(t, startPage(t, "demo", "--scripted", "--open=false"), browsertest.Desktop)
	page.Await(`document.querySelectorAll(".stop").length === 8`)
	page.Shoot("demo-start")
	for n := range 8 {
		page.Await(fmt.Sprintf(`(document.querySelector('.button[data-stop="%d"]')?.focus(), document.activeElement?.dataset.stop === "%d")`, n, n))
		page.Keys(kb.Enter)
		switch n {
		case 2:
			press(page, key("May Claude use", "Allow once"))
		case 3:
			press(page, key("The quick", "Stop"))
		case 4:
			press(page, key("Which agent", "Codex"))
			press(page, key("Which model of Codex?", ""))
			press(page, key("How hard should", "high"))
			page.AwaitText("#messages", "From your next message on")
		case 6:
			press(page, key("May Gemini", "Allow once"))
		}
		page.Await(stopDone(n))
		page.Shoot(fmt.Sprintf("demo-stop-%d", n+1))
	}
	page.AwaitText("#tour", "That was the tour")
	page.Shoot("demo-end")
	for _, name := range []string{"events", "calls", "agents"} {
		page.Do(chromedp.Click("#tab-" + name))
		page.Await(fmt.Sprintf(`document.querySelector("#page-%s :is(li, .card, #processes p)") !== null`, name))
		page.Shoot("demo-" + name)
		for _, v := range page.Audit(axeScript) {
			t.Error(v)
		}
	}
	for _, problem := range page.ConsoleErrors() {
		t.Errorf("the console says: %s", problem)
	}
}

// press focuses a button and presses it with Enter.
func press(page *browsertest.Page, button string) {
	page.Await(fmt.Sprintf("((b) => { b?.focus(); return b !== undefined && document.activeElement === b; })(%s)", button))
	page.Keys(kb.Enter)
}

// On a phone and on a desktop, in light and in dark, the page holds a conversation, is nowhere wider than the screen, and has nothing
// serious that hinders anyone.
func TestTheDemoOnAPhoneAndInTheDark(t *testing.T) {
	page := browsertest.Open(t, startPage(t, "demo", "--scripted", "--open=false"), browsertest.Phone)
	page.Await(`document.querySelector("#tour-strip .button") !== null`)
	page.Do(chromedp.SendKeys("#input", `Hello [[text "**Hello** from `+"`ductor`"+`."]]`+kb.Enter))
	page.AwaitText("#messages", "Hello from ductor.")
	for name, size := range map[string]browsertest.Size{"phone": browsertest.Phone, "desktop": browsertest.Desktop} {
		page.Resize(size)
		for _, scheme := range []string{"light", "dark"} {
			page.Dark(scheme)
			page.Shoot("demo-" + name + "-" + scheme)
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

package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"ductor/cli/clitest"
	"ductor/internal/sim/agent"
	"ductor/web/browsertest"
)

const axeScript = "../../test/agents/node_modules/axe-core/axe.min.js"

var pageAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/#token=\S+`)

// startPage starts a command of ductor that serves a page, and returns its address.
func startPage(t *testing.T, args ...string) string {
	t.Helper()
	address, _ := startPageIn(t, t.TempDir(), args...)
	return address
}

// startPageIn is startPage with a home. It also returns the process.
func startPageIn(t *testing.T, home string, args ...string) (string, *os.Process) {
	t.Helper()
	cmd := exec.Command(clitest.Program(t), args...)
	cmd.Env = append(os.Environ(), beDuctor+"=1", "HOME="+home)
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
			go func() { // ends with the program
				for lines.Scan() {
				}
			}()
			return address, cmd.Process
		}
	}
	t.Fatal("it printed no address")
	return "", nil
}

// listeners counts the TCP sockets on which a process listens.
func listeners(t *testing.T, pid int) (n int) {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil {
			own[to] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue // this machine has no IPv6
		}
		for line := range strings.Lines(string(text)) {
			const listening = "0A"
			if f := strings.Fields(line); len(f) > 9 && f[3] == listening && own["socket:["+f[9]+"]"] {
				n++
			}
		}
	}
	return n
}

// Another user of the machine reaches neither the demo's Telegram, which does not listen, nor the page, whose token
// is in a header that no other port receives.
func TestAttackTheDemoByAnotherUser(t *testing.T) {
	address, process := startPageIn(t, t.TempDir(), "demo", "--scripted", "--open=false")
	if n := listeners(t, process.Pid); n != 1 {
		t.Errorf("the demo listens at %d addresses", n)
	}
	origin, fragment, _ := strings.Cut(address, "/#")
	token := strings.TrimPrefix(fragment, "token=")
	get := func(path string, header ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, origin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(header) > 0 {
			r.Header.Set(header[0], header[1])
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer
	}
	if answer := get("/api/stream", "Authorization", "Bearer "+token); answer.StatusCode != http.StatusOK {
		t.Errorf("the page's own request gets %s", answer.Status)
	}
	for _, answer := range []*http.Response{get("/api/stream"), get("/api/stream?token=" + token),
		get("/tour/api/stream"),
		get("/api/stream", "Cookie", "ductor-"+origin[strings.LastIndex(origin, ":")+1:]+"="+token)} {
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s gets %s", answer.Request.URL, answer.Status)
		}
	}
	if answer := get("/"); answer.StatusCode != http.StatusOK || answer.Header.Get("Set-Cookie") != "" {
		t.Errorf("the page: %s, cookie %q", answer.Status, answer.Header.Get("Set-Cookie"))
	}
}

// If the user's own agent is logged in, it answers, and a scripted agent shows the tour beside it.
func TestTheTourBesideTheUsersOwnAgent(t *testing.T) {
	programs, err := agent.InstallFrom(clitest.Program(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs.Dir+":"+os.Getenv("PATH"))
	t.Setenv("ANTHROPIC_API_KEY", "sk-of-the-user")
	page := browsertest.Open(t, startPage(t, "demo", "--open=false"), browsertest.Phone)
	page.AwaitText("#tour-strip", "Take the tour")
	page.Do(chromedp.SendKeys("#input", `Who are you? [[text "the user's own agent"]]`+kb.Enter))
	page.AwaitText("#messages", "the user's own agent")
	page.Shoot("demo-own-agent")
	page.Resize(browsertest.Desktop)
	page.Click("#panel-toggle")
	page.AwaitText("#tour", "Your own agents answer here")
	page.Shoot("demo-own-agent-desktop")
	for _, v := range page.Audit(axeScript) {
		t.Error(v)
	}
	page.Click("#panel-toggle")
	page.Resize(browsertest.Phone)
	page.Click("#tour-strip .button")
	page.Await(`location.pathname === "/tour/" && document.querySelectorAll(".stop").length === 9`)
	page.Click("#tour-strip .button")
	page.AwaitText("#messages", "That was live.")
	page.Await(stopDone(0))
	page.Shoot("demo-own-tour")
	for _, problem := range page.ConsoleErrors() {
		t.Errorf("the console says: %s", problem)
	}
}

// If ductor cannot be reached, the user's text remains in the field, and the page names the problem.
func TestAMessageOfTheDemoThatCannotBeSent(t *testing.T) {
	page := browsertest.Open(t, startPage(t, "demo", "--scripted", "--open=false"), browsertest.Phone)
	page.AwaitText("#messages", "This is your bot")
	page.Do(network.Enable(), network.SetBlockedURLs([]string{"*/api/send"}))
	page.Do(chromedp.SendKeys("#input", "How do I cook rice?"+kb.Enter))
	page.AwaitText("#toast", "ductor does not answer")
	// Typing Enter also adds a line break, because the browser sends it apart from the key that the page handles.
	page.Await(`document.querySelector("#input").value.trim() === "How do I cook rice?"`)
}

func TestTheDemoRefusesADirectoryThatIsNotThere(t *testing.T) {
	code, _, stderr := runDuctor(t, "demo", "--scripted", "--open=false", "--dir", filepath.Join(t.TempDir(), "gone"))
	if code != exitFailure || !strings.Contains(stderr, "there is no such directory") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// stopDone returns an expression for the page that is true once a stop of the tour is done.
func stopDone(n int) string {
	return fmt.Sprintf(`document.querySelectorAll(".stop")[%d]?.classList.contains("done") === true`, n)
}

// key returns the button with a text below the newest message that contains within.
func key(within, text string) string {
	return fmt.Sprintf(
		`[...[...document.querySelectorAll(".message.in")].filter((m) => m.innerText.includes(%q)).at(-1)?.querySelectorAll(".key") ?? []]`+
			`.find((k) => k.textContent.includes(%q))`, within, text)
}

// The keyboard is enough for the whole tour of the demo: Enter starts each stop and presses the buttons for
// decisions. The console stays empty, and no serious problem of accessibility occurs.
func TestTheTourOfTheDemoIsFinishedByKeyboard(t *testing.T) {
	home := t.TempDir()
	address, _ := startPageIn(t, home, "demo", "--scripted", "--open=false")
	page := browsertest.Open(t, address, browsertest.Desktop)
	page.Await(`document.querySelectorAll(".stop").length === 9`)
	page.Await(`document.activeElement?.id === "input"`)
	page.Shoot("demo-start")
	for n := range 9 {
		page.Await(
			fmt.Sprintf(
				`(document.querySelector('.button[data-stop="%d"]')?.focus(), document.activeElement?.dataset.stop === "%d")`, n, n))
		page.Keys(kb.Enter)
		switch n {
		case 2:
			press(page, key("May Claude", "Allow once"))
		case 3:
			press(page, key("May Claude change this file", "Allow once"))
			press(page, key("now takes 10", "Diff"))
			page.Await(`document.querySelector(".photo img")?.naturalWidth > 0`)
			press(page, key("now takes 10", "Undo"))
		case 4:
			press(page, key("Tea is Chinese", "Stop"))
		case 5:
			press(page, key("Which agent", "Codex"))
			press(page, key("Which model of Codex?", ""))
			press(page, key("How hard should", "high"))
			page.AwaitText("#messages", "Your next message goes to")
		case 7:
			press(page, key("May Gemini", "Allow once"))
		}
		page.Await(stopDone(n))
		page.Shoot(fmt.Sprintf("demo-stop-%d", n+1))
	}
	page.AwaitText("#tour", "ductor setup")
	page.Shoot("demo-end")
	tryOwnPrompts(page)
	for _, name := range []string{"events", "calls", "agents"} {
		page.Click("#tab-" + name)
		page.Await(fmt.Sprintf(`document.querySelector("#page-%s :is(li, .card, #processes p)") !== null`, name))
		page.Shoot("demo-" + name)
		for _, v := range page.Audit(axeScript) {
			t.Error(v)
		}
	}
	page.Resize(browsertest.Phone)
	page.Click("#panel-close")
	page.AwaitText("#tour-strip", "ductor setup")
	page.Shoot("demo-end-phone")
	if browsertest.Eval[bool](page, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page is wider than the phone")
	}
	for _, problem := range page.ConsoleErrors() {
		t.Errorf("the console says: %s", problem)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("the demo leaves %v in the home, %v", left, err)
	}
}

// tryOwnPrompts sends the typical prompts of a newcomer after the tour. The scripted agent answers only the newest
// text, whatever came before it.
func tryOwnPrompts(page *browsertest.Page) {
	say := func(text string) {
		page.Do(chromedp.SendKeys("#input", text+kb.Enter))
	}
	say("How do I cook rice?")
	page.AwaitText("#messages", "You asked: “How do I cook rice?”")
	page.AwaitText("#messages", "ductor setup")
	say("/model codex")
	page.Await(
		`[...document.querySelectorAll(".message.in")].at(-1).innerText.includes("Your next message goes to Codex")`)
	say("And noodles?")
	page.AwaitText("#messages", "You asked: “And noodles?”")
	say("/sessions")
	page.AwaitText("#messages", "What can you do?")
	page.Shoot("demo-own-prompts")
	page.Await(`!/<instructions>|\[\[|no such file/.test(document.querySelector("#messages").innerText)`)
}

// press focuses a button and presses it with Enter.
func press(page *browsertest.Page, button string) {
	page.Await(fmt.Sprintf("((b) => { b?.focus(); return b !== undefined && document.activeElement === b; })(%s)",
		button))
	page.Keys(kb.Enter)
}

// On a phone and a desktop, in light and dark, the page shows a conversation, fits the screen, and has no serious
// problem of accessibility.
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

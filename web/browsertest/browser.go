// Package browsertest opens ductor's web pages in a headless Chromium, for tests.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// timeout is the maximum duration of each action in a page.
const timeout = 90 * time.Second

// Page is a tab of a browser. It records the errors and warnings in the console.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	errors []string
}

// Size is the size of a screen in CSS pixels.
type Size struct{ Width, Height int64 }

// Screens for tests.
var (
	Desktop = Size{1440, 900}
	Phone   = Size{390, 844}
)

// Open opens an address in a new browser. The browser is closed when the test ends. If Chromium is not installed, Open
// skips the test.
func Open(t testing.TB, address string, size Size) *Page {
	t.Helper()
	program, err := findBrowser()
	if err != nil {
		t.Skip("skipped: no Chromium here; apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("use-fake-ui-for-media-stream", true), chromedp.Flag("use-fake-device-for-media-stream", true),
		chromedp.UserDataDir(profile(t)), chromedp.WSURLReadTimeout(timeout))
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, endTab := chromedp.NewContext(allocator)
	ctx, endTime := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(func() { endTime(); endTab(); endAllocator() })
	p := &Page{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, p.listen)
	p.Do(chromedp.EmulateViewport(size.Width, size.Height), log.Enable(), chromedp.Navigate(address))
	p.awaitLoad()
	return p
}

// profile makes a directory for the files of a browser, and removes it at the end of the test. Processes of the browser
// may write to it for a moment after the browser has ended, so profile tries repeatedly.
func profile(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end := time.Now().Add(timeout)
		err := os.RemoveAll(dir)
		for ; err != nil && time.Now().Before(end); err = os.RemoveAll(dir) {
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("remove the files of the browser: %v", err)
		}
	})
	return dir
}

// awaitLoad waits until the page has loaded, and until its script has removed the token from the address.
func (p *Page) awaitLoad() {
	p.t.Helper()
	p.Await(`!location.hash && document.readyState === "complete"`)
}

func findBrowser() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// listen records the errors and warnings of the browser's console.
func (p *Page) listen(ev any) {
	text := ""
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		text = ev.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		if ev.Type != runtime.APITypeError && ev.Type != runtime.APITypeWarning {
			return
		}
		for _, a := range ev.Args {
			text += string(a.Value) + a.Description + " "
		}
	case *log.EventEntryAdded:
		if ev.Entry.Level == log.LevelError || ev.Entry.Level == log.LevelWarning {
			text = ev.Entry.Text + " " + ev.Entry.URL
		}
	}
	if text != "" {
		p.mu.Lock()
		p.errors = append(p.errors, text)
		p.mu.Unlock()
	}
}

// ConsoleErrors returns all errors and warnings in the console.
func (p *Page) ConsoleErrors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.errors...)
}

// Do performs actions. It fails the test if an action fails.
func (p *Page) Do(actions ...chromedp.Action) {
	p.t.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.t.Fatalf("the page: %v", err)
	}
}

// Eval returns the value of a JavaScript expression in the page.
func Eval[T any](p *Page, expression string) (value T) {
	p.t.Helper()
	p.Do(chromedp.Evaluate(expression, &value,
		func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
	return value
}

// Await waits until a JavaScript expression is true. Meanwhile the page may load another document.
func (p *Page) Await(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	for {
		var yes bool
		err := chromedp.Run(ctx, chromedp.Evaluate("!!("+expression+")", &yes))
		if yes && err == nil {
			return
		}
		if ctx.Err() != nil {
			p.t.Fatalf("the page never came to %s: %v\nthe console says: %q\nit shows:\n%s", expression, err,
				p.ConsoleErrors(), Eval[string](p, "document.body.innerText"))
		}
		chromedp.Run(ctx, chromedp.Sleep(20*time.Millisecond)) // ignore errors: the next Evaluate fails, too
	}
}

// Click clicks the middle of an element once nothing covers it. A panel may still be moving away.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.Await(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q), r = e?.getBoundingClientRect();
		return r && e.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2));
	})()`, selector))
	p.Do(chromedp.Click(selector))
}

// AwaitText waits until an element of the page contains a text.
func (p *Page) AwaitText(selector, text string) {
	p.t.Helper()
	p.Await(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", selector, text))
}

// Dark sets the color scheme that the user prefers: "dark" or "light".
func (p *Page) Dark(scheme string) {
	p.t.Helper()
	p.Do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
		Value: scheme}}))
}

// Resize changes the size of the screen.
func (p *Page) Resize(size Size) {
	p.t.Helper()
	p.Do(chromedp.EmulateViewport(size.Width, size.Height))
}

// Keys types keys, including the special keys of package kb.
func (p *Page) Keys(keys string) {
	p.t.Helper()
	p.Do(chromedp.KeyEvent(keys))
}

// Shoot takes a screenshot and fails the test if the picture is empty. If $DUCTOR_TEST_PICTURES names a directory,
// Shoot also saves the picture there. `scripts/test --long` sets this variable.
func (p *Page) Shoot(name string) {
	p.t.Helper()
	dir := os.Getenv("DUCTOR_TEST_PICTURES")
	if dir == "" {
		return
	}
	var picture []byte
	p.Do(chromedp.CaptureScreenshot(&picture))
	if len(picture) < 5000 {
		p.t.Errorf("the picture %s has %d bytes: the page is empty", name, len(picture))
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Violation is a violation of an accessibility rule.
type Violation struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// Audit runs axe-core and returns the serious and critical violations. It skips the rest of the test if axe-core is not
// installed.
func (p *Page) Audit(script string) (serious []Violation) {
	p.t.Helper()
	source, err := os.ReadFile(script)
	if err != nil {
		p.t.Skip("skipped: axe-core is not installed; scripts/agents installs it")
	}
	p.Do(chromedp.Evaluate(string(source)+"; true", nil))
	all := Eval[[]Violation](p, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations)`)
	for _, v := range all {
		if v.Impact == "serious" || v.Impact == "critical" {
			serious = append(serious, v)
		}
	}
	return serious
}

func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s", v.ID, v.Impact, v.Help)
	for _, n := range v.Nodes {
		fmt.Fprintf(&b, "\n  %s\n    %s", n.HTML, strings.ReplaceAll(n.Summary, "\n", "\n    "))
	}
	return b.String()
}

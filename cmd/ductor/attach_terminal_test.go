package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"ductor/cli/clitest"
	"ductor/internal/attach/wire"
	"ductor/internal/statesocket"
)

// awaitSocket waits until ductor accepts terminals.
func (o *ordeal) awaitSocket() {
	o.t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if conn, err := statesocket.Dial(o.soon(), o.cfg.Storage.Dir, wire.Socket); err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(until) {
			o.t.Fatal("ductor accepts no terminals")
		}
	}
}

// attachAt runs `ductor attach` at a pseudo-terminal.
func (o *ordeal) attachAt(columns, rows int, env ...string) *atTerminal {
	o.t.Helper()
	o.awaitSocket()
	cmd := exec.Command(clitest.Program(o.t), "attach", "-c", o.config)
	cmd.Env = append(append(os.Environ(), beDuctor+"=1", "GORACE=atexit_sleep_ms=0", "TERM=xterm-256color",
		"LANG=C.UTF-8", "LC_ALL=", "NO_COLOR=1"), env...)
	a := startCommandIn(o.t, cmd, columns, rows)
	a.shows("> ", "!connecting") // until then the terminal itself handles keys
	return a
}

// shows waits until the screen shows all parts, and none of those behind an exclamation mark.
func (a *atTerminal) shows(parts ...string) {
	a.t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		shown, wrong := a.screen.String(), ""
		for _, part := range parts {
			if without, not := strings.CutPrefix(part, "!"); strings.Contains(shown, without) == not {
				wrong = part
			}
		}
		if wrong == "" {
			return
		}
		if time.Now().After(until) {
			a.t.Fatalf("%q: the screen shows\n%s", wrong, shown)
		}
	}
}

// enter types a line.
func (a *atTerminal) enter(line string) {
	a.t.Helper()
	if _, err := a.tty.WriteString(line + "\r"); err != nil {
		a.t.Fatal(err)
	}
}

// A prompt typed in a terminal is answered at both ends. An approval decided at one end disappears at the other.
func TestAttachInATerminalBesideThePhone(t *testing.T) {
	town := surroundings(t, nil)
	town.permission = "ask"
	o := town.ordeal(31)
	desk := o.attachAt(100, 40)
	desk.enter(`hello [[text "It is **done**."]]`)
	desk.shows("\nIt is **done**.", "from a terminal", "!sending")
	o.await("You, at the terminal:\nhello")
	o.awaitDone(1)

	file := filepath.Join(o.cfg.Projects.DefaultDir, "x")
	o.say(`[[start]] [[ask cmd="touch %s"]] [[text "that was all"]]`, file)
	desk.shows("claude asks", "touch "+file, "Tab: read and decide")
	o.press("⛔ Deny")
	desk.shows("Denied in the chat: claude", "\nthat was all", "!Tab: read and decide")
	if _, err := os.Stat(file); err == nil {
		t.Error("the denied command ran")
	}
	o.awaitDone(2)

	o.say(`[[start]] [[ask cmd="touch %s-2"]] [[text "that was more"]]`, file)
	desk.shows("claude asks", "x-2")
	o.awaitButton("✅ Allow once")
	_, _ = desk.tty.WriteString("\t")
	desk.shows("Deny with a reason")
	desk.enter("")
	desk.shows("Allowed in a terminal: claude", "\nthat was more", "!Deny with a reason")
	o.awaitNoButton("✅ Allow once")
	if _, err := os.Stat(file + "-2"); err != nil {
		t.Errorf("the allowed command did not run: %v", err)
	}

	o.makeFile("codes", []byte("p\x1b]52;c;YQ==\x07\x1b]0;owned\x07\x1b[2Jq"))
	desk.enter(`[[tool cmd="cat codes"]] [[text "those were codes"]]`)
	desk.shows("    pq", "\nthose were codes")
	if title := desk.screen.Title(); title != "" || strings.Contains(desk.text(), "\x1b]52") {
		t.Errorf("the agent sets the title %q or the clipboard", title)
	}

	desk.enter("/model codex")
	desk.shows("Your next message goes to Codex")
	_, _ = desk.tty.WriteString("\x03")
	if code := desk.exit(); code != exitOK {
		t.Errorf("it exits with %d", code)
	}
}

// A restart of ductor loses and doubles nothing at a terminal: no answer, and no prompt that was typed meanwhile.
func TestAttachInATerminalAcrossARestart(t *testing.T) {
	o := surroundings(t, nil).ordeal(32)
	desk := o.attachAt(120, 50)
	tr := newTrial(1)
	o.say("%s", tr.script())
	desk.shows("\nw1-0 w1-1", "w1-19 w1-20")
	o.daemon.kill()
	desk.shows("reconnecting", "\nw1-0 w1-1")
	desk.enter(`second [[text "it ran"]] [[tool cmd="echo ran >> ran"]]`)
	desk.shows("sending: second")
	o.rise()
	desk.shows("!reconnecting", "!sending", "!working", "\n"+tr.last, "\nit ran")
	shown := desk.screen.String()
	for _, row := range []string{"\nw1-0 w1-1", "w1-59 ", "\n" + tr.last, `"echo ran >> ran"`, "\nit ran"} {
		want := strings.Count(row, "w1-59 ") + 1 // the prompt has it too
		if n := strings.Count(shown, row); n != want {
			t.Errorf("%q is shown %d times, want %d:\n%s", row, n, want, shown)
		}
	}
	if ran, err := os.ReadFile(filepath.Join(o.cfg.Projects.DefaultDir, "ran")); string(ran) != "ran\n" {
		t.Errorf("the prompt that was sent again ran %q, %v", ran, err)
	}
	o.awaitWhole(tr)
	o.ranOnce(tr)
}

// A narrow terminal without UTF-8 that changes its size while text streams shows each word once, in ASCII. It ends with
// a sentence once its user is removed.
func TestAttachInANarrowTerminalWithoutUTF8(t *testing.T) {
	o := surroundings(t, nil).ordeal(36)
	desk := o.attachAt(20, 60, "LANG=C", "LC_ALL=C")
	resize := func(columns int) {
		desk.screen.Resize(columns, 60) // like a terminal, which tells the program afterwards
		if err := pty.Setsize(desk.tty, &pty.Winsize{Rows: 60, Cols: uint16(columns)}); err != nil {
			t.Fatal(err)
		}
	}
	var words []string
	for n := range 60 {
		words = append(words, fmt.Sprintf("w%03d", n))
	}
	o.say(`grüße 世界 [[start]] [[text "%s" delay=5ms chunk=9]]`, strings.Join(words, " "))
	for i, columns := range []int{33, 20, 57, 100} {
		eventually(t, "the prompt and a part of the answer", func() bool {
			return strings.Count(desk.screen.String(), words[i*10]) == 2
		})
		resize(columns)
	}
	o.awaitDone(1)
	desk.shows("gr??e ??", "\nw000 w001", "w059 ", "!working")
	answer := ""
	for line := range strings.Lines(desk.screen.String()) {
		if strings.HasPrefix(line, "w") || answer != "" && !strings.HasSuffix(answer, "w059 ") {
			answer += strings.Join(strings.Fields(line), " ") + " "
		}
	}
	if want := strings.Join(words, " ") + " "; answer != want {
		t.Errorf("the answer is %q, want %q:\n%s", answer, want, desk.screen.String())
	}
	if i := strings.IndexFunc(desk.text(), func(r rune) bool { return r >= 0x7f }); i >= 0 {
		t.Errorf("the terminal gets %.20q", desk.text()[i:])
	}
	o.edit(o.config, "allowed_users = [1]", "allowed_users = [2]")
	if err := o.daemon.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if code := desk.exit(); code != exitFailure || !strings.Contains(desk.text(), "no longer an owner") {
		t.Errorf("it exits with %d: %q", code, desk.text())
	}
}

// In a pipe the standard input is a prompt, and the answer is printed in plain lines.
func TestAttachInAPipe(t *testing.T) {
	o := surroundings(t, nil).ordeal(33)
	o.awaitSocket()
	cmd := exec.Command(clitest.Program(t), "attach", "-c", o.config)
	cmd.Env = append(os.Environ(), beDuctor+"=1", "GORACE=atexit_sleep_ms=0", "LANG=C.UTF-8", "LC_ALL=")
	cmd.Stdin = strings.NewReader("hello [[tool cmd=\"echo from-the-tool\"]]\n[[text \"one\ntwo\"]]\n")
	out, err := cmd.Output()
	for _, part := range []string{"> hello", "\n    from-the-tool\n", "\none\ntwo\n= "} {
		if !strings.Contains(string(out), part) || err != nil {
			t.Errorf("it prints %q, %v, without %q", out, err, part)
		}
	}
	o.await("You, at the terminal:\nhello")
	o.daemon.kill()
	code, stdout, stderr := runDuctor(t, "attach", "-c", o.config)
	if code != exitFailure || stdout != "" || !strings.Contains(stderr, "ductor isn't running") {
		t.Errorf("without ductor: exit %d, %q, %q", code, stdout, stderr)
	}
}

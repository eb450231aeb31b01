package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"

	"ductor/internal/attach/wire"
	"ductor/internal/statesocket"
)

const patience = time.Minute

// peer is the other end of a connection: ductor, as a test plays it.
type peer struct {
	t    *testing.T
	conn io.ReadWriteCloser
	in   *bufio.Reader
}

// request waits for a request for which is returns true.
func (p *peer) request(is func(r wire.Request) bool) wire.Request {
	p.t.Helper()
	for {
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			p.t.Errorf("wait for a request: %v", err)
			return wire.Request{Prompt: &wire.Prompt{}, Open: &wire.Open{}, Decide: &wire.Decide{}}
		}
		var r wire.Request
		if err := json.Unmarshal(line, &r); err != nil {
			p.t.Error(err)
		}
		if is(r) {
			return r
		}
	}
}

func (p *peer) prompt() wire.Prompt {
	return *p.request(func(r wire.Request) bool { return r.Prompt != nil }).Prompt
}

func (p *peer) send(all ...wire.Message) {
	for _, m := range all {
		if err := json.NewEncoder(p.conn).Encode(m); err != nil {
			p.t.Log(err)
		}
	}
}

// open accepts the client up to its first conversation, and sends the state.
func (p *peer) open(s wire.Snapshot) {
	p.request(func(r wire.Request) bool { return r.Hello != nil && r.Hello.Secret == secret })
	p.send(wire.Message{Welcome: &wire.Welcome{Version: wire.Version}})
	p.request(func(r wire.Request) bool { return r.Open != nil })
	s.Conversation = "7/0"
	p.send(wire.Message{Snapshot: &s})
}

const secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// stateDir returns a state directory with a secret.
func stateDir(t *testing.T) string {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, statesocket.SecretFile), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// play plays ductor: each function serves one connection, and after it ductor is away for a moment.
func play(t *testing.T, dir string, lives ...func(p *peer)) {
	t.Helper()
	l, err := statesocket.Listen(dir, wire.Socket)
	if err != nil {
		t.Fatal(err)
	}
	var playing sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); playing.Wait() })
	playing.Go(func() {
		for i, live := range lives {
			conn, err := l.Accept()
			if err != nil {
				t.Errorf("life %d: %v", i, err)
				return
			}
			live(&peer{t, conn, bufio.NewReader(conn)})
			_ = conn.Close()
		}
	})
}

// input returns a file with a text, as standard input in a pipe.
func input(t *testing.T, text string) *os.File {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(w, text); _ = w.Close() }()
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// printed runs a client in a pipe until it ends, and returns its output.
func printed(t *testing.T, dir, in string, lines bool) (string, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan string)
	go func() { all, _ := io.ReadAll(r); out <- string(all) }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = Attach(ctx, Options{Dir: dir, In: input(t, in), Out: w, Getenv: utf8, Lines: lines})
	_ = w.Close()
	if ctx.Err() != nil {
		t.Error("it does not end")
	}
	return <-out, err
}

func utf8(name string) string { return map[string]string{"LANG": "C.UTF-8", "TERM": "xterm"}[name] }

func entry(id string, state wire.State, answer string) wire.Message {
	return wire.Message{Entry: &wire.Entry{Turn: id, State: state, Prompt: "fix it", Answer: answer}}
}

func TestAPipePrintsTheAnswerOnceAcrossARestart(t *testing.T) {
	dir, asked := stateDir(t), wire.Prompt{}
	play(t, dir, func(p *peer) {
		p.open(wire.Snapshot{Entries: []wire.Entry{*entry("old", wire.StateDone, "an old answer").Entry}})
		asked = p.prompt()
		p.send(entry(wire.TurnOf(asked.ID), wire.StateRunning, ""),
			wire.Message{Text: &wire.Text{Turn: wire.TurnOf(asked.ID), Text: "one\ntwo"}},
			wire.Message{Tool: &wire.Tool{Turn: wire.TurnOf(asked.ID), ID: "1", Name: "Bash", Title: "ls",
				State: wire.ToolDone, Output: "a\x1b[2Jb", Offset: 7}})
	}, func(p *peer) {
		id := wire.TurnOf(asked.ID)
		replayed := *entry(id, wire.StateRunning, "").Entry
		replayed.Replayed = true
		p.open(wire.Snapshot{Entries: []wire.Entry{replayed}})
		if again := p.prompt(); again != asked {
			t.Errorf("it sends %+v again, want %+v", again, asked)
		}
		p.send(wire.Message{Reply: &wire.Reply{ID: asked.ID}}, entry(id, wire.StateRunning, "one\ntwo\nthr"),
			wire.Message{Text: &wire.Text{Turn: id, Offset: 11, Text: "ee\nfour"}},
			entry(id, wire.StateDone, "one\ntwo\nthree\nfour"),
			wire.Message{Notice: &wire.Notice{ID: "n", Text: "too late"}})
	})
	got, err := printed(t, dir, "fix it\n", false)
	if want := "> fix it\none\ntwo\n+ Bash  ls\n    ab\nthree\nfour\n"; err != nil || !strings.HasPrefix(got, want) {
		t.Errorf("it prints %q and returns %v, want %q", got, err, want)
	}
}

func TestAPipeWithLines(t *testing.T) {
	dir := stateDir(t)
	play(t, dir, func(p *peer) {
		p.open(wire.Snapshot{})
		first, second := p.prompt(), p.prompt()
		p.send(wire.Message{Reply: &wire.Reply{ID: second.ID, Error: "The queue is full."}},
			wire.Message{Reply: &wire.Reply{ID: first.ID}},
			wire.Message{Approval: &wire.Approval{
				ID: "a", Agent: "claude", Decision: wire.Decision{State: wire.ApprovalOpen},
				Asks: &wire.Asks{Tool: "Bash", Title: "rm x", Fields: []wire.Field{{Name: "cwd", Value: "/\u202e"}}}}})
		e := entry(wire.TurnOf(first.ID), wire.StateFailed, "")
		e.Entry.Failure = "Claude isn't logged in."
		p.send(e)
	})
	got, err := printed(t, dir, "first\n\nsecond", true)
	want := "! The queue is full.\n? claude asks; decide in the chat:\n?   Bash\n?     rm x\n?   cwd\n" +
		"?     /\\u202e\n> fix it\n= Claude isn't logged in.\n"
	if got != want || !errors.Is(err, errFailed) {
		t.Errorf("it prints %q and returns %v, want %q", got, err, want)
	}
}

func TestWithoutDuctor(t *testing.T) {
	if got, err := printed(t, stateDir(t), "hello", false); !errors.Is(err, ErrNotRunning) {
		t.Errorf("it prints %q and returns %v", got, err)
	}
}

func TestDuctorRefuses(t *testing.T) {
	dir := stateDir(t)
	bye := wire.Message{Bye: &wire.Bye{Reason: wire.ReasonRemoved, Sentence: "The owner changed."}}
	play(t, dir, func(p *peer) {
		p.request(func(r wire.Request) bool { return r.Hello != nil })
		p.send(bye)
	}, func(p *peer) {
		p.open(wire.Snapshot{})
		p.send(bye)
	})
	for range 2 {
		if got, err := printed(t, dir, "", false); err == nil || err.Error() != "The owner changed." {
			t.Errorf("it prints %q and returns %v", got, err)
		}
	}
}

func TestFindAConversation(t *testing.T) {
	all := []wire.Conversation{{Key: "7/0", Title: "Shop"}, {Key: "-9/3", Title: "Blog"},
		{Key: "-9/4", Title: "Blue\x1b[2J"}}
	for name, want := range map[string]string{"7/0": "7/0", "shop": "7/0", "blo": "-9/3", "-9/4": "-9/4"} {
		if got, err := match(all, name); got != want || err != nil {
			t.Errorf("%q is %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"bl", "", "9"} {
		if got, err := match(all, name); err == nil || !strings.HasSuffix(err.Error(), "-9/4  Blue") {
			t.Errorf("%q is %q, %v", name, got, err)
		}
	}
}

// console is a pseudo-terminal and its screen.
type console struct {
	t        *testing.T
	tty      *os.File
	terminal vt10x.Terminal
	over     chan error
	end      context.CancelFunc // as a signal does
}

func openConsole(t *testing.T, dir string, columns, rows int, getenv func(string) string) *console {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	c := &console{t, master, vt10x.New(vt10x.WithSize(columns, rows)), make(chan error, 1), nil}
	var all sync.WaitGroup
	all.Go(func() {
		for buf := make([]byte, 4096); ; {
			n, err := master.Read(buf)
			_, _ = c.terminal.Write(buf[:n])
			if err != nil {
				return
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	c.end = cancel
	all.Go(func() {
		c.over <- Attach(ctx, Options{Dir: dir, In: slave, Out: slave, Getenv: getenv})
		_ = slave.Close()
	})
	t.Cleanup(func() { cancel(); all.Wait(); _ = master.Close() })
	return c
}

// await waits until the terminal shows all parts, and none that begins with an exclamation mark.
func (c *console) await(parts ...string) {
	c.t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		shown, missing := c.terminal.String(), ""
		for _, part := range parts {
			if without, is := strings.CutPrefix(part, "!"); strings.Contains(shown, without) == is {
				missing = part
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(until) {
			c.t.Fatalf("%q is not shown:\n%s", missing, shown)
		}
	}
}

func (c *console) write(text string) {
	c.t.Helper()
	if _, err := c.tty.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

// A prompt that ductor did not acknowledge is sent again with its id, the other end's decision shows at once, and text
// streams on, while the terminal is resized to twenty columns.
func TestATerminalAcrossARestart(t *testing.T) {
	dir, asked := stateDir(t), make(chan wire.Prompt, 1)
	resized, away, decided := make(chan struct{}), make(chan struct{}), make(chan struct{})
	approval := wire.Approval{ID: "a", Agent: "claude", Decision: wire.Decision{State: wire.ApprovalOpen},
		Asks:    &wire.Asks{Tool: "Bash", Title: "rm x"},
		Choices: []wire.Offer{{Choice: wire.AllowOnce}, {Choice: wire.Deny}}}
	running := wire.Entry{Turn: "t", State: wire.StateRunning, Prompt: "go", Answer: "one "}
	play(t, dir, func(p *peer) {
		p.open(wire.Snapshot{Entries: []wire.Entry{running}, Approvals: []wire.Approval{approval}})
		asked <- p.prompt()
		<-resized
		p.send(wire.Message{Text: &wire.Text{Turn: "t", Offset: 4, Text: "two 世界\x1b]0;owned\x07 "}})
		<-away
	}, func(p *peer) {
		running.Replayed, running.Answer = true, ""
		p.open(wire.Snapshot{Entries: []wire.Entry{running}, Approvals: []wire.Approval{approval}})
		again := p.prompt()
		if first := <-asked; again != first {
			t.Errorf("it sends %+v again, want %+v", again, first)
		}
		p.send(wire.Message{Reply: &wire.Reply{ID: again.ID}})
		<-decided
		approval.State, approval.Chat, approval.Choices = wire.ApprovalAllowed, true, nil
		p.send(wire.Message{Approval: &approval})
		_ = p.request(func(r wire.Request) bool { return r.Abort != nil })
		p.send(wire.Message{Bye: &wire.Bye{Reason: wire.ReasonRemoved, Sentence: "The owner changed."}})
	})
	c := openConsole(t, dir, 60, 20, utf8)
	c.await("one", "claude asks")
	c.write("next\r")
	c.await("sending: next")
	if err := pty.Setsize(c.tty, &pty.Winsize{Rows: 20, Cols: 20}); err != nil {
		t.Fatal(err)
	}
	c.terminal.Resize(20, 20)
	close(resized)
	c.await("one two 世界", "rm x")
	close(away)
	c.await("!sending", "one two")
	c.write("\t")
	c.await("Deny")
	close(decided)
	c.await("Allowed in the chat:", "!Deny")
	c.write("/abort\r")
	if err := <-c.over; err == nil || err.Error() != "The owner changed." {
		t.Errorf("it returns %v", err)
	}
	if title := c.terminal.Title(); title != "" {
		t.Errorf("the agent set the title %q", title)
	}
}

// A terminal without UTF-8 gets nothing but ASCII, and no colours if the user wants none.
func TestATerminalWithoutUTF8(t *testing.T) {
	dir := stateDir(t)
	play(t, dir, func(p *peer) {
		e := wire.Entry{Turn: "t", State: wire.StateDone, Prompt: "über", Answer: "世界 – ok"}
		p.open(wire.Snapshot{Title: "Grüße", Entries: []wire.Entry{e}})
		p.request(func(r wire.Request) bool { return r.Prompt != nil })
		_, _ = p.in.ReadByte()
	})
	plain := map[string]string{"NO_COLOR": "1", "TERM": "vt100"}
	c := openConsole(t, dir, 20, 12, func(name string) string { return plain[name] })
	c.await("?? - ok", "| ?ber", "Gr??e")
	c.write("hi\r")
	c.await("sending: hi")
	c.write("\x03")
	if err := <-c.over; err != nil {
		t.Errorf("it returns %v", err)
	}
}

// However the client ends, the terminal is as before.
func TestTheTerminalIsRestored(t *testing.T) {
	for name, leave := range map[string]func(c *console){
		"key": func(c *console) { c.write("\x04") }, "signal": func(c *console) { c.end() },
	} {
		dir := stateDir(t)
		play(t, dir, func(p *peer) {
			p.open(wire.Snapshot{Notices: []wire.Notice{{ID: "n", Text: "hello"}}})
			_, _ = io.Copy(io.Discard, p.in)
		})
		c := openConsole(t, dir, 40, 12, utf8)
		c.await("hello")
		if c.terminal.Mode()&vt10x.ModeAltScreen == 0 {
			t.Errorf("%s: it writes over what the terminal showed", name)
		}
		leave(c)
		if err := <-c.over; err != nil {
			t.Errorf("%s: it returns %v", name, err)
		}
		c.await("!hello")
		if c.terminal.Mode()&vt10x.ModeAltScreen != 0 || !c.terminal.CursorVisible() {
			t.Errorf("%s: the terminal is not restored", name)
		}
	}
}

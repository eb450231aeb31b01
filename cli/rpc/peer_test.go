package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/frames"
	"ductor/cli/turn"
)

// Each raw line reaches the handler as the right kind of message, is answered, or is garbage.
func TestRawLines(t *testing.T) {
	for name, tt := range map[string]struct {
		line, noted, reply string
		garbage            bool
	}{
		"a notification":        {line: `{"jsonrpc":"2.0","method":"m","params":{"x":1}}`, noted: `notified m{"x":1}`},
		"one with the id null":  {line: `{"id":null,"method":"m"}`, noted: "notified m"},
		"a request":             {line: `{"id":7,"method":"known"}`, noted: "requested known 7"},
		"one named by a string": {line: `{"id":"seven","method":"known"}`, noted: `requested known "seven"`},
		"an unknown request":    {line: `{"id":4.5,"method":"make/coffee"}`, noted: "requested make/coffee 4.5", reply: `{"jsonrpc":"2.0","id":4.5,"error":{"code":-32601,"message":"ductor does not know make/coffee"}}`},
		"a request of odd name": {line: `{"id":[1],"method":"x"}`, noted: "requested x [1]", reply: `{"jsonrpc":"2.0","id":[1],"error":{"code":-32601,"message":"ductor does not know x"}}`},
		"an answer to nothing":  {line: `{"id":"x","result":7}`},
		"one of a number":       {line: `{"id":4.5,"result":7}`},
		"one of an object":      {line: `{"id":{},"error":{"code":1}}`},
		"an error without id":   {line: `{"id":null,"error":{"code":1}}`},
		"what names nothing":    {line: `{}`, garbage: true},
		"the id null alone":     {line: `{"id":null}`, garbage: true},
		"null":                  {line: `null`, garbage: true},
		"a number":              {line: `7`, garbage: true},
		"a list":                {line: `[{"method":"m"}]`, garbage: true},
		"no JSON":               {line: `Ripgrep is not available.`, garbage: true},
		"half of it":            {line: `{"id":"a","resu`, garbage: true},
		"no text":               {line: "\xff\x00", garbage: true},
		"a method that is none": {line: `{"method":7}`, garbage: true},
		"an error that is none": {line: `{"id":"x","error":"no"}`, garbage: true},
		"an empty line":         {line: ` `},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, program, l := newTestPeer(t, Options{Codec: JSON{Version: "2.0"}})
				p.Listen()
				program.say(tt.line + "\n")
				synctest.Wait()
				if got := strings.Join(l.all(), "; "); got != tt.noted {
					t.Errorf("handed on %q, want %q", got, tt.noted)
				}
				if got := strings.TrimSpace(program.stdin.got()); got != tt.reply {
					t.Errorf("replied %q, want %q", got, tt.reply)
				}
				program.exitWith(0)
				synctest.Wait()
				if f := p.Failure(); (f.Kind == cli.BadOutput) != tt.garbage || tt.garbage && f.Detail != strings.ToValidUTF8(tt.line, "\uFFFD") && name != "no text" {
					t.Errorf("%+v", f)
				}
			})
		})
	}
}

// Answers may arrive in any order, twice or never; each call gets its own.
func TestAnswersFindTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, program, _ := newTestPeer(t, Options{})
		p.Listen()
		var got [2]string
		var both sync.WaitGroup
		for i := range got {
			both.Go(func() {
				if err := p.Call(t.Context(), "m", nil, &got[i]); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		var ids []string
		for _, line := range splitLines(program.stdin.got()) {
			var m Message
			if err := json.Unmarshal(line, &m); err != nil || string(m.Params) != "{}" {
				t.Fatalf("%s, %v", line, err)
			}
			ids = append(ids, string(m.ID))
		}
		for _, line := range []string{`,"result":"two"}`, `,"result":"again"}`} {
			program.say(`{"id":` + ids[1] + line + "\n")
		}
		program.say(`{"id":` + ids[0] + `,"result":"one"}` + "\n")
		both.Wait()
		if got != [2]string{"one", "two"} || ids[0] == ids[1] {
			t.Errorf("%q to %q", got, ids)
		}
	})
}

func TestHowACallEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		say  string // after the ID
		do   func(p *Peer, program *program, cancel context.CancelCauseFunc)
		want func(error) bool
	}{
		"refused": {say: `"error":{"code":-32603,"message":"Internal error","data":{"details":"overloaded"}}`, want: func(err error) bool {
			var refused *Error
			return errors.As(err, &refused) && refused.Code == CodeInternal && refused.Error() == "overloaded"
		}},
		"of another shape": {say: `"result":7`, want: func(err error) bool {
			var f *cli.Failure
			return errors.As(err, &f) && f.Kind == cli.BadOutput && f.Agent == "agent" && f.Detail == "7"
		}},
		"cancelled": {
			do:   func(_ *Peer, _ *program, cancel context.CancelCauseFunc) { cancel(cli.ErrAborted) },
			want: func(err error) bool { return errors.Is(err, cli.ErrAborted) },
		},
		"the program ends": {
			do:   func(_ *Peer, program *program, _ context.CancelCauseFunc) { program.exitWith(1) },
			want: func(err error) bool { return errors.Is(err, ErrEnded) },
		},
		"it is stopped": {
			do:   func(p *Peer, _ *program, _ context.CancelCauseFunc) { _ = p.Stop(context.Background(), 0) },
			want: func(err error) bool { return errors.Is(err, ErrEnded) },
		},
		"it is detached": {
			do:   func(p *Peer, _ *program, _ context.CancelCauseFunc) { _ = p.Detach() },
			want: func(err error) bool { return errors.Is(err, ErrEnded) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, program, l := newTestPeer(t, Options{})
				p.Listen()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				over := make(chan error, 1)
				var result struct{ Data []string }
				go func() { over <- p.Call(ctx, "m", nil, &result) }()
				synctest.Wait()
				if tt.do != nil {
					tt.do(p, program, cancel)
				} else {
					program.say(`{"id":` + string(lastMessage(t, program.stdin.got()).ID) + "," + tt.say + "}\n")
				}
				if err := <-over; !tt.want(err) {
					t.Errorf("%v", err)
				}
				if len(p.calls.pending) != 0 {
					t.Errorf("%d calls are kept", len(p.calls.pending))
				}
				program.exitWith(0)
				synctest.Wait()
				if err := p.Call(t.Context(), "m", nil, nil); !errors.Is(err, ErrEnded) || l.ended != 1 {
					t.Errorf("afterwards %v, told %d times", err, l.ended)
				}
			})
		})
	}
}

func TestTooManyCalls(t *testing.T) {
	p, _, _ := newTestPeer(t, Options{})
	p.Listen()
	for range maxPending {
		if err := p.Expect(p.NextID(), func(Message) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Expect("one more", nil); !errors.Is(err, errTooManyCalls) {
		t.Errorf("%v", err)
	}
	p.Forget(p.calls.prefix + "1")
	if err := p.Expect("one more", nil); err != nil {
		t.Errorf("there is room: %v", err)
	}
}

// A turn that a message starts is recorded with the offset after that message.
func TestATurnBeginsAfterWhatWasHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, program, l := newTestPeer(t, Options{From: 100})
		var marked cli.Mark
		l.notice = func(Message) {
			p.Ask(t.Context(), Prompt{
				ID: "turn", Method: "begin", Params: struct{}{},
				Mark: func(size int) cli.Mark {
					if size != len(`{"id":"turn","method":"begin","params":{}}`+"\n") {
						t.Errorf("recorded before %d bytes", size)
					}
					return cli.Mark{Turn: "T", Note: "n"}
				},
				Marked: func(m cli.Mark) { marked = m },
				Unsent: func(err error) { t.Error(err) },
			})
		}
		p.Listen()
		const line = `{"method":"m"}` + "\n"
		program.say(line)
		synctest.Wait()
		want := cli.Mark{Turn: "T", Output: 100 + int64(len(line)), Note: "n"}
		if got := program.recordedMarks(); len(got) != 1 || got[0] != want || marked != want ||
			l.ends[0] != want.Output {
			t.Errorf("recorded %+v and told %+v, want %+v", got, marked, want)
		}
	})
}

// If the start of a prompt cannot be recorded, the prompt is not written, but the messages queued after it are.
func TestAPromptThatIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, program, _ := newTestPeer(t, Options{})
		p.Listen()
		no := errors.New("no")
		program.begin = func(context.Context, cli.Mark) error {
			return no
		}
		var told []error
		for _, turn := range []cli.TurnID{"T", ""} {
			p.Ask(t.Context(), Prompt{
				ID: "of " + string(turn), Method: "m", Unsent: func(err error) { told = append(told, err) },
				Mark:   func(int) cli.Mark { return cli.Mark{Turn: turn} },
				Marked: func(m cli.Mark) { t.Errorf("recorded %+v", m) },
			})
		}
		synctest.Wait()
		if !slices.Equal(told, []error{no}) || strings.Count(program.stdin.got(), "\n") != 1 {
			t.Errorf("told %v, sent %q", told, program.stdin.got())
		}
	})
}

// A program that does not read blocks no caller, uses limited memory, and can still be stopped or detached.
func TestAProgramThatDoesNotRead(t *testing.T) {
	for name, end := range map[string]func(p *Peer) error{
		"stopped":  func(p *Peer) error { return p.Stop(context.Background(), 0) },
		"detached": func(p *Peer) error { return p.Detach() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, program, _ := newTestPeer(t, Options{})
				program.stdin.held, program.stdin.fail = make(chan struct{}), errors.New("gone")
				p.Listen()
				var told []error
				big := turn.Parcel{Data: make([]byte, turn.WriterLimit/2), Sent: func(err error) { told = append(told, err) }}
				for range 3 { // one of them is being written
					if err := p.out.Put(big); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				if err := p.Notify("m", nil); !errors.Is(err, turn.ErrFull) {
					t.Errorf("one more: %v", err)
				}
				over := make(chan error, 1)
				go func() { over <- end(p) }()
				time.Sleep(flushLimit)
				synctest.Wait()
				close(program.stdin.held) // as a dead or detached pipe does
				if err := <-over; err != nil || len(told) != 3 {
					t.Errorf("%v, told %v", err, told)
				}
				if err := p.Notify("m", nil); err == nil {
					t.Error("it still takes messages")
				}
			})
		})
	}
}

// Detach writes all queued messages first.
func TestDetachWritesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, program, _ := newTestPeer(t, Options{Framing: frames.ContentLength, Codec: JSON{Version: "2.0"}})
		p.Listen()
		if err := p.Reply(json.RawMessage("7"), nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := p.Detach(); err != nil {
			t.Fatal(err)
		}
		if got := program.stdin.got(); got != string(frames.ContentLength.Frame([]byte(`{"jsonrpc":"2.0","id":7,"result":null}`))) {
			t.Errorf("sent %q", got)
		}
		select {
		case <-program.done:
			t.Error("the process was ended")
		default:
		}
	})
}

// A failed write ends the writing, and every queued message gets the error.
func TestAProgramThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, program, _ := newTestPeer(t, Options{})
		program.stdin.fail = errors.New("broken")
		program.stdin.held = make(chan struct{})
		p.Listen()
		var told []error
		for range 3 {
			p.Ask(t.Context(), Prompt{
				ID: p.NextID(), Method: "m", Mark: func(int) cli.Mark { return cli.Mark{} }, Unsent: func(err error) { told = append(told, err) },
			})
			synctest.Wait()
		}
		close(program.stdin.held)
		synctest.Wait()
		if len(told) != 3 || slices.ContainsFunc(told, func(err error) bool { return !errors.Is(err, program.stdin.fail) }) {
			t.Errorf("told %v", told)
		}
		if err := p.Notify("m", nil); !errors.Is(err, program.stdin.fail) {
			t.Errorf("afterwards %v", err)
		}
	})
}

func TestInputIsClosedAfterWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, program, _ := newTestPeer(t, Options{})
		p.Listen()
		if err := p.Notify("bye", nil); err != nil {
			t.Fatal(err)
		}
		p.CloseInput()
		synctest.Wait()
		if got := program.stdin.got(); got != `{"method":"bye"}`+"\n" || !program.stdin.closed {
			t.Errorf("sent %q, closed: %v", got, program.stdin.closed)
		}
		if err := p.Notify("m", nil); !errors.Is(err, turn.ErrInputClosed) {
			t.Errorf("afterwards %v", err)
		}
	})
}

// Messages printed before the process was attached are reported as past, up to Options.Until.
func TestMessagesFromBeforeTheAttachArePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, program, l := newTestPeer(t, Options{Past: true, From: 10, Until: 25})
		var past []bool
		l.notice = func(Message) { past = append(past, p.Past()) }
		p.Listen()
		program.say(`{"method":"a"}` + "\n" + `{"method":"b"}` + "\n")
		synctest.Wait()
		if got := strings.Join(l.all(), "; "); got != "notified a; caught up; notified b" || !slices.Equal(past, []bool{true, false}) {
			t.Errorf("%q, past %v", got, past)
		}
	})
}

// The end of a process is reported as for every agent: who ended it, otherwise its last words, otherwise the garbage.
func TestFailureAfterTheEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(*program)
		kind cli.FailureKind
		says string
	}{
		"a crash": {func(p *program) { p.stderr = "first\nlast words\n"; p.exitWith(3) }, cli.Crashed,
			"last words"},
		"silently":       {func(p *program) { p.exitWith(3) }, cli.Crashed, "it gave no reason"},
		"garbage":        {func(p *program) { p.say("what?\n"); p.exitWith(0) }, cli.BadOutput, "one line"},
		"by age":         {func(p *program) { p.exit.By = cli.EndedByAge; close(p.done); _ = p.out.Close() }, cli.TimedOut, "longer than is allowed"},
		"no memory":      {func(p *program) { p.exit.OOM = true; close(p.done); _ = p.out.Close() }, cli.Crashed, "too little memory"},
		"the place lost": {func(p *program) { _ = p.out.CloseWithError(cli.Failf(cli.NetworkDown, "", "the sandbox is gone")) }, cli.NetworkDown, "the sandbox is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				program, l := newProgram(), &listener{}
				p := New(program, Options{Agent: "agent", Handler: l})
				p.Listen()
				tt.do(program)
				<-p.Ended()
				f := p.Failure()
				if f.Kind != tt.kind || !strings.Contains(f.Why().String(), tt.says) || f.Agent != "agent" {
					t.Errorf("%+v", f)
				}
				program.once.Do(func() {})
				if err := p.Stop(context.Background(), 0); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestErrorTexts(t *testing.T) {
	for raw, want := range map[string]string{
		`{"code":1,"message":"m"}`: "m", `{"code":7}`: "error 7", `{"message":"m","data":"d"}`: "m: d",
		`{"message":"m","data":{"details":"d"}}`: "d", `{"message":"m","data":{"message":"d"}}`: "d", `{"message":"m","data":[1]}`: "m",
	} {
		var e Error
		if err := json.Unmarshal([]byte(raw), &e); err != nil || e.Error() != want {
			t.Errorf("%s says %q, want %q, %v", raw, e.Error(), want, err)
		}
	}
}

func splitLines(s string) (lines [][]byte) {
	for line := range bytes.Lines([]byte(s)) {
		lines = append(lines, bytes.TrimSpace(line))
	}
	return lines
}

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/internal/terminal/hook"
	"ductor/lang"
)

// chat records the reports.
type chat struct {
	mu  sync.Mutex
	all []string
	ids []cli.AgentSessionID
}

func (c *chat) Report(_ context.Context, of Session, text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.ids = append(c.all, text), append(c.ids, of.ID)
	return nil
}

// serve starts a server. say returns the hook's output for an event, after the event was fully handled.
func serve(t *testing.T, change func(*Options)) (c *chat, say func(agent, event string) string) {
	t.Helper()
	state := t.TempDir()
	c = &chat{}
	o := Options{
		State: state, Wait: 1 << 40, Chat: c,
		Away:     func(context.Context) bool { return true },
		Descends: func(int) (bool, error) { return false, nil },
		Secrets:  func(string) *secrets.Set { return secrets.NewSet("sk-very-secret-value") },
		Ask: func(context.Context, Session, string, cli.Event) (cli.Decision, error) {
			return cli.Decision{Allow: true}, nil
		},
		Seen: func(context.Context, Session) error { return nil }, Lang: func() lang.Printer { return lang.Printer{} },
		Name: func(a cli.Agent) string { return string(a) }, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	s := New(o)
	say = func(agent, event string) string {
		var got []hook.Answer
		h := hookCall{Message: hook.Message{Agent: agent, Dir: "/home/ada/work", Event: json.RawMessage(event)}, s: s, send: func(a hook.Answer) error {
			got = append(got, a)
			return nil
		}}
		if err := json.Unmarshal(h.Event, &h.event); err != nil {
			t.Fatal(err)
		}
		h.handle(t.Context(), func() {})
		return string(bytes.TrimSpace(got[len(got)-1].Output))
	}
	return c, say
}

const request = `{"hook_event_name":"PermissionRequest","session_id":"s","cwd":"/w","tool_name":"Bash","tool_input":{"command":"ls"}}`

func TestADecisionGoesBackToTheTerminal(t *testing.T) {
	for name, tt := range map[string]struct {
		decision cli.Decision
		err      error
		want     string
	}{
		"allowed":              {cli.Decision{Allow: true}, nil, `{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedInput":{"command":"ls"}},"hookEventName":"PermissionRequest"}}`},
		"denied with a reason": {cli.Decision{Reason: "no"}, nil, `{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"no"},"hookEventName":"PermissionRequest"}}`},
		"no decision":          {cli.Decision{}, context.DeadlineExceeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, say := serve(t, func(o *Options) {
				o.Ask = func(_ context.Context, of Session, _ string, asked cli.Event) (cli.Decision, error) {
					if a, ok := asked.(cli.ApprovalAsked); !ok || a.Tool != "Bash" || a.Title != "ls" || of.Agent != "claude" || of.Dir != "/w" {
						t.Errorf("%+v asks %+v", of, asked)
					}
					return tt.decision, tt.err
				}
			})
			if got := say("claude", request); got != tt.want {
				t.Errorf("the terminal gets %s", got)
			}
		})
	}
}

// The server recognizes the end of a turn of each CLI, and removes secrets from reports.
func TestTheEndOfATurnIsReported(t *testing.T) {
	for agent, event := range map[string]string{
		"claude": `{"hook_event_name":"Stop","session_id":"s","cwd":"/w","last_assistant_message":"done with sk-very-secret-value"}`,
		"gemini": `{"hook_event_name":"AfterAgent","session_id":"s","cwd":"/w","prompt_response":"done with sk-very-secret-value"}`,
		"codex":  `{"type":"agent-turn-complete","thread-id":"s","cwd":"/w","last-assistant-message":"done with sk-very-secret-value"}`,
	} {
		c, say := serve(t, nil)
		say(agent, event)
		if len(c.all) != 1 || !strings.Contains(c.all[0], "done with") || strings.Contains(c.all[0], "sk-very") || c.ids[0] != "s" {
			t.Errorf("%s: %q of %q", agent, c.all, c.ids)
		}
	}
}

// The server neither asks nor reports while the user is there, nor for events that the chat shows already or that do
// not matter.
func TestEventsThatAreNotReported(t *testing.T) {
	c, say := serve(t, func(o *Options) {
		o.Away = func(context.Context) bool { return false }
		o.Ask = func(context.Context, Session, string, cli.Event) (cli.Decision, error) {
			t.Error("it is asked")
			return cli.Decision{}, nil
		}
	})
	if got := say("claude", request); got != "" {
		t.Errorf("the terminal gets %s", got)
	}
	say("claude", `{"hook_event_name":"Stop","session_id":"s"}`)
	away, sayAway := serve(t, nil)
	sayAway("claude", `{"hook_event_name":"Notification","notification_type":"permission_prompt","message":"may I"}`)
	sayAway("claude", `{"hook_event_name":"SessionStart"}`)
	if len(c.all)+len(away.all) > 0 {
		t.Errorf("reported %q, %q", c.all, away.all)
	}
	sayAway("claude", `{"hook_event_name":"Notification","notification_type":"idle_prompt","message":"I wait"}`)
	if len(away.all) != 1 || !strings.Contains(away.all[0], "I wait") {
		t.Errorf("reported %q", away.all)
	}
}

// A process that an agent of ductor started can write to the socket as any process of this user can. The server neither
// reports for it nor asks.
func TestAnAgentOfDuctorIsNoHook(t *testing.T) {
	reason := errors.New("cannot tell")
	for name, descends := range map[string]func(int) (bool, error){
		"an agent":         func(pid int) (bool, error) { return pid == os.Getpid(), nil },
		"perhaps an agent": func(int) (bool, error) { return false, reason },
		"a terminal":       nil,
	} {
		t.Run(name, func(t *testing.T) {
			var o Options
			c, _ := serve(t, func(served *Options) {
				if descends != nil {
					served.Descends = descends
				}
				o = *served
			})
			ctx, stop := context.WithCancel(t.Context())
			var serving sync.WaitGroup
			serving.Go(func() {
				if err := New(o).Serve(ctx); err != nil {
					t.Error(err)
				}
			})
			event := `{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"[tap](https://example.org)"}`
			var conn net.Conn
			var err error
			for conn == nil && t.Context().Err() == nil {
				conn, err = net.Dial("unix", filepath.Join(o.State, "terminal.sock"))
			}
			if err != nil {
				t.Fatal(err)
			}
			_, _ = fmt.Fprintf(conn, `{"agent":"claude","dir":"/d","event":%s}`+"\n", event)
			_, _ = io.Copy(io.Discard, conn) // until the server closes the connection
			_ = conn.Close()
			stop()
			serving.Wait()
			if got, want := len(c.all), map[bool]int{true: 1}[descends == nil]; got != want {
				t.Errorf("%d reports, want %d", got, want)
			}
		})
	}
}

// A hook that repeats its message after a restart of ductor is served although the user is there. It cannot have sent
// its first message to an earlier process if that was after the start of this process.
func TestOnlyARepeatedMessageIsServedWhileTheUserIsThere(t *testing.T) {
	var o Options
	c, _ := serve(t, func(served *Options) {
		served.Away = func(context.Context) bool { return false }
		o = *served
	})
	s := New(o)
	for since, want := range map[time.Time]int{{}: 0, s.started.Add(-time.Second): 1, s.started.Add(time.Second): 0} {
		c.all = nil
		h := hookCall{Message: hook.Message{Agent: "claude", Dir: "/d", Since: since}, s: s,
			event: event{Name: "Stop"}, send: func(hook.Answer) error { return nil }}
		h.handle(t.Context(), func() {})
		if len(c.all) != want {
			t.Errorf("since %v: %d reports, want %d", since.Sub(s.started), len(c.all), want)
		}
	}
}

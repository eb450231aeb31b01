package claude

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
)

func steer(t *testing.T, s cli.Session, req cli.Request) {
	t.Helper()
	st, ok := s.(cli.Steerer)
	if !ok {
		t.Fatal("the session takes no messages in mid-turn")
	}
	if err := st.Steer(t.Context(), req); err != nil {
		t.Errorf("steer: %v", err)
	}
}

// Claude reads a message sent during a tool with the tool's result, and one sent during its last text after that. In
// both cases there is one Result, after the message.
func TestRealSteer(t *testing.T) {
	realagent.LongOnly(t)
	p, c, api, hold := realHeld(t)
	gate := filepath.Join(c.Work, "gate")
	req := cli.Request{Dir: c.Work, Permission: cli.Bypass, Turn: "T1",
		Prompt: `first [[tool cmd="until [ -e ` + gate + ` ]; do sleep 0.01; done"]][[text "Done."]]`}
	s := clitest.Open(t, p, cli.Live, req)
	k := begin(t, s, req)
	until[cli.ToolStarted](k)
	steer(t, s, cli.Request{Turn: "S1", Prompt: `and the harbour [[text "Seen."]]`})
	steer(t, s, cli.Request{Turn: "S1", Prompt: `and the harbour [[text "Seen."]]`})
	must(t, os.WriteFile(gate, nil, 0o600))
	r := k.end()
	if r.Err != nil || r.Text == "" || s.Info().Alive == false {
		t.Errorf("answered %+v", r)
	}
	if n := strings.Count(lastAsked(api), "and the harbour"); n != 1 {
		t.Errorf("the message is %d times in what the model was asked", n)
	}

	req.Turn, req.Resume, req.Prompt = "T2", r.AgentSessionID, `[[start]]<<HOLD {}>>`
	k = begin(t, s, req)
	until[cli.TextDelta](k)
	steer(t, s, cli.Request{Turn: "S2", Prompt: `[[start]][[text "And this."]]`})
	close(hold)
	r = k.end()
	if r.Err != nil || r.Consumed.Turns != 2 || !strings.HasPrefix(r.Text, "held back.") ||
		!strings.HasSuffix(r.Text, "And this.") {
		t.Errorf("answered %+v", r)
	}
	if err := s.(cli.Steerer).Steer(t.Context(), cli.Request{Prompt: "late"}); !errors.Is(err, cli.ErrNoTurn) {
		t.Errorf("a message between turns: %v", err)
	}
}

// A message sent during a turn that was then replaced or aborted is either returned, and Claude does not read it later, or
// Claude has read it. The session can be resumed. A replaced turn is interrupted through the protocol, however busy the machine; a process interrupted by an abort is
// soon stopped.
func TestRealAbortOfASteeredTurn(t *testing.T) {
	for _, cause := range realagent.Some(cli.ErrReplaced, cli.ErrAborted) {
		t.Run(cause.Error(), func(t *testing.T) {
			p, c, api := real(t, func(o *Options) { o.Grace = time.Minute })
			req := cli.Request{Dir: c.Work, Permission: cli.Bypass, Turn: "T1", // Claude rejects a command that only sleeps
				Prompt: `first [[tool cmd="until [ -e never ]; do sleep 0.01; done"]][[text "Done."]]`}
			s := clitest.Open(t, p, cli.Live, req)
			k := begin(t, s, req)
			until[cli.ToolStarted](k)
			steer(t, s, cli.Request{Turn: "S1", Prompt: `and the harbour`})
			k.cancel(cause)
			r := k.end()
			if !r.Aborted {
				t.Errorf("ended as %+v", r)
			}
			unread := r.Steered.Unread
			req.Turn, req.Resume, req.Prompt = "T2", r.AgentSessionID, `[[start]][[text "still here"]]`
			if r = begin(t, s, req).end(); r.Text != "still here" || r.Err != nil {
				t.Errorf("after it: %+v", r)
			}
			if wasRead := strings.Contains(lastAsked(api), "the harbour"); wasRead == (len(unread) == 1) {
				t.Errorf("the message was read: %v, and these were returned: %q", wasRead, unread)
			}
		})
	}
}

// Another model, permission mode or effort is set in the running process.
func TestRealChangesOfSettings(t *testing.T) {
	realagent.LongOnly(t)
	p, c, api := real(t, nil)
	req := cli.Request{Dir: c.Work, Turn: "T1", Model: "sonnet", Prompt: `[[text "one"]]`}
	s := clitest.Open(t, p, cli.Live, req)
	r := begin(t, s, req).end()
	pid, first := s.Info().PID, api.Prompts()[0].Model
	req.Resume = r.AgentSessionID
	file := filepath.Join(c.Work, "made.txt")
	for i, step := range []struct {
		name   string
		change func(*cli.Request)
		check  func(cli.Result) bool
	}{
		{"another model", func(r *cli.Request) { r.Model = "haiku" }, func(cli.Result) bool { return strings.Contains(lastModel(api), "haiku") }},
		{"its own choice", func(r *cli.Request) { r.Model = "" }, func(cli.Result) bool { return !strings.Contains(lastModel(api), "haiku") && lastModel(api) != first }},
		{"an effort", func(r *cli.Request) { r.Effort = "low" }, func(cli.Result) bool { return lastEffort(api) == "low" }},
		{"another effort", func(r *cli.Request) { r.Effort = "high" }, func(cli.Result) bool { return lastEffort(api) == "high" }},
		{"a plan", func(r *cli.Request) { r.Permission = cli.Plan }, func(cli.Result) bool {
			return strings.Contains(api.Asked(), "Plan mode is active")
		}},
		{"asking again", func(r *cli.Request) {
			r.Permission, r.Prompt = cli.Ask, `[[start]][[write path="`+file+`" text="x"]][[text "ok"]]`
		}, func(r cli.Result) bool { _, err := os.Stat(file); return err != nil && len(r.Denials) == 1 }},
	} {
		req.Turn, req.Prompt = cli.TurnID("T"+string(rune('2'+i))), `[[start]][[text "ok"]]`
		step.change(&req)
		if !s.Fits(req) {
			t.Errorf("%s: does not fit", step.name)
		}
		r := begin(t, s, req).end()
		if r.Err != nil || r.Text != "ok" || !step.check(r) || s.Info().PID != pid {
			t.Errorf("%s: %+v by %q at %q in %d, was %d", step.name, r, lastModel(api), lastEffort(api), s.Info().PID, pid)
		}
	}
	for name, change := range map[string]func(*cli.Request){
		"bypass":    func(r *cli.Request) { r.Permission = cli.Bypass },
		"no effort": func(r *cli.Request) { r.Effort = "" },
	} {
		other := req
		if change(&other); s.Fits(other) {
			t.Errorf("%s fits, and there is no way to it", name)
		}
	}
}

func lastModel(api *modelapi.Server) string { return last(api).Model }

func lastEffort(api *modelapi.Server) string { return last(api).Effort }

func last(api *modelapi.Server) modelapi.Request {
	all := api.Prompts()
	return all[len(all)-1]
}

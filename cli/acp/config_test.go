package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// modern returns a provider over the scripted agent that speaks these parts of the protocol; see package agent.
func modern(t *testing.T, words string, holds map[cli.PermissionMode]Holding) (*Provider, cli.Request) {
	t.Helper()
	p, dir := scripted(t, func(o *Options) {
		env := append(o.Env(), "SIM_ACP="+words)
		o.Env, o.Holds = func() []string { return env }, holds
		o.AllowEnv = append(o.AllowEnv, "SIM_ACP")
	})
	return p, cli.Request{Dir: dir, Permission: cli.Auto, Attended: true}
}

// asks holds the scripted agent with options to asking.
func asks() map[cli.PermissionMode]Holding {
	return map[cli.PermissionMode]Holding{cli.Ask: {Env: map[string]string{"SIM_PERMISSION": "ask"}}}
}

// A session's model and effort are options of the agent. The efforts depend on the model.
func TestTheOptionsOfASession(t *testing.T) {
	p, req := modern(t, "options", nil)
	models, err := p.Models(t.Context())
	if err != nil || len(models) != 3 || models[1].Efforts != nil {
		t.Fatalf("models %+v, %v", models, err)
	}
	if want := (cli.Model{Agent: testAgent, ID: "model-1", Name: "Model 1", Default: true,
		Efforts: []cli.Effort{"low", "medium", "high"}, DefaultEffort: "low"}); !reflect.DeepEqual(models[0], want) {
		t.Errorf("the first model is %+v", models[0])
	}
	s := open(t, p, req)
	for i, c := range []struct {
		model  cli.ModelID
		effort cli.Effort
		want   string // the model, or the failure
	}{
		{"model-2", "max", "model-2"}, {"", "", "model-1"}, {"model-3", "", "model-3"},
		{"model-3", "low", `has no effort "low"`}, {"model-1", "high", "model-1"}, {"nonsense", "", "Invalid value"},
		{"model-1", "max", "low, medium, high"},
	} {
		req.Turn, req.Prompt = cli.TurnID(fmt.Sprint("t", i)), `[[text "well"]]`
		req.Model, req.Effort = c.model, c.effort
		r, _ := clitest.Play(t.Context(), s, req)
		now := s.Agent().(*session).offers
		got := now.model.current
		if r.Err != nil {
			got = r.Err.Why().String()
		}
		if !strings.Contains(got, c.want) || r.Err == nil && c.effort != "" && now.effort.current != string(c.effort) {
			t.Errorf("%s %s: %q, the effort is %+v", c.model, c.effort, got, now.effort)
		}
	}
	models, err = p.Models(t.Context())
	if err != nil || !slices.Equal(models[1].Efforts, []cli.Effort{"low", "max"}) || models[2].Efforts != nil {
		t.Errorf("after their use: %+v, %v", models, err)
	}
}

// An agent can change its options itself, and its titles.
func TestAnAgentChangesItsOptions(t *testing.T) {
	provider, p := play(t, nil)
	req := wish(t, "hi")
	s := open(t, provider, req)
	turn := begin(t, s, req)
	prompt := p.hear(methodPrompt)
	update := func(of string) {
		p.say(`{"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":%s}}}`, of)
	}
	const option = `{"id":"m","name":"M","category":"model","type":"select","currentValue":"a","options":[%s]}`
	update(`"config_option_update","configOptions":[` +
		fmt.Sprintf(option, `{"value":"a","name":"A"},{"value":"b","name":"B"},{"value":7},17`) +
		`,{"id":"x","type":"colour","name":"X","currentValue":"red"},{"id":"y"},"z"]`)
	update(`"session_info_update","title":"A\ntitle"`)
	update(`"session_info_update","updatedAt":"2026-11-29T12:00:00Z"`)
	p.endTurn(prompt)
	until[cli.SessionStarted](turn)
	if named := until[cli.SessionStarted](turn); named.Title != "A title" {
		t.Errorf("the title is %+v", named)
	}
	if r := until[cli.Result](turn); r.Err != nil {
		t.Error(r.Err)
	}
	now := s.Agent().(*session).offers
	if now.model.current != "a" || len(now.model.values) != 2 || len(now.options) != 1 || now.title != "A title" {
		t.Errorf("the options are %+v", now)
	}
	req.Turn, req.Resume, req.Model = "second", "s1", "b"
	turn = begin(t, s, req)
	set := p.hear(methodSetOption)
	p.say(`{"id":%s,"result":{"configOptions":[%s]}}`, set.ID, fmt.Sprintf(option, `{"value":"a","name":"A"}`))
	r := until[cli.Result](turn)
	if kindOfResult(r) != cli.UnknownModel || !strings.Contains(r.Err.Error(), `uses "a"`) {
		t.Errorf("an agent that confirms another model: %+v", r.Err)
	}
}

// An agent confirms a value by naming its option with it.
func TestAnAgentConfirmsAValue(t *testing.T) {
	for answer, want := range map[string]string{
		`{"configOptions":[]}`: `no longer names it`,
		`{"configOptions":[{"id":"x","type":"boolean","currentValue":true}]}`: `no longer names it`,
		`{"configOptions":[{"id":"m","type":"select","currentValue":"a"}]}`:   `uses "a"`,
		`{"configOptions":[{"id":"m","type":"select","currentValue":"b"}]}`:   "",
		`{}`: "",
	} {
		provider, p := play(t, nil)
		s := open(t, provider, wish(t, "hi")).Agent().(*session)
		s.mu.Lock()
		s.configure(configOptions{{ID: "m", Type: optionSelect, Current: "a"}})
		s.mu.Unlock()
		got := make(chan error, 1)
		go func() { got <- s.set(t.Context(), "m", "b") }()
		p.say(`{"id":%s,"result":%s}`, p.hear(methodSetOption).ID, answer)
		if err := <-got; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// Another model begins with its own effort, until ductor chooses one.
func TestTheEffortOfAnotherModel(t *testing.T) {
	provider, p := play(t, nil)
	s := open(t, provider, wish(t, "hi")).Agent().(*session)
	report := func(model, effort configValue) string {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.configure(configOptions{
			{ID: "model", Type: optionSelect, Current: model},
			{ID: "effort", Type: optionSelect, Current: effort},
		})
		return s.offers.effort.original
	}
	learned := func(model string) string {
		known, _ := provider.efforts.Load(model)
		return known.(choice).original
	}
	if first, second := report("a", "low"), report("b", "high"); first != "low" || second != "high" ||
		learned("a") != "low" || learned("b") != "high" {
		t.Errorf("the efforts are %q, %q; learned %q, %q", first, second, learned("a"), learned("b"))
	}
	chosen := make(chan error, 1)
	go func() { chosen <- s.choose(t.Context(), forEffort, "max") }()
	p.say(`{"id":%s,"result":{}}`, p.hear(methodSetOption).ID)
	if err := <-chosen; err != nil {
		t.Fatal(err)
	}
	if got := report("a", "max"); got != "high" {
		t.Errorf("after ductor chose one, the original is %q", got)
	}
}

// ductor shows 5,000 models and 10 MB of options. More models than it reads are a clear error, and turns still run.
func TestManyOptions(t *testing.T) {
	p, req := modern(t, "options models=5000 bytes=10000000", nil)
	models, err := p.Models(t.Context())
	if err != nil || len(models) != 5000 || len(models[0].Description) > maxLabel+len("…") {
		t.Fatalf("%d models, %v", len(models), err)
	}
	p, req = modern(t, "options models=10500", nil)
	if _, err = p.Models(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 10,000 models") {
		t.Errorf("too many: %v", err)
	}
	req.Turn, req.Prompt, req.Model = "t", `[[text "well"]]`, "model-10400" // beyond those that ductor keeps
	if r, _ := clitest.Play(t.Context(), open(t, p, req), req); r.Err != nil || r.Text != "well" {
		t.Errorf("a turn: %q, %+v", r.Text, r.Err)
	}
}

// ductor refuses ask and plan for an agent whose own modes let everything through, unless its Holds have an entry.
func TestWhatHoldsAnAgent(t *testing.T) {
	write := func(req cli.Request, mode cli.PermissionMode) cli.Request {
		req.Turn, req.Prompt, req.Permission = cli.TurnID(mode), `[[tool "touch written"]][[text "well"]]`, mode
		return req
	}
	p, req := modern(t, "options", nil)
	for mode, refused := range map[cli.PermissionMode]bool{
		cli.Ask: true, cli.AcceptEdits: true, cli.Plan: false, cli.Bypass: false,
	} {
		r, _ := clitest.Play(t.Context(), open(t, p, req), write(req, mode))
		if (kindOfResult(r) == cli.NotRun) != refused ||
			refused && !strings.Contains(r.Err.Error(), "nothing makes this agent ask") {
			t.Errorf("%s: %v", mode, r.Err)
		}
		unheld := p.Unheld(cli.Request{Permission: mode, Attended: true}).String()
		if (unheld != "") != refused || refused && p.Cannot(cli.Live, mode).String() != unheld {
			t.Errorf("%s: unheld %q, cannot %q", mode, unheld, p.Cannot(cli.Live, mode))
		}
	}

	p, req = modern(t, "options", asks())
	s := open(t, p, write(req, cli.Bypass))
	ctx, cancel := context.WithCancelCause(t.Context())
	turn := make(chan cli.ApprovalAsked, 1)
	ask := open(t, p, write(req, cli.Ask))
	go ask.Turn(ctx, write(req, cli.Ask), func(ev cli.Event) {
		if asked, ok := ev.(cli.ApprovalAsked); ok {
			turn <- asked
		}
	})
	select {
	case <-turn:
	case <-time.After(time.Minute):
		t.Error("with what holds it, it does not ask")
	}
	if err := ask.SetPermission(t.Context(), cli.Bypass); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a process changes its environment: %v", err)
	}
	cancel(cli.ErrAborted)
	if s.Fits(write(req, cli.Ask)) || !s.Fits(write(req, cli.Auto)) {
		t.Error("a session in bypass fits ask, or does not fit auto")
	}
}

// A question for text also runs if nothing holds the agent to its mode. ductor denies all requests of the agent.
func TestAQuestionForTextNeedsNoHold(t *testing.T) {
	for _, textOnly := range []bool{true, false} {
		provider, p := play(t, func(o *Options) { o.Holds = nil })
		req := wish(t, "Summarize this.")
		req.Permission, req.Attended, req.TextOnly = cli.Plan, false, textOnly
		turn := begin(t, open(t, provider, req), req)
		if !textOnly {
			if r := until[cli.Result](turn); kindOfResult(r) != cli.NotRun {
				t.Errorf("another request: %+v", r)
			}
			continue
		}
		prompt := p.hear(methodPrompt)
		p.ask(5, "s1", "rm", "execute")
		if answer := p.hear(""); !strings.Contains(string(answer.Result), `"no"`) {
			t.Errorf("a command is answered with %s", answer.Result)
		}
		p.text("s1", "In short.")
		p.endTurn(prompt)
		if r := until[cli.Result](turn); r.Err != nil || r.Text != "In short." {
			t.Errorf("%q, %+v", r.Text, r.Err)
		}
	}
}

// An owner can name an option that holds the agent.
func TestAnOptionHoldsAnAgent(t *testing.T) {
	p, req := modern(t, "options", map[cli.PermissionMode]Holding{
		cli.Ask:  {Mode: "plan", Option: "brave", Value: "true"},
		cli.Plan: {Option: "cowardly", Value: "true"}, cli.Bypass: {Mode: "yolo"},
	})
	req.Prompt, req.Permission, req.Turn = `[[text "well"]]`, cli.Ask, "t"
	s := open(t, p, req)
	r, _ := clitest.Play(t.Context(), s, req)
	now := s.Agent().(*session).offers
	brave := slices.IndexFunc(now.options, func(o configOption) bool { return o.ID == "brave" })
	if r.Err != nil || now.options[brave].Current != "true" || now.mode.current != "plan" {
		t.Errorf("%+v, %+v", r.Err, now)
	}
	for mode, want := range map[cli.PermissionMode]cli.Failure{
		cli.Plan:   {Kind: cli.Refused, Reason: `no option "cowardly"`},
		cli.Bypass: {Kind: cli.NotRun, Reason: `mode "yolo", which it does not offer`},
	} {
		req.Permission, req.Turn = mode, cli.TurnID(mode)
		r, _ = clitest.Play(t.Context(), open(t, p, req), req)
		if kindOfResult(r) != want.Kind || !strings.Contains(r.Err.Error(), want.Reason) {
			t.Errorf("%s: %v", mode, r.Err)
		}
	}
}

// Sessions of a directory come from the agent, the newest first, from all pages. An agent without a list is not started
// twice for it.
func TestTheSessionsThatAnAgentLists(t *testing.T) {
	p, req := modern(t, "options list", nil)
	for i := range 5 {
		req.Turn, req.Prompt = cli.TurnID(fmt.Sprint("t", i)), fmt.Sprintf(`[[start]]%d potatoes [[text "well"]]`, i)
		if r, _ := clitest.Play(t.Context(), open(t, p, req), req); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	all, err := p.StoredSessions(t.Context(), req.Dir)
	if err != nil || len(all) != 5 {
		t.Fatalf("sessions %+v, %v", all, err)
	}
	if first := all[0]; first.ID == "" || first.Dir != req.Dir || !strings.HasPrefix(first.First, "About") ||
		first.Used.IsZero() {
		t.Errorf("the newest is %+v", first)
	}
	if all, err = p.StoredSessions(t.Context(), t.TempDir()); err != nil || len(all) != 0 {
		t.Errorf("elsewhere %+v, %v", all, err)
	}
	if all, err = p.StoredSessions(t.Context(), req.Dir); err != nil || len(all) != 5 {
		t.Errorf("a second time %+v, %v", all, err)
	}
	if words := p.ResumeCommand("x"); words != nil {
		t.Errorf("in a terminal %q", words)
	}

	provider, peer := play(t, nil)
	for range 2 {
		if all, err := provider.StoredSessions(t.Context(), req.Dir); err != nil || all != nil {
			t.Errorf("without a list: %+v, %v", all, err)
		}
	}
	if peer.started != 1 {
		t.Errorf("%d processes were started", peer.started)
	}
}

// A session that was opened for a question is deleted, if the agent can.
func TestAQuestionLeavesNoSession(t *testing.T) {
	provider, p := play(t, nil)
	p.hello = `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"delete":{}}}}`
	done := make(chan error, 1)
	go func() {
		_, err := provider.Models(t.Context())
		done <- err
	}()
	m := p.hear(methodDelete)
	var params sessionParams
	if err := json.Unmarshal(m.Params, &params); err != nil || params.SessionID != "s1" {
		t.Errorf("it deletes %s, %v", m.Params, err)
	}
	p.say(`{"id":%s,"result":{}}`, m.ID)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// An agent that does not begin as the protocol says gives a clear failure in time.
func TestAgentsThatBeginWrongly(t *testing.T) {
	for hello, want := range map[string]string{
		`{"protocolVersion":0}`:     "version 0 of the Agent Client Protocol, and ductor version 1: update Scripted",
		`{}`:                        "version 0",
		`{"protocolVersion":2}`:     "version 2 of the Agent Client Protocol, and ductor version 1: update ductor",
		`{"protocolVersion":"1.7"}`: "answered initialize with something else",
		`[]`:                        "answered initialize with something else",
		"silent":                    "it did not answer when it was spoken to",
		"garbage":                   `it printed "Usage: agent"`,
		"die":                       "its last words",
	} {
		t.Run(hello, func(t *testing.T) {
			provider, p := play(t, func(o *Options) { o.Start = 300 * time.Millisecond })
			p.hello = hello
			_, err := provider.Open(t.Context(), cli.Live, wish(t, "hi"))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
	provider, p := play(t, nil)
	p.hello = "banner"
	open(t, provider, wish(t, "hi"))
}

// An agent of this protocol gets only absolute paths, so a request with another one fails before the agent starts.
func TestRelativeDirectories(t *testing.T) {
	for _, req := range []cli.Request{{}, {Dir: "src"}, {Dir: "/src", AddDirs: []string{"docs"}}} {
		_, err := New(Options{}).Open(t.Context(), cli.Live, req)
		if f := (*cli.Failure)(nil); !errors.As(err, &f) || f.Kind != cli.NotRun {
			t.Errorf("%+v: %v", req, err)
		}
	}
}

package consult

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/tools"
	"ductor/orchestrator"
	"ductor/orchestrator/side"
)

// agents runs agents that answer as a test defines.
type agents struct {
	stored *ledger
	mu     sync.Mutex
	ids    int
	asked  []cli.Request
	answer func(ctx context.Context, req cli.Request) cli.Result
	at     cli.Request
}

// ledger stores sessions and their entries in memory.
type ledger struct {
	mu       sync.Mutex
	sessions map[orchestrator.SessionID]orchestrator.Session
	entries  []orchestrator.Turn
}

func newAgents() *agents {
	return &agents{stored: &ledger{sessions: map[orchestrator.SessionID]orchestrator.Session{}}}
}

func (a *agents) Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	a.mu.Lock()
	a.asked = append(a.asked, req)
	a.mu.Unlock()
	if req.Permission != cli.Plan || req.Attended || req.Project != cli.WithoutProject || len(req.AllowedTools) > 0 ||
		!strings.HasPrefix(string(req.Conversation), "side/") {
		return cli.Result{Err: cli.Failf(cli.UnknownFailure, agent, "rights of %+v", req)}
	}
	r := a.answer(ctx, req)
	if r.Text != "" {
		emit(cli.TextDelta{Text: r.Text})
	}
	return r
}

func (a *agents) Release(cli.Conversation) {}
func (a *agents) Settled(cli.TurnID)       {}

// session returns the session with the name of a question, or "current". It creates a missing one.
func (a *ledger) session(_ context.Context, q orchestrator.ConsultQuestion) (orchestrator.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := orchestrator.SessionID(cmp.Or(q.Session, "current"))
	s, ok := a.sessions[id]
	if !ok {
		s = orchestrator.Session{ID: id, Conversation: q.Conversation, Dir: "/work",
			AgentSessions: map[orchestrator.AgentEnv]orchestrator.AgentSession{}}
	}
	a.sessions[id] = s
	s.AgentSessions = maps.Clone(s.AgentSessions)
	return s, nil
}

func (a *ledger) Session(_ context.Context, id orchestrator.SessionID) (orchestrator.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.sessions[id]
	if !ok {
		return s, orchestrator.ErrNoSession
	}
	return s, nil
}

func (a *ledger) OwnSession(context.Context, orchestrator.ConversationID, string) (orchestrator.SessionID, error) {
	return "", nil
}

func (a *ledger) AddEntry(_ context.Context, t orchestrator.Turn, _ []orchestrator.Step) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.sessions[t.Session]; !ok {
		return orchestrator.ErrNoSession
	}
	t.Entry.Number = int64(len(a.entries) + 1)
	a.entries = append(a.entries, t)
	s := a.sessions[t.Session]
	s.Newest = t.Entry.Number
	a.sessions[t.Session] = s
	return nil
}

func (a *ledger) LastAside(_ context.Context, in orchestrator.ConversationID, id orchestrator.SessionID,
	_ orchestrator.EntryKind) (orchestrator.Turn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range slices.Backward(a.entries) {
		if t.Session == id || id == "" && t.Prompt.Conversation == in {
			return t, nil
		}
	}
	return orchestrator.Turn{}, orchestrator.ErrNoConsult
}

func (a *ledger) SetAgentSession(_ context.Context, id orchestrator.SessionID, of orchestrator.AgentEnv,
	own orchestrator.AgentSession) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.sessions[id]
	if !ok {
		return orchestrator.ErrNoSession
	}
	s.AgentSessions[of] = own
	return nil
}

func (a *ledger) EntriesAfter(_ context.Context, id orchestrator.SessionID, after int64,
	_ int) (all []orchestrator.Turn, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.entries {
		if t.Session == id && t.Entry.Number > after {
			all = append(all, t)
		}
	}
	return all, nil
}

func (a *agents) newID() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids++
	return fmt.Sprint(a.ids)
}

func engine(answer func(ctx context.Context, req cli.Request) cli.Result) (*agents, *Engine) {
	a := newAgents()
	a.answer, a.at = answer, cli.Request{Dir: "/work", Permission: cli.Bypass, AllowedTools: []string{"Bash"}}
	client := side.Client{Gateway: a, NewID: a.newID}
	return a, New(Options{
		CheckDir: func(string) error { return nil },
		Side:     client, Store: a.stored, Session: a.stored.session, Names: a.stored,
		Budget: func() int { return 1000 }, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Shorten:     side.Shortener{Side: client, Logger: slog.New(slog.DiscardHandler)},
		SideRequest: func(context.Context, orchestrator.ConversationID) (cli.Request, error) { return a.at, nil },
	})
}

// A consulted agent has only the tools for reading, sees only the directory of the project, and its tool calls are
// audited. For another agent, only an agent whose tools ductor can limit is asked.
func TestAConsultedAgentReadsAndIsAudited(t *testing.T) {
	s := &workRig{run: func(_ context.Context, _ cli.Request, emit func(cli.Event)) cli.Result {
		emit(cli.ToolStarted{ID: "1", Name: "Read", Title: "main.go"})
		emit(cli.ToolEnded{ID: "1"})
		return cli.Result{Text: "so"}
	}}
	e := s.open()
	at := cli.Request{Turn: "T", Dir: "/work", AddDirs: []string{"/uploads"},
		ToolLists: []cli.ToolList{{Denied: []string{"web"}}}}
	e.opts.SideRequest = func(context.Context, orchestrator.ConversationID) (cli.Request, error) { return at, nil }
	for _, agent := range []cli.Agent{"claude", "codex", "gemini", "copilot"} {
		if _, err := e.Ask(t.Context(), orchestrator.ConsultQuestion{Conversation: here,
			Model: orchestrator.ModelChoice{Agent: agent}, Text: "Why?", For: activeTurn(at)}); err != nil {
			t.Fatal(err)
		}
		req := s.ran[len(s.ran)-1]
		list, err := tools.For(agent, req.ToolLists...)
		for _, tool := range append(tools.Own(agent, []string{"shell", "edit"}), "Skill", "Task") {
			if list.Permits(tool) && (agent != "codex" || tool != "Skill" && tool != "Task") || err != nil ||
				len(req.AddDirs) > 0 {
				t.Errorf("%s has %s, or sees %v: %v", agent, tool, req.AddDirs, err)
			}
		}
	}
	if len(s.audited) != 4 {
		t.Fatalf("audited: %+v", s.audited)
	}
	if a := s.audited[0]; a.Turn != "T" || a.Conversation != here || a.Agent != "claude" || a.Tool != "Read" ||
		a.Title != "main.go" || a.Rule != "plan" || a.Call == s.audited[1].Call {
		t.Errorf("audited: %+v", a)
	}
	goose := orchestrator.ConsultQuestion{Conversation: here, Model: orchestrator.ModelChoice{Agent: "goose"},
		Text: "Why?", For: activeTurn(at)}
	if _, err := e.Ask(t.Context(), goose); !errors.Is(err, side.ErrNotHeld) {
		t.Errorf("an agent that is held to no list is asked for another one: %v", err)
	}
	goose.For = nil
	if _, err := e.Ask(t.Context(), goose); err != nil {
		t.Errorf("a user asks it: %v", err)
	}
	if req := s.ran[len(s.ran)-1]; req.Permission != cli.Plan || req.TextOnly {
		t.Errorf("it is asked in the mode %s, only for text: %v", req.Permission, req.TextOnly)
	}
}

const cutMark = "[… the beginning is left out …]\n"

var (
	here  = orchestrator.ConversationID{Chat: 1}
	model = orchestrator.ModelChoice{Agent: "codex", Model: "gpt"}
)

func TestAQuestionAndItsFollowUp(t *testing.T) {
	a, e := engine(func(_ context.Context, req cli.Request) cli.Result {
		return cli.Result{Text: " to " + req.Prompt, AgentSessionID: "own", Model: "gpt-5",
			Consumed: cli.Consumption{Usage: cli.Usage{Input: 7}, CostUSD: 0.5}}
	})
	first, err := e.Ask(t.Context(), orchestrator.ConsultQuestion{Conversation: here, Model: model, Text: "one"})
	if err != nil || first.Text != "to one" || first.Model.Model != "gpt-5" || first.Usage.Input != 7 ||
		first.CostUSD != 0.5 || first.Session != "current" {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := e.Ask(t.Context(), orchestrator.ConsultQuestion{Conversation: here, Text: "two"})
	if err != nil || second.Text != "to two" || second.Model.Agent != model.Agent || a.asked[1].Resume != "own" ||
		a.asked[1].Model != model.Model || a.asked[1].Session != a.asked[0].Session {
		t.Errorf("%+v, %v after %+v", second, err, a.asked[1])
	}
	if all := a.stored.entries; len(all) != 2 || all[1].Prompt.Text != "two" || all[1].Outcome.Text != "to two" ||
		!all[1].Delivered || all[1].ID != second.Entry {
		t.Errorf("entries: %+v", a.stored.entries)
	}
	if _, err := e.Ask(t.Context(), orchestrator.ConsultQuestion{Conversation: here, Session: "new",
		Text: "x"}); !errors.Is(err, orchestrator.ErrNoConsult) {
		t.Errorf("no model is named, and none was asked: %v", err)
	}
	a.at.Dir = "/elsewhere" // the agent's own session is not valid there
	third, err := e.Ask(t.Context(), orchestrator.ConsultQuestion{Conversation: here, Text: "three"})
	if err != nil || a.asked[2].Resume != "" || !strings.HasSuffix(a.asked[2].Prompt, "three") ||
		!strings.Contains(a.asked[2].Prompt, "Question to codex gpt: two\nAdvice of codex gpt-5: to two\n") {
		t.Errorf("%+v, %v: %+v", third, err, a.asked[2])
	}
}

// A user who deletes the session while a model is asked still gets the answer.
func TestAQuestionWhoseSessionIsDeleted(t *testing.T) {
	var forget func()
	a, e := engine(func(context.Context, cli.Request) cli.Result {
		forget()
		return cli.Result{Text: "so", AgentSessionID: "own"}
	})
	forget = func() { delete(a.stored.sessions, "current") }
	answer, err := e.Ask(t.Context(), orchestrator.ConsultQuestion{Conversation: here, Model: model, Text: "Why?"})
	if err != nil || answer.Text != "so" || len(a.stored.entries) > 0 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// If an agent is asked twice at the same moment in a session, the second question goes to a new session of the agent.
// That one is told the history, and it is not continued.
func TestTwoQuestionsAtTheSameMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := make(chan struct{})
		a, e := engine(func(_ context.Context, req cli.Request) cli.Result {
			if strings.HasSuffix(req.Prompt, "long") {
				<-wait
			}
			return cli.Result{Text: "yes", AgentSessionID: cli.AgentSessionID("of " + req.Prompt)}
		})
		ask := func(text string) {
			q := orchestrator.ConsultQuestion{Conversation: here, Model: model, Text: text}
			if _, err := e.Ask(t.Context(), q); err != nil {
				t.Error(err)
			}
		}
		ask("one")
		var all sync.WaitGroup
		all.Go(func() { ask("long") })
		synctest.Wait()
		ask("short")
		close(wait)
		all.Wait()
		ask("last")
		if a.asked[1].Resume != "of one" || a.asked[2].Resume != "" || a.asked[3].Resume != "of long" {
			t.Errorf("resumed: %q, %q, %q", a.asked[1].Resume, a.asked[2].Resume, a.asked[3].Resume)
		}
		if strings.Contains(a.asked[1].Prompt, "one") || strings.Count(a.asked[2].Prompt, ": one\n") != 1 ||
			strings.Count(a.asked[3].Prompt, ": short\n") != 1 || strings.Contains(a.asked[3].Prompt, ": long\n") {
			t.Errorf("told:\n%s\n\n%s\n\n%s", a.asked[1].Prompt, a.asked[2].Prompt, a.asked[3].Prompt)
		}
	})
}

func TestAFollowUpThatCannotBeResumed(t *testing.T) {
	_, e := engine(func(_ context.Context, req cli.Request) cli.Result {
		if req.Resume != "" {
			return cli.Result{Err: cli.Failf(cli.ResumeFailed, "codex", "it is gone")}
		}
		return cli.Result{Text: req.Prompt, AgentSessionID: "own"}
	})
	if _, err := e.Ask(t.Context(), orchestrator.ConsultQuestion{Conversation: here, Model: model,
		Text: "one"}); err != nil {
		t.Fatal(err)
	}
	second, err := e.Ask(t.Context(), orchestrator.ConsultQuestion{Conversation: here, Model: model, Text: "two"})
	if err != nil || strings.Count(second.Text, "Question to codex gpt: one\nAdvice of codex gpt: one\n") != 1 {
		t.Errorf("%+v, %v", second, err)
	}
}

// A question ends with its context, an abort, its time limit and the engine, and returns the matching error.
func TestAQuestionThatEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(e *Engine, cancel context.CancelFunc)
		want error
	}{
		"abort":  {func(e *Engine, _ context.CancelFunc) { e.Abort(here) }, cli.ErrAborted},
		"cancel": {func(_ *Engine, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"late":   {func(*Engine, context.CancelFunc) {}, side.ErrTooLate},
		"close": {func(e *Engine, _ context.CancelFunc) { _ = e.Close(context.Background()) },
			orchestrator.ErrShutdown},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, e := engine(func(ctx context.Context, _ cli.Request) cli.Result { <-ctx.Done(); return cli.Cut(ctx, "codex") })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			failed := make(chan error, 1)
			go func() {
				_, err := e.Ask(ctx, orchestrator.ConsultQuestion{Conversation: here, Model: model, Text: "x"})
				failed <- err
			}()
			synctest.Wait()
			c.end(e, cancel)
			if err := <-failed; !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			if e.Abort(here) != 0 || len(a.stored.entries) != 0 {
				t.Errorf("%s: it still asks, or keeps %v", name, a.stored.entries)
			}
		})
	}
}

func TestTooManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, e := engine(func(ctx context.Context, req cli.Request) cli.Result {
			<-ctx.Done()
			return cli.Cut(ctx, "codex")
		})
		var all sync.WaitGroup
		ask := func(in orchestrator.ConversationID) error {
			_, err := e.Ask(t.Context(), orchestrator.ConsultQuestion{Conversation: in, Model: model, Text: "x"})
			return err
		}
		for range mostAtOnce {
			all.Go(func() { _ = ask(here) })
		}
		all.Go(func() { _ = ask(orchestrator.ConversationID{Chat: 2}) })
		synctest.Wait()
		if err := ask(here); !errors.Is(err, orchestrator.ErrTooManyConsults) {
			t.Errorf("one more: %v", err)
		}
		if n := e.Abort(here); n != mostAtOnce {
			t.Errorf("%d questions end", n)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		all.Wait()
		if err := ask(here); !errors.Is(err, orchestrator.ErrShutdown) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// A question counts and can be aborted before a model is asked. It counts once, however many models are asked.
func TestAQuestionCountsFromItsBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, e := engine(func(ctx context.Context, req cli.Request) cli.Result {
			<-ctx.Done()
			return cli.Cut(ctx, "codex")
		})
		ctx, end := e.Begin(t.Context(), here)
		if e.Asking(here) != 1 || e.Abort(here) != 1 {
			t.Error("a question that was begun does not count")
		}
		if _, err := e.Ask(ctx, orchestrator.ConsultQuestion{Conversation: here, Model: model,
			Text: "x"}); !errors.Is(context.Cause(ctx), cli.ErrAborted) || !errors.Is(err, cli.ErrAborted) {
			t.Errorf("a question that was ended is asked: %v", err)
		}
		end()
		if ctx, end = e.Begin(t.Context(), here); e.Asking(here) != 1 {
			t.Error("a question counts after its end")
		}
		var group sync.WaitGroup
		group.Go(func() {
			_, err := e.Group(ctx, orchestrator.GroupQuestion{
				ConsultQuestion: orchestrator.ConsultQuestion{Conversation: here, Text: "x"},
				Panel:           []orchestrator.ModelChoice{model, model, model}, Rounds: 1},
				func(orchestrator.GroupStep) {})
			if !errors.Is(err, cli.ErrAborted) {
				t.Errorf("a group that was ended: %v", err)
			}
		})
		synctest.Wait()
		if n := e.Abort(here); n != 1 {
			t.Errorf("a group counts as %d questions", n)
		}
		group.Wait()
		end()
		if e.Asking(here) != 0 {
			t.Error("a group counts after its end")
		}
	})
}

// An agent that never stops writing is killed, and its answer is shortened.
func TestAnEndlessAnswer(t *testing.T) {
	ended := false
	_, e := engine(nil)
	endless := &endless{ended: &ended}
	e.opts.Side.Gateway = endless
	a, err := e.Ask(t.Context(), orchestrator.ConsultQuestion{Conversation: here, Model: model, Text: "x"})
	if err != nil || !ended || len(a.Whole) < side.MostResult || !strings.HasPrefix(a.Whole, "on and on") ||
		len(a.Text) > side.MostResult+len(cutMark) {
		t.Errorf("%v, ended %v, %d bytes", err, ended, len(a.Text))
	}
}

type endless struct{ ended *bool }

func (endless) Release(cli.Conversation) {}
func (endless) Settled(cli.TurnID)       {}
func (s endless) Run(ctx context.Context, _ cli.Agent, _ cli.Request, emit func(cli.Event)) cli.Result {
	var b strings.Builder
	for ctx.Err() == nil {
		part := strings.Repeat("on and on ", 1000)
		b.WriteString(part)
		emit(cli.TextDelta{Text: part})
	}
	*s.ended = true
	r := cli.Cut(ctx, "codex")
	r.Text = b.String()
	return r
}

func TestLongResultsAreShortened(t *testing.T) {
	long := strings.Repeat("ä", 500)
	failing := func(context.Context, cli.Request) cli.Result {
		return cli.Result{Err: cli.Failf(cli.Overloaded, "cheap", "")}
	}
	for name, c := range map[string]struct {
		text  string
		model cli.Agent
		reply func(context.Context, cli.Request) cli.Result
		want  string
		short bool
	}{
		"short": {"all of it <SUMMARY>part</SUMMARY>", "", nil, "all of it <SUMMARY>part</SUMMARY>", false},
		"a block": {"<SUMMARY>first</SUMMARY>" + long + "<SUMMARY>\n the last \n</SUMMARY>", "cheap", failing,
			"the last", true},
		"empty block": {long + "<SUMMARY> </SUMMARY>end", "", nil,
			cutMark + long[:2*(100-len("<SUMMARY> </SUMMARY>end")-len([]rune(cutMark)))] + "<SUMMARY> </SUMMARY>end",
			true},
		"a model": {long, "cheap", func(context.Context, cli.Request) cli.Result { return cli.Result{Text: "in short"} }, "in short", true},
		"a bad model": {long + "the end", "cheap", failing,
			cutMark + long[:2*(100-len("the end")-len([]rune(cutMark)))] + "the end", true},
		"without both": {long + "the end", "", nil,
			cutMark + long[:2*(100-len("the end")-len([]rune(cutMark)))] + "the end", true},
	} {
		a, e := engine(c.reply)
		e.opts.Shorten.Model.Agent, e.opts.Shorten.Wait = c.model, time.Minute
		got, short := e.opts.Shorten.Shorten(t.Context(), a.at, c.text, 100)
		if got != c.want || short != c.short {
			t.Errorf("%s: %v %q", name, short, got)
		}
	}
}

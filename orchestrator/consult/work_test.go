package consult

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/side"
)

// workRig is where agents work: run scripts the agent, and decide scripts the users.
type workRig struct {
	*agents
	run    func(ctx context.Context, req cli.Request, emit func(cli.Event)) cli.Result
	decide func(ctx context.Context, h orchestrator.Helper, asked cli.Event) (cli.Decision, error)
	helped orchestrator.Helper

	mu      sync.Mutex
	waits   map[cli.ApprovalID]chan cli.Decision
	audited []orchestrator.AuditEntry
	ran     []cli.Request
}

func (s *workRig) Run(ctx context.Context, _ cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	s.mu.Lock()
	s.ran = append(s.ran, req)
	s.mu.Unlock()
	return s.run(ctx, req, emit)
}

// ask sends a request of the agent and waits for the decision.
func (s *workRig) ask(ctx context.Context, emit func(cli.Event), ev cli.ApprovalAsked) cli.Decision {
	decided := make(chan cli.Decision, 1)
	s.mu.Lock()
	s.waits[ev.ID] = decided
	s.mu.Unlock()
	emit(ev)
	select {
	case d := <-decided:
		return d
	case <-ctx.Done():
		return cli.Decision{Reason: "given up"}
	}
}

// open creates an engine whose agents work in s.
func (s *workRig) open() *Engine {
	s.agents, s.waits = newAgents(), map[cli.ApprovalID]chan cli.Decision{}
	client := side.Client{Gateway: s, NewID: s.newID}
	return New(Options{
		CheckDir: func(string) error { return nil },
		Side:     client, Store: s.stored, Session: s.stored.session, Names: s.stored,
		Budget: func() int { return 1000 }, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Shorten: side.Shortener{Side: client, Logger: slog.New(slog.DiscardHandler)},
		Works: Works{
			AskFor: func(ctx context.Context, turn cli.TurnID, h orchestrator.Helper, asked cli.Event) (cli.Decision, error) {
				s.helped = h
				return s.decide(ctx, h, asked)
			},
			Decide: func(_ context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.waits[id] <- d
				return nil
			},
			Audit: func(_ context.Context, entries ...orchestrator.AuditEntry) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.audited = append(s.audited, entries...)
				return nil
			},
		},
	})
}

// activeTurn returns the running turn of a request, whose agent asks a question.
func activeTurn(of cli.Request) *orchestrator.ActiveTurn {
	return &orchestrator.ActiveTurn{Turn: orchestrator.Turn{ID: of.Turn}, Request: of}
}

// task returns work for a turn with the rights of the request of.
func task(life context.Context, of cli.Request, text string) orchestrator.Work {
	turn := orchestrator.Turn{ID: "T", Agent: "claude", Prompt: orchestrator.Prompt{Conversation: here, Person: 7}}
	return orchestrator.Work{
		ConsultQuestion: orchestrator.ConsultQuestion{Model: model, Text: text, Wait: time.Minute,
			For: &orchestrator.ActiveTurn{Turn: turn, Request: of, Life: life, Hide: func(s string) string { return s },
				Help: func(ctx context.Context) (context.Context, func(), error) { return ctx, func() {}, nil }}},
		Tools: []cli.ToolList{{Denied: []string{"web"}}},
	}
}

// A model that an agent asks answers where that agent works, and not where the next turn of the conversation would run:
// an agent in a sandbox could leave the sandbox that way.
func TestAModelAnswersWhereTheTurnRuns(t *testing.T) {
	s := &workRig{run: func(context.Context, cli.Request, func(cli.Event)) cli.Result {
		return cli.Result{Text: "so"}
	}}
	e := s.open()
	e.opts.SideRequest = func(context.Context, orchestrator.ConversationID) (cli.Request, error) {
		return cli.Request{Dir: "/private"}, nil
	}
	of := cli.Request{Sandbox: "box", Dir: "/work", AddDirs: []string{"/more"}, Permission: cli.Bypass, Attended: true,
		AllowedTools: []string{"shell"}, ToolLists: []cli.ToolList{{Denied: []string{"web"}}},
		Servers: []cli.ToolServer{{Name: "ductor"}}, Accounts: cli.Accounts{"claude": "work"}}
	group := which(2)
	of.Turn = "T"
	group.For = activeTurn(of)
	if _, err := e.Group(t.Context(), group, func(orchestrator.GroupStep) {}); err != nil {
		t.Fatal(err)
	}
	one := group.ConsultQuestion
	one.Model = panel[0]
	if _, err := e.Ask(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if n := len(s.ran); n != 2*len(panel)+2 {
		t.Errorf("%d models were asked", n)
	}
	for _, got := range s.ran {
		if got.Sandbox != "box" || got.Dir != "/work" || len(got.AddDirs)+len(got.AllowedTools)+len(got.Servers) > 0 ||
			got.Permission != cli.Plan || got.Attended || len(got.ToolLists) != 2 || got.Accounts["claude"] != "work" {
			t.Errorf("a model answers as %+v", got)
		}
	}
	user := orchestrator.ConsultQuestion{Conversation: here, Model: panel[0], Text: "Why?"}
	if _, err := e.Ask(t.Context(), user); err != nil || s.ran[len(s.ran)-1].Dir != "/private" {
		t.Errorf("a user's question: %v, %+v", err, s.ran[len(s.ran)-1])
	}
}

func TestAnAgentWorksWithTheRightsOfATurn(t *testing.T) {
	servers := []cli.ToolServer{{Name: "ductor"}}
	for name, c := range map[string]struct {
		has, gets cli.Request
	}{
		"ask": {cli.Request{Permission: cli.Ask, Attended: true},
			cli.Request{Permission: cli.Ask, Attended: true}},
		"accept edits": {cli.Request{Permission: cli.AcceptEdits, Attended: true},
			cli.Request{Permission: cli.AcceptEdits, Attended: true}},
		"bypass for ever": {cli.Request{Permission: cli.Bypass}, cli.Request{Permission: cli.Bypass}},
		"bypass for a while": {cli.Request{Permission: cli.Bypass, Attended: true},
			cli.Request{Permission: cli.Ask, Attended: true}},
	} {
		s := &workRig{run: func(context.Context, cli.Request, func(cli.Event)) cli.Result {
			return cli.Result{Text: "done", AgentSessionID: "own"}
		}}
		e := s.open()
		c.has.Sandbox, c.has.Dir, c.has.AddDirs, c.has.Servers = "box", "/work", []string{"/more"}, servers
		c.has.ToolLists, c.has.AllowedTools = []cli.ToolList{{Denied: []string{"shell"}}}, []string{"read"}
		first, err := e.Work(t.Context(), task(t.Context(), c.has, "do it"))
		if err != nil || first.Text != "done" {
			t.Fatalf("%s: %+v, %v", name, first, err)
		}
		got := s.ran[0]
		if got.Permission != c.gets.Permission || got.Attended != c.gets.Attended || len(got.Servers) != 0 ||
			got.Project != cli.WithoutProject ||
			got.Sandbox != "box" || got.Dir != "/work" || len(got.AddDirs) != 1 || len(got.AllowedTools) != 1 ||
			len(got.ToolLists) != 2 || got.Turn == "T" {
			t.Errorf("%s: it runs as %+v", name, got)
		}
		on := task(t.Context(), c.has, "go on")
		on.Session, on.Model = string(first.Session), orchestrator.ModelChoice{}
		if _, err := e.Work(t.Context(), on); err != nil || s.ran[1].Resume != "own" {
			t.Errorf("%s: going on: %v, %+v", name, err, s.ran[1])
		}
	}
}

func TestUsersDecideWhatAnAgentAsksThatWorksForATurn(t *testing.T) {
	s := &workRig{decide: func(_ context.Context, _ orchestrator.Helper, asked cli.Event) (cli.Decision, error) {
		return cli.Decision{Allow: asked.(cli.ApprovalAsked).Title == "touch a"}, nil
	}}
	var first, second cli.Decision
	s.run = func(ctx context.Context, _ cli.Request, emit func(cli.Event)) cli.Result {
		emit(cli.ToolStarted{ID: "1", Name: "shell", Title: "touch a"})
		first = s.ask(ctx, emit, cli.ApprovalAsked{ID: "1", Title: "touch a", Started: "1"})
		emit(cli.ToolEnded{ID: "1"})
		second = s.ask(ctx, emit, cli.ApprovalAsked{ID: "2", Title: "rm -r /"})
		return cli.Result{Text: "done"}
	}
	if _, err := s.open().Work(t.Context(), task(t.Context(), cli.Request{Permission: cli.Ask, Attended: true},
		"do it")); err != nil || !first.Allow || second.Allow {
		t.Errorf("%+v, %+v, %v", first, second, err)
	}
	if s.helped.Agent != "codex" || len(s.helped.ToolLists) != 1 {
		t.Errorf("asked for %+v", s.helped)
	}
	if len(s.audited) != 1 || s.audited[0].Turn != "T" || s.audited[0].Agent != "codex" ||
		s.audited[0].Title != "touch a" || s.audited[0].Conversation != here {
		t.Errorf("audited: %+v", s.audited)
	}
	s.decide = func(context.Context, orchestrator.Helper, cli.Event) (cli.Decision, error) {
		return cli.Decision{Allow: true}, errors.New("the disk is full")
	}
	if _, err := s.open().Work(t.Context(), task(t.Context(), cli.Request{}, "do it")); err != nil || first.Allow {
		t.Errorf("where no user could be asked: %+v, %v", first, err)
	}
}

// Work ends with its call, its turn, an abort and its time limit. Requests that its agent makes then are withdrawn.
func TestWorkThatEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(e *Engine, call, turn context.CancelFunc)
		want error
		// of the entry: work is stored in every outcome
		state orchestrator.TurnState
	}{
		"call": {func(_ *Engine, call, _ context.CancelFunc) { call() }, context.Canceled, orchestrator.TurnAborted},
		"turn": {func(_ *Engine, _, turn context.CancelFunc) { turn() }, context.Canceled, orchestrator.TurnAborted},
		"abort": {func(e *Engine, _, _ context.CancelFunc) { e.Abort(here) }, cli.ErrAborted,
			orchestrator.TurnAborted},
		"late": {func(*Engine, context.CancelFunc, context.CancelFunc) {}, side.ErrTooLate, orchestrator.TurnFailed},
	} {
		synctest.Test(t, func(t *testing.T) {
			withdrawn := false
			s := &workRig{decide: func(ctx context.Context, _ orchestrator.Helper, _ cli.Event) (cli.Decision, error) {
				<-ctx.Done()
				withdrawn = true
				return cli.Decision{}, ctx.Err()
			}}
			s.run = func(ctx context.Context, _ cli.Request, emit func(cli.Event)) cli.Result {
				s.ask(ctx, emit, cli.ApprovalAsked{ID: "1", Title: "touch a"})
				return cli.Cut(ctx, "codex")
			}
			e := s.open()
			ctx, call := context.WithCancel(t.Context())
			defer call()
			life, turn := context.WithCancel(t.Context())
			defer turn()
			done := make(chan error, 1)
			go func() { _, err := e.Work(ctx, task(life, cli.Request{}, "do it")); done <- err }()
			synctest.Wait()
			c.end(e, call, turn)
			if err := <-done; !errors.Is(err, c.want) || !withdrawn {
				t.Errorf("%s: %v, withdrawn %v", name, err, withdrawn)
			}
			all := s.stored.entries
			if len(all) != 1 || all[0].Entry.Kind != orchestrator.WorkEntry || all[0].Entry.Asks != "T" ||
				all[0].State != c.state || all[0].Outcome.Failure == "" {
				t.Errorf("%s: the entries are %+v", name, all)
			}
		})
	}
}

package bot_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot"
	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// askingAgent is an agent that asks in every turn, and answers with the decisions. It survives restarts of ductor: it
// repeats an undecided request to the process that resumes its turn.
type askingAgent struct {
	echo
	asks  []cli.Event
	steer func(text string) error // nil: it accepts nothing while it works

	mu    sync.Mutex
	waits map[cli.ApprovalID]chan cli.Decision
	told  []string
	given []string      // the prompts
	gone  chan struct{} // closed when it must give up
}

func agentAsking(evs ...cli.Event) *askingAgent {
	return &askingAgent{asks: evs, waits: make(map[cli.ApprovalID]chan cli.Decision)}
}

func (p *askingAgent) Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	if err := req.Started(ctx, cli.Start{Run: "run"}); err != nil {
		return cli.StartResult(ctx, agent, err)
	}
	p.mu.Lock()
	p.given = append(p.given, req.Prompt)
	p.mu.Unlock()
	emit(cli.SessionStarted{AgentSessionID: "native"})
	return p.ask(ctx, agent, req.Dir, emit, nil)
}

func (p *askingAgent) Resume(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	emit(cli.SessionStarted{AgentSessionID: "native"})
	return p.ask(ctx, agent, req.Dir, emit, func() { emit(cli.CaughtUp{}) })
}

func (p *askingAgent) Survey(_ context.Context, open []cli.OpenTurn) (map[cli.TurnID]cli.Remains, error) {
	out := make(map[cli.TurnID]cli.Remains)
	for _, t := range open {
		out[t.Turn] = cli.RemainsRun
	}
	return out, nil
}

func (p *askingAgent) ask(ctx context.Context, agent cli.Agent, dir string, emit func(cli.Event),
	then func()) cli.Result {
	var waits []chan cli.Decision
	for _, ev := range p.asks {
		id := idOf(ev)
		p.mu.Lock()
		wait, again := p.waits[id]
		if !again {
			wait = make(chan cli.Decision, 1)
			p.waits[id] = wait
		}
		decided := again && wait == nil
		p.mu.Unlock()
		if decided {
			continue
		}
		waits = append(waits, wait)
		emit(clitest.WithEffect(ev, dir))
	}
	if then != nil {
		then()
	}
	for i, wait := range waits {
		select {
		case <-wait:
		case <-p.gone:
			emit(cli.ApprovalWithdrawn{ID: idOf(p.asks[i])})
		case <-ctx.Done():
			return cli.Cut(ctx, agent)
		}
	}
	r := cli.Result{Text: "The work is done."}
	emit(cli.TextDelta{Text: r.Text})
	emit(r)
	return r
}

func idOf(ev cli.Event) cli.ApprovalID {
	if a, ok := ev.(cli.ApprovalAsked); ok {
		return a.ID
	}
	return ev.(cli.QuestionAsked).ID
}

func (p *askingAgent) Decide(_ context.Context, _ cli.TurnID, id cli.ApprovalID, d cli.Decision) error {
	if p.life != nil && p.life.isDead() {
		return errDead
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := p.waits[id]
	if wait == nil {
		return cli.ErrNotAsked
	}
	p.waits[id] = nil
	p.told = append(p.told, strings.TrimSpace(fmt.Sprintf("%s %v %s%v", id, d.Allow, d.Reason, d.Answers)))
	wait <- d
	return nil
}

func (p *askingAgent) Steer(_ context.Context, _ cli.TurnID, req cli.Request) error {
	if p.steer == nil {
		return fmt.Errorf("steer: %w", errUnsupported)
	}
	return p.steer(req.Prompt)
}

// prompts returns the agent's prompts, in order.
func (p *askingAgent) prompts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.given)
}

func (p *askingAgent) toldAll() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.told)
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bash returns a request to run a command.
func bash(id cli.ApprovalID, command string) cli.ApprovalAsked {
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return cli.ApprovalAsked{ID: id, Tool: "Bash", Title: command, Input: input}
}

// approvalRig is a whole ductor whose agent asks, in a simulated Telegram.
type approvalRig struct {
	*testing.T
	*botRig
	agent   *askingAgent
	gateway orchestrator.Gateway
	db      *store.DB
	now     *ductor
	in      *telegram.Chat
	who     *telegram.Person
	bob     *telegram.Person // may decide too, in groups
	opts    []telegram.SendOption
}

// withApprovals runs a test with an agent that asks.
func withApprovals(t *testing.T, agent *askingAgent, test func(s *approvalRig), change ...func(h *botRig)) {
	t.Helper()
	withGateway(t, agent, agent, test, change...)
}

// withGateway is withApprovals with the agent behind a gateway.
func withGateway(
	t *testing.T, agent *askingAgent, gateway orchestrator.Gateway,
	test func(s *approvalRig), change ...func(h *botRig),
) {
	t.Helper()
	withDatabase(t, func(t *testing.T, h *botRig, db *store.DB) {
		h.opts.Transport = bot.OnWire(h.opts.Transport)
		h.opts.Allow.Users = orchestrator.Roster{7: orchestrator.RoleOwner, 8: orchestrator.RoleUser, 9: orchestrator.RoleUser}
		for _, f := range change {
			f(h)
		}
		s := &approvalRig{T: t, botRig: h, agent: agent, gateway: gateway, db: db, in: h.chat, who: h.ann, bob: h.srv.Person(8, "Bob")}
		agent.gone = make(chan struct{}) // belongs to this bubble
		s.now = startDuctor(t, h, db, gateway)
		defer func() {
			if _, err := s.now.desk.Stop(context.Background(), orchestrator.Press{Conversation: s.conv(), Role: orchestrator.RoleUser}, func(*orchestrator.Stopping) {},
				// stop turns that would wait forever
				func(orchestrator.AbortReport) orchestrator.Handled { return orchestrator.Handled{} }); err != nil {
				t.Errorf("abort: %v", err)
			}
			if err := s.now.stop(enough); err != nil {
				t.Errorf("ductor ended with %v", err)
			}
			if t.Failed() {
				t.Logf("the agent was told %q\n%s\n%s", agent.toldAll(), s.in.Transcript(), h.log)
			}
		}()
		test(s)
	})
}

// inForum moves the test into a topic of a group.
func (s *approvalRig) inForum() {
	s.in = s.srv.Forum(-100, "Team")
	s.who.SetRank(s.in, telegram.Member)
	s.bob.SetRank(s.in, telegram.Member)
}

func (s *approvalRig) begin() telegram.Message { return s.say("go") }

func (s *approvalRig) say(text string, opts ...telegram.SendOption) telegram.Message {
	return s.who.Send(s.in, text, append(slices.Clone(s.opts), opts...)...)
}

// settle waits some seconds for everything that happens without further input.
func (s *approvalRig) settle() {
	synctest.Wait()
	time.Sleep(10 * time.Second)
	synctest.Wait()
}

// card returns the message that shows an approval.
func (s *approvalRig) card(part string) telegram.Message {
	s.Helper()
	s.settle()
	m, ok := s.in.View().Find(part)
	if !ok {
		s.Fatalf("the chat does not show %q\n%s\n%s", part, s.in.Transcript(), s.log)
	}
	return m
}

func (s *approvalRig) press(m telegram.Message, button string) string {
	s.Helper()
	return s.pressBy(s.who, m, button)
}

func (s *approvalRig) pressBy(p *telegram.Person, m telegram.Message, button string) string {
	s.Helper()
	a, err := p.Press(s.Context(), m, s.data(m, button))
	if err != nil {
		s.Fatalf("%v\n%s\n%s", err, s.in.Transcript(), s.log)
	}
	s.settle()
	return a.Text
}

// data returns the data of a button.
func (s *approvalRig) data(m telegram.Message, button string) string {
	s.Helper()
	for _, row := range m.Keyboard {
		for _, b := range row {
			if strings.Contains(b.Text, button) {
				return b.Data
			}
		}
	}
	s.Fatalf("%q has no button %q", m.Text, button)
	return ""
}

// tap presses a button of the message m. The press reached Telegram while the message had the button, so it gets to the
// checks of its handler.
func (s *approvalRig) tap(p *telegram.Person, m telegram.Message, data string) string {
	s.Helper()
	return s.answerTo(p.TapEarly(m, data), data)
}

func (s *approvalRig) answerTo(tap *telegram.Tap, data string) string {
	s.Helper()
	a, err := tap.Answer(s.Context())
	if err != nil {
		s.Fatalf("press %q: %v\n%s", data, err, s.log)
	}
	s.settle()
	return a.Text
}

func (s *approvalRig) wantTold(want ...string) {
	s.Helper()
	s.settle()
	if got := s.agent.toldAll(); !slices.Equal(got, want) {
		s.Errorf("the agent was told %q, want %q", got, want)
	}
}

// wantShown checks the messages of the chat, and that no finished one has buttons.
func (s *approvalRig) wantShown(parts ...string) {
	s.Helper()
	s.settle()
	for _, part := range parts {
		m, ok := s.in.View().Find(part)
		if !ok {
			s.Errorf("the chat does not show %q", part)
		}
		if len(m.Keyboard) > 0 {
			s.Errorf("%q has buttons %v", m.Text, m.Keyboard)
		}
	}
}

func (s *approvalRig) wantAnswer(got, part string) {
	s.Helper()
	if !strings.Contains(got, part) || part == "" && got != "" {
		s.Errorf("the press is answered by %q, want %q", got, part)
	}
}

func (s *approvalRig) rules() []string {
	s.Helper()
	p, err := s.now.desk.Permissions(s.Context(), s.conv())
	must(s, err)
	var out []string
	for _, r := range p.Rules {
		out = append(out, r.Text)
	}
	return out
}

func (s *approvalRig) conv() orchestrator.ConversationID {
	return orchestrator.ConversationID{Chat: int64(s.in.ID())}
}

// mention marks "@ductor_bot" at the start of a text as a mention.
func mention() telegram.SendOption {
	return telegram.WithEntities(telegram.Entity{Type: "mention", Length: len("@ductor_bot")})
}

// restart stops ductor and starts it again with the same state. The agent continues in the meantime.
func (s *approvalRig) restart() {
	s.Helper()
	s.restartAfter(func() {})
}

// restartAfter is restart with something that happens while ductor is down.
func (s *approvalRig) restartAfter(meanwhile func()) {
	s.Helper()
	last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s.now.end()
	must(s, <-s.now.done)
	s.now.desk.Detach(last)
	must(s, s.now.bot.Close(last))
	meanwhile()
	s.now = startDuctor(s.T, s.botRig, s.db, s.gateway)
	s.settle()
}

// session returns the current session.
func (s *approvalRig) session() orchestrator.SessionID {
	s.Helper()
	st, err := s.now.desk.Status(s.Context(), s.conv())
	must(s, err)
	return st.Session.ID
}

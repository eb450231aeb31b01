package conversation_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// fate is the outcome of a prompt.
type fate string

const (
	answered    fate = "it is answered"
	notStarted  fate = "the agent does not start"
	limited     fate = "the agent accepts it, and has reached its limit"
	halfway     fate = "the agent fails in its answer"
	stopped     fate = "the user stops it before the agent accepted it"
	stoppedLate fate = "the user stops it after that"
	restarted   fate = "ductor ends before the agent accepted it"
	forgotten   fate = "the agent lost its session, and answers in another"
	begunAnew   fate = "the agent lost its session, and answers in another of the same id"
	repeated    fate = "the agent accepts it, is overloaded, and is asked once more"
)

// readers are three agents that remember everything they read. The test compares their memories with the session.
type readers struct {
	*house
	t        testing.TB
	path     string
	budget   int
	fate     fate
	asked    chan struct{} // an agent has a prompt and waits
	known    map[cli.AgentSessionID]string
	leftOut  map[cli.AgentSessionID]int // as the chat reports
	n        int                        // counter for sessions, prompts and answers
	last     cli.TurnID
	shown    handed
	accepted func()             // compares the knowledge of the agent that accepted the last prompt
	read     string             // text that the agents of the last turn read
	lost     cli.AgentSessionID // the ID for the next session
	before   cli.TurnID         // the last turn whose agent was overloaded
	faults   []string
}

// handed is a chat that remembers the last HandedOver event.
type handed struct {
	*chat
	mu sync.Mutex
	ev cli.HandedOver
}

type handedCard struct {
	orchestrator.Card
	of *handed
}

func (h *handed) Card(t orchestrator.Turn) orchestrator.Card { return handedCard{h.chat.Card(t), h} }

func (c handedCard) Show(ev cli.Event) {
	if ev, ok := ev.(cli.HandedOver); ok {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.of.ev = ev
	}
	c.Card.Show(ev)
}

// take returns the history that was handed over since the last call.
func (h *handed) take() cli.HandedOver {
	h.mu.Lock()
	defer h.mu.Unlock()
	ev := h.ev
	h.ev = cli.HandedOver{}
	return ev
}

// start opens ductor over the database of the previous process.
func (r *readers) start() {
	r.house = openAt(r.t, r.path, func(o *conversation.Options) {
		r.shown.chat = o.Chat.(*chat)
		o.Chat, o.Now, o.Retries, o.RetryAfter = &r.shown, time.Now, 1, time.Millisecond
		o.Sessions.HandoffTokens = r.budget
	})
	r.agent.reply, r.agent.instead.agent = r.reply, "gemini"
	if err := r.Recover(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *readers) stop() {
	r.shut()
	r.db.Close()
}

func (r *readers) name(kind string) string {
	r.n++
	return fmt.Sprintf("%s%d;", kind, r.n)
}

// reply is the agents' side of a turn.
func (r *readers) reply(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	if r.fate == forgotten && req.Resume != "" {
		return cli.Result{Err: cli.Failf(cli.ResumeFailed, who, "")}
	}
	if r.fate == begunAnew && req.Resume != "" {
		r.lost, r.known[req.Resume], r.leftOut[req.Resume] = req.Resume, "", 0
		return cli.Result{Err: cli.Failf(cli.ResumeFailed, who, "")}
	}
	id := cmp.Or(req.Resume, r.lost)
	r.lost = ""
	if id == "" {
		id = cli.AgentSessionID(r.name(string(who)))
	}
	emit(cli.SessionStarted{AgentSessionID: id})
	switch r.fate {
	case notStarted:
		return cli.Result{Err: cli.Failf(cli.NetworkDown, who, "")}
	case stopped, restarted:
		return r.wait(ctx, who)
	}
	if r.before != req.Turn { // otherwise the first attempt reported the omitted turns
		r.shown.take()
	}
	emit(cli.PromptAccepted{})
	r.known[id] += req.Prompt
	r.read += req.Prompt
	r.accepted = func() { r.compare(id, req) }
	switch {
	case r.fate == repeated && r.before != req.Turn:
		r.before = req.Turn
		return cli.Result{Err: cli.Failf(cli.Overloaded, who, "")}
	case r.fate == limited:
		return cli.Result{Err: cli.Failf(cli.LimitReached, who, "")}
	case r.fate == stoppedLate:
		return r.wait(ctx, who)
	}
	result := cli.Result{Text: r.name("answer"), AgentSessionID: id}
	r.known[id] += result.Text
	emit(cli.TextDelta{Text: result.Text})
	if r.fate == halfway {
		result.Err = cli.Failf(cli.NetworkDown, who, "")
	}
	return result
}

func (r *readers) wait(ctx context.Context, who cli.Agent) cli.Result {
	r.asked <- struct{}{}
	<-ctx.Done()
	return cli.Cut(ctx, who)
}

// compare reports answers that an agent which accepted a prompt does not know, or knows twice.
func (r *readers) compare(id cli.AgentSessionID, req cli.Request) {
	fault := func(format string, args ...any) { r.faults = append(r.faults, fmt.Sprintf(format, args...)) }
	turns, err := r.db.History(context.Background(), orchestrator.SessionID(req.Session), 100)
	if err != nil {
		fault("%v", err)
	}
	missing := 0
	for _, t := range turns {
		switch n := strings.Count(r.known[id], t.Outcome.Text); {
		case t.Outcome.Text == "":
		case n == 0:
			missing++
		case n > 1:
			fault("%s knows %s %d times", id, t.Outcome.Text, n)
		}
	}
	told := r.shown.take()
	r.leftOut[id] += told.LeftOut
	if told.Shortened {
		r.leftOut[id]++
	}
	if missing > r.leftOut[id] {
		fault("%s does not know %d answers, and the chat says that %d are left out:\n%s", id, missing, r.leftOut[id], r.known[id])
	}
	prompt := lastLine(req.Prompt)
	if n := strings.Count(req.Prompt, prompt); n != 1 {
		fault("%s is in a prompt %d times: %s", prompt, n, req.Prompt)
	}
	works := r.fate != limited && r.fate != stoppedLate
	if !works && told.Turns > 0 && told.LeftOut == 0 && !told.Shortened {
		fault("the chat says that %d turns were handed over to an agent that did nothing", told.Turns)
	}
	if works && told.Turns == 0 && strings.Contains(r.read, "User: ") {
		fault("the chat does not say that turns were handed over: %s", r.read)
	}
}

// turn runs a prompt to its end: a new one for an agent, or the last prompt again if it did not succeed.
func (r *readers) turn(t *rapid.T, again bool, who cli.Agent) {
	by := orchestrator.Press{Conversation: here, Person: 1, Role: orchestrator.RoleUser}
	var receipt orchestrator.Receipt
	last, err := r.db.Turn(context.Background(), r.last)
	switch {
	case again && err == nil && last.State != orchestrator.TurnDone:
		what := orchestrator.ActionAgain
		if last.Outcome.Recovery.Offers(orchestrator.ActionHandOff) {
			what = orchestrator.ActionHandOff
		}
		receipt, err = r.Choose(context.Background(), r.last, what, by)
	default:
		receipt, err = r.Submit(context.Background(), orchestrator.Prompt{Conversation: here, Person: 1, Text: r.name("prompt")}, orchestrator.Wants{Agent: who})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.last = receipt.Turn
	switch r.fate {
	case stopped, stoppedLate:
		<-r.asked
		if _, err := r.Abort(context.Background(), here); err != nil {
			t.Fatal(err)
		}
	case restarted:
		<-r.asked
		r.stop()
		r.start()
	}
	r.awaitDelivered(t)
	if r.accepted != nil {
		r.accepted()
		r.accepted, r.read = nil, ""
	}
}

func (r *readers) awaitDelivered(t *rapid.T) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Microsecond) {
		if now, err := r.db.Turn(context.Background(), r.last); err == nil && now.Delivered {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the turn does not end; the chat says %q", r.chat.log())
		}
	}
}

// TestEveryAgentIsToldEverythingOnce: whatever happens to prompts to three agents of one session, an agent that accepts
// a prompt knows each answer of the session exactly once, or the chat has shown how many were left out.
func TestEveryAgentIsToldEverythingOnce(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("8"); err != nil {
			t.Fatal(err)
		}
		defer f.Value.Set(f.DefValue) //nolint:errcheck // it was its value
	}
	rapid.Check(t, func(rt *rapid.T) {
		r := &readers{
			t: t, path: filepath.Join(t.TempDir(), "ductor.db"), asked: make(chan struct{}), known: map[cli.AgentSessionID]string{},
			leftOut: map[cli.AgentSessionID]int{}, budget: rapid.SampledFrom([]int{8000, 120}).Draw(rt, "budget"),
		}
		r.start()
		defer func() { r.stop() }()
		for range rapid.IntRange(2, 10).Draw(rt, "turns") {
			r.fate = rapid.SampledFrom([]fate{answered, answered, answered, notStarted, limited, halfway, stopped, stoppedLate, restarted, forgotten, begunAnew, repeated}).Draw(rt, "fate")
			r.turn(rt, rapid.Bool().Draw(rt, "again"), rapid.SampledFrom([]cli.Agent{"claude", "codex", "gemini"}).Draw(rt, "agent"))
			if len(r.faults) > 0 {
				rt.Fatal(strings.Join(r.faults, "\n"))
			}
		}
	})
}

// If an agent lost a session and started it again under the same ID, ductor continues it and does not repeat the whole
// history. The chat reports the lost session only if the agent had answered there.
func TestASessionBegunAnewUnderItsIDIsContinued(t *testing.T) {
	h := openAt(t, newPath(t), nil)
	var asked []cli.Request
	lost := true
	h.agent.reply = func(_ context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if lost && req.Resume != "" {
			lost = false
			return cli.Result{Err: cli.Failf(cli.ResumeFailed, who, "")}
		}
		asked = append(asked, req)
		emit(cli.SessionStarted{AgentSessionID: "x"})
		if len(asked) == 1 {
			return cli.Result{Err: cli.Failf(cli.NetworkDown, who, "")}
		}
		emit(cli.PromptAccepted{})
		return cli.Result{Text: "it is so"}
	}
	for i, prompt := range []string{"one", "two", "three", "four"} {
		lost = lost || i == 3
		h.submit(t, here, prompt)
		h.await(t, map[bool]string{true: "failed ", false: "done "}[i == 0]+prompt)
	}
	said := strings.Join(h.chat.log(), "\n")
	if n := strings.Count(said, "lost this session"); n != 1 {
		t.Errorf("the chat says %d times that a session is lost: %s", n, said)
	}
	for i, want := range []struct {
		resume cli.AgentSessionID
		told   int
	}{{"", 0}, {"", 1}, {"x", 0}, {"", 3}} {
		if got := asked[i]; got.Resume != want.resume || strings.Count(got.Prompt, "User: ") != want.told {
			t.Errorf("prompt %d resumes %q and says %q", i+1, got.Resume, got.Prompt)
		}
	}
}

// A job that runs a prompt when a limit ends repeats it: its agent reads the prompt once. A job whose prompt a user
// changed repeats nothing.
func TestARunWhenTheLimitEndsRepeatsItsPrompt(t *testing.T) {
	for prompt, want := range map[string]int{"look at the log": 1, "look at the disk": 2} {
		h := openForOrders(t, newPath(t), t.TempDir())
		var read string
		h.agent.reply = func(_ context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
			emit(cli.SessionStarted{AgentSessionID: cli.AgentSessionID(who)})
			if strings.HasSuffix(req.Prompt, "look at the log") && read == "" {
				read = "before"
				return cli.Result{Err: cli.Failf(cli.LimitReached, who, "")}
			}
			read = req.Prompt
			return cli.Result{Text: "done"}
		}
		failed := h.submit(t, here, "look at the log").Turn
		h.await(t, "failed look at the log")
		h.order(t, order("run", prompt, orchestrator.Wants{Purpose: orchestrator.Purpose{Job: orchestrator.JobID("later-" + failed)}}))
		h.await(t, "done "+prompt)
		if n := strings.Count(read, "look at the "); n != want {
			t.Errorf("the agent reads %q", read)
		}
	}
}

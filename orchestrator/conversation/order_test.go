package conversation_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// openForOrders opens a house that accepts orders over the store at path.
func openForOrders(t *testing.T, path string, root string) *house {
	t.Helper()
	return openAt(t, path, func(o *conversation.Options) {
		o.Orders = o.Store.(*store.DB)
		o.Dir, o.Roots = root, []string{root}
		o.NewID = func() func() string {
			next := o.NewID
			return func() string { return filepath.Base(filepath.Dir(root)) + next() }
		}()
	})
}

func order(id, text string, w orchestrator.Wants) orchestrator.Order {
	return orchestrator.Order{Turn: cli.TurnID(id), Wants: w,
		Prompt: orchestrator.Prompt{Conversation: here, Person: 1, Text: text}}
}

func (h *house) order(t *testing.T, o orchestrator.Order) {
	t.Helper()
	if err := h.SubmitOrder(t.Context(), o); err != nil {
		t.Fatalf("order %s: %v", o.Turn, err)
	}
}

func TestAnOrderIsRunOnceHoweverOftenItIsGiven(t *testing.T) {
	path, root := filepath.Join(t.TempDir(), "ductor.db"), t.TempDir()
	h := openForOrders(t, path, root)
	h.order(t, order("o1", "once", orchestrator.Wants{}))
	h.order(t, order("o1", "once", orchestrator.Wants{}))
	h.await(t, "done once")
	h.order(t, order("o1", "once", orchestrator.Wants{}))
	h.shut()
	h.db.Close()

	h = openForOrders(t, path, root)
	if err := h.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.order(t, order("o1", "once", orchestrator.Wants{}))
	h.order(t, order("o2", "another", orchestrator.Wants{}))
	h.await(t, "done another")
	if got := h.agent.prompts(); !slices.Equal(got, []string{"another"}) {
		t.Errorf("after a restart these ran: %q", got)
	}
}

func TestAnOrderRunsBesideTheConversation(t *testing.T) {
	h := openForOrders(t, filepath.Join(t.TempDir(), "ductor.db"), t.TempDir())
	dir := filepath.Join(h.root(t), "sub")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h.submit(t, here, "mine")
	h.await(t, "done mine")
	wants := orchestrator.Wants{Own: "job", Agent: "codex", Model: "m", Effort: "low", Dir: dir, Timeout: time.Minute}
	h.order(t, order("o1", "theirs", wants))
	h.await(t, "done theirs")
	h.submit(t, here, "mine again")
	h.await(t, "done mine again")
	h.order(t, order("o2", "theirs again", wants))
	h.await(t, "done theirs again")
	h.order(t, order("o3", "in mine", orchestrator.Wants{Agent: "claude", Model: "m2"}))
	h.await(t, "done in mine")

	type asked struct {
		Resume  cli.AgentSessionID
		Model   cli.ModelID
		Effort  cli.Effort
		Dir     string
		Timeout time.Duration
	}
	var got []asked
	for _, r := range h.agent.requests() {
		got = append(got, asked{r.Resume, r.Model, r.Effort, filepath.Base(r.Dir), r.Timeout})
	}
	mine := filepath.Base(h.root(t))
	want := []asked{
		{Dir: mine},
		{"", "m", "low", "sub", time.Minute},
		{Resume: "native-claude", Dir: mine},
		{"native-codex", "m", "low", "sub", time.Minute},
		{Resume: "native-claude", Model: "m2", Dir: mine},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// root returns the directory where the conversations of the house start.
func (h *house) root(t *testing.T) string {
	t.Helper()
	st, err := h.Status(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	return st.Dir
}

func TestWhatAnOrderWantsOutlivesARestart(t *testing.T) {
	path, root := filepath.Join(t.TempDir(), "ductor.db"), t.TempDir()
	h := openForOrders(t, path, root)
	h.agent.reply = untilAborted
	h.submit(t, here, "long")
	h.eventually(t, "the agent to be asked", func() bool { return len(h.agent.requests()) == 1 })
	h.order(t, order("o1", "later", orchestrator.Wants{Own: "job", Agent: "codex", Timeout: time.Hour}))
	h.shut()
	h.db.Close()

	h = openForOrders(t, path, root)
	if err := h.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.await(t, "done later")
	r := h.agent.requests()[0]
	if h.agent.agents[0] != "codex" || r.Timeout != time.Hour || r.Resume != "" {
		t.Errorf("%s was asked %+v", h.agent.agents[0], r)
	}
}

func TestAnOrderWaitsAndAFullQueueTakesNone(t *testing.T) {
	h := openForOrders(t, filepath.Join(t.TempDir(), "ductor.db"), t.TempDir())
	end := make(chan struct{})
	h.agent.reply = untilClosed(end)
	h.submit(t, here, "runs")
	if err := h.Set(t.Context(), here, orchestrator.SettingBusy, string(orchestrator.BusyInterrupt)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		h.order(t, order(id, id, orchestrator.Wants{}))
	}
	if err := h.SubmitOrder(t.Context(), order("d", "d", orchestrator.Wants{})); !errors.Is(err, orchestrator.ErrQueueFull) {
		t.Errorf("one too many: %v", err)
	}
	if _, err := h.db.Turn(t.Context(), "d"); !errors.Is(err, orchestrator.ErrNoTurn) {
		t.Errorf("it was stored: %v", err)
	}
	close(end)
	h.await(t, "done runs")
	h.await(t, "done c")
}

func TestAnOrderStaysInsideTheRoots(t *testing.T) {
	h := openForOrders(t, filepath.Join(t.TempDir(), "ductor.db"), t.TempDir())
	for dir, want := range map[string]error{
		t.TempDir(): orchestrator.ErrOutsideRoot, "sub": orchestrator.ErrNotADir, "/nowhere/at/all": orchestrator.ErrNotADir,
	} {
		err := h.SubmitOrder(t.Context(), order("o", "x", orchestrator.Wants{Own: "job", Dir: dir}))
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", dir, err, want)
		}
	}
	if err := open(t).SubmitOrder(t.Context(), order("o", "x", orchestrator.Wants{})); !errors.Is(err, orchestrator.ErrNoOrders) {
		t.Errorf("a house that keeps no orders: %v", err)
	}
}

func TestASilentAnswerIsShownToNobody(t *testing.T) {
	h := openForOrders(t, filepath.Join(t.TempDir(), "ductor.db"), t.TempDir())
	h.order(t, order("o1", "OK", orchestrator.Wants{Silence: "echo: OK"}))
	h.order(t, order("o2", "there is news", orchestrator.Wants{Silence: "echo: OK"}))
	h.await(t, "redelivered there is news: done")
	h.shut()
	if got := h.chat.log(); len(got) != 1 {
		t.Errorf("the chat was told %q", got)
	}
	if open, err := h.db.OpenTurns(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("not delivered: %v, %v", open, err)
	}
}

// TestAnAnswerThatTheChatHasIsNotShownOnceMore, also after a restart. A different answer is shown, and so is one that a
// user asks for.
func TestAnAnswerThatTheChatHasIsNotShownOnceMore(t *testing.T) {
	h := openForOrders(t, filepath.Join(t.TempDir(), "ductor.db"), t.TempDir())
	known := orchestrator.Wants{Known: orchestrator.Digest(" echo:  same\n"), Title: "⏰ job", Card: orchestrator.CardStyle{Then: "nothing", Display: orchestrator.DisplayPlain}}
	h.order(t, order("o1", "same", known))
	h.order(t, order("o2", "other", known))
	h.await(t, "redelivered other: done")
	if _, err := h.Choose(t.Context(), "o1", orchestrator.ActionAgain, orchestrator.Press{Conversation: here, Person: 1, Role: orchestrator.RoleUser}); err != nil {
		t.Fatal(err)
	}
	h.await(t, "done same")
	h.shut()
	if open, err := h.db.OpenTurns(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("not delivered: %v, %v", open, err)
	}
	if turn, err := h.db.Turn(t.Context(), "o1"); err != nil || turn.Wants != known {
		t.Errorf("it is kept as %+v, %v", turn.Wants, err)
	}
}

func TestWhatPeopleSayMeanwhileIsNotForTheAgentOfAnOrder(t *testing.T) {
	h := openForOrders(t, filepath.Join(t.TempDir(), "ductor.db"), t.TempDir())
	end := make(chan struct{})
	h.agent.reply = untilClosed(end)
	h.agent.steer = func(cli.TurnID, cli.Request) error { t.Error("it was handed over"); return nil }
	h.order(t, order("o1", "job", orchestrator.Wants{Own: "job"}))
	h.eventually(t, "the agent to be asked", func() bool { return len(h.agent.requests()) == 1 })
	if err := h.Set(t.Context(), here, orchestrator.SettingBusy, string(orchestrator.BusySteer)); err != nil {
		t.Fatal(err)
	}
	if r := h.submit(t, here, "mine"); r.Did != orchestrator.BusyQueue {
		t.Errorf("the prompt was %s", r.Did)
	}
	close(end)
	h.await(t, "done mine")
}

func TestOnlyWord(t *testing.T) {
	for answer, want := range map[string]bool{
		"OK": true, " **ok**.\n": true, "`OK`": true, "": false, "OK, but": false, "not OK": false,
	} {
		if orchestrator.OnlyWord(answer, "OK") != want {
			t.Errorf("OnlyWord(%q) is not %v", answer, want)
		}
	}
	if orchestrator.OnlyWord("", "") {
		t.Error("no word was said")
	}
}

package bot

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// deskFake is a domain that records its calls.
type deskFake struct {
	shown   cli.TurnID // the turn whose card removes the buttons of a dropped turn
	journal *journalFake

	mu        sync.Mutex
	prompts   []orchestrator.Prompt
	wants     []orchestrator.Wants // of prompts
	calls     []string             // all other calls, one line each
	running   bool
	stopping  *orchestrator.Stopping // the turn that Stop stops, if set
	full      bool
	ahead     int
	fail      error         // returned by every method, if set
	menuLoads chan struct{} // all agents but the first list their models until it is closed; nil for none
	menu      []cli.MenuEntry
	roles     []string
	status    orchestrator.Status
	repeated  map[cli.TurnID]bool
	queued    map[cli.TurnID]bool
	rules     []orchestrator.Rule
	cannot    map[cli.PermissionMode]lang.Message
	hold      chan struct{} // if set, Submit waits for it
	holdNew   chan struct{} // if set, New waits for it
	subject   orchestrator.Subject
}

func (d *deskFake) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
}

func (d *deskFake) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

func (d *deskFake) Texts() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var texts []string
	for _, p := range d.prompts {
		texts = append(texts, p.Text)
	}
	return texts
}

func (d *deskFake) Submit(ctx context.Context, p orchestrator.Prompt, w orchestrator.Wants) (orchestrator.Receipt, error) {
	if d.hold != nil {
		select {
		case <-d.hold:
		case <-ctx.Done():
			return orchestrator.Receipt{}, ctx.Err()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return orchestrator.Receipt{}, d.fail
	}
	if d.full {
		return orchestrator.Receipt{Full: true, Ahead: d.ahead}, nil
	}
	if p.Text == "panic" {
		panic("the desk panicked")
	}
	d.journal.Handle(p.Updates)
	d.prompts, d.wants = append(d.prompts, p), append(d.wants, w)
	return orchestrator.Receipt{Turn: cli.TurnID(fmt.Sprintf("turn-%d", len(d.prompts))), Ahead: d.ahead}, nil
}

func (d *deskFake) Stop(_ context.Context, by orchestrator.Press, told func(*orchestrator.Stopping),
	answer func(orchestrator.AbortReport) orchestrator.Handled) (orchestrator.AbortReport, error) {
	if !by.May(orchestrator.EndAny) {
		told(nil)
		d.note("abort %s of %d", by.Conversation.Key(), by.Person)
		return orchestrator.AbortReport{}, d.answered(answer(orchestrator.AbortReport{}))
	}
	var r orchestrator.AbortReport
	d.mu.Lock()
	if d.running {
		over := make(chan struct{})
		close(over)
		r = orchestrator.AbortReport{Running: true, Stopping: &orchestrator.Stopping{Over: over}}
		if d.stopping != nil {
			r.Stopping = d.stopping
		}
	}
	d.running = false
	d.mu.Unlock()
	told(r.Stopping)
	d.note("abort %s", by.Conversation.Key())
	return r, d.answered(answer(r))
}

// answered stores the answer to an abort.
func (d *deskFake) answered(h orchestrator.Handled) error {
	if d.fail != nil {
		return d.fail
	}
	return d.journal.FinishUpdates(context.Background(), h.Updates, h.Notices...)
}

func (d *deskFake) StopTurn(_ context.Context, turn cli.TurnID, by orchestrator.Press) error {
	d.note("stop %s by %d", turn, by.Person)
	return d.fail
}

func (d *deskFake) Stopping(orchestrator.ConversationID) *orchestrator.Stopping {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopping
}

func (d *deskFake) MoveChat(_ context.Context, from, to int64) error {
	d.note("move chat %d to %d", from, to)
	return d.fail
}

func (d *deskFake) Runs(orchestrator.ConversationID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running
}

func (d *deskFake) Waits(orchestrator.ConversationID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queued) > 0
}

func (d *deskFake) CancelQueued(_ context.Context, turn cli.TurnID, by orchestrator.Press) (bool, error) {
	d.note("cancel %s by %d", turn, by.Person)
	d.mu.Lock()
	defer d.mu.Unlock()
	ok := d.queued[turn]
	delete(d.queued, turn)
	return ok, d.fail
}

func (d *deskFake) EditQueued(_ context.Context, id orchestrator.ConversationID, message int, text string) (bool, error) {
	d.note("edit %s %d %q", id.Key(), message, text)
	return d.ahead > 0, d.fail
}

func (d *deskFake) New(_ context.Context, id orchestrator.ConversationID) error {
	if d.holdNew != nil {
		<-d.holdNew
	}
	d.note("new %s", id.Key())
	return d.fail
}

func (d *deskFake) Choose(_ context.Context, turn cli.TurnID, what orchestrator.Action, by orchestrator.Press) (orchestrator.Receipt, error) {
	if what == orchestrator.ActionDrop {
		return orchestrator.Receipt{Turn: d.shown}, d.fail
	}
	receipt, err := d.repeat(string(what), turn, by)
	if what == orchestrator.ActionLater {
		receipt.At = time.Now().Add(time.Hour)
	}
	return receipt, err
}

func (d *deskFake) repeat(how string, turn cli.TurnID, by orchestrator.Press) (orchestrator.Receipt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return orchestrator.Receipt{}, d.fail
	}
	if d.repeated[turn] {
		return orchestrator.Receipt{}, orchestrator.ErrRepeated
	}
	if d.repeated == nil {
		d.repeated = make(map[cli.TurnID]bool)
	}
	d.repeated[turn] = true
	d.journal.Handle(by.Updates)
	d.calls = append(d.calls, fmt.Sprintf("%s %s", how, turn))
	return orchestrator.Receipt{Turn: turn + "'", Ahead: d.ahead}, nil
}

func (d *deskFake) ShowAgain(_ context.Context, turn cli.TurnID, _ orchestrator.Press) error {
	d.note("show %s", turn)
	return d.fail
}

func (d *deskFake) SetModel(_ context.Context, id orchestrator.ConversationID, agent cli.Agent, model cli.ModelID, effort cli.Effort) error {
	d.note("model %s %s/%s %s", id.Key(), agent, model, effort)
	return d.fail
}

func (d *deskFake) Accounts(context.Context, orchestrator.ConversationID) (orchestrator.AccountChoice, error) {
	return orchestrator.AccountChoice{Agent: "claude", All: []cli.MenuEntry{{Agent: "claude"}}}, nil
}

func (d *deskFake) SetAccount(_ context.Context, id orchestrator.ConversationID, agent cli.Agent,
	account cli.Account) error {
	d.note("account %s %s@%s", id.Key(), agent, account)
	return d.fail
}

func (d *deskFake) SetPermission(_ context.Context, id orchestrator.ConversationID, mode cli.PermissionMode, _ orchestrator.PersonID) error {
	d.note("permission %s %s", id.Key(), mode)
	return d.fail
}

func (d *deskFake) Bypass(_ context.Context, id orchestrator.ConversationID, lasts time.Duration, _ orchestrator.PersonID) error {
	d.note("bypass %s %s", id.Key(), lasts)
	return d.fail
}

func (d *deskFake) Roles() []string { return d.roles }

func (d *deskFake) SetRole(_ context.Context, id orchestrator.ConversationID, name string) error {
	d.note("role %s %q", id.Key(), name)
	return d.fail
}

func (d *deskFake) Menu(ctx context.Context, _ orchestrator.ConversationID, _ ...cli.Agent) ([]cli.MenuEntry, error) {
	if d.menuLoads != nil {
		select {
		case <-d.menuLoads:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return d.menu, nil
}

func (d *deskFake) MenuNow(context.Context, orchestrator.ConversationID) ([]cli.MenuEntry, error) {
	menu := slices.Clone(d.menu)
	for i := range menu {
		if d.menuLoads != nil && i > 0 {
			menu[i] = cli.MenuEntry{Agent: menu[i].Agent, Err: cli.ErrLoading}
		}
	}
	return menu, nil
}

func (d *deskFake) SetDir(_ context.Context, id orchestrator.ConversationID, path string, _ orchestrator.PersonID) (string, error) {
	d.note("cwd %s %s", id.Key(), path)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status.Dir = filepath.Join("/home/u", path)
	return d.status.Dir, d.fail
}

func (d *deskFake) Status(_ context.Context, id orchestrator.ConversationID) (orchestrator.Status, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := d.status
	st.Conversation = id
	if d.running {
		st.Running = &orchestrator.RunningTurn{Turn: "running", Title: "something", Started: time.Now()}
	}
	return st, d.fail
}

func (d *deskFake) Context(context.Context, orchestrator.ConversationID) (orchestrator.ContextReport, error) {
	return orchestrator.ContextReport{}, d.fail
}

func (d *deskFake) Compact(_ context.Context, hint string, p orchestrator.Prompt) (orchestrator.Receipt, error) {
	d.note("compact %q", hint)
	return orchestrator.Receipt{}, d.fail
}

func (d *deskFake) AgentCommands(context.Context, orchestrator.ConversationID) (cli.Agent, []cli.AgentCommand, error) {
	return "claude", nil, d.fail
}

func (d *deskFake) RunCommand(_ context.Context, p orchestrator.Prompt) (orchestrator.Receipt, error) {
	d.note("run %q", p.Text)
	return orchestrator.Receipt{}, d.fail
}

func (d *deskFake) AwaitAborts(orchestrator.PendingAborts) {}

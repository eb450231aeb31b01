package bot

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// wizard is the model menu: agent, model, effort, each by a button, in one message that is edited.
//
// What the buttons choose from is kept here and not in them: a button carries a nonce, the step it was
// made for and an index. So a button of an earlier step, of another conversation, of a menu that expired
// or of before a restart is recognised and changes nothing.
type wizard struct {
	desk   Desk
	closer *closer
	voice  voice
	now    func() time.Time
	random io.Reader
	log    *slog.Logger

	mu   sync.Mutex
	open map[string]*modelMenu
}

// modelMenu is one open menu. The wizard's lock guards it.
type modelMenu struct {
	nonce   string
	conv    orchestrator.ConversationID
	expires time.Time
	step    int // grows with every press; buttons of another step are stale
	entries []cli.MenuEntry
	current orchestrator.Status
	agent   int // index into entries; -1 while the agent is chosen
	model   int // index into the agent's models; -1 while the model is chosen
	page    int
}

const (
	menuLife  = time.Hour
	menusKept = 256
)

// start answers "/model": with arguments it chooses at once, without it opens the menu.
func (w *wizard) start(ctx context.Context, t *task, r request) error {
	st, err := w.desk.Status(ctx, r.in.conv)
	if err != nil {
		return err
	}
	entries := w.desk.Menu(ctx)
	if r.args != "" {
		return w.chooseByName(ctx, t, r, entries, st)
	}
	m, err := w.newMenu(r.in.conv, entries, st)
	if err != nil {
		return err
	}
	text, keyboard := m.view()
	w.closer.answer(ctx, r.in, t.updates, text, keyboard)
	return nil
}

func (w *wizard) chooseByName(ctx context.Context, t *task, r request, entries []cli.MenuEntry, st orchestrator.Status) error {
	c, problem := chooseModel(r.args, entries, st.Agent)
	if problem != "" {
		w.closer.answer(ctx, r.in, t.updates, problem, nil)
		return nil
	}
	if err := w.desk.SetModel(ctx, r.in.conv, c.agent, c.model, c.effort); err != nil {
		return err
	}
	w.closer.answer(ctx, r.in, t.updates, chosenText(c), nil)
	return nil
}

// choice is who is to answer.
type choice struct {
	agent  cli.Agent
	model  cli.ModelID
	effort cli.Effort
}

func chosenText(c choice) string {
	return "From your next message on: " + choiceText(c.agent, c.model, c.effort)
}

func (w *wizard) newMenu(id orchestrator.ConversationID, entries []cli.MenuEntry, st orchestrator.Status) (*modelMenu, error) {
	var raw [9]byte
	if _, err := io.ReadFull(w.random, raw[:]); err != nil {
		return nil, err
	}
	m := &modelMenu{
		nonce: base64.RawURLEncoding.EncodeToString(raw[:]), conv: id, expires: w.now().Add(menuLife),
		entries: entries, current: st, agent: -1, model: -1,
	}
	if only, ok := onlyUsable(entries); ok {
		m.enterAgent(only)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget()
	w.open[m.nonce] = m
	return m, nil
}

// forget drops menus that expired, and the oldest where there are too many.
func (w *wizard) forget() {
	oldest := ""
	for nonce, m := range w.open {
		if !w.now().Before(m.expires) {
			delete(w.open, nonce)
			continue
		}
		if oldest == "" || m.expires.Before(w.open[oldest].expires) {
			oldest = nonce
		}
	}
	if len(w.open) >= menusKept {
		delete(w.open, oldest)
	}
}

const (
	menuStale = "This menu has expired and nothing was changed. Send /model for a new one."
	menuMoved = "The menu had already moved on; nothing was changed by this press."
)

// press acts on a button and returns the short answer to it. An error means that a choice was not stored.
func (w *wizard) press(ctx context.Context, p press, what string) (string, error) {
	nonce, step, op, ok := parseMenuData(what)
	w.mu.Lock()
	m := w.open[nonce]
	switch {
	case !ok, m == nil, !w.now().Before(m.expires):
		delete(w.open, nonce)
		w.mu.Unlock()
		w.voice.unbutton(p.by.Conversation, p.message)
		return menuStale, nil
	case m.conv != p.by.Conversation:
		w.mu.Unlock()
		return staleSentence, nil
	case step != m.step:
		// Also heals a menu whose last edit never arrived.
		text, keyboard := m.view()
		w.mu.Unlock()
		w.voice.edit(m.conv, p.message, text, keyboard)
		return menuMoved, nil
	}
	m.step++
	chosen, state := m.turn(op)
	if state != menuOpen {
		delete(w.open, nonce)
	}
	text, keyboard := m.view()
	w.mu.Unlock()

	switch state {
	case menuClosed:
		w.voice.edit(m.conv, p.message, "Nothing was changed: "+choiceText(m.current.Agent, m.current.Model, m.current.Effort), nil)
		return "", nil
	case menuDone:
		return w.store(ctx, m, p, chosen)
	}
	w.voice.edit(m.conv, p.message, text, keyboard)
	return "", nil
}

func (w *wizard) store(ctx context.Context, m *modelMenu, p press, c choice) (string, error) {
	err := w.desk.SetModel(ctx, m.conv, c.agent, c.model, c.effort)
	if errors.Is(err, orchestrator.ErrShutdown) {
		return "", err
	}
	if err != nil {
		w.voice.edit(m.conv, p.message, "The choice could not be stored; nothing was changed.", nil)
		return "", err
	}
	w.voice.edit(m.conv, p.message, chosenText(c), nil)
	return cut(choiceText(c.agent, c.model, c.effort), 190), nil
}

func (m *modelMenu) data(op string, arg int) string {
	data, _ := buttonData(actWizard, m.nonce+":"+strconv.Itoa(m.step)+":"+op+strconv.Itoa(arg))
	return data
}

// menuOp is what a button of the menu does.
type menuOp struct {
	kind byte // see the op constants
	arg  int
}

// The kinds of menu buttons.
const (
	opAgent  = "a"
	opModel  = "m"
	opEffort = "e" // arg -1 is the model's default
	opPage   = "p"
	opBack   = "b"
	opClose  = "x"
)

func parseMenuData(what string) (nonce string, step int, op menuOp, ok bool) {
	parts := strings.Split(what, ":")
	if len(parts) != 3 || len(parts[2]) < 2 {
		return "", 0, menuOp{}, false
	}
	step, err := strconv.Atoi(parts[1])
	if err != nil {
		return "", 0, menuOp{}, false
	}
	arg, err := strconv.Atoi(parts[2][1:])
	if err != nil {
		return "", 0, menuOp{}, false
	}
	return parts[0], step, menuOp{kind: parts[2][0], arg: arg}, true
}

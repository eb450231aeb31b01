package bot

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/orchestrator"
)

// menus keeps the open menus: messages with buttons that are edited until something was chosen.
//
// What the buttons choose from is kept here and not in them: a button carries a nonce, the step it was
// made for and an index. So a button of an earlier step, of another conversation, of a menu that expired
// or of before a restart is recognised and changes nothing.
type menus struct {
	closer *updates.Finisher
	voice  voice
	now    func() time.Time
	random io.Reader
	beside func(func(ctx context.Context)) // runs what no command waits for

	mu   sync.Mutex
	byID map[string]menu
}

// menu is one open menu. The lock of menus guards it until it is done.
type menu interface {
	frame() *menuFrame
	// view is what the message shows now.
	view() (string, tgapi.Keyboard)
	// turn moves the menu by one press. A press that makes no sense at this step leaves it as it is.
	turn(op menuOp) menuState
	// unchanged says what stays as it is when nothing was chosen.
	unchanged() string
	// store makes what was chosen so. said takes the place of the menu, short answers the press.
	store(ctx context.Context, by orchestrator.Press) (said, short string, err error)
}

// loading is a menu that is offered before all of it is known.
type loading interface {
	menu
	// load waits for the rest. What it gives makes that a part of the menu.
	load(ctx context.Context) (fill func(), err error)
}

// leading is a menu that leads back to where it came from, once it is done or closed.
type leading interface {
	leads() (string, tgapi.Keyboard)
}

// left is what the message of a menu shows when it is done with; said is what it shows unless it leads elsewhere.
func left(m menu, said string) (string, tgapi.Keyboard) {
	if l, ok := m.(leading); ok {
		return l.leads()
	}
	return said, nil
}

// menuFrame is what all menus have.
type menuFrame struct {
	act     string // of its buttons
	nonce   string
	conv    orchestrator.ConversationID
	expires time.Time
	step    int // grows with every press; buttons of another step are stale
}

func (f *menuFrame) frame() *menuFrame { return f }

// menuState says what became of a menu after a press.
type menuState int

const (
	menuOpen menuState = iota
	menuDone
	menuClosed
)

const (
	menuLife  = time.Hour
	menusKept = 256
)

// offer shows m as the answer to a command.
func (k *menus) offer(ctx context.Context, r updates.Request, m menu) error {
	if err := k.begin(r.In.Conversation, m); err != nil {
		return err
	}
	text, keyboard := m.view()
	k.closer.Answer(ctx, r.In, text, keyboard)
	return nil
}

// offerLoading shows m as the answer to a command, and edits it when the rest of it is known.
func (k *menus) offerLoading(ctx context.Context, r updates.Request, m loading) error {
	if err := k.begin(r.In.Conversation, m); err != nil {
		return err
	}
	shown := make(chan int, 1)
	text, keyboard := m.view()
	k.closer.AnswerFollowed(ctx, r.In, text, keyboard, func(message int) { shown <- message })
	k.beside(func(ctx context.Context) {
		fill, err := m.load(ctx)
		if err != nil {
			return // the menu stays as it is; whoever wants more asks again
		}
		k.mu.Lock()
		fill()
		k.mu.Unlock()
		select {
		case message := <-shown:
			k.show(m, message)
		case <-ctx.Done():
		}
	})
	return nil
}

// show edits the message of a menu that is still open.
func (k *menus) show(m menu, message int) {
	k.mu.Lock()
	f := m.frame()
	if k.byID[f.nonce] != m {
		k.mu.Unlock()
		return
	}
	text, keyboard := m.view()
	k.mu.Unlock()
	k.voice.Edit(f.conv, message, text, keyboard)
}

func (k *menus) begin(id orchestrator.ConversationID, m menu) error {
	var raw [9]byte
	if _, err := io.ReadFull(k.random, raw[:]); err != nil {
		return fmt.Errorf("make a nonce: %w", err)
	}
	f := m.frame()
	f.nonce, f.conv, f.expires = base64.RawURLEncoding.EncodeToString(raw[:]), id, k.now().Add(menuLife)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget()
	k.byID[f.nonce] = m
	return nil
}

// forget drops menus that expired, and the oldest where there are too many.
func (k *menus) forget() {
	oldest := ""
	for nonce, m := range k.byID {
		if !k.now().Before(m.frame().expires) {
			delete(k.byID, nonce)
			continue
		}
		if oldest == "" || m.frame().expires.Before(k.byID[oldest].frame().expires) {
			oldest = nonce
		}
	}
	if len(k.byID) >= menusKept {
		delete(k.byID, oldest)
	}
}

const (
	menuStale = "This menu has expired and nothing was changed. Send /%s for a new one."
	menuMoved = "The menu had already moved on; nothing was changed by this press."
)

// press acts on a button and returns the short answer to it. An error means that a choice was not stored.
func (k *menus) press(ctx context.Context, p updates.Press, act, what string) (string, error) {
	nonce, step, op, ok := parseMenuData(what)
	k.mu.Lock()
	m := k.byID[nonce]
	if !ok || m == nil || m.frame().act != act || !k.now().Before(m.frame().expires) {
		k.mu.Unlock()
		k.voice.Unbutton(p.By.Conversation, p.Message)
		return fmt.Sprintf(menuStale, menuCommands[act]), nil
	}
	f := m.frame()
	switch {
	case f.conv != p.By.Conversation:
		k.mu.Unlock()
		return render.StaleButton, nil
	case step != f.step:
		// Also heals a menu whose last edit never arrived.
		text, keyboard := m.view()
		k.mu.Unlock()
		k.voice.Edit(f.conv, p.Message, text, keyboard)
		return menuMoved, nil
	}
	f.step++
	state := m.turn(op)
	if state != menuOpen {
		delete(k.byID, nonce)
	}
	text, keyboard := m.view()
	k.mu.Unlock()

	switch state {
	case menuClosed:
		text, keyboard = left(m, "Nothing was changed: "+m.unchanged())
		k.voice.Edit(f.conv, p.Message, text, keyboard)
		return "", nil
	case menuDone:
		return k.store(ctx, m, p)
	}
	k.voice.Edit(f.conv, p.Message, text, keyboard)
	return "", nil
}

func (k *menus) store(ctx context.Context, m menu, p updates.Press) (string, error) {
	said, short, err := m.store(ctx, p.By)
	if errors.Is(err, orchestrator.ErrShutdown) {
		return "", err
	}
	if err != nil {
		k.voice.Edit(p.By.Conversation, p.Message, "The choice could not be stored; nothing was changed.", nil)
		return "", err
	}
	text, keyboard := left(m, said)
	k.voice.Edit(p.By.Conversation, p.Message, text, keyboard)
	return render.Cut(short, 190), nil
}

// data is what a button of the menu carries.
func (f *menuFrame) data(op string, arg int) string {
	data, _ := tgapi.ButtonData(f.act, f.nonce+":"+strconv.Itoa(f.step)+":"+op+strconv.Itoa(arg))
	return data
}

func (f *menuFrame) closeButton() tgapi.Button {
	return tgapi.Button{Text: "Close", Data: f.data(opClose, 0)}
}

// pager leads to the other pages.
func (f *menuFrame) pager(page, pages int) tgapi.Keyboard {
	return tgapi.Pager(page, pages, func(page int) string { return f.data(opPage, page) })
}

// menuOp is what a button of a menu does.
type menuOp struct {
	kind byte // see the op constants
	arg  int
}

// The kinds of menu buttons.
const (
	opAgent   = "a"
	opModel   = "m"
	opEffort  = "e" // arg -1 is the model's default
	opPick    = "k" // of a menu that has one list
	opConfirm = "y"
	opPage    = "p"
	opBack    = "b"
	opClose   = "x"
	opRules   = "r"
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

package menu

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"ductor/bot/tgapi"
	"ductor/cli/naming"
	"ductor/lang"
	"ductor/orchestrator"
)

// Options configures Menus. All fields except Offers are required.
type Options struct {
	Service Service
	Edit    func(in orchestrator.ConversationID, message int, page tgapi.Page) // edits a message; does not wait
	Go      func(func(ctx context.Context))                                    // starts a function in its own goroutine
	Now     func() time.Time
	Lang    *lang.Choices
	Aliases func() map[string]naming.Alias // returns the current aliases of models; see naming.Names
	Offers  Offers
}

// Menus manages the open menus. Safe for concurrent use.
//
// The choices are stored here, not in the buttons. A button contains a nonce, an index and the step of its menu. So
// Menus recognizes outdated buttons, which have no effect: buttons of an earlier step, of another conversation, of an
// expired menu, or from before a restart.
type Menus struct {
	service Service
	edit    func(in orchestrator.ConversationID, message int, page tgapi.Page)
	spawn   func(func(ctx context.Context))
	now     func() time.Time
	lang    *lang.Choices
	aliases func() map[string]naming.Alias
	offers  Offers

	mu   sync.Mutex
	byID map[string]openMenu // by nonce
}

// openMenu is a menu of a conversation that has not expired.
type openMenu struct {
	menu
	in      orchestrator.ConversationID
	expires time.Time
}

// New returns Menus.
func New(o Options) *Menus {
	return &Menus{
		service: o.Service, edit: o.Edit, spawn: o.Go, now: o.Now, lang: o.Lang, aliases: o.Aliases, offers: o.Offers,
		byID: make(map[string]openMenu),
	}
}

// menu is one open menu. The lock of Menus guards it until the user has chosen.
type menu interface {
	common() *frame
	// view returns the page that the message shows now.
	view() tgapi.Page
	// press applies a press. It ignores buttons that do not belong to the current step.
	press(o op) state
	// unchanged describes the current choice for a user who chose nothing.
	unchanged() string
	// store stores the user's choice. said replaces the menu, and short is the answer to the press.
	store(ctx context.Context, by orchestrator.Press) (said, short string, err error)
}

// lastPage returns the final page of a menu that is done or closed.
func lastPage(m menu, said string) tgapi.Page {
	if back := m.common().end; back != nil {
		return back()
	}
	return tgapi.Page{Text: said}
}

// frame contains the fields that all menus share.
type frame struct {
	lang   lang.Printer
	action string // action of its buttons
	nonce  string
	step   int               // incremented by every press; buttons of another step are stale
	end    func() tgapi.Page // returns the final page; nil: show the result
}

func (f *frame) common() *frame { return f }

// state is the state of a menu after a press.
type state int

const (
	stateOpen state = iota
	stateDone
	stateClosed
)

const (
	life        = time.Hour
	mostOpen    = 256
	nonceLength = 12 // 60 bits
)

// open registers a menu and returns its first page.
func (k *Menus) open(in orchestrator.ConversationID, m menu) tgapi.Page {
	f := m.common()
	f.nonce, f.lang = rand.Text()[:nonceLength], k.lang.Of(in.Chat)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget()
	k.byID[f.nonce] = openMenu{m, in, k.now().Add(life)}
	return m.view()
}

// openLoading registers a model menu and returns its first page. The caller sends the page, and passes the id of its
// message to sent. When all agents have listed their models, the menu edits this message.
func (k *Menus) openLoading(in orchestrator.ConversationID, m *modelMenu) (page tgapi.Page, sent func(message int)) {
	page = k.open(in, m)
	shown := make(chan int, 1)
	k.spawn(func(ctx context.Context) {
		entries, err := k.service.Menu(ctx, in)
		if err != nil {
			return // the menu stays unchanged, and the user can open it again
		}
		current, err := k.service.Status(ctx, in)
		if err != nil {
			return
		}
		k.mu.Lock()
		m.fill(entries, current)
		k.mu.Unlock()
		select {
		case message := <-shown:
			k.show(m.nonce, message)
		case <-ctx.Done():
		}
	})
	return page, func(message int) { shown <- message }
}

// show edits the message of a menu, if the menu is still open.
func (k *Menus) show(nonce string, message int) {
	k.mu.Lock()
	m, open := k.byID[nonce]
	if !open {
		k.mu.Unlock()
		return
	}
	page := m.view()
	k.mu.Unlock()
	k.edit(m.in, message, page)
}

// forget drops expired menus. If too many menus are open, it also drops the oldest.
func (k *Menus) forget() {
	oldest := ""
	for nonce, m := range k.byID {
		if !k.now().Before(m.expires) {
			delete(k.byID, nonce)
			continue
		}
		if oldest == "" || m.expires.Before(k.byID[oldest].expires) {
			oldest = nonce
		}
	}
	if len(k.byID) >= mostOpen {
		delete(k.byID, oldest)
	}
}

// Answer is the result of a pressed button.
type Answer struct {
	tgapi.Answer
	Expired bool // the message's buttons no longer work
}

func edited(text string, page tgapi.Page) Answer {
	return Answer{Answer: tgapi.Answer{Text: text, Edit: page}}
}

// Press handles a press. data is the button's data without the action. If the choice cannot be stored, Press returns
// the error and shows it with Options.Edit.
func (k *Menus) Press(ctx context.Context, by orchestrator.Press, action, data string) (Answer, error) {
	p := k.lang.Of(by.Conversation.Chat)
	nonce, step, o, ok := parseData(data)
	k.mu.Lock()
	m, open := k.byID[nonce]
	if !ok || !open || m.common().action != action || !k.now().Before(m.expires) {
		k.mu.Unlock()
		return Answer{tgapi.Answer{Text: p.Text("menu.expired", commands()[action])}, true}, nil
	}
	f := m.common()
	switch {
	case m.in != by.Conversation:
		k.mu.Unlock()
		return Answer{Answer: tgapi.Stale(p)}, nil
	case step != f.step:
		page := m.view() // send even an unchanged page, because the last edit may have failed
		k.mu.Unlock()
		return edited(p.Text("menu.moved-on"), page), nil
	}
	f.step++
	became := m.press(o)
	if became != stateOpen {
		delete(k.byID, nonce)
	}
	page := m.view()
	k.mu.Unlock()

	switch became {
	case stateClosed:
		return edited("", lastPage(m, p.Text("menu.unchanged", m.unchanged()))), nil
	case stateDone:
		return k.store(ctx, m, by)
	}
	return edited("", page), nil
}

func (k *Menus) store(ctx context.Context, m menu, by orchestrator.Press) (Answer, error) {
	said, short, err := m.store(ctx, by)
	if errors.Is(err, orchestrator.ErrShutdown) {
		return Answer{}, err
	}
	if err != nil {
		return edited("", tgapi.Page{Text: k.lang.Of(by.Conversation.Chat).Text("menu.not-stored")}), err
	}
	return edited(short, lastPage(m, said)), nil
}

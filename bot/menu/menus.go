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

// Options configures Menus. Only Offers is optional.
type Options struct {
	Service Service
	Edit    func(in orchestrator.ConversationID, message int, page tgapi.Page) // edits a message; must not block
	Go      func(func(ctx context.Context))                                    // runs a function in a new goroutine
	Now     func() time.Time
	Lang    *lang.Choices
	Aliases func() map[string]naming.Alias // returns the configured short names of models; see naming.Names
	Offers  Offers
}

// Menus contains the open menus. It is safe for concurrent use.
//
// The data of a button consists of the menu's random number (nonce), the number of the step, and the index of a choice.
// Buttons of an earlier step, of an expired menu, or from before a restart therefore have no effect.
type Menus struct {
	service Service
	edit    func(in orchestrator.ConversationID, message int, page tgapi.Page)
	spawn   func(func(ctx context.Context))
	now     func() time.Time
	lang    *lang.Choices
	aliases func() map[string]naming.Alias
	offers  Offers

	mu   sync.Mutex
	byID map[string]openMenu // open menus by nonce
}

// openMenu is a menu in which the user has not made a choice yet.
type openMenu struct {
	menu
	in      orchestrator.ConversationID
	expires time.Time
}

// New returns Menus without an open menu.
func New(o Options) *Menus {
	return &Menus{
		service: o.Service, edit: o.Edit, spawn: o.Go, now: o.Now, lang: o.Lang, aliases: o.Aliases, offers: o.Offers,
		byID: make(map[string]openMenu),
	}
}

// menu is a kind of menu. Menus.mu guards a menu until the user has made a choice.
type menu interface {
	common() *frame
	// view returns the current page.
	view() tgapi.Page
	// press handles a button. It ignores buttons that the current page does not have.
	press(o op) state
	// unchanged returns a text about the current setting, for a user who closes the menu without a choice.
	unchanged() string
	// store stores the user's choice. It returns the text that replaces the menu, and a short notice for the user.
	store(ctx context.Context, by orchestrator.Press) (said, short string, err error)
}

// lastPage returns the page that replaces the menu: the result of frame.end, or defaultText if frame.end is nil.
func lastPage(m menu, defaultText string) tgapi.Page {
	if back := m.common().end; back != nil {
		return back()
	}
	return tgapi.Page{Text: defaultText}
}

// frame contains the fields that all kinds of menus have.
type frame struct {
	lang   lang.Printer
	action string // action of all buttons of the menu
	nonce  string
	step   int               // number of button presses so far; buttons from other steps do nothing
	end    func() tgapi.Page // returns the page that replaces the menu; if nil, a text about the choice replaces it
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
	nonceLength = 12 // length of the random number in a button, in characters; each has 5 random bits
)

// open adds a menu and returns its first page.
func (k *Menus) open(in orchestrator.ConversationID, m menu) tgapi.Page {
	f := m.common()
	f.nonce, f.lang = rand.Text()[:nonceLength], k.lang.Of(in.Chat)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget()
	k.byID[f.nonce] = openMenu{m, in, k.now().Add(life)}
	return m.view()
}

// openLoading opens a model menu while agents are still listing their models. The caller must send the page, and then
// call sent with the ID of the new message. When all models are known, Menus edits this message.
func (k *Menus) openLoading(in orchestrator.ConversationID, m *modelMenu) (page tgapi.Page, sent func(message int)) {
	page = k.open(in, m)
	shown := make(chan int, 1)
	k.spawn(func(ctx context.Context) {
		entries, err := k.service.Menu(ctx, in)
		if err != nil {
			return // the menu stays as it is, and the user can open it again
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

// show edits the message of a menu, unless the menu was closed.
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

// forget removes expired menus, and also the oldest menu if too many are open.
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

// Answer describes what a press of a button changes in the chat.
type Answer struct {
	tgapi.Answer
	Expired bool // remove the buttons, because the menu has expired
}

func edited(text string, page tgapi.Page) Answer {
	return Answer{Answer: tgapi.Answer{Text: text, Edit: page}}
}

// Press handles a button. data is the button's data without the action. If the choice cannot be stored, Press returns
// the error, together with an Answer that tells the user.
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
		page := m.view() // show the page even if nothing changed, because the last edit may have failed
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

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

// Options configures Menus. All fields are required.
type Options struct {
	Service Service
	Edit    func(in orchestrator.ConversationID, message int, page tgapi.Page) // edits the bot's message; does not wait
	Beside  func(func(ctx context.Context))                                    // runs work that no command waits for
	Now     func() time.Time
	Lang    *lang.Choices
	Aliases func() map[string]naming.Alias // aliases of models, now; see naming.Names
}

// Menus manages the open menus. Safe for concurrent use.
//
// The choices are stored here, not in the buttons: a button carries a nonce, the step it was made for and an index. So
// Menus recognizes a button of an earlier step, of another conversation, of an expired menu or of a time before a
// restart; such a button changes nothing.
type Menus struct {
	service Service
	edit    func(in orchestrator.ConversationID, message int, page tgapi.Page)
	beside  func(func(ctx context.Context))
	now     func() time.Time
	lang    *lang.Choices
	aliases func() map[string]naming.Alias

	mu   sync.Mutex
	byID map[string]menu
}

// New returns Menus.
func New(o Options) *Menus {
	return &Menus{service: o.Service, edit: o.Edit, beside: o.Beside, now: o.Now, lang: o.Lang, aliases: o.Aliases, byID: make(map[string]menu)}
}

// menu is one open menu. The lock of Menus guards it until it is done.
type menu interface {
	common() *frame
	// view returns the page that the message shows now.
	view() tgapi.Page
	// press applies one press. It ignores a press that makes no sense at this step.
	press(o op) state
	// unchanged describes what stays as it is if the user chose nothing.
	unchanged() string
	// store stores the user's choice. said replaces the menu; short answers the press.
	store(ctx context.Context, by orchestrator.Press) (said, short string, err error)
}

// loading is a menu that opens before all of its choices are known.
type loading interface {
	menu
	// load waits for the other choices. fill adds them to the menu.
	load(ctx context.Context) (fill func(), err error)
}

// returning is a menu that ends with a page of the screen it came from, whether or not the user chose something.
type returning interface {
	backPage() tgapi.Page
}

// lastPage returns the final page of a menu that is done or closed. It shows said, unless the menu is a returning one.
func lastPage(m menu, said string) tgapi.Page {
	if r, ok := m.(returning); ok {
		return r.backPage()
	}
	return tgapi.Page{Text: said}
}

// frame has the fields common to all menus.
type frame struct {
	lang    lang.Printer
	action  string // action of its buttons
	nonce   string
	conv    orchestrator.ConversationID
	expires time.Time
	step    int // incremented by every press; buttons of another step are stale
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
	f.nonce, f.conv, f.expires, f.lang = rand.Text()[:nonceLength], in, k.now().Add(life), k.lang.Of(in.Chat)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget()
	k.byID[f.nonce] = m
	return m.view()
}

// openLoading registers a menu, returns its first page, and edits its message when the other choices are known. The
// caller calls sent with the message once it is sent.
func (k *Menus) openLoading(in orchestrator.ConversationID, m loading) (page tgapi.Page, sent func(message int)) {
	page = k.open(in, m)
	shown := make(chan int, 1)
	k.beside(func(ctx context.Context) {
		fill, err := m.load(ctx)
		if err != nil {
			return // the menu stays as it is; the user can open it again
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
	return page, func(message int) { shown <- message }
}

// show edits the message of a menu, if the menu is still open.
func (k *Menus) show(m menu, message int) {
	k.mu.Lock()
	f := m.common()
	if k.byID[f.nonce] != m {
		k.mu.Unlock()
		return
	}
	page := m.view()
	k.mu.Unlock()
	k.edit(f.conv, message, page)
}

// forget drops expired menus, and the oldest ones if too many are open.
func (k *Menus) forget() {
	oldest := ""
	for nonce, m := range k.byID {
		if !k.now().Before(m.common().expires) {
			delete(k.byID, nonce)
			continue
		}
		if oldest == "" || m.common().expires.Before(k.byID[oldest].common().expires) {
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

// Press handles a press. data is the button's data without the action. If it returns an error, the choice was not
// stored, and an Edit shows that.
func (k *Menus) Press(ctx context.Context, by orchestrator.Press, action, data string) (Answer, error) {
	p := k.lang.Of(by.Conversation.Chat)
	nonce, step, o, ok := parseData(data)
	k.mu.Lock()
	m := k.byID[nonce]
	if !ok || m == nil || m.common().action != action || !k.now().Before(m.common().expires) {
		k.mu.Unlock()
		return Answer{tgapi.Answer{Text: p.Text("menu.expired", commands()[action])}, true}, nil
	}
	f := m.common()
	switch {
	case f.conv != by.Conversation:
		k.mu.Unlock()
		return Answer{Answer: tgapi.Stale(p)}, nil
	case step != f.step:
		page := m.view() // even if it is the same page: the last edit may never have arrived
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

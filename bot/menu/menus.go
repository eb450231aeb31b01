package menu

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// Options configure Menus. All are required.
type Options struct {
	Service Service
	Edit    func(in orchestrator.ConversationID, message int, page tgapi.Page) // changes a message of ours; does not wait
	Beside  func(func(ctx context.Context))                                    // runs what no command waits for
	Now     func() time.Time
	Lang    *lang.Choices
	Aliases func() map[string]string // of models, now; see naming.Names
}

// Menus keeps the open menus. Safe for concurrent use.
//
// What the buttons choose from is kept here and not in them: a button carries a nonce, the step it was made for and an
// index. So a button of an earlier step, of another conversation, of a menu that expired or of before a restart is
// recognised and changes nothing.
type Menus struct {
	service Service
	edit    func(in orchestrator.ConversationID, message int, page tgapi.Page)
	beside  func(func(ctx context.Context))
	now     func() time.Time
	lang    *lang.Choices
	aliases func() map[string]string

	mu   sync.Mutex
	byID map[string]menu
}

// New makes Menus.
func New(o Options) *Menus {
	return &Menus{service: o.Service, edit: o.Edit, beside: o.Beside, now: o.Now, lang: o.Lang, aliases: o.Aliases, byID: make(map[string]menu)}
}

// menu is one open menu. The lock of Menus guards it until it is done.
type menu interface {
	common() *frame
	// view is what the message shows now.
	view() tgapi.Page
	// press moves the menu by one press. A press that makes no sense at this step leaves it as it is.
	press(o op) state
	// unchanged says what stays as it is when the user chose nothing.
	unchanged() string
	// store stores what the user chose. said takes the place of the menu, short answers the press.
	store(ctx context.Context, by orchestrator.Press) (said, short string, err error)
}

// loading is a menu that is offered before all of it is known.
type loading interface {
	menu
	// load waits for the rest. fill adds that to the menu.
	load(ctx context.Context) (fill func(), err error)
}

// returning is a menu whose last page, chosen or not, is that of the screen it came from.
type returning interface {
	backPage() tgapi.Page
}

// lastPage is what the message of a menu shows when it is done or closed; said is what it shows unless it returns.
func lastPage(m menu, said string) tgapi.Page {
	if r, ok := m.(returning); ok {
		return r.backPage()
	}
	return tgapi.Page{Text: said}
}

// frame is what all menus have.
type frame struct {
	lang    lang.Printer
	action  string // of its buttons
	nonce   string
	conv    orchestrator.ConversationID
	expires time.Time
	step    int // grows with every press; buttons of another step are stale
}

func (f *frame) common() *frame { return f }

// state says what became of a menu after a press.
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

// open gives the first page of a menu.
func (k *Menus) open(in orchestrator.ConversationID, m menu) tgapi.Page {
	f := m.common()
	f.nonce, f.conv, f.expires, f.lang = rand.Text()[:nonceLength], in, k.now().Add(life), k.lang.Of(in.Chat)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget()
	k.byID[f.nonce] = m
	return m.view()
}

// openLoading gives the first page of a menu, and edits its message when the rest is known. The caller calls sent with the
// message once it is sent.
func (k *Menus) openLoading(in orchestrator.ConversationID, m loading) (page tgapi.Page, sent func(message int)) {
	page = k.open(in, m)
	shown := make(chan int, 1)
	k.beside(func(ctx context.Context) {
		fill, err := m.load(ctx)
		if err != nil {
			return // the menu stays as it is; the user can ask again
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

// show edits the message of a menu that is still open.
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

// forget drops menus that expired, and the oldest where there are too many.
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

// Answer is what comes of a pressed button.
type Answer struct {
	tgapi.Answer
	Expired bool // the message has no use for its buttons
}

func edited(text string, page tgapi.Page) Answer {
	return Answer{Answer: tgapi.Answer{Text: text, Edit: page}}
}

// Press acts on a button of a message. data is the button's data without the action. With an error the choice is not
// stored, and Edit says so.
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
		page := m.view() // also for a message whose last edit never arrived
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

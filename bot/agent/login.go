package agent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

const (
	opEndLogin = "x"              // ends a log-in, or the wait for a token
	waitLife   = 15 * time.Minute // how long ductor waits for a token
	mostHeld   = 64
	minToken   = 20
	// tokenPrefix begins the tokens of `claude setup-token`. A message that begins with tokenPrefix counts as a token
	// even if ductor does not wait for one, for example after a restart.
	tokenPrefix = "sk-ant-"
)

// LoginService logs agents in. *conversation.Engine implements it.
type LoginService interface {
	// LogInOf returns the account and the environment of a log-in. If id does not contain them, they are those of the
	// conversation's next turn.
	LogInOf(ctx context.Context, in orchestrator.ConversationID, id orchestrator.LogInID) (orchestrator.AgentEnv,
		error)
	// Logins lists the ways to log in an agent, the best first.
	Logins(of orchestrator.AgentEnv) []cli.Login
	// LogIn starts to log in an agent in the given way, and reports the result in the chat. It has no effect while a
	// log-in of the agent is in progress. It returns ErrBadChoice if the chat cannot receive the code of this way.
	LogIn(by orchestrator.Press, of orchestrator.AgentEnv, way cli.Login) error
	// CancelLogIn cancels a log-in. It returns false if none is in progress for the agent.
	CancelLogIn(of orchestrator.AgentEnv) bool
	// UseToken gives an agent its token, checks it in the background, and reports the result in the chat. It returns
	// ErrStillOpen while another token of the agent is checked.
	UseToken(ctx context.Context, by orchestrator.Press, of orchestrator.AgentEnv, way cli.Login, token string) error
}

// Logins shows how an agent can be logged in, and accepts the tokens that owners send. A log-in counts for all users.
// A button contains a LogInID and the number of a way to log in. Safe for concurrent use.
type Logins struct {
	service LoginService
	lang    *lang.Choices
	now     func() time.Time

	mu    sync.Mutex
	waits map[sender]awaited
	held  map[int64]heldToken // by the update of the message
}

// sender is a user in a chat.
type sender struct {
	in   orchestrator.ConversationID
	user orchestrator.PersonID
}

// awaited is the expectation that a user will send a token.
type awaited struct {
	of    orchestrator.AgentEnv
	way   cli.Login
	until time.Time
}

// heldToken is a token that Take removed from a message, until Paste uses it.
type heldToken struct {
	text  string
	valid bool     // the token is complete
	wait  *awaited // nil if ductor did not wait for a token
}

// NewLogins returns Logins.
func NewLogins(service LoginService, l *lang.Choices, now func() time.Time) *Logins {
	return &Logins{service: service, lang: l, now: now, waits: map[sender]awaited{}, held: map[int64]heldToken{}}
}

// Press handles a button.
func (s *Logins) Press(ctx context.Context, by orchestrator.Press, data string) (tgapi.Answer, error) {
	p := s.lang.Of(by.Conversation.Chat)
	id, op, _ := strings.Cut(data, ":")
	of, err := s.service.LogInOf(ctx, by.Conversation, orchestrator.LogInID(id))
	if err != nil {
		return tgapi.Answer{}, err
	}
	if op == opEndLogin {
		return s.cancel(by, of), nil
	}
	ways := s.service.Logins(of)
	owner := by.Role.May(orchestrator.ManageDuctor)
	var inChat []cli.Login
	for _, l := range ways {
		if l.InChat() && (owner || l.Kind == cli.LoginByCode) { // the owner gets the code in a private chat
			inChat = append(inChat, l)
		}
	}
	if len(inChat) == 0 && !owner {
		return tgapi.Answer{Text: p.Text("login.owner-only")}, nil
	}
	if op != "" || len(inChat) == 1 {
		n, err := strconv.Atoi(op)
		if op != "" && (err != nil || n < 0 || n >= len(inChat)) {
			return tgapi.Stale(p), nil
		}
		return s.start(by, of, inChat[n], others(p, of, ways))
	}
	page := tgapi.Page{Text: p.Text("login.which", nameOf(p, of)) + others(p, of, ways)}
	for i, l := range inChat {
		page.Keyboard = append(page.Keyboard, []tgapi.Button{
			tgapi.NewButton(wayName(p, l), tgapi.LogInAction, string(of.LogInID())+":"+strconv.Itoa(i)),
		})
	}
	return notice(by, page), nil
}

// nameOf returns the name of an agent with its account, for users.
func nameOf(p lang.Printer, of orchestrator.AgentEnv) string { return of.Account.NameOf(p, of.Agent) }

// wayName returns the label of a button for a way to log in.
func wayName(p lang.Printer, l cli.Login) string {
	switch {
	case l.Kind == cli.LoginByToken:
		return p.Text("login.by-token")
	case l.Kind == cli.LoginByCode:
		return p.Text("login.by-code")
	}
	return render.ShortLine(l.Name, render.NameLimit)
}

// others describes the ways to log in outside of the chat.
func others(p lang.Printer, of orchestrator.AgentEnv, ways []cli.Login) string {
	var b strings.Builder
	for _, l := range ways {
		switch l.Kind {
		case cli.LoginByCommand:
			b.WriteString("\n" + p.Text("login.by-command", l.Command))
		case cli.LoginByVariable:
			b.WriteString("\n" + p.Text("login.by-variable", of.Account.Of(of.Agent)+"."+l.Variable))
		}
	}
	if len(ways) == 0 {
		b.WriteString("\n" + p.Text("login.unknown", nameOf(p, of)))
	}
	return b.String()
}

// notice returns an answer that sends a page as a new message.
func notice(by orchestrator.Press, page tgapi.Page) tgapi.Answer {
	return tgapi.Answer{Messages: []orchestrator.Message{message.Compose(by.Conversation, message.Content{
		Text: render.Plain(page.Text), Keyboard: page.Keyboard,
	})}}
}

// start starts a log-in. more describes the ways outside of the chat.
func (s *Logins) start(by orchestrator.Press, of orchestrator.AgentEnv, way cli.Login,
	more string) (tgapi.Answer, error) {
	p := s.lang.Of(by.Conversation.Chat)
	name := nameOf(p, of)
	end := tgapi.NewButton(p.Text("common.cancel"), tgapi.LogInAction, string(of.LogInID())+":"+opEndLogin)
	cancel := tgapi.Keyboard{{end}}
	switch {
	case way.Kind == cli.LoginByCode:
		return tgapi.Answer{Text: p.Text("bot.logging-in")}, s.service.LogIn(by, of, way)
	case way.Kind == cli.LoginByAgent:
		page := tgapi.Page{Text: p.Text("login.runs", name, wayName(p, way)), Keyboard: cancel}
		return notice(by, page), s.service.LogIn(by, of, way)
	case by.Conversation.Group():
		return tgapi.Answer{Text: p.Text("login.in-private")}, nil
	}
	s.mu.Lock()
	s.waits[sender{by.Conversation, by.Person}] = awaited{of, way, s.now().Add(waitLife)}
	s.mu.Unlock()
	text := p.Text("login.ask-token", way.Command, p.Span(waitLife), name) + more
	return notice(by, tgapi.Page{Text: text, Keyboard: cancel}), nil
}

func (s *Logins) cancel(by orchestrator.Press, of orchestrator.AgentEnv) tgapi.Answer {
	p, user := s.lang.Of(by.Conversation.Chat), sender{by.Conversation, by.Person}
	s.mu.Lock()
	waited := s.waits[user].of == of
	if waited {
		delete(s.waits, user)
	}
	s.mu.Unlock()
	if runs := s.service.CancelLogIn(of); !runs && !waited {
		return tgapi.Stale(p)
	}
	said := p.Text("common.cancelled")
	return tgapi.Answer{Text: said, Edit: tgapi.Page{Text: said}}
}

// Take reports whether a message is a token, or a part of a token for which ductor waits. Take keeps the token for
// Paste, and the caller must not store the message. A complete token ends the wait.
func (s *Logins) Take(in orchestrator.ConversationID, user orchestrator.PersonID, update int64, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := sender{in, user}
	w, waits := s.waits[of]
	if waits && !s.now().Before(w.until) {
		delete(s.waits, of)
		waits = false
	}
	token, form := readToken(text)
	if form == noToken || form == perhapsToken && !waits {
		return false
	}
	h := heldToken{text: token, valid: form == wholeToken}
	if waits {
		h.wait = &w
	}
	if waits && h.valid {
		delete(s.waits, of)
	}
	if len(s.held) >= mostHeld {
		delete(s.held, slices.Min(slices.Collect(maps.Keys(s.held)))) // drop the oldest
	}
	s.held[update] = h
	return true
}

// tokenForm describes how much a text looks like a token.
type tokenForm int

const (
	noToken      tokenForm = iota
	perhapsToken           // one long word
	partOfToken            // the beginning of a token
	wholeToken
)

// readToken finds the token in a text. It joins lines, because terminals break a long token and users copy the
// breaks.
func readToken(text string) (token string, form tokenForm) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		word := strings.TrimSpace(line)
		if len(strings.Fields(word)) > 1 {
			return "", noToken
		}
		token += word
	}
	strange := func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) }
	switch long := len(token) >= minToken && !strings.ContainsFunc(token, strange); {
	case strings.HasPrefix(token, tokenPrefix) && long:
		return token, wholeToken
	case strings.HasPrefix(token, tokenPrefix):
		return token, partOfToken
	case long && token == strings.TrimSpace(text) && !strings.ContainsAny(token, ":/."):
		return token, perhapsToken
	}
	return "", noToken
}

// Paste uses the token that Take kept from a message, and returns the answer to the sender. The caller deletes the
// message.
func (s *Logins) Paste(ctx context.Context, by orchestrator.Press, update int64) string {
	p := s.lang.Of(by.Conversation.Chat)
	s.mu.Lock()
	token := s.held[update]
	delete(s.held, update)
	s.mu.Unlock()
	switch {
	case by.Conversation.Group():
		return p.Text("login.in-group")
	case token.wait == nil:
		return p.Text("login.not-awaited")
	case !token.valid:
		return p.Text("login.no-token", token.wait.way.Command)
	}
	err := s.service.UseToken(ctx, by, token.wait.of, token.wait.way, token.text)
	if errors.Is(err, orchestrator.ErrStillOpen) {
		return p.Text("login.still-checks", nameOf(p, token.wait.of))
	}
	if err != nil {
		return p.Text("login.not-awaited")
	}
	return p.Text("login.checks", nameOf(p, token.wait.of))
}

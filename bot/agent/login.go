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
	opEndLogin = "x"              // cancels a log-in, or stops waiting for a token
	waitLife   = 15 * time.Minute // how long ductor waits for a message with a token
	mostHeld   = 64
	minToken   = 20
	// tokenPrefix is the prefix of the tokens that the command `claude setup-token` prints. ductor treats each message
	// with this prefix as a token, even if it is not waiting for a token: a restart may have interrupted the log-in.
	tokenPrefix = "sk-ant-"
)

// LoginService logs agents in. *conversation.Engine implements it.
type LoginService interface {
	// LogInOf returns the agent, the account and the environment of a log-in. If id contains no account, LogInOf
	// returns the agent, account and environment that the conversation would use for its next turn.
	LogInOf(ctx context.Context, in orchestrator.ConversationID, id orchestrator.LogInID) (orchestrator.AgentEnv,
		error)
	// Logins returns the ways to log in an agent. The first one is the best.
	Logins(of orchestrator.AgentEnv) []cli.Login
	// LogIn starts a log-in and reports the result in the chat. It does nothing if a log-in of the agent is already in
	// progress. It returns ErrBadChoice if the log-in needs a code that no chat may show.
	LogIn(by orchestrator.Press, of orchestrator.AgentEnv, way cli.Login) error
	// CancelLogIn cancels the log-in of an agent. It returns false if no log-in is in progress.
	CancelLogIn(of orchestrator.AgentEnv) bool
	// UseToken configures the token of an agent, checks in the background whether the token works, and reports the
	// result in the chat. It returns ErrStillOpen if the check of an earlier token for the agent has not ended.
	UseToken(ctx context.Context, by orchestrator.Press, of orchestrator.AgentEnv, way cli.Login, token string) error
}

// Logins implements the buttons that log in an agent, and accepts the tokens that owners of the bot send. A log-in
// applies to all users of the bot. The data of a button contains a LogInID and the index of the login method. Logins is
// safe for concurrent use.
type Logins struct {
	service LoginService
	lang    *lang.Choices
	now     func() time.Time

	mu    sync.Mutex
	waits map[sender]awaited
	held  map[int64]heldToken // key: update ID of the message that contains the token
}

type sender struct {
	in   orchestrator.ConversationID
	user orchestrator.PersonID
}

// awaited describes a token for which ductor waits.
type awaited struct {
	of    orchestrator.AgentEnv
	way   cli.Login
	until time.Time
}

// heldToken is a token that Take has found and Paste has not used yet.
type heldToken struct {
	text  string
	valid bool     // false if the text is incomplete or does not look like a token
	wait  *awaited // nil if ductor was not waiting for a token
}

// NewLogins returns Logins.
func NewLogins(service LoginService, l *lang.Choices, now func() time.Time) *Logins {
	return &Logins{service: service, lang: l, now: now, waits: map[sender]awaited{}, held: map[int64]heldToken{}}
}

// Press handles a button with the action tgapi.LogInAction. data is the button's data without the action.
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
		// Users other than the owner may start a log-in with a code too, because LogIn sends the code only to the
		// owner's private chat.
		if l.InChat() && (owner || l.Kind == cli.LoginByCode) {
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
		return s.start(by, of, inChat[n], otherWays(p, of, ways))
	}
	page := tgapi.Page{Text: p.Text("login.which", nameOf(p, of)) + otherWays(p, of, ways)}
	for i, l := range inChat {
		page.Keyboard = append(page.Keyboard, []tgapi.Button{
			tgapi.NewButton(wayName(p, l), tgapi.LogInAction, string(of.LogInID())+":"+strconv.Itoa(i)),
		})
	}
	return notice(by, page), nil
}

func nameOf(p lang.Printer, of orchestrator.AgentEnv) string { return of.Account.NameOf(p, of.Agent) }

func wayName(p lang.Printer, l cli.Login) string {
	switch {
	case l.Kind == cli.LoginByToken:
		return p.Text("login.by-token")
	case l.Kind == cli.LoginByCode:
		return p.Text("login.by-code")
	}
	return render.ShortLine(l.Name, render.NameLimit)
}

// otherWays describes the login methods that need a terminal or the configuration file.
func otherWays(p lang.Printer, of orchestrator.AgentEnv, ways []cli.Login) string {
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

func notice(by orchestrator.Press, page tgapi.Page) tgapi.Answer {
	return tgapi.Answer{Messages: []orchestrator.Message{message.Compose(by.Conversation, message.Content{
		Text: render.Plain(page.Text), Keyboard: page.Keyboard,
	})}}
}

// start starts a log-in, or asks the user for a token. othersText describes the login methods outside of the chat.
func (s *Logins) start(by orchestrator.Press, of orchestrator.AgentEnv, way cli.Login,
	othersText string) (tgapi.Answer, error) {
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
	text := p.Text("login.ask-token", way.Command, p.Span(waitLife), name) + othersText
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

// Take searches a message for a token, and stores the token for Paste. If Take returns true, it has found a token, and
// the caller must not store the message.
//
// While ductor waits for a token from this user, Take also accepts a long word without tokenPrefix. When Take finds a
// complete token, ductor stops waiting.
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
		delete(s.held, slices.Min(slices.Collect(maps.Keys(s.held)))) // remove the oldest token
	}
	s.held[update] = h
	return true
}

// tokenForm describes what readToken found in a text.
type tokenForm int

const (
	noToken      tokenForm = iota
	perhapsToken           // one long word, which may be a token
	partOfToken            // the beginning of a token
	wholeToken
)

// readToken finds a token in a text and removes line breaks from the token. A terminal wraps long tokens, and users
// copy them with the line breaks.
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

// Paste uses the token that Take has stored, and returns an answer for the user. The caller must delete the user's
// message with the token.
func (s *Logins) Paste(ctx context.Context, by orchestrator.Press, update int64) string {
	p := s.lang.Of(by.Conversation.Chat)
	s.mu.Lock()
	token := s.held[update]
	delete(s.held, update)
	s.mu.Unlock()
	switch {
	case by.Conversation.Group():
		return p.Text("login.in-group")
	case !by.May(orchestrator.ManageDuctor): // the user may have been an owner when Press asked for the token
		return p.Text("login.owner-only")
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

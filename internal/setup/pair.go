package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/users"
	"ductor/internal/paircode"
)

// Limits of a pairing.
const (
	pollSeconds  = 20
	pollRetry    = 2 * time.Second
	maxConflicts = 3 // number of consecutive polls by another program after which the pairing fails
	maxLines     = 3 // number of lines about other messages that the pairing prints in one minute
)

// Errors of Pair.
var (
	ErrExpired  = errors.New("the code expired")
	ErrAttempts = errors.New("too many wrong codes were sent")
	ErrPolled   = errors.New("another program polls this bot, perhaps another ductor: stop it, or make a bot of its own for this one with @BotFather")
)

// API calls methods of the Bot API.
type API interface {
	Call(ctx context.Context, method string, params, result any) error
}

type Paired struct {
	ID   int64
	Name string
}

type update struct {
	ID      int64 `json:"update_id"`
	Message *struct {
		Text string `json:"text"`
		Chat struct {
			ID   int64  `json:"id"`
			Type string `json:"type"`
		} `json:"chat"`
		From *sender `json:"from"`
	} `json:"message"`
}

type sender struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	Language  string `json:"language_code"`
}

// name returns the sender's first name for a terminal: on one line, and without invisible characters.
func (s sender) name() string {
	name := render.ShortLine(render.Revealed(render.OneLine(s.FirstName)), 60)
	return cmp.Or(name, "user "+strconv.FormatInt(s.ID, 10))
}

// Pair waits until a user sends the code, or "/start CODE", to the bot in a private chat. It answers only this user. It
// reads and discards all other updates, so use it only for a bot without users. If another message in a private chat
// arrives, Pair calls say, because the owner may have mistyped the code. It retries after network errors until the code
// expires. It returns ErrExpired, ErrAttempts, ErrPolled or the error of ctx.
func Pair(ctx context.Context, api API, code string, say func(format string, args ...any)) (Paired, error) {
	within, cancel := context.WithTimeout(ctx, paircode.Life)
	defer cancel()
	p := pairing{api: api, code: code, say: say}
	for {
		who, err := p.poll(within)
		switch {
		case who.ID != 0 || err != nil:
			return who, err
		case ctx.Err() != nil:
			return who, ctx.Err()
		case within.Err() != nil:
			return who, ErrExpired
		}
	}
}

type pairing struct {
	api              API
	code             string
	say              func(format string, args ...any)
	offset           int64
	wrong, conflicts int
	said             []time.Time // when the latest lines were printed
}

func (p *pairing) poll(ctx context.Context) (Paired, error) {
	var found []update
	params := map[string]any{"offset": p.offset, "timeout": pollSeconds, "allowed_updates": []string{"message"}}
	if err := p.api.Call(ctx, "getUpdates", params, &found); err != nil {
		return Paired{}, p.handleError(ctx, err)
	}
	p.conflicts = 0
	for _, u := range found {
		p.offset = u.ID + 1
		switch p.classify(u) {
		case right:
			who := Paired{ID: u.Message.From.ID, Name: u.Message.From.name()}
			return who, p.welcome(ctx, u)
		case wrong:
			if p.wrong++; p.wrong >= paircode.MostWrong {
				return Paired{}, ErrAttempts
			}
			p.report(u.Message.From)
		case small:
			p.report(u.Message.From)
		}
	}
	return Paired{}, nil
}

// report tells the owner at the console that a user sent a message that is not the code. It prints only a few lines
// each minute, because strangers can send many messages.
func (p *pairing) report(from *sender) {
	now := time.Now()
	p.said = slices.DeleteFunc(p.said, func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	if len(p.said) == maxLines {
		return
	}
	p.said = append(p.said, now)
	left := "1 try is left"
	if n := paircode.MostWrong - p.wrong; n != 1 {
		left = strconv.Itoa(n) + " tries are left"
	}
	p.say("A message came from %s, but not the code; %s.", from.name(), left)
}

// handleError returns the error of a failed call if another attempt is useless. Otherwise it waits before the next
// attempt, and returns nil.
func (p *pairing) handleError(ctx context.Context, err error) error {
	var no *tgapi.AnswerError
	switch {
	case tgapi.TokenRefused(err):
		return fmt.Errorf("wait for the code: %w", err)
	case errors.As(err, &no) && no.Code == http.StatusConflict:
		if p.conflicts++; p.conflicts >= maxConflicts {
			return fmt.Errorf("%w (%s)", ErrPolled, no.Description)
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(pollRetry):
	}
	return nil
}

type verdict string

const (
	other verdict = "other" // not a private message of a user
	small verdict = "small" // a private message that does not look like a code
	wrong verdict = "wrong"
	right verdict = "right"
)

// classify decides whether a message is the right code, a wrong code, or not a code. Too many wrong codes end the
// pairing. Messages that are not codes must not end it, because strangers can send them.
func (p *pairing) classify(u update) verdict {
	m := u.Message
	if m == nil || m.From == nil || m.From.IsBot || m.Chat.Type != "private" || m.Chat.ID != m.From.ID {
		return other
	}
	sent := strings.TrimSpace(m.Text)
	linked, isStart := strings.CutPrefix(sent, "/start ")
	sent = strings.ToUpper(strings.TrimSpace(linked))
	switch {
	case paircode.Same(sent, p.code):
		return right
	case isStart || len(sent) == len(p.code) && !strings.Contains(sent, " "):
		return wrong
	}
	return small
}

// welcome answers the user who sent the code. It also acknowledges the update with the code to Telegram, so that ductor
// does not handle the code as a prompt later.
func (p *pairing) welcome(ctx context.Context, u update) error {
	ctx, cancel := context.WithTimeout(ctx, pollSeconds*time.Second)
	defer cancel()
	err := p.api.Call(ctx, "getUpdates", map[string]any{"offset": p.offset, "timeout": 0, "limit": 1}, nil)
	text := users.Connected(u.Message.From.Language)
	return errors.Join(err, p.api.Call(ctx, "sendMessage", map[string]any{"chat_id": u.Message.Chat.ID, "text": text},
		nil))
}

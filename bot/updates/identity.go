package updates

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"ductor/bot/tgapi"
)

// ErrToken means that Telegram rejected the bot token. A retry does not help.
var ErrToken = errors.New(
	"Telegram does not accept the bot token: check telegram.token, or get a new one from @BotFather")

// Identity is the Telegram account of the bot.
type Identity struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
}

func (me Identity) wrote(m *wireMessage) bool {
	return m != nil && m.From != nil && m.From.ID == me.ID
}

func (me Identity) is(username string) bool {
	return username != "" && strings.EqualFold(username, me.Username)
}

// accepts reports whether a command names this bot or no bot.
func (me Identity) accepts(c Command) bool { return c.To == "" || me.is(c.To) }

// Identify asks Telegram for the bot's account and retries until it gets an answer. It returns ErrToken if Telegram
// rejects the token, and the zero Identity without an error if ctx is done.
func Identify(ctx context.Context, api *tgapi.API, log *slog.Logger) (Identity, error) {
	for failures := (backoff{jitter: jitter}); ; {
		me, err := GetMe(ctx, api)
		if err == nil || ctx.Err() != nil {
			return me, nil
		}
		if errors.Is(err, ErrToken) {
			return Identity{}, err
		}
		wait := failures.next()
		if no := (*tgapi.AnswerError)(nil); errors.As(err, &no) {
			wait = max(wait, no.RetryAfter)
		}
		log.Warn("Telegram cannot be reached", "err", err, "again_in", wait)
		if pause(ctx, wait) != nil {
			return Identity{}, nil
		}
	}
}

// GetMe asks Telegram for the bot's account, without retries. It returns ErrToken if Telegram rejects the token.
func GetMe(ctx context.Context, api *tgapi.API) (me Identity, err error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	if err := api.Call(ctx, "getMe", struct{}{}, &me); err != nil {
		if tgapi.TokenRefused(err) {
			err = ErrToken
		}
		return Identity{}, err
	}
	return me, nil
}

// RemoveWebhook removes the bot's webhook, because Telegram allows no polling with a webhook. Telegram does not drop
// the waiting updates.
func RemoveWebhook(ctx context.Context, api *tgapi.API) error {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	return api.Call(ctx, "deleteWebhook", map[string]any{"drop_pending_updates": false}, nil)
}

// callPatience is the timeout of requests that Telegram usually answers immediately.
const callPatience = 30 * time.Second

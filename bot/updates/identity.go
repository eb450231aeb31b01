package updates

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"ductor/bot/tgapi"
)

// ErrToken means that Telegram does not know the token. Retrying does not help.
var ErrToken = errors.New(
	"Telegram does not accept the bot token: check telegram.token, or get a new one from @BotFather")

// Identity is the bot's own Telegram user.
type Identity struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
}

// wrote reports whether the bot sent m.
func (me Identity) wrote(m *wireMessage) bool {
	return m != nil && m.From != nil && m.From.ID == me.ID
}

// is reports whether username is the bot's, apart from case.
func (me Identity) is(username string) bool {
	return username != "" && strings.EqualFold(username, me.Username)
}

// Identify requests the bot's user until Telegram answers or ctx is done. It returns ErrToken if Telegram rejects the
// token.
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

// GetMe requests the bot's user once. It returns ErrToken if Telegram rejects the token.
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

// RemoveWebhook removes a webhook, but not the pending updates.
func RemoveWebhook(ctx context.Context, api *tgapi.API) error {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	return api.Call(ctx, "deleteWebhook", map[string]any{"drop_pending_updates": false}, nil)
}

// callPatience limits a small call to the API.
const callPatience = 30 * time.Second

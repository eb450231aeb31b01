package bot

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"ductor/bot/tgapi"
	"ductor/bot/updates"
)

// Probe asks Telegram for the username of the bot to which o.Token belongs. It returns ErrToken if Telegram rejects the
// token.
func Probe(ctx context.Context, o Options) (username string, err error) {
	o = o.withDefaults()
	if o.Transport == nil {
		if o.Transport, err = tgapi.NewTransport(""); err != nil {
			return "", err
		}
	}
	api := tgapi.NewAPI(o.APIBase, o.Token, o.Transport)
	me, err := updates.GetMe(ctx, api)
	if errors.Is(err, updates.ErrToken) {
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("ask Telegram who we are: %w", err)
	}
	if t, ok := o.Transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	return me.Username, nil
}

package bot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Probe asks Telegram once who the bot of o's token is. ErrToken when the token is refused. It changes nothing.
func Probe(ctx context.Context, o Options) (username string, err error) {
	o = o.withDefaults()
	if o.Transport == nil {
		if o.Transport, err = NewTransport(""); err != nil {
			return "", err
		}
	}
	api := &plainAPI{base: strings.TrimRight(o.APIBase, "/"), token: o.Token, client: newPlainClient(o.Transport)}
	call, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	var me identity
	if err := api.call(call, "getMe", struct{}{}, &me); err != nil {
		if refused(err) {
			return "", ErrToken
		}
		return "", fmt.Errorf("ask Telegram who we are: %w", err)
	}
	if t, ok := o.Transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	return me.Username, nil
}

// refused says whether Telegram does not know the token.
func refused(err error) bool {
	var no *apiError
	return errors.As(err, &no) && (no.Code == http.StatusUnauthorized || no.Code == http.StatusNotFound)
}

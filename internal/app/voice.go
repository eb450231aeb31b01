package app

import (
	"context"
	"errors"
	"os"

	"ductor/bot/updates"
	"ductor/cli"
	"ductor/internal/transcribe"
)

// listener returns a Listener that converts speech to text. It returns nil if the configuration names neither a program
// nor an endpoint for the conversion.
func listener(v transcribe.Settings) updates.Listener {
	if len(v.Command) == 0 && v.URL == "" {
		return nil
	}
	return listening{transcribe.New(transcribe.Options{
		Settings: v, Env: cli.ChildEnv(os.Environ(), cli.BaseEnv(), nil), Key: os.Getenv(v.KeyFrom),
	})}
}

type listening struct{ *transcribe.Transcriber }

func (l listening) Transcribe(ctx context.Context, file string) (string, error) {
	said, err := l.Transcriber.Transcribe(ctx, file)
	if errors.Is(err, transcribe.ErrNothing) {
		return "", updates.ErrNothingHeard
	}
	return said, err
}

package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"ductor/bot/updates"
	"ductor/cli"
	"ductor/internal/transcribe"
)

// listener returns a Listener that converts speech to text. It returns nil if the configuration names neither a program
// nor an endpoint for that. The program works below the state directory.
func listener(v transcribe.Settings, state string) updates.Listener {
	if len(v.Command) == 0 && v.URL == "" {
		return nil
	}
	return listening{transcribe.New(transcribe.Options{
		Settings: v, Env: cli.ChildEnv(os.Environ(), cli.BaseEnv(), nil), Key: os.Getenv(v.KeyFrom),
		Dir: filepath.Join(state, "voice"),
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
